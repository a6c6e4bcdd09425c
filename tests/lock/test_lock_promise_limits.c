/* The limits of a call, to the millisecond: on counted time, which passes only where
 * the library waits or reads. A busy machine changes nothing. */
#define _DEFAULT_SOURCE /* syscall */
#include "tests/lib/lock_world.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

enum { LIMIT_MS = 300, OVER_MS = 50, TICK_MS = 50, STEP_US = 1000 };

/* ---- counted time, on this thread while it is on ---- */

static _Thread_local bool is_counted;
int64_t counted_us; /* not static: the headers declare poll and read as inline */
ssize_t count_read(int fd, ssize_t got, bool may_wait);

int clock_gettime(clockid_t clock, struct timespec *ts)
{
    if (!is_counted || clock != CLOCK_BOOTTIME)
        return (int)syscall(SYS_clock_gettime, clock, ts);
    *ts = (struct timespec){counted_us / 1000000, counted_us % 1000000 * 1000};
    return 0;
}

/* Waits as long in truth, so that servers can answer. */
int poll(struct pollfd *fds, nfds_t n, int timeout)
{
    struct timespec real = {timeout / 1000, timeout % 1000 * 1000000};
    int got = (int)syscall(SYS_ppoll, fds, n, timeout < 0 ? NULL : &real, NULL, 0);

    counted_us += got == 0 ? (int64_t)timeout * 1000 : STEP_US;
    return got;
}

/* A read takes a step, and one that waits in vain a tick. */
ssize_t count_read(int fd, ssize_t got, bool may_wait)
{
    int saved = errno;
    bool is_waiting = got < 0 && saved == EAGAIN && may_wait &&
                      (syscall(SYS_fcntl, fd, F_GETFL) & O_NONBLOCK) == 0;

    counted_us += is_waiting ? TICK_MS * 1000 : STEP_US;
    errno = saved;
    return got;
}

/* hiredis calls these. */
ssize_t read(int fd, void *to, size_t n)
{
    return count_read(fd, syscall(SYS_read, fd, to, n), true);
}

ssize_t recv(int fd, void *to, size_t n, int flags)
{
    return count_read(fd, syscall(SYS_recvfrom, fd, to, n, flags, NULL, NULL),
                      (flags & MSG_DONTWAIT) == 0);
}

/* ---- what is called ---- */

/* Counted milliseconds of an acquire, which must fail; with wait_ms of a wait. */
static int64_t time_acquire(struct rlock_client *c, uint32_t wait_ms)
{
    const struct rlock_key key = {"one", 3};
    LOCK *l = rlock_new(c);
    int code;

    counted_us = 1000000000;
    is_counted = true;
    code = wait_ms == 0 ? rlock_acquire(l, &key, 1, RLOCK_ALL, 10000)
                        : rlock_acquire_wait(l, &key, 1, RLOCK_ALL, 10000, wait_ms, -1);
    is_counted = false;
    assert_true(code < 0 || code == RLOCK_TIMEOUT);
    return (counted_us - 1000000000) / 1000;
}

static int64_t time_hasty(const char *url, uint32_t wait_ms)
{
    CLIENT *c = LOCK_OPEN(.url = url, .connect_ms = LIMIT_MS, .reply_ms = LIMIT_MS);

    return time_acquire(c, wait_ms);
}

static redisContext *hand_in(void *fake)
{
    return redisConnectUnix(((struct fake_redis *)fake)->url + strlen("unix://"));
}

/* ---- tests ---- */

/* Guarantee: No call lasts more than 50 ms longer than its limits. */
LOCK_CASE(call_ends_at_its_limits_at_a_silent_server)
{
    static const char *const words[] = {"INFO", "TIME", "EVALSHA"};

    for (size_t i = 0; i < sizeof words / sizeof words[0]; i++) {
        FAKE fake = fake_saying(words[i], NULL);

        assert_in_range(time_hasty(fake.url, 0), LIMIT_MS, 2 * LIMIT_MS + OVER_MS);
    }
}

LOCK_CASE(call_ends_at_its_limits_though_bytes_come_for_ever)
{
    static char flood[32 << 20];
    FAKE fake = {0};
    PROXY p = proxy_before(lock_server.url);
    CLIENT *c = NULL;

    memset(flood, '+', sizeof flood);
    fake_redis_open(&fake, &(struct fake_answer){"EVALSHA", flood, sizeof flood}, 1);
    assert_in_range(time_hasty(fake.url, 0), LIMIT_MS, 2 * LIMIT_MS + OVER_MS);
    c = LOCK_OPEN(.connect = hand_in, .connect_arg = &fake, .connect_ms = LIMIT_MS,
                  .reply_ms = LIMIT_MS); /* read through hiredis' layer, as TLS is */
    assert_in_range(time_acquire(c, 0), LIMIT_MS, 2 * LIMIT_MS + OVER_MS);
    proxy_slice(&p, 1, 0);
    assert_in_range(time_hasty(p.url, 0), LIMIT_MS, 2 * LIMIT_MS + OVER_MS);
}

/* Guarantee: No wait lasts more than 50 ms longer than it was asked for. */
LOCK_CASE(wait_ends_at_its_limit)
{
    FAKE fake = fake_saying("EVALSHA", NULL);

    assert_int_equal(rlock_try(w->la, "one", 60000), RLOCK_OK);
    assert_in_range(time_acquire(w->b, 500), 500, 500 + OVER_MS);
    assert_in_range(time_hasty("unix:///nowhere/redis.sock", 500), 500, 500 + OVER_MS);
    assert_in_range(time_hasty(fake.url, 200), 200, 200 + OVER_MS);
}

static const struct {
    const char *name;
    int mode;
} modes[] = {{"above", 1002}, {"far_above", 70000}, {"below", -1}};

/* Guarantee: A mode that there is not is refused. */
CASE_ROWS_IN(lock_group, struct lock_world, mode_out_of_range, modes)
{
    static const struct rlock_key keys[] = {{"x", 1}, {"y", 1}};
    enum rlock_mode mode = (enum rlock_mode)row->mode;

    assert_int_equal(rlock_acquire(w->la, keys, 2, mode, 60000), RLOCK_E_INVAL);
    fixture_assert_contains(rlock_error(w->a), "no mode");
    assert_int_equal(rlock_acquire_wait(w->la, keys, 2, mode, 60000, 100, -1),
                     RLOCK_E_INVAL);
    assert_int_equal(lock_raw_integer(w, "DBSIZE"), 0);
}
