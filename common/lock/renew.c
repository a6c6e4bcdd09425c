/* renew: opening and closing a renewer, and its list of locks. */
#include <signal.h>
#include <stdlib.h>
#include <sys/timerfd.h>
#include <unistd.h>

#include "common/lock/internal.h"

/* Does nothing in a child of fork: the thread does not exist there, and nobody could
 * unlock the mutex. */
static bool is_ours(const struct ll_renewer *r)
{
    return r->client->owner == getpid();
}

/* ---- open and close ---- */

/* Blocks all signals: they are for the threads of the program. */
static bool start_thread(struct ll_renewer *r)
{
    sigset_t all, before;

    (void)sigfillset(&all);
    (void)pthread_sigmask(SIG_SETMASK, &all, &before);
    r->has_thread = pthread_create(&r->thread, NULL, ll_renewer_run, r) == 0;
    (void)pthread_sigmask(SIG_SETMASK, &before, NULL);
    return r->has_thread;
}

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
    (void)pthread_cond_init(&r->unpinned, NULL);
    r->timer_fd = timerfd_create(CLOCK_BOOTTIME, TFD_CLOEXEC);
    if (r->timer_fd < 0 || (!r->o.no_thread && !start_thread(r))) {
        ll_renewer_close(r);
        return ll_fail(c, LL_E_NOMEM, "no descriptor or no thread for the renewer");
    }
    *out = r;
    return LL_OK;
}

void ll_renewer_close(struct ll_renewer *r)
{
    bool ours = r != NULL && is_ours(r);

    if (r == NULL)
        return;
    if (ours && r->has_thread) {
        (void)pthread_mutex_lock(&r->mutex);
        r->closing = true;
        ll_renew_arm(r, 1); /* at once */
        (void)pthread_mutex_unlock(&r->mutex);
        (void)pthread_join(r->thread, NULL);
    }
    while (r->first != NULL) {
        if (r->first->lock != NULL)
            r->first->lock->renewal = NULL;
        ll_renew_drop(r, r->first);
    }
    (void)close(r->timer_fd);
    if (ours) {
        (void)pthread_mutex_destroy(&r->mutex);
        (void)pthread_cond_destroy(&r->unpinned);
    }
    if (ours || !r->has_thread || r->asleep_until_ms != 0)
        ll_close(r->client);
    free(r);
}

/* ---- locks ---- */

static int refusal(const struct ll_renewer *r, struct ll_lock *l)
{
    int code = ll_check_owner(l->client);

    if (code != LL_OK)
        return code;
    if (!is_ours(r))
        return ll_fail_as(l->client, LL_E_FORKED);
    if (l->granted == 0 || l->released)
        return ll_fail(l->client, LL_E_INVAL, "the lock is not held");
    if (!ll_valid(l, 0))
        return ll_fail_as(l->client, LL_LOST);
    if (l->renewal != NULL)
        return ll_fail(l->client, LL_E_INVAL, "the lock is renewed already");
    if (!ll_is_alike(l->client, r->client))
        return ll_fail(l->client, LL_E_INVAL,
                       "the renewer is of another url or prefix");
    return LL_OK;
}

int ll_renew(struct ll_renewer *r,
             struct ll_lock *l,
             uint32_t stall_ms,
             uint32_t max_hold_ms)
{
    int64_t now_ms = ll_now_ms();
    struct ll_renewal *item;
    int code = refusal(r, l);

    if (code != LL_OK)
        return code;
    item = calloc(1, sizeof *item);
    if (item == NULL)
        return ll_fail_as(l->client, LL_E_NOMEM);
    item->renewer = r;
    item->lock = l;
    item->lease_ms = l->lease_ms;
    item->stall_ms = stall_ms;
    item->stop_ms =
        now_ms + (max_hold_ms != 0 ? max_hold_ms : 10 * (int64_t)l->lease_ms);
    /* counted from the acquire, not from now */
    item->due_ms = l->deadline_ms - l->lease_ms + ll_renew_interval(r, l->lease_ms);
    l->progress_ms = now_ms;
    l->renewal = item;
    (void)pthread_mutex_lock(&r->mutex);
    item->next = r->first;
    if (r->first != NULL)
        r->first->prev = item;
    r->first = item;
    if (item->due_ms < r->asleep_until_ms)
        ll_renew_arm(r, item->due_ms);
    (void)pthread_mutex_unlock(&r->mutex);
    return LL_OK;
}

/* on_lost may forget its lock or any other: the renewer, which is still in its round,
 * drops the item itself then. */
void ll_renew_forget(struct ll_lock *l)
{
    struct ll_renewal *item = l->renewal;
    struct ll_renewer *r = item == NULL ? NULL : item->renewer;

    if (item == NULL)
        return;
    l->renewal = NULL;
    if (!is_ours(r)) {
        item->lock = NULL; /* the list stays as it was at the fork */
        return;
    }
    (void)pthread_mutex_lock(&r->mutex);
    item->lock = NULL;
    item->is_orphan = item->pinned && pthread_equal(r->thread, pthread_self()) != 0;
    while (item->pinned && !item->is_orphan)
        (void)pthread_cond_wait(&r->unpinned, &r->mutex);
    if (!item->is_orphan)
        ll_renew_drop(r, item);
    (void)pthread_mutex_unlock(&r->mutex);
}

void ll_renew_stop(struct ll_renewer *r, struct ll_lock *l)
{
    if (l->renewal != NULL && l->renewal->renewer == r)
        ll_renew_forget(l);
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
    int code = LL_OK;

    if (!is_ours(r))
        return LL_E_FORKED;
    if (r->has_thread)
        return LL_E_INVAL;
    (void)pthread_mutex_lock(&r->mutex);
    r->thread = pthread_self();
    if (ll_renew_next(r) <= ll_now_ms())
        code = ll_renew_step(r);
    (void)pthread_mutex_unlock(&r->mutex);
    return code;
}

void ll_progress(struct ll_lock *l)
{
    l->progress_ms = ll_now_ms();
}
