/* notify: the environment of a service, and its datagrams. */
#include "common/base/notify.h"

#include <stddef.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static void read_socket(struct notify *n)
{
    const char *name = getenv("NOTIFY_SOCKET");
    size_t length = name != NULL ? strlen(name) : 0;

    if (length < 2 || length >= sizeof n->to.sun_path ||
        (name[0] != '/' && name[0] != '@'))
        return;
    n->to.sun_family = AF_UNIX;
    memcpy(n->to.sun_path, name, length);
    if (name[0] == '@') /* an abstract name: it begins with a zero */
        n->to.sun_path[0] = '\0';
    n->size = (socklen_t)(offsetof(struct sockaddr_un, sun_path) + length);
}

static void read_watchdog(struct notify *n)
{
    const char *usec = getenv("WATCHDOG_USEC");
    const char *pid = getenv("WATCHDOG_PID");

    if (usec == NULL || (pid != NULL && strtoll(pid, NULL, 10) != getpid()))
        return;
    n->watchdog_ms = strtoll(usec, NULL, 10) / 1000;
}

void notify_init(struct notify *n)
{
    memset(n, 0, sizeof *n);
    read_socket(n);
    if (n->size > 0)
        read_watchdog(n);
}

void notify_send(const struct notify *n, const char *word)
{
    int fd;

    if (n->size == 0)
        return;
    fd = socket(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC, 0);
    if (fd < 0)
        return;
    (void)sendto(fd, word, strlen(word), MSG_NOSIGNAL | MSG_DONTWAIT,
                 (const struct sockaddr *)&n->to, n->size);
    (void)close(fd);
}
