/* renewal: the watchdog of the articles: a thread that lengthens the lease of one key
 * while its value is ours, and tells nobody when it is not. */
#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "labs/lab/actor.h"

struct lab_renewal {
    pthread_t thread;
    pthread_mutex_t mutex;
    pthread_cond_t cond;
    bool is_over;
    int64_t interval_ms;
    struct bare *redis; /* a connection of its own */
    const char *words[6];
};

static const char lengthen[] =
    "if redis.call('GET', KEYS[1]) == ARGV[1] then "
    "return redis.call('PEXPIRE', KEYS[1], ARGV[2]) else return 0 end";

static struct timespec in_ms(int64_t ms)
{
    struct timespec t;

    (void)clock_gettime(CLOCK_MONOTONIC, &t);
    t.tv_sec += ms / 1000;
    t.tv_nsec += ms % 1000 * 1000000;
    if (t.tv_nsec >= 1000000000) {
        t.tv_sec++;
        t.tv_nsec -= 1000000000;
    }
    return t;
}

static void *run(void *arg)
{
    struct lab_renewal *r = arg;
    struct bare_answer answer;

    (void)pthread_mutex_lock(&r->mutex);
    while (!r->is_over) {
        struct timespec until = in_ms(r->interval_ms);

        if (pthread_cond_timedwait(&r->cond, &r->mutex, &until) != 0 && !r->is_over)
            bare_ask(r->redis, r->words, 6, &answer);
    }
    (void)pthread_mutex_unlock(&r->mutex);
    return NULL;
}

void lab_renew(struct lab_actor *a)
{
    struct lab_renewal *r = calloc(1, sizeof *r);
    pthread_condattr_t attr;

    if (r == NULL)
        abort();
    r->interval_ms = a->lease_ms / 3;
    r->redis = bare_open(a->redis_url);
    memcpy(r->words,
           ((const char *[]){"EVAL", lengthen, "1", a->key, a->value, a->lease}),
           sizeof r->words);
    (void)pthread_mutex_init(&r->mutex, NULL);
    (void)pthread_condattr_init(&attr);
    (void)pthread_condattr_setclock(&attr, CLOCK_MONOTONIC);
    (void)pthread_cond_init(&r->cond, &attr);
    (void)pthread_condattr_destroy(&attr);
    if (pthread_create(&r->thread, NULL, run, r) != 0)
        abort();
    a->renewal = r;
}

void lab_renew_stop(struct lab_actor *a)
{
    struct lab_renewal *r = a->renewal;

    if (r == NULL)
        return;
    (void)pthread_mutex_lock(&r->mutex);
    r->is_over = true;
    (void)pthread_cond_signal(&r->cond);
    (void)pthread_mutex_unlock(&r->mutex);
    (void)pthread_join(r->thread, NULL);
    (void)pthread_cond_destroy(&r->cond);
    (void)pthread_mutex_destroy(&r->mutex);
    bare_close(r->redis);
    free(r);
    a->renewal = NULL;
}
