/* sweep: which buckets a batch goes through, what is learned from it, suspects. */
#include "worker/sweep.h"

#include "common/clock.h"
#include "common/log.h"
#include "worker/account.h"
#include "worker/batch.h"
#include "worker/hold.h"
#include "worker/loop.h"
#include "worker/queue.h"
#include "worker/turn.h"

enum {
    COMPLAIN_MS = 10000,
    SUSPECTS = 16,     /* worked one by one in one visit */
    THROUGH_MIN_MS = 4 /* until one that was passed over is looked at again */
};

/* A timeout or a deadlock that ended one transaction and nothing else. Said once in a
 * while: the work stays due, and somebody should know why. */
static bool is_collision(struct worker *w, const struct err *e)
{
    char quoted[400];

    if ((e->code != ERR_CONFLICT && e->code != ERR_TIMEOUT) || !pg_is_usable(w->pg))
        return false;
    worker_count(w, METRIC_conflicts, 1);
    if (clk_ms() - w->complained_ms > COMPLAIN_MS) {
        w->complained_ms = clk_ms();
        log_warn("worker.collided", "err=%s", log_quote(quoted, sizeof quoted, e->msg));
    }
    return true;
}

/* One turn; one bucket's trouble keeps no other waiting. */
static int take_turn(struct worker *w,
                     const struct job_type *job,
                     const struct turn_order *order,
                     enum turn *turn,
                     struct err *e)
{
    if (turn_run(w, job, order, turn, e) == 0)
        return 0;
    if (!is_collision(w, e))
        return (int)e->code;
    hold_clear(&w->slot->hold);
    *turn = TURN_BUSY;
    return 0;
}

static void
learn(struct walk *walk, const struct turn_order *order, const struct walk_turn *did)
{
    int64_t now_ms = clk_ms();

    walk_learn(walk, order->buckets[0], did, now_ms);
    for (size_t i = 1; i < order->bucket_ct; i++)
        walk_learn_along(walk, order->buckets[i], did, now_ms);
}

/* Some of the suspects there, each alone. When all that is left are suspects with
 * others, the worker steps back, and asks each of the buckets alone next time. */
static int visit_suspects(struct worker *w,
                          const struct job_type *job,
                          struct walk *walk,
                          const struct turn_order *order,
                          enum turn *turn,
                          struct err *e)
{
    struct walk_turn did = {.first_worked = true};

    for (int i = 0; i < SUSPECTS && w->batch->suspect_ct > 0 && !loop_is_stopping();
         i++) {
        enum turn alone;

        if (take_turn(w, job, order, &alone, e) != 0)
            return (int)e->code;
        did.pulled += w->batch->n;
        if (*turn != TURN_WORKED)
            *turn = alone;
    }
    if (*turn != TURN_WORKED)
        learn(walk, order, &did);
    return 0;
}

/* One turn, what the worker learns from it, and the next one's turn; which buckets the
 * batch is through with, and whether most of what it wanted was busy. */
static int turn_and_learn(struct worker *w,
                          const struct job_type *job,
                          struct walk *walk,
                          struct turn_order *order,
                          enum turn *turn,
                          struct err *e)
{
    const struct batch *b = w->batch;
    int64_t since_us = clk_us() - w->slot->waste.paused_us;
    int code = take_turn(w, job, order, turn, e);
    struct walk_turn did = {.pulled = b->n,
                            .worked = b->worked,
                            .first = b->items[0],
                            .first_worked = b->first_worked,
                            .youngest = b->youngest,
                            .queued = order->queues,
                            .patient = order->patient};

    did.took_ms = (clk_us() - w->slot->waste.paused_us - since_us) / 1000;
    if (code == 0 && !order->patient)
        walk_fit(walk, &did, (size_t)w->config->batch, w->config->lease_ms);
    order->bucket_ct = b->served > 0 ? b->served : 1;
    if (code == 0 && (did.pulled > 0 || b->suspect_ct == 0))
        learn(walk, order, &did);
    queue_leave(w);
    order->queues = order->line != NULL && !order->queues && walk_is_mostly_busy(&did);
    return code;
}

/* One batch from the buckets, of which those are left that it is through with. Where
 * others have most of the keys, what is free is worked beside them, and then, as soon
 * as they are done, the rest. */
static int visit(struct worker *w,
                 const struct job_type *job,
                 struct walk *walk,
                 struct turn_order *order,
                 enum turn *turn,
                 struct err *e)
{
    int64_t bucket = order->buckets[0];
    bool shared = walk_is_shared(walk, bucket);
    struct turn_order suspects = {.buckets = order->buckets,
                                  .bucket_ct = order->bucket_ct,
                                  .limit = walk->limit,
                                  .suspect = true};
    enum turn again;

    order->patient = walk_is_patient(walk, bucket);
    order->limit = order->patient ? 1 : walk->limit;
    order->line = walk_line(walk, bucket);
    order->queues = shared || (order->patient && walk->lines != NULL);
    if (shared)
        (void)queue_enter(w, (int)(walk - w->walks), true);
    if (turn_and_learn(w, job, walk, order, turn, e) != 0)
        return (int)e->code;
    if (order->queues && !loop_is_stopping()) {
        if (turn_and_learn(w, job, walk, order, &again, e) != 0)
            return (int)e->code;
        *turn = *turn == TURN_WORKED ? *turn : again;
    }
    return w->batch->suspect_ct > 0 ? visit_suspects(w, job, walk, &suspects, turn, e)
                                    : 0;
}

