/* bell: eventfd. */
#include "worker/bell.h"

#include <errno.h>
#include <poll.h>
#include <sys/eventfd.h>
#include <unistd.h>

bool bell_open(struct slot *slots, size_t n)
{
    bool ok = true;

    for (size_t i = 0; i < n; i++) {
        slots[i].wake_fd = eventfd(0, EFD_NONBLOCK | EFD_CLOEXEC);
        ok = ok && slots[i].wake_fd >= 0;
    }
    return ok;
}

void bell_close(struct slot *slots, size_t n)
{
    for (size_t i = 0; i < n; i++) {
        if (slots[i].wake_fd >= 0)
            (void)close(slots[i].wake_fd);
    }
}

void bell_ring(const struct slot *slot)
{
    static const uint64_t one = 1;
    int saved = errno;

    (void)!write(slot->wake_fd, &one, sizeof one); /* full: it rings already */
    errno = saved;
}

void bell_hush(const struct slot *slot)
{
    uint64_t rings;

    (void)!read(slot->wake_fd, &rings, sizeof rings);
}

bool bell_wait(const struct slot *slot, int fd, int64_t ms)
{
    struct pollfd fds[] = {
        {.fd = slot->wake_fd, .events = POLLIN},
        {.fd = fd, .events = POLLIN},
    };

    return poll(fds, 2, ms > 0 ? (int)ms : 0) > 0;
}
