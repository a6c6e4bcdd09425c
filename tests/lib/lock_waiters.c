/* lock_waiters: threads that wait for one lock. */
#include "tests/lib/lock_waiters.h"

#include <stdatomic.h>
#include <time.h>

static atomic_int inside;   /* holders of the one key at this moment */
static atomic_int overlaps; /* how often there were two */

int64_t waiters_now_us(void)
{
    struct timespec ts;

    (void)clock_gettime(CLOCK_BOOTTIME, &ts);
    return (int64_t)ts.tv_sec * 1000000 + ts.tv_nsec / 1000;
}

static void hold(unsigned us)
{
    struct timespec ts = {0, (long)us * 1000};

    if (atomic_fetch_add(&inside, 1) != 0)
        atomic_fetch_add(&overlaps, 1);
    (void)nanosleep(&ts, NULL);
    atomic_fetch_sub(&inside, 1);
}

static void *wait_in_thread(void *arg)
{
    struct waiter *w = arg;
    struct rlock_options o = {.size = sizeof o,
                              .url = lock_server.url,
                              .connect_ms = LOCK_SOON_MS,
                              .reply_ms = w->reply_ms};
    struct rlock_key key = {"one", 3};
    struct rlock_client *c;
    struct rlock *l;

    w->code = rlock_open(&c, &o, NULL, 0);
    if (w->code != RLOCK_OK)
        return NULL;
    l = rlock_new(c);
    w->code = rlock_connect(c);
    for (unsigned i = 0; i < w->rounds && w->code == RLOCK_OK; i++) {
        int64_t before_ms = waiters_now_us() / 1000; /* as the library counts */
        int64_t ms;

        w->code = rlock_acquire_wait(l, &key, 1, RLOCK_ALL, 30000, w->wait_ms, -1);
        ms = waiters_now_us() / 1000 - before_ms;
        w->slowest_ms = ms > w->slowest_ms ? ms : w->slowest_ms;
        if (w->code == RLOCK_OK) {
            w->granted++;
            hold(w->hold_us);
            w->code = rlock_release(l);
        }
    }
    rlock_free(l);
    rlock_close(c);
    return NULL;
}

int waiters_overlaps(void)
{
    return atomic_load(&overlaps);
}

bool waiters_in_vain(const struct waiter *w)
{
    return w->granted == 0 &&
           (w->code == RLOCK_TIMEOUT || w->code == RLOCK_E_UNCERTAIN);
}

struct waiter *waiters_start(size_t n, struct waiter one)
{
    struct waiter *w = calloc(n, sizeof *w);

    atomic_store(&overlaps, 0);
    for (size_t i = 0; i < n; i++) {
        w[i] = one;
        assert_int_equal(pthread_create(&w[i].thread, NULL, wait_in_thread, &w[i]), 0);
    }
    return w;
}

void waiters_join(struct waiter *w, size_t n)
{
    for (size_t i = 0; i < n; i++)
        assert_int_equal(pthread_join(w[i].thread, NULL), 0);
}

long long waiters_calls(struct lock_world *w, const char *command)
{
    char name[64];

    (void)snprintf(name, sizeof name, "cmdstat_%s:calls=", command);
    return lock_info(w->raw, "commandstats", name);
}

long long waiters_sent(struct lock_world *w)
{
    return waiters_calls(w, "evalsha") + waiters_calls(w, "blpop");
}

long long waiters_run(struct lock_world *w)
{
    return lock_info(w->raw, "stats", "total_commands_processed:");
}

long long waiters_blocked(struct lock_world *w)
{
    return lock_info(w->raw, "clients", "blocked_clients:");
}

void waiters_assert_ends(struct lock_world *w)
{
    lock_assert_ends(w->raw, "lock:");
}
