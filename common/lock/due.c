/* due: the locks of a renewer by time: which are due, and which are lost before their
 * lease has ended; how a lock leaves, and how its loss is told. */
#include "common/lock/renew.h"

enum { NEVER_LEFT_MS = 1000 };

/* ---- times of one lock ---- */

int64_t rlock_renew_interval(const struct rlock_renewer *r, const struct rlock *l)
{
    if (r->o.interval_ms == 0)
        return rlock_most(l->lease_ms / 3, 1);
    /* after a failure there must be time for another try */
    return rlock_most(rlock_least(r->o.interval_ms, l->lease_ms / 2), 1);
}

/* From this time on the lock counts as lost: its holder needs time to stop before the
 * lease ends, and this thread may wake up late. */
static int64_t give_up_ms(const struct rlock *l)
{
    return l->deadline_ms - rlock_least(l->lease_ms / 8, NEVER_LEFT_MS);
}

bool rlock_may_renew(const struct rlock *l, int64_t now_ms)
{
    return now_ms < l->renewal.stop_ms &&
           (l->renewal.stall_ms == 0 || now_ms - l->progress_ms < l->renewal.stall_ms);
}

/* ---- the heaps ---- */

void rlock_renew_put(struct rlock_renewer *r, struct rlock *l)
{
    rlock_heap_put(&r->waiting, l, rlock_least(l->renewal.due_ms, give_up_ms(l)));
}

/* The teller calls its on_lost. */
void rlock_lose(struct rlock_renewer *r, struct rlock *l, int code)
{
    l->lost = true;
    l->renewal.code = code;
    l->renewal.place = RLOCK_UNTOLD;
    l->renewal.next = NULL;
    l->renewal.link = r->last_untold;
    *r->last_untold = l;
    r->last_untold = &l->renewal.next;
    (void)pthread_cond_signal(&r->news);
}

static void unlink_untold(struct rlock_renewer *r, struct rlock *l)
{
    *l->renewal.link = l->renewal.next;
    if (l->renewal.next != NULL)
        l->renewal.next->renewal.link = l->renewal.link;
    else
        r->last_untold = l->renewal.link;
    l->renewal.place = RLOCK_NOWHERE;
}

/* By the fault of the last try, or of a connection that is not there yet. */
static void lose_late(struct rlock_renewer *r, struct rlock *l, int64_t now_ms)
{
    bool is_waiting = r->stage == RLOCK_GATHERING && rlock_may_renew(l, now_ms);
    int fault = r->client->node_ct > 1 ? RLOCK_E_NO_QUORUM : RLOCK_E_UNAVAILABLE;

    if (l->renewal.code < 0)
        fault = l->renewal.code;
    rlock_lose(r, l, is_waiting || l->renewal.code < 0 ? fault : RLOCK_GONE);
}

/* Finds losses, and the locks that are due. A lock without progress, or past max_hold,
 * is seen again but not renewed. The holder itself may have extended a lock. */
void rlock_find_due(struct rlock_renewer *r, int64_t now_ms)
{
    while (r->waiting.n > 0 && r->waiting.entries[0].when_ms <= now_ms) {
        struct rlock *l = rlock_heap_take(&r->waiting, 0);
        bool is_due = l->renewal.due_ms <= now_ms;

        if (give_up_ms(l) <= now_ms) {
            lose_late(r, l, now_ms);
        } else if (is_due && rlock_may_renew(l, now_ms)) {
            rlock_heap_put(&r->urgent, l, give_up_ms(l));
        } else {
            if (is_due)
                l->renewal.due_ms = now_ms + rlock_renew_interval(r, l);
            rlock_renew_put(r, l);
        }
    }
    while (r->urgent.n > 0 && r->urgent.entries[0].when_ms <= now_ms) {
        struct rlock *l = rlock_heap_take(&r->urgent, 0);

        if (give_up_ms(l) <= now_ms)
            lose_late(r, l, now_ms);
        else
            rlock_heap_put(&r->urgent, l, give_up_ms(l));
    }
}

/* ---- the end of a renewal ---- */

/* Takes a lock out that is not in a call. */
void rlock_leave_renewer(struct rlock_renewer *r, struct rlock *l)
{
    enum rlock_place place = l->renewal.place;

    if (place == RLOCK_WAITING)
        (void)rlock_heap_take(&r->waiting, l->renewal.at);
    else if (place == RLOCK_URGENT)
        (void)rlock_heap_take(&r->urgent, l->renewal.at);
    else if (place == RLOCK_UNTOLD)
        unlink_untold(r, l);
    else if (place == RLOCK_TOLD)
        r->told = NULL;
    r->lock_ct -= place != RLOCK_NOWHERE ? 1 : 0;
    l->renewal.place = RLOCK_NOWHERE;
    l->renewal.renewer = NULL; /* the last touch: its holder may free it from here on */
}

static bool is_told_by_us(const struct rlock_renewer *r)
{
    return r->told != NULL && pthread_equal(r->told_by, pthread_self()) != 0;
}

/* Without a thread the call under way goes on without the lock. */
static void drop_part(struct rlock_renewer *r, const struct rlock *l)
{
    for (size_t i = 0; i < r->kept.n; i++) {
        if (r->parts[i].l == l)
            r->parts[i].l = NULL;
    }
}

/* Does nothing in a child of fork, where nobody could unlock the mutex. An on_lost may
 * forget its lock or any other, and cannot wait for itself; another thread waits for
 * the on_lost of this lock alone. */
void rlock_renew_forget(struct rlock *l)
{
    struct rlock_renewer *r = l->renewal.renewer;

    if (r == NULL || !rlock_is_owner(l->client))
        return;
    (void)pthread_mutex_lock(&r->mutex);
    l->renewal.renewer = NULL;
    if (l->renewal.place == RLOCK_CALLED && !r->has_thread)
        drop_part(r, l);
    while ((l->renewal.place == RLOCK_CALLED && r->has_thread) ||
           (l->renewal.place == RLOCK_TOLD && !is_told_by_us(r)))
        (void)pthread_cond_wait(&r->idle, &r->mutex);
    rlock_leave_renewer(r, l);
    (void)pthread_mutex_unlock(&r->mutex);
}

/* ---- losses; the mutex is unlocked during on_lost ---- */

bool rlock_renew_tell(struct rlock_renewer *r)
{
    struct rlock *l = r->untold;
    int code;

    if (l == NULL)
        return false;
    code = l->renewal.code;
    unlink_untold(r, l);
    l->renewal.place = RLOCK_TOLD;
    r->told = l;
    r->told_by = pthread_self();
    (void)pthread_mutex_unlock(&r->mutex);
    if (r->o.on_lost != NULL)
        r->o.on_lost(l, code, r->o.arg);
    (void)pthread_mutex_lock(&r->mutex);
    if (r->told == l) /* else it was forgotten, and may be freed */
        rlock_leave_renewer(r, l);
    r->told = NULL;
    (void)pthread_cond_broadcast(&r->idle);
    return true;
}
