/* renew: renews all locks that are due or nearly due in one call, the most urgent
 * first. */
#include "common/lock/renew.h"

enum {
    LEAST_TRY_MS = 10,
    PAUSE_LEAST_MS = 5,
    PAUSE_MOST_MS = 250,
    ENOUGH_MS = 100,
    SHORT_CALLS = 8 /* with the time of so many short calls left, a lock joins none */
};

/* ---- a try: a connection, then a call for the locks that are due; the mutex is
 * unlocked while the client is used ---- */

/* The last round trip, to the slowest node. */
static int64_t trip_ms(const struct rlock_renewer *r)
{
    int64_t most_ms = 0;

    for (size_t i = 0; i < r->client->node_ct; i++)
        most_ms = rlock_most(most_ms, r->client->nodes[i].trip_ms);
    return most_ms;
}

/* Half of the time that the most urgent lock has left, so that one more try fits; but
 * time for two round trips, if it has that much. */
static int64_t time_for_a_try(const struct rlock_renewer *r, int64_t now_ms)
{
    int64_t left_ms = r->urgent.entries[0].when_ms - now_ms;

    return rlock_most(rlock_most(left_ms / 2, rlock_least(left_ms, 2 * trip_ms(r))),
                      LEAST_TRY_MS);
}

static void add_part(struct rlock_renewer *r, struct rlock_heap *h)
{
    struct rlock *l = rlock_heap_take(h, 0);

    l->renewal.place = RLOCK_CALLED;
    r->parts[r->kept.n++] = (struct rlock_part){
        .l = l, .ttl_ms = l->lease_ms, .deadline_ms = rlock_deadline(l->lease_ms)};
    r->kept.keys += l->granted;
}

static bool has_room(const struct rlock_renewer *r, const struct rlock *l)
{
    return r->kept.keys + l->granted <= RLOCK_KEYS_MAX;
}

/* Collects the most urgent of the locks that are due. If the call must be short for
 * their sake, the others make a call of their own, which then has its time; else the
 * locks join that are nearly due, so that later all are due together. */
static void collect(struct rlock_renewer *r, int64_t now_ms, int64_t ms, bool is_short)
{
    r->kept = (struct rlock_kept){.parts = r->parts};
    while (r->urgent.n > 0) {
        const struct rlock_timed *first = &r->urgent.entries[0];

        if (!has_room(r, first->l) ||
            (r->kept.n > 0 && is_short && first->when_ms - now_ms > SHORT_CALLS * ms))
            return;
        add_part(r, &r->urgent);
    }
    while (r->waiting.n > 0 && !is_short) {
        const struct rlock *l = r->waiting.entries[0].l;

        if (!has_room(r, l) || !rlock_may_renew(l, now_ms) ||
            l->renewal.due_ms - now_ms > rlock_renew_interval(r, l) / 2)
            return;
        add_part(r, &r->waiting);
    }
}

/* A lock that was forgotten meanwhile is neither extended nor lost. */
static void settle(struct rlock_renewer *r, const struct rlock_part *part)
{
    struct rlock *l = part->l;
    int64_t have_ms = l->deadline_ms;
    int64_t pause_ms =
        rlock_most(rlock_least(l->lease_ms / 20, PAUSE_MOST_MS), PAUSE_LEAST_MS);

    if (part->code == RLOCK_LOST)
        l->lost = true;
    if (part->code == RLOCK_LOST && l->renewal.renewer != NULL) {
        rlock_lose(r, l, RLOCK_LOST);
        return;
    }
    l->renewal.code = part->code;
    l->renewal.due_ms = r->began_ms + rlock_renew_interval(r, l);
    if (part->code < 0) /* the first failure may be a stale connection: again at once */
        l->renewal.due_ms = rlock_now_ms() + (r->failures <= 1 ? 0 : pause_ms);
    /* the holder itself may have extended it further */
    while (part->code == RLOCK_OK && have_ms < part->deadline_ms &&
           !atomic_compare_exchange_weak(&l->deadline_ms, &have_ms, part->deadline_ms))
        continue;
    rlock_renew_put(r, l);
}

static int end_try(struct rlock_renewer *r, int code)
{
    r->stage = RLOCK_RESTING;
    r->failures = code < 0 ? r->failures : 0;
    for (size_t i = 0; i < r->kept.n; i++) {
        if (code != RLOCK_OK)
            r->parts[i].code = code;
        if (r->parts[i].l != NULL)
            settle(r, &r->parts[i]);
    }
    (void)pthread_cond_broadcast(&r->idle);
    return code;
}

