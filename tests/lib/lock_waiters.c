/* lock_waiters: threads that wait for one lock. */
#include "tests/lib/lock_waiters.h"

#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
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
    struct ll_options o = {.size = sizeof o, .url = lock_server.url};
    struct ll_key key = {"one", 3};
    struct ll_client *c;
    struct ll_lock *l;

    (void)ll_open(&c, &o, NULL, 0);
    l = ll_new(c);
    w->code = ll_connect(c);
    for (unsigned i = 0; i < w->turns && w->code == LL_OK; i++) {
        int64_t before = waiters_now_us();
        int64_t ms;

        w->code = ll_acquire_wait(l, &key, 1, LL_ALL, 30000, w->wait_ms);
        ms = (waiters_now_us() - before) / 1000;
        w->slowest_ms = ms > w->slowest_ms ? ms : w->slowest_ms;
        if (w->code == LL_OK) {
            w->granted++;
            hold(w->hold_us);
            w->code = ll_release(l);
        }
    }
    ll_free(l);
    ll_close(c);
    return NULL;
}

int waiters_overlaps(void)
{
    return atomic_load(&overlaps);
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
    redisReply *reply = redisCommand(w->raw, "INFO commandstats");
    char name[64];
    const char *at;
    long long n = 0;

    (void)snprintf(name, sizeof name, "cmdstat_%s:calls=", command);
    at = strstr(reply->str, name);
    if (at != NULL)
        n = strtoll(at + strlen(name), NULL, 10);
    freeReplyObject(reply);
    return n;
}

long long waiters_sent(struct lock_world *w)
{
    return waiters_calls(w, "evalsha") + waiters_calls(w, "blpop");
}

long long waiters_run(struct lock_world *w)
{
    redisReply *reply = redisCommand(w->raw, "INFO stats");
    long long n = strtoll(strstr(reply->str, "total_commands_processed:") +
                              strlen("total_commands_processed:"),
                          NULL, 10);

    freeReplyObject(reply);
    return n;
}

void waiters_assert_ends(struct lock_world *w)
{
    redisReply *keys = redisCommand(w->raw, "KEYS *");

    for (size_t i = 0; i < keys->elements; i++) {
        redisReply *reply = redisCommand(w->raw, "PTTL %s", keys->element[i]->str);

        if (strcmp(keys->element[i]->str, "lock:!fence") != 0)
            assert_int_not_equal(reply->integer, -1);
        freeReplyObject(reply);
    }
    freeReplyObject(keys);
}