/* Whether nothing is known of the bucket that forbids a batch from it now. Where each
 * bucket has keys of its own and another of the pool is in this one, there is nothing
 * to be had until it is through: in about half a turn. */
static bool
may_go(const struct worker *w, size_t index, int64_t bucket, struct look *look)
{
    const struct walk *walk = &w->walks[index];
    int64_t half_ms =
        walk->pace_ms / 2 > THROUGH_MIN_MS ? walk->pace_ms / 2 : THROUGH_MIN_MS;

    if (!walk_may(walk, bucket, clk_ms(), &look->again_ms))
        return false;
    if (job_types[index]->in_order || !queue_is_at(w, (int)index, bucket))
        return true;
    if (half_ms < look->again_ms)
        look->again_ms = half_ms;
    return false;
}

/* How many of the buckets that come next one batch may go through, as far as nothing
 * was busy there and nobody else is: at most `share`. */
static size_t go_along(const struct worker *w,
                       size_t index,
                       const struct look_due *due,
                       const int64_t *buckets,
                       size_t share)
{
    const struct walk *walk = &w->walks[index];
    size_t left = (size_t)(due->buckets + due->n - buckets);
    size_t n = 1;
    int64_t now_ms = clk_ms();

    if (!walk_may_go_along(walk, buckets[0], now_ms))
        return 1;
    while (n < share && n < left && walk_may_go_along(walk, buckets[n], now_ms) &&
           !queue_is_at(w, (int)index, buckets[n]))
        n++;
    return n;
}

/* One batch, and what is to be remembered of it. */
static int go_through(struct worker *w,
                      size_t index,
                      struct turn_order *order,
                      struct look *look,
                      struct err *e)
{
    enum turn turn;

    if (visit(w, job_types[index], &w->walks[index], order, &turn, e) != 0)
        return (int)e->code;
    look->seen = look->seen || turn != TURN_EMPTY;
    look->worked = look->worked || turn == TURN_WORKED;
    look->filled = look->filled || w->batch->is_full;
    if (turn != TURN_EMPTY)
        account_server(w, &w->slot->redis, SLOT_UP, NULL);
    account(w);
    return 0;
}

/* While little comes due and nothing is busy, one batch goes through all buckets
 * without a look at them first, which costs more than the batch; whether it found
 * anything. */
static int sweep_at_once(
    struct worker *w, size_t index, struct look *look, bool *found, struct err *e)
{
    const struct walk *walk = &w->walks[index];
    int64_t now_ms = clk_ms(), left = 0;
    int64_t all[WALK_BUCKETS];
    struct turn_order order = {.buckets = all, .bucket_ct = WALK_BUCKETS};

    for (int64_t i = 0; i < WALK_BUCKETS; i++) {
        all[i] = i;
        if (!walk_may(walk, i, now_ms, &left) || !walk_may_go_along(walk, i, now_ms) ||
            queue_is_at(w, (int)index, i))
            return 0;
    }
    if (go_through(w, index, &order, look, e) != 0)
        return (int)e->code;
    *found = w->batch->n > 0 || w->batch->suspect_ct > 0;
    return 0;
}

/* A pool's name begins with a hexadecimal digit that was drawn: far apart in places. */
static int64_t place_of_pool(const struct worker *w)
{
    return w->pool[0] * INT64_C(37) % WALK_BUCKETS;
}

/* Every due bucket that it has not stepped back from and no other of the pool is in,
 * batch by batch, beginning at this worker's own place; several pools begin at
 * different ones. */
static int sweep_job(struct worker *w, size_t index, struct look *look, struct err *e)
{
    bool in_order = job_types[index]->in_order;
    struct turn_order order = {0};
    struct look_due due;
    size_t share;

    if (look->goes_on && !in_order) {
        bool found = false;

        if (sweep_at_once(w, index, look, &found, e) != 0)
            return (int)e->code;
        if (found)
            return 0;
    }
    if (look_for_due(w, job_types[index], &due, look, e) != 0)
        return (int)e->code;
    walk_turn_to(due.buckets, due.n,
                 ((int64_t)w->index * WALK_BUCKETS / w->peers + place_of_pool(w)) %
                     WALK_BUCKETS);
    share = in_order ? 1 : due.n / (look->gathers ? 1 : (size_t)w->peers);
    for (size_t i = 0; i < due.n && !loop_is_stopping(); i += order.bucket_ct) {
        order = (struct turn_order){.buckets = &due.buckets[i], .bucket_ct = 1};
        if (!may_go(w, index, due.buckets[i], look))
            continue;
        order.bucket_ct = go_along(w, index, &due, order.buckets, share);
        if (go_through(w, index, &order, look, e) != 0)
            return (int)e->code;
    }
    return 0;
}

int sweep(struct worker *w, struct look *look, struct err *e)
{
    for (size_t i = 0; i < JOB_TYPE_CT && !loop_is_stopping(); i++) {
        if ((w->jobs & 1u << i) != 0 && sweep_job(w, i, look, e) != 0)
            return err_wrap(e, "%s", job_types[i]->name);
    }
    return 0;
}
