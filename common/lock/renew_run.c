/* renew_run: sleeps until a lock is due, renews all locks that are due or nearly due in
 * one round, and reports a loss before the lease has ended. */
#include <stdlib.h>
#include <sys/timerfd.h>
#include <unistd.h>

#include "common/lock/internal.h"

enum {
    NEVER_LEFT_MS = 1000,
    LEAST_TRY_MS = 10,
    PAUSE_LEAST_MS = 5,
    PAUSE_MOST_MS = 250
};

/* ---- times of one lock ---- */

int64_t ll_renew_interval(const struct ll_renewer *r, uint32_t lease_ms)
{
    if (r->o.interval_ms == 0)
        return ll_most(lease_ms / 3, 1);
    /* after a failure there must be time for another try */
    return ll_most(ll_least(r->o.interval_ms, lease_ms / 2), 1);
}

/* From this time on the lock counts as lost: its holder needs time to stop before the
 * lease ends, and this thread may wake up late. */
static int64_t give_up_ms(const struct ll_renewal *item)
{
    return item->lock->deadline_ms - ll_least(item->lease_ms / 8, NEVER_LEFT_MS);
}

static bool is_live(const struct ll_renewal *item)
{
    return !item->ended && item->lock != NULL;
}

static bool may_renew(const struct ll_renewal *item, int64_t now_ms)
{
    return now_ms < item->stop_ms &&
           (item->stall_ms == 0 || now_ms - item->lock->progress_ms < item->stall_ms);
}

/* True if a lock is due, or nearly: such locks join the round, so that later all are
 * due together. */
static bool
is_wanted(const struct ll_renewer *r, const struct ll_renewal *item, int64_t now_ms)
{
    return is_live(item) && may_renew(item, now_ms) &&
           item->due_ms - now_ms <= ll_renew_interval(r, item->lease_ms) / 2;
}

/* Half of the time that the most urgent lock has left, so that one more try fits. */
static int64_t time_for_a_try(const struct ll_renewer *r)
{
    int64_t now_ms = ll_now_ms();
    int64_t left_ms = INT64_MAX;

    for (const struct ll_renewal *item = r->first; item != NULL; item = item->next)
        left_ms =
            is_live(item) ? ll_least(left_ms, give_up_ms(item) - now_ms) : left_ms;
    return ll_most(left_ms / 2, LEAST_TRY_MS);
}

void ll_renew_drop(struct ll_renewer *r, struct ll_renewal *item)
{
    if (item->prev != NULL)
        item->prev->next = item->next;
    else
        r->first = item->next;
    if (item->next != NULL)
        item->next->prev = item->prev;
    free(item);
}

/* ---- loss ---- */

/* The mutex is unlocked during on_lost: the item is pinned, and on_lost may forget it.
 */
static void tell(struct ll_renewer *r, struct ll_renewal *item, int code)
{
    struct ll_lock *l = item->lock;

    item->ended = true;
    l->lost = true;
    (void)pthread_mutex_unlock(&r->mutex);
    if (r->o.on_lost != NULL)
        r->o.on_lost(l, code, r->o.arg);
    (void)pthread_mutex_lock(&r->mutex);
}

static void unpin(struct ll_renewer *r, struct ll_renewal *item)
{
    item->pinned = false;
    if (item->is_orphan)
        ll_renew_drop(r, item);
    (void)pthread_cond_broadcast(&r->unpinned);
}

/* ---- a round ---- */

/* Sends the collected parts. */
static int flush(struct ll_renewer *r)
{
    int code = LL_OK;

    if (r->part_ct == 0)
        return LL_OK;
    (void)pthread_mutex_unlock(&r->mutex);
    code = ll_keep(r->client, r->parts, r->part_ct);
    (void)pthread_mutex_lock(&r->mutex);
    for (size_t i = 0; i < r->part_ct; i++)
        r->parts[i].renewal->code = code != LL_OK ? code : r->parts[i].code;
    r->part_ct = r->key_ct = 0;
    return code;
}

/* Adds a lock, after the others were sent if there is no room for its keys. */
static int add(struct ll_renewer *r, struct ll_renewal *item)
{
    struct ll_lock *l = item->lock; /* may be forgotten meanwhile, but not freed */
    int code = r->key_ct + l->granted > LL_KEYS_MAX ? flush(r) : LL_OK;

    if (code != LL_OK)
        return code;
    r->parts[r->part_ct++] =
        (struct ll_part){.l = l, .renewal = item, .ttl_ms = item->lease_ms};
    r->key_ct += l->granted;
    return LL_OK;
}

/* Renews every key of every lock of the round; these locks are pinned. */
static int keep_all(struct ll_renewer *r)
{
    int64_t now_ms = ll_now_ms();
    int code = LL_OK;

    for (struct ll_renewal *item = r->first; item != NULL; item = item->next) {
        if (code != LL_OK || !is_wanted(r, item, now_ms))
            continue;
        item->pinned = true;
        item->code = LL_OK;
        item->deadline_ms = ll_deadline(item->lease_ms);
        code = add(r, item);
    }
    return code == LL_OK ? flush(r) : code;
}

