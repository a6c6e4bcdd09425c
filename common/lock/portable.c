/* portable: see portable.h. Linux has epoll, timerfd and CLOCK_BOOTTIME; the others
 * have kqueue, and a CLOCK_MONOTONIC that counts sleep. RLOCK_KQUEUE chooses kqueue on
 * Linux, with libkqueue. */
#if !defined __linux__
#undef _POSIX_C_SOURCE /* it would hide what follows */
#define RLOCK_KQUEUE
#endif
#define _DEFAULT_SOURCE /* explicit_bzero */
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>
#ifdef RLOCK_KQUEUE
#include <sys/event.h>
#else
#include <sys/epoll.h>
#include <sys/timerfd.h>
#endif
#ifdef __linux__
#include <sys/random.h>
#endif

#include "common/lock/portable.h"

/* ---- time, chance, secrets ---- */

int64_t rlock_now_us(void)
{
    struct timespec ts;

#ifdef CLOCK_BOOTTIME
    (void)clock_gettime(CLOCK_BOOTTIME, &ts);
#else
    (void)clock_gettime(CLOCK_MONOTONIC, &ts);
#endif
    return (int64_t)ts.tv_sec * 1000000 + ts.tv_nsec / 1000;
}

int64_t rlock_now_ms(void)
{
    return rlock_now_us() / 1000;
}

bool rlock_random(void *to, size_t n)
{
#ifdef __linux__
    return getrandom(to, n, 0) == (ssize_t)n;
#else
    arc4random_buf(to, n);
    return true;
#endif
}

void rlock_wipe(void *text, size_t n)
{
#ifdef __linux__
    explicit_bzero(text, n);
#else
    for (volatile unsigned char *at = text; n > 0; n--)
        *at++ = 0;
#endif
}

/* ---- descriptors that tell of a time, or of others ---- */

#ifdef RLOCK_KQUEUE

static int new_queue(void)
{
    int fd = kqueue();

    if (fd >= 0)
        (void)fcntl(fd, F_SETFD, FD_CLOEXEC);
    return fd;
}

/* Takes what is told, which level-triggered filters then tell anew. */
static void drain(int fd)
{
    struct kevent events[16];
    const struct timespec at_once = {0, 0};

    (void)kevent(fd, NULL, 0, events, 16, &at_once);
}

int rlock_timer_open(void)
{
    return new_queue();
}

/* The filter counts the time from now on; at most a day, since some count in 31 bits.
 */
void rlock_timer_set(int timer_fd, int64_t at_ms)
{
    int64_t left_ms = at_ms == INT64_MAX ? INT64_MAX : at_ms - rlock_now_ms();
    struct kevent change;

    drain(timer_fd);
    EV_SET(&change, 1, EVFILT_TIMER, EV_DELETE, 0, 0, NULL);
    (void)kevent(timer_fd, &change, 1, NULL, 0, NULL);
    if (left_ms == INT64_MAX)
        return;
    left_ms = left_ms < 1 ? 1 : left_ms > 86400000 ? 86400000 : left_ms;
    EV_SET(&change, 1, EVFILT_TIMER, EV_ADD | EV_ONESHOT, 0, (intptr_t)left_ms, NULL);
    (void)kevent(timer_fd, &change, 1, NULL, 0, NULL);
}

void rlock_timer_drain(int timer_fd)
{
    drain(timer_fd);
}

int rlock_watch_open(void)
{
    return new_queue();
}

static bool filter(int watch_fd, int fd, short what, bool was, bool is)
{
    struct kevent change;

    if (was == is)
        return true;
    EV_SET(&change, (uintptr_t)fd, what, is ? EV_ADD : EV_DELETE, 0, 0, NULL);
    return kevent(watch_fd, &change, 1, NULL, 0, NULL) == 0;
}

bool rlock_watch(int watch_fd, int fd, short before, short events)
{
    bool reads = filter(watch_fd, fd, EVFILT_READ, (before & POLLIN) != 0,
                        (events & POLLIN) != 0);
    bool writes = filter(watch_fd, fd, EVFILT_WRITE, (before & POLLOUT) != 0,
                         (events & POLLOUT) != 0);

    return reads && writes;
}

void rlock_watch_drain(int watch_fd)
{
    drain(watch_fd);
}

#else

int rlock_timer_open(void)
{
    return timerfd_create(CLOCK_BOOTTIME, TFD_CLOEXEC | TFD_NONBLOCK);
}

/* A timer without a time never rings, so now is the first of all. */
void rlock_timer_set(int timer_fd, int64_t at_ms)
{
    int64_t ms = at_ms < 1 ? 1 : at_ms;
    struct itimerspec at = {
        .it_value = {.tv_sec = ms / 1000, .tv_nsec = ms % 1000 * 1000000}};

    if (at_ms == INT64_MAX)
        at = (struct itimerspec){0};
    (void)timerfd_settime(timer_fd, TFD_TIMER_ABSTIME, &at, NULL);
}

void rlock_timer_drain(int timer_fd)
{
    uint64_t count;
    ssize_t n = read(timer_fd, &count, sizeof count); /* it does not wait */

    (void)n;
}

int rlock_watch_open(void)
{
    return epoll_create1(EPOLL_CLOEXEC);
}

bool rlock_watch(int watch_fd, int fd, short before, short events)
{
    int how = events == 0 ? EPOLL_CTL_DEL : before == 0 ? EPOLL_CTL_ADD : EPOLL_CTL_MOD;
    struct epoll_event event = {0};

    event.events = ((events & POLLIN) != 0 ? EPOLLIN : 0U) |
                   ((events & POLLOUT) != 0 ? EPOLLOUT : 0U);
    return epoll_ctl(watch_fd, how, fd, &event) == 0;
}

void rlock_watch_drain(int watch_fd)
{
    (void)watch_fd; /* epoll looks anew by itself */
}

#endif

/* ---- sockets ---- */

int rlock_socket(int family)
{
#ifdef SOCK_CLOEXEC
    return socket(family, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
#else
    int fd = socket(family, SOCK_STREAM, 0);

    if (fd >= 0) {
        (void)fcntl(fd, F_SETFD, FD_CLOEXEC);
        (void)fcntl(fd, F_SETFL, O_NONBLOCK);
    }
    return fd;
#endif
}

ssize_t rlock_send_now(int fd, const char *bytes, size_t n)
{
#ifdef MSG_NOSIGNAL
    return send(fd, bytes, n, MSG_NOSIGNAL | MSG_DONTWAIT);
#else
    const int on = 1;

    (void)setsockopt(fd, SOL_SOCKET, SO_NOSIGPIPE, &on, sizeof on);
    return send(fd, bytes, n, MSG_DONTWAIT);
#endif
}

void rlock_take_sigpipe(void)
{
    sigset_t set;

    (void)sigemptyset(&set);
    (void)sigaddset(&set, SIGPIPE);
#if defined __APPLE__ || defined __OpenBSD__ /* they have no sigtimedwait */
    {
        sigset_t pending;
        int sig;

        (void)sigpending(&pending);
        if (sigismember(&pending, SIGPIPE) == 1)
            (void)sigwait(&set, &sig);
    }
#else
    {
        static const struct timespec at_once = {0, 0};

        (void)sigtimedwait(&set, NULL, &at_once);
    }
#endif
}
