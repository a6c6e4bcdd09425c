/* waiters: processes that wait for one key: how fast it goes from one to the
 * next, and what they cost the server while nothing happens. */
#define _DEFAULT_SOURCE /* MAP_ANONYMOUS */
#include <stdio.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include "common/base/clock.h"
#include "labs/bench/locks.h"

enum { WAITERS = 64, HOLD_US = 500 };

/* Waiters write once in a few seconds, so they are watched for so long. */
enum { IDLE_WAITERS = 32, IDLE_MS = 7000, SETTLE_MS = 500 };

/* A lock of a process of its own. */
static struct rlock *open_lock(const struct lock_bench *b)
{
    struct rlock_options o = {
        .size = sizeof o, .url = b->config->redis_url, .prefix = b->prefix};
    struct rlock_client *c;
    struct rlock *l;

    if (rlock_open(&c, &o, NULL, 0) != RLOCK_OK || (l = rlock_new(c)) == NULL)
        _exit(1);
    return l;
}

static void
wait_and_hold(const struct lock_bench *b, int64_t until_ms, int64_t *handovers)
{
    struct rlock *l = open_lock(b);

    while (clk_ms() < until_ms) {
        int64_t held_until;

        if (rlock_acquire_wait(l, b->keys, 1, RLOCK_ALL, LEASE_MS, 2000, -1) !=
            RLOCK_OK)
            continue;
        held_until = clk_us() + HOLD_US;
        while (clk_us() < held_until)
            continue;
        if (rlock_release(l) == RLOCK_OK)
            (void)__atomic_add_fetch(handovers, 1, __ATOMIC_RELAXED);
    }
    _exit(0);
}

/* Until the bench has closed its end of the pipe. */
static void wait_in_vain(const struct lock_bench *b, const int pipe_fds[2])
{
    (void)close(pipe_fds[1]);
    _exit(rlock_acquire_wait(open_lock(b), b->keys, 1, RLOCK_ALL, LEASE_MS, LEASE_MS,
                             pipe_fds[0]) != RLOCK_CANCELLED);
}

/* How many of them did what they were made for. */
static size_t end_of(const pid_t *pids, size_t n)
{
    size_t well = 0;
    int status;

    for (size_t i = 0; i < n; i++) {
        bool is_over = pids[i] > 0 && waitpid(pids[i], &status, 0) == pids[i];

        well += is_over && WIFEXITED(status) && WEXITSTATUS(status) == 0 ? 1 : 0;
    }
    return well;
}

/* Forks the waiters and waits for their end; counts hand-overs. */
static int64_t contend(const struct lock_bench *b)
{
    int64_t *handovers = mmap(NULL, sizeof *handovers, PROT_READ | PROT_WRITE,
                              MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    int64_t until_ms = clk_ms() + b->flags->seconds * 1000;
    pid_t pids[WAITERS];
    int64_t counted;

    if (handovers == MAP_FAILED)
        return -1;
    (void)fflush(NULL);
    for (size_t i = 0; i < WAITERS; i++) {
        pids[i] = fork();
        if (pids[i] == 0)
            wait_and_hold(b, until_ms, handovers);
    }
    counted = end_of(pids, WAITERS) == WAITERS ? *handovers : -1;
    (void)munmap(handovers, sizeof *handovers);
    return counted;
}

static int handovers(struct lock_bench *b, struct err *e)
{
    int64_t before = bare_commands(b->bare);
    int64_t n = contend(b);
    int64_t commands = bare_commands(b->bare) - before;

    if (n <= 0)
        return err_set(e, ERR_REDIS, "no waiter got the lock");
    bench_figure(b, "64 waiters: hand-overs/s", (double)n / (double)b->flags->seconds);
    bench_figure(b, "64 waiters: commands/hand-over", (double)commands / (double)n);
    return 0;
}

/* Forks the waiters; what changes in the server while they wait, -1: they did not. */
static int64_t writes_of_idle(const struct lock_bench *b, const int pipe_fds[2])
{
    pid_t pids[IDLE_WAITERS];
    int64_t before, writes;

    (void)fflush(NULL);
    for (size_t i = 0; i < IDLE_WAITERS; i++) {
        pids[i] = fork();
        if (pids[i] == 0)
            wait_in_vain(b, pipe_fds);
    }
    clk_pause_ms(SETTLE_MS);
    before = bare_writes(b->bare);
    clk_pause_ms(IDLE_MS);
    writes = bare_writes(b->bare);
    (void)close(pipe_fds[1]);
    return end_of(pids, IDLE_WAITERS) == IDLE_WAITERS && before >= 0 ? writes - before
                                                                     : -1;
}

/* Somebody holds the key all the time; what changes in the server meanwhile is the
 * waiters' doing. */
static int idle(struct lock_bench *b, struct err *e)
{
    int pipe_fds[2];
    int64_t writes;

    if (rlock_acquire(b->lock, b->keys, 1, RLOCK_ALL, LEASE_MS) != RLOCK_OK)
        return err_set(e, ERR_REDIS, "%s", rlock_error(b->client));
    if (pipe(pipe_fds) != 0)
        return err_set(e, ERR_NOMEM, "no pipe for the idle waiters");
    writes = writes_of_idle(b, pipe_fds);
    (void)close(pipe_fds[0]);
    if (rlock_release(b->lock) != RLOCK_OK || writes < 0)
        return err_set(e, ERR_REDIS, "the idle waiters did not wait");
    bench_figure(b, "32 idle waiters: writes/s of one",
                 (double)writes * 1000 / IDLE_MS / IDLE_WAITERS);
    return 0;
}

int bench_waiters(struct lock_bench *b, struct err *e)
{
    return handovers(b, e) != 0 ? (int)e->code : idle(b, e);
}
