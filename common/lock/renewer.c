/* renewer: opening and closing a renewer, and its thread, which sleeps until a lock is
 * due. */
#include <signal.h>
#include <stdlib.h>
#include <sys/timerfd.h>
#include <unistd.h>

#include "common/lock/internal.h"

/* False in a child of fork: the thread does not exist there, and nobody could unlock
 * the mutex. */
static bool is_ours(const struct ll_renewer *r)
{
    return r->client->owner == getpid();
}

/* ---- the thread ---- */

static void sleep_until(struct ll_renewer *r, int64_t when_ms)
{
    uint64_t count;
    ssize_t n;

    ll_renew_arm(r, when_ms != INT64_MAX ? when_ms : 0);
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
    struct ll_renewer *r = renewer;

    (void)pthread_mutex_lock(&r->mutex);
    while (!r->closing) {
        int64_t next_ms = ll_renew_next(r);

        if (next_ms > ll_now_ms())
            sleep_until(r, next_ms);
        else
            (void)ll_renew_step(r);
    }
    (void)pthread_mutex_unlock(&r->mutex);
    return NULL;
}

/* Blocks all signals: they are for the threads of the program. */
static bool start_thread(struct ll_renewer *r)
{
    sigset_t all, before;

    (void)sigfillset(&all);
    (void)pthread_sigmask(SIG_SETMASK, &all, &before);
    r->has_thread = pthread_create(&r->thread, NULL, run, r) == 0;
    (void)pthread_sigmask(SIG_SETMASK, &before, NULL);
    return r->has_thread;
}

/* ---- open and close ---- */

int ll_renewer_open(struct ll_renewer **out,
                    struct ll_client *c,
                    const struct ll_renew_options *options)
{
    struct ll_renew_options o = {0};
    struct ll_renewer *r;
    int code = ll_check_owner(c);

    *out = NULL;
    if (code != LL_OK)
        return code;
    if (options != NULL && !ll_read_options(&o, sizeof o, options, options->size))
        return ll_fail(c, LL_E_INVAL,
                       "options.size is not sizeof(struct ll_renew_options)");
    r = calloc(1, sizeof *r);
    if (r == NULL || ll_copy(&r->client, c) != LL_OK) {
        free(r);
        return ll_fail_as(c, LL_E_NOMEM);
    }
    r->o = o;
    (void)pthread_mutex_init(&r->mutex, NULL);
    (void)pthread_cond_init(&r->idle, NULL);
    r->timer_fd = timerfd_create(CLOCK_BOOTTIME, TFD_CLOEXEC);
    if (r->timer_fd < 0 || (!r->o.no_thread && !start_thread(r))) {
        ll_renewer_close(r);
        return ll_fail(c, LL_E_NOMEM, "no descriptor or no thread for the renewer");
    }
    *out = r;
    return LL_OK;
}

static void end_thread(struct ll_renewer *r)
{
    (void)pthread_mutex_lock(&r->mutex);
    r->closing = true;
    ll_renew_arm(r, 1); /* at once */
    (void)pthread_mutex_unlock(&r->mutex);
    (void)pthread_join(r->thread, NULL);
}

void ll_renewer_close(struct ll_renewer *r)
{
    if (r == NULL)
        return;
    if (is_ours(r)) {
        if (r->has_thread)
            end_thread(r);
        while (r->first != NULL)
            ll_renew_forget(r->first);
        (void)pthread_mutex_destroy(&r->mutex);
        (void)pthread_cond_destroy(&r->idle);
    }
    (void)close(r->timer_fd);
    /* a fork while the thread was awake has copied a client in use */
    if (is_ours(r) || !r->has_thread || r->asleep_until_ms != 0)
        ll_close(r->client);
    free(r);
}

/* ---- without a thread ---- */

int64_t ll_renew_due(const struct ll_renewer *renewer)
{
    struct ll_renewer *r = (struct ll_renewer *)(uintptr_t)renewer; /* for its mutex */
    int64_t next_ms;

    if (!is_ours(r))
        return -1;
    (void)pthread_mutex_lock(&r->mutex);
    next_ms = ll_renew_next(r);
    (void)pthread_mutex_unlock(&r->mutex);
    return next_ms == INT64_MAX ? -1 : ll_most(next_ms - ll_now_ms(), 0);
}

int ll_renew_now(struct ll_renewer *r)
{
    int64_t now_ms = ll_now_ms();
    int code = LL_OK;

    if (!is_ours(r))
        return LL_E_FORKED;
    if (r->has_thread)
        return LL_E_INVAL;
    (void)pthread_mutex_lock(&r->mutex);
    if (r->part_ct > 0)
        code = LL_E_INVAL; /* on_lost calls it */
    else
        r->thread = pthread_self();
    while (code == LL_OK && ll_renew_next(r) <= now_ms)
        code = ll_renew_step(r);
    (void)pthread_mutex_unlock(&r->mutex);
    return code;
}