/* A release waits for a call under way, but never for a connection. */
static int begin_call(struct rlock_renewer *r, int code)
{
    struct rlock_client *c = r->client;
    int64_t node_ms = rlock_node_ms(c, (uint32_t)c->o.max_lease_ms);
    int64_t enough_ms = SHORT_CALLS * trip_ms(r) + ENOUGH_MS; /* nearly always */
    int64_t ms = 0;

    r->began_ms = rlock_now_ms();
    rlock_find_due(r, r->began_ms);
    r->kept.n = 0;
    if (r->urgent.n > 0) {
        ms = time_for_a_try(r, r->began_ms);
        collect(r, r->began_ms, ms, ms < rlock_least(node_ms, enough_ms));
    }
    if (code != RLOCK_OK || r->kept.n == 0)
        return end_try(r, code);
    r->stage = RLOCK_CALLING;
    r->round = rlock_keep_round(c, &r->kept, r->began_ms + rlock_least(ms, node_ms));
    r->round.is_urgent = true;
    return RLOCK_UNDER_WAY;
}

static void begin_try(struct rlock_renewer *r, int64_t now_ms)
{
    int64_t most_ms = r->client->o.connect_ms;
    int64_t ms = rlock_most(time_for_a_try(r, now_ms), most_ms / 4);

    r->failures++;
    r->stage = RLOCK_GATHERING;
    r->gather = (struct rlock_gather){.limit_ms = now_ms + rlock_least(ms, most_ms)};
}

int rlock_renew_step(struct rlock_renewer *r)
{
    int64_t now_ms = rlock_now_ms();
    int code = RLOCK_UNDER_WAY;

    rlock_find_due(r, now_ms);
    if (r->stage == RLOCK_RESTING && r->urgent.n == 0)
        return RLOCK_OK;
    if (r->stage == RLOCK_RESTING)
        begin_try(r, now_ms);
    if (r->stage == RLOCK_GATHERING) {
        (void)pthread_mutex_unlock(&r->mutex);
        code = rlock_gather_step(r->client, &r->gather);
        (void)pthread_mutex_lock(&r->mutex);
        if (code != RLOCK_UNDER_WAY)
            code = begin_call(r, code);
    }
    if (r->stage == RLOCK_CALLING) {
        (void)pthread_mutex_unlock(&r->mutex);
        code = rlock_keep_step(&r->round, &r->kept);
        if (code != RLOCK_UNDER_WAY) {
            code = rlock_read_keep(&r->round, &r->kept);
            rlock_round_clear(&r->round);
        }
        (void)pthread_mutex_lock(&r->mutex);
        if (code != RLOCK_UNDER_WAY)
            code = end_try(r, code);
    }
    return code;
}

int64_t rlock_renew_next(const struct rlock_renewer *r)
{
    int64_t due_ms = r->waiting.n > 0 ? r->waiting.entries[0].when_ms : INT64_MAX;
    int64_t lost_ms = r->urgent.n > 0 ? r->urgent.entries[0].when_ms : INT64_MAX;

    return rlock_least(due_ms, lost_ms);
}

int64_t rlock_renew_run(struct rlock_renewer *r)
{
    int64_t next_ms;
    int code;

    (void)pthread_mutex_lock(&r->mutex);
    code = rlock_renew_step(r);
    while (rlock_renew_tell(r))
        continue;
    next_ms = rlock_renew_next(r);
    if (code != RLOCK_UNDER_WAY && r->urgent.n > 0)
        next_ms = 0;
    (void)pthread_mutex_unlock(&r->mutex);
    return next_ms;
}

void rlock_renew_end(struct rlock_renewer *r)
{
    if (r->stage == RLOCK_CALLING) {
        rlock_round_clear(&r->round);
        (void)end_try(r, RLOCK_E_UNAVAILABLE);
    }
    while (r->waiting.n > 0)
        rlock_leave_renewer(r, r->waiting.entries[0].l);
    while (r->urgent.n > 0)
        rlock_leave_renewer(r, r->urgent.entries[0].l);
    while (r->untold != NULL)
        rlock_leave_renewer(r, r->untold);
}
