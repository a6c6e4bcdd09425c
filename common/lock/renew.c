/* renew: the locks of a renewer. Renews all that are due or nearly due in one call, and
 * reports a loss before the lease has ended. */
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

static int64_t interval_ms(const struct rlock_renewer *r, const struct rlock_lock *l)
{
    if (r->o.interval_ms == 0)
        return rlock_most(l->lease_ms / 3, 1);
    /* after a failure there must be time for another try */
    return rlock_most(rlock_least(r->o.interval_ms, l->lease_ms / 2), 1);
}

/* From this time on the lock counts as lost: its holder needs time to stop before the
 * lease ends, and this thread may wake up late. */
static int64_t give_up_ms(const struct rlock_lock *l)
{
    return l->deadline_ms - rlock_least(l->lease_ms / 8, NEVER_LEFT_MS);
}

static bool may_renew(const struct rlock_lock *l, int64_t now_ms)
{
    return now_ms < l->renewal.stop_ms &&
           (l->renewal.stall_ms == 0 || now_ms - l->progress_ms < l->renewal.stall_ms);
}

/* Half of the time that the most urgent lock has left, so that one more try fits. */
static int64_t time_for_a_try(const struct rlock_renewer *r)
{
    int64_t first_ms = INT64_MAX;

    for (const struct rlock_lock *l = r->first; l != NULL; l = l->renewal.next)
        first_ms = rlock_least(first_ms, give_up_ms(l));
    return rlock_most((first_ms - rlock_now_ms()) / 2, LEAST_TRY_MS);
}

/* ---- the list ---- */

static void link_in(struct rlock_renewer *r, struct rlock_lock *l)
{
    l->renewal.next = r->first;
    l->renewal.link = &r->first;
    if (r->first != NULL)
        r->first->renewal.link = &l->renewal.next;
    r->first = l;
}

static void unlink_from(struct rlock_lock *l)
{
    if (l->renewal.link == NULL)
        return;
    *l->renewal.link = l->renewal.next;
    if (l->renewal.next != NULL)
        l->renewal.next->renewal.link = l->renewal.link;
    l->renewal.link = NULL;
}

static struct rlock_part *part_of(struct rlock_renewer *r, const struct rlock_lock *l)
{
    for (size_t i = 0; i < r->part_ct; i++) {
        if (r->parts[i].l == l)
            return &r->parts[i];
    }
    return NULL;
}

/* ---- the calls of a holder ---- */

static int refusal(const struct rlock_renewer *r, struct rlock_lock *l)
{
    int code = rlock_check_owner(l->client);

    if (code != RLOCK_OK)
        return code;
    if (r->client->owner != getpid())
        return rlock_fail_as(l->client, RLOCK_E_FORKED);
    if (l->granted == 0 || l->released || l->releasing)
        return rlock_fail(l->client, RLOCK_E_INVAL, "the lock is not held");
    if (!rlock_valid(l, 0))
        return rlock_fail_as(l->client, RLOCK_LOST);
    if (l->renewal.renewer != NULL)
        return rlock_fail(l->client, RLOCK_E_INVAL, "the lock is renewed already");
    if (!rlock_is_alike(l->client, r->client))
        return rlock_fail(l->client, RLOCK_E_INVAL,
                          "the renewer is of another url or prefix");
    return RLOCK_OK;
}

int rlock_renew(struct rlock_renewer *r,
                struct rlock_lock *l,
                uint32_t stall_ms,
                uint32_t max_hold_ms)
{
    int64_t hold_ms = max_hold_ms != 0 ? max_hold_ms : 10 * (int64_t)l->lease_ms;
    int code = refusal(r, l);

    if (code != RLOCK_OK)
        return code;
    rlock_progress(l);
    l->renewal.stall_ms = stall_ms;
    l->renewal.stop_ms = l->progress_ms + hold_ms;
    l->renewal.code = RLOCK_OK;
    /* counted from the acquire, not from now */
    l->renewal.due_ms = l->deadline_ms - l->lease_ms + interval_ms(r, l);
    l->renewal.renewer = r;
    (void)pthread_mutex_lock(&r->mutex);
    link_in(r, l);
    if (l->renewal.due_ms < r->asleep_until_ms) {
        r->asleep_until_ms = l->renewal.due_ms;
        rlock_renew_arm(r, l->renewal.due_ms);
    }
    (void)pthread_mutex_unlock(&r->mutex);
    return RLOCK_OK;
}

