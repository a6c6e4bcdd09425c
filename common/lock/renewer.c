/* renewer: opening and closing a renewer, and its thread, which sleeps until a lock is
 * due. */
#include <signal.h>
#include <stdlib.h>
#include <sys/timerfd.h>
#include <unistd.h>

#include "common/lock/internal.h"

/* False in a child of fork: the thread does not exist there, and nobody could unlock
 * the mutex. */
static bool is_ours(const struct rlock_renewer *r)
{
    return r->client->owner == getpid();
}

/* ---- the thread ---- */

static void sleep_until(struct rlock_renewer *r, int64_t when_ms)
{
    uint64_t count;
    ssize_t n;

    rlock_renew_arm(r, when_ms != INT64_MAX ? when_ms : 0);
    r->asleep_until_ms = when_ms;
    (void)pthread_mutex_unlock(&r->mutex);
    n = read(r->timer_fd, &count,
             sizeof count); /* until it fires; it may be set anew */
    (void)n;
    (void)pthread_mutex_lock(&r->mutex);
    r->asleep_until_ms = 0;
}

static void *run(void *renewer)
{
    struct rlock_renewer *r = renewer;

    (void)pthread_mutex_lock(&r->mutex);
    while (!r->closing) {
        int64_t next_ms = rlock_renew_next(r);

        if (next_ms > rlock_now_ms())
            sleep_until(r, next_ms);
        else
            (void)rlock_renew_step(r);
    }
    (void)pthread_mutex_unlock(&r->mutex);
    return NULL;
}

/* Blocks all signals: they are for the threads of the program. */
static bool start_thread(struct rlock_renewer *r)
{
    sigset_t all, before;

    (void)sigfillset(&all);
    (void)pthread_sigmask(SIG_SETMASK, &all, &before);
    r->has_thread = pthread_create(&r->thread, NULL, run, r) == 0;
    (void)pthread_sigmask(SIG_SETMASK, &before, NULL);
    return r->has_thread;
}

/* ---- open and close ---- */

int rlock_renewer_open(struct rlock_renewer **out,
                       struct rlock_client *c,
                       const struct rlock_renew_options *options)
{
    struct rlock_renew_options o = {0};
    struct rlock_renewer *r;
    int code = rlock_check_owner(c);

    *out = NULL;
    if (code != RLOCK_OK)
        return code;
    if (options != NULL && !rlock_read_options(&o, sizeof o, options, options->size))
        return rlock_fail(c, RLOCK_E_INVAL,
                          "options.size is not sizeof(struct rlock_renew_options)");
    r = calloc(1, sizeof *r);
    if (r == NULL || rlock_copy(&r->client, c) != RLOCK_OK) {
        free(r);
        return rlock_fail_as(c, RLOCK_E_NOMEM);
    }
    r->o = o;
    (void)pthread_mutex_init(&r->mutex, NULL);
    (void)pthread_cond_init(&r->idle, NULL);
    r->timer_fd = timerfd_create(CLOCK_BOOTTIME, TFD_CLOEXEC);
    if (r->timer_fd < 0 || (!r->o.no_thread && !start_thread(r))) {
        rlock_renewer_close(r);
        return rlock_fail(c, RLOCK_E_NOMEM,
                          "no descriptor or no thread for the renewer");
    }
    *out = r;
    return RLOCK_OK;
}

static void end_thread(struct rlock_renewer *r)
{
    (void)pthread_mutex_lock(&r->mutex);
    r->closing = true;
    rlock_renew_arm(r, 1); /* at once */
    (void)pthread_mutex_unlock(&r->mutex);
    (void)pthread_join(r->thread, NULL);
}

void rlock_renewer_close(struct rlock_renewer *r)
{
    if (r == NULL)
        return;
    if (is_ours(r)) {
        if (r->has_thread)
            end_thread(r);
        while (r->first != NULL)
            rlock_renew_forget(r->first);
        (void)pthread_mutex_destroy(&r->mutex);
        (void)pthread_cond_destroy(&r->idle);
    }
    (void)close(r->timer_fd);
    /* a fork while the thread was awake has copied a client in use */
    if (is_ours(r) || !r->has_thread || r->asleep_until_ms != 0)
        rlock_close(r->client);
    free(r);
}

/* ---- without a thread ---- */

int64_t rlock_renew_due(const struct rlock_renewer *renewer)
{
    struct rlock_renewer *r =
        (struct rlock_renewer *)(uintptr_t)renewer; /* for its mutex */
    int64_t next_ms;

    if (!is_ours(r))
        return -1;
    (void)pthread_mutex_lock(&r->mutex);
    next_ms = rlock_renew_next(r);
    (void)pthread_mutex_unlock(&r->mutex);
    return next_ms == INT64_MAX ? -1 : rlock_most(next_ms - rlock_now_ms(), 0);
}

int rlock_renew_now(struct rlock_renewer *r)
{
    int64_t now_ms = rlock_now_ms();
    int code = RLOCK_OK;

    if (!is_ours(r))
        return RLOCK_E_FORKED;
    if (r->has_thread)
        return RLOCK_E_INVAL;
    (void)pthread_mutex_lock(&r->mutex);
    if (r->part_ct > 0)
        code = RLOCK_E_INVAL; /* on_lost calls it */
    else
        r->thread = pthread_self();
    while (code == RLOCK_OK && rlock_renew_next(r) <= now_ms)
        code = rlock_renew_step(r);
    (void)pthread_mutex_unlock(&r->mutex);
    return code;
}