/* The first failure may be a stale connection: the next try is at once, later ones
 * after pauses. */
static void
try_again(const struct ll_renewer *r, struct ll_renewal *item, int64_t now_ms)
{
    int64_t pause_ms =
        ll_most(ll_least(item->lease_ms / 20, PAUSE_MOST_MS), PAUSE_LEAST_MS);

    item->due_ms = now_ms + (r->failures <= 1 ? 0 : pause_ms);
}

static void settle(struct ll_renewer *r, struct ll_renewal *item, int64_t began_ms)
{
    int64_t have_ms = item->lock->deadline_ms;

    if (item->code == LL_LOST) {
        tell(r, item, LL_LOST);
        return;
    }
    if (item->code != LL_OK) {
        try_again(r, item, ll_now_ms());
        return;
    }
    while (have_ms <
               item->deadline_ms && /* the holder itself may have extended it further */
           !atomic_compare_exchange_weak(&item->lock->deadline_ms, &have_ms,
                                         item->deadline_ms))
        continue;
    item->due_ms = began_ms + ll_renew_interval(r, item->lease_ms);
    r->renewals++;
}

/* Gives each pinned lock its code, or after a fault the code of the round. */
static void conclude(struct ll_renewer *r, int code, int64_t began_ms)
{
    struct ll_renewal *next;

    for (struct ll_renewal *item = r->first; item != NULL; item = next) {
        item->code = item->pinned && code < 0 ? code : item->code;
        if (item->pinned && item->lock != NULL)
            settle(r, item, began_ms);
        next = item->next; /* now: the list may have changed during the round */
        if (item->pinned)
            unpin(r, item);
    }
}

/* A release waits for a renewal under way, but never for a connection. */
static int attempt(struct ll_renewer *r)
{
    struct ll_options *o = &r->client->o;
    int64_t ms = ll_least(time_for_a_try(r), o->connect_ms);
    int64_t reply_ms = ll_node_ms(r->client, (uint32_t)o->max_lease_ms);
    int64_t began_ms;
    int code;

    r->failures++;
    (void)pthread_mutex_unlock(&r->mutex);
    r->client->limit_ms = ll_now_ms() + ms;
    code = ll_gather(r->client, false);
    (void)pthread_mutex_lock(&r->mutex);
    if (code != LL_OK) {
        for (struct ll_renewal *item = r->first; item != NULL; item = item->next) {
            if (!is_wanted(r, item, ll_now_ms()))
                continue;
            item->code = code;
            try_again(r, item, ll_now_ms());
        }
        return code;
    }
    began_ms = ll_now_ms();
    r->client->limit_ms = began_ms + ll_least(time_for_a_try(r), reply_ms);
    code = keep_all(r);
    r->rounds++;
    r->failures = code < 0 ? r->failures : 0;
    conclude(r, code, began_ms);
    return code;
}

/* ---- the thread ---- */

/* A lock without progress, or past max_hold, is checked again but not renewed. */
int64_t ll_renew_next(struct ll_renewer *r)
{
    int64_t now_ms = ll_now_ms();
    int64_t next_ms = INT64_MAX;

    for (struct ll_renewal *item = r->first; item != NULL; item = item->next) {
        if (!is_live(item))
            continue;
        if (item->due_ms <= now_ms && !may_renew(item, now_ms))
            item->due_ms = now_ms + ll_renew_interval(r, item->lease_ms);
        next_ms = ll_least(next_ms, ll_least(item->due_ms, give_up_ms(item)));
    }
    return next_ms;
}

int ll_renew_step(struct ll_renewer *r)
{
    struct ll_renewal *item = r->first;
    int64_t now_ms = ll_now_ms();

    while (item != NULL && (!is_live(item) || give_up_ms(item) > now_ms))
        item = item->next;
    if (item == NULL)
        return attempt(r);
    item->pinned = true;
    tell(r, item, item->code < 0 ? item->code : LL_GONE);
    unpin(r, item);
    return LL_OK;
}

/* On the boot clock: after a suspend the losses are reported at once. */
void ll_renew_arm(const struct ll_renewer *r, int64_t when_ms)
{
    struct itimerspec at = {
        .it_value = {.tv_sec = when_ms / 1000, .tv_nsec = when_ms % 1000 * 1000000}};

    (void)timerfd_settime(r->timer_fd, TFD_TIMER_ABSTIME, &at, NULL);
}

static void sleep_until(struct ll_renewer *r, int64_t when_ms)
{
    uint64_t count;
    ssize_t n;

    ll_renew_arm(r, when_ms != INT64_MAX ? when_ms : 0);
    r->asleep_until_ms = when_ms;
    (void)pthread_mutex_unlock(&r->mutex);
    n = read(r->timer_fd, &count,
             sizeof count); /* until the timer fires, or is set anew */
    (void)n;
    (void)pthread_mutex_lock(&r->mutex);
    r->asleep_until_ms = 0;
}

void *ll_renewer_run(void *renewer)
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