/* Does nothing in a child of fork, where nobody could unlock the mutex. on_lost may
 * forget its lock or any other, and cannot wait for itself; another thread waits for
 * the on_lost of this lock alone. */
void rlock_renew_forget(struct rlock_lock *l)
{
    struct rlock_renewer *r = l->renewal.renewer;
    struct rlock_part *part;

    if (r == NULL || l->client->owner != getpid())
        return;
    (void)pthread_mutex_lock(&r->mutex);
    l->renewal.renewer = NULL;
    unlink_from(l);
    while ((part = part_of(r, l)) != NULL) {
        if (pthread_equal(r->thread, pthread_self()) != 0 ||
            (r->told != NULL && r->told != part))
            part->l = NULL;
        else
            (void)pthread_cond_wait(&r->idle, &r->mutex);
    }
    (void)pthread_mutex_unlock(&r->mutex);
}

void rlock_renew_stop(struct rlock_renewer *r, struct rlock_lock *l)
{
    if (l->renewal.renewer == r)
        rlock_renew_forget(l);
}

void rlock_progress(struct rlock_lock *l)
{
    l->progress_ms = rlock_now_ms();
}

/* ---- a round; the mutex is unlocked during I/O and on_lost ---- */

/* Afterwards the lock may be gone: on_lost may free it. */
static void tell(struct rlock_renewer *r, struct rlock_part *part, int code)
{
    r->told = part;
    unlink_from(part->l);
    part->l->lost = true;
    (void)pthread_mutex_unlock(&r->mutex);
    if (r->o.on_lost != NULL)
        r->o.on_lost(part->l, code, r->o.arg);
    (void)pthread_mutex_lock(&r->mutex);
    if (part->l != NULL)
        part->l->renewal.renewer = NULL;
    part->l = NULL;
    (void)pthread_cond_broadcast(&r->idle);
}

static void end_parts(struct rlock_renewer *r)
{
    r->part_ct = 0;
    r->told = NULL;
}

/* Collects the locks that are due, and behind them those that nearly are: such locks
 * join the round, so that later all are due together. A lock for which the call has no
 * room stays due. */
static void collect(struct rlock_renewer *r)
{
    int64_t now_ms = rlock_now_ms();
    size_t keys = 0;

    for (int nearly = 0; nearly <= 1; nearly++) {
        for (struct rlock_lock *l = r->first; l != NULL; l = l->renewal.next) {
            int64_t early_ms = l->renewal.due_ms - now_ms;
            bool is_wanted = may_renew(l, now_ms) &&
                             (nearly ? early_ms > 0 && early_ms <= interval_ms(r, l) / 2
                                     : early_ms <= 0);

            if (!is_wanted || keys + l->granted > RLOCK_KEYS_MAX)
                continue;
            r->parts[r->part_ct++] =
                (struct rlock_part){.l = l,
                                    .ttl_ms = l->lease_ms,
                                    .deadline_ms = rlock_deadline(l->lease_ms)};
            keys += l->granted;
        }
    }
}

static void
settle(const struct rlock_renewer *r, const struct rlock_part *part, int64_t began_ms)
{
    struct rlock_lock *l = part->l;
    int64_t have_ms = l->deadline_ms;
    int64_t pause_ms =
        rlock_most(rlock_least(l->lease_ms / 20, PAUSE_MOST_MS), PAUSE_LEAST_MS);

    l->renewal.code = part->code;
    if (part->code != RLOCK_OK) {
        /* The first failure may be a stale connection: the next try is at once. */
        l->renewal.due_ms = rlock_now_ms() + (r->failures <= 1 ? 0 : pause_ms);
        return;
    }
    /* the holder itself may have extended it further */
    while (have_ms < part->deadline_ms &&
           !atomic_compare_exchange_weak(&l->deadline_ms, &have_ms, part->deadline_ms))
        continue;
    l->renewal.due_ms = began_ms + interval_ms(r, l);
}

/* First all that are not lost, so that their releases wait for no on_lost. */
static void settle_all(struct rlock_renewer *r, int64_t began_ms)
{
    for (size_t i = 0; i < r->part_ct; i++) {
        struct rlock_part *part = &r->parts[i];
        bool is_forgotten = part->l == NULL || part->l->renewal.renewer == NULL;

        if (part->l != NULL && part->code == RLOCK_LOST)
            part->l->lost = true;
        if (!is_forgotten && part->code == RLOCK_LOST)
            continue;
        if (!is_forgotten)
            settle(r, part, began_ms);
        part->l = NULL;
    }
    (void)pthread_cond_broadcast(&r->idle);
    for (size_t i = 0; i < r->part_ct; i++) {
        if (r->parts[i].l != NULL)
            tell(r, &r->parts[i], RLOCK_LOST);
    }
    end_parts(r);
}

/* A release waits for a renewal under way, but never for a connection. */
static int attempt(struct rlock_renewer *r)
{
    struct rlock_client *c = r->client;
    int64_t ms = rlock_least(time_for_a_try(r), c->o.connect_ms);
    int64_t began_ms;
    int code;

    r->failures++;
    (void)pthread_mutex_unlock(&r->mutex);
    c->limit_ms = rlock_now_ms() + ms;
    code = rlock_gather(c, false);
    (void)pthread_mutex_lock(&r->mutex);
    began_ms = rlock_now_ms();
    ms = rlock_least(time_for_a_try(r), rlock_node_ms(c, (uint32_t)c->o.max_lease_ms));
    collect(r);
    if (code == RLOCK_OK && r->part_ct > 0) {
        (void)pthread_mutex_unlock(&r->mutex);
        c->limit_ms = began_ms + ms;
        code = rlock_keep(c, r->parts, r->part_ct);
        (void)pthread_mutex_lock(&r->mutex);
    }
    r->failures = code < 0 ? r->failures : 0;
    for (size_t i = 0; i < r->part_ct; i++)
        r->parts[i].code = code != RLOCK_OK ? code : r->parts[i].code;
    settle_all(r, began_ms);
    return code;
}

/* A lock without progress, or past max_hold, is checked again but not renewed. */
int64_t rlock_renew_next(struct rlock_renewer *r)
{
    int64_t now_ms = rlock_now_ms();
    int64_t next_ms = INT64_MAX;

    for (struct rlock_lock *l = r->first; l != NULL; l = l->renewal.next) {
        if (l->renewal.due_ms <= now_ms && !may_renew(l, now_ms))
            l->renewal.due_ms = now_ms + interval_ms(r, l);
        next_ms = rlock_least(next_ms, rlock_least(l->renewal.due_ms, give_up_ms(l)));
    }
    return next_ms;
}

int rlock_renew_step(struct rlock_renewer *r)
{
    struct rlock_lock *l = r->first;
    int64_t now_ms = rlock_now_ms();

    while (l != NULL && give_up_ms(l) > now_ms)
        l = l->renewal.next;
    if (l == NULL)
        return attempt(r);
    r->parts[r->part_ct++] = (struct rlock_part){.l = l};
    tell(r, &r->parts[0], l->renewal.code < 0 ? l->renewal.code : RLOCK_GONE);
    end_parts(r);
    return RLOCK_OK;
}

/* On the boot clock: after a suspend the losses are reported at once. */
void rlock_renew_arm(const struct rlock_renewer *r, int64_t when_ms)
{
    struct itimerspec at = {
        .it_value = {.tv_sec = when_ms / 1000, .tv_nsec = when_ms % 1000 * 1000000}};

    (void)timerfd_settime(r->timer_fd, TFD_TIMER_ABSTIME, &at, NULL);
}
