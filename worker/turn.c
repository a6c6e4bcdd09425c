/* turn: pull, lock, apply, release. */
#include "worker/turn.h"

#include <stdio.h>

#include "common/clock.h"
#include "common/lock/mutant.h"
#include "common/log.h"
#include "worker/batch.h"
#include "worker/claim.h"
#include "worker/endless.h"
#include "worker/epoch.h"
#include "worker/history.h"
#include "worker/journal.h"
#include "worker/park.h"
#include "worker/point.h"
#include "worker/queue.h"
#include "worker/settle.h"

enum { PATIENCE_SHARE = 20 }; /* of a lease, to wait for the keys of one row */

static int index_of(const struct job_type *job)
{
    int i = 0;

    while (job_types[i] != job)
        i++;
    return i;
}

/* ---- lock ---- */

static int lock_fault(struct worker *w, int code, struct err *e)
{
    char words[256];

    (void)snprintf(words, sizeof words, "%s", ll_error(w->locks));
    if (code == LL_E_UNCERTAIN) {
        worker_count(w, METRIC_uncertain, 1);
        journal(w, "uncertain", "acquire", w->batch->keys[0].name, 0, 0, words);
    }
    return err_set(e, ERR_REDIS, "%s (%s)", ll_strerror(code), words);
}

static int ask_for_locks(struct worker *w, bool patient)
{
    uint32_t lease_ms = (uint32_t)w->config->lease_ms;
    const struct batch *b = w->batch;

    if (patient)
        return ll_acquire_wait(w->lock, b->names, b->key_ct, LL_ALL, lease_ms,
                               lease_ms / PATIENCE_SHARE);
    return ll_acquire(w->lock, b->names, b->key_ct, LL_ANY, lease_ms);
}

/* *token stays 0 when no key was granted. */
static int take_locks(struct worker *w, bool patient, int64_t *token, struct err *e)
{
    struct batch *b = w->batch;
    int code;

    *token = 0;
    if (w->locks == NULL) {
        batch_mark_all(b);
        return epoch_token_without_locks(w, token, e);
    }
    code = ask_for_locks(w, patient);
    if (code == LL_E_EPOCH) {
        if (epoch_raise(w, 0, "Redis lost or changed its token record", e) != 0)
            return (int)e->code;
        code = ask_for_locks(w, patient);
    }
    if (code == LL_E_EPOCH)
        return 0; /* lost again, or somebody is about to raise it */
    if (code < 0)
        return lock_fault(w, code, e);
    worker_count(w, METRIC_granted, (int64_t)ll_granted(w->lock));
    worker_count(w, METRIC_busy, (int64_t)(b->key_ct - ll_granted(w->lock)));
    endless_note(w);
    batch_mark_granted(b, w->lock);
    *token = ll_token(w->lock);
    return 0;
}

void turn_release(struct worker *w)
{
    int64_t token;
    int code;

    POINT(w, "before_release");
    if (w->locks == NULL || ll_granted(w->lock) == 0)
        return;
    token = ll_token(w->lock);
    code = ll_release(w->lock);
    if (code == LL_GONE || code == LL_NOT_OWNER) {
        worker_count(w, METRIC_lost, 1);
        journal(w, "lost", "release", w->batch->keys[0].name, token, 0,
                ll_strerror(code));
    } else if (code < 0) {
        log_debug("lock.left_to_lease", "err=\"%s\"", ll_error(w->locks));
        ll_abandon(w->lock);
    }
}

/* ---- transaction ---- */

/* Before COMMIT is sent: is the lease still ours by our own clock? */
static int check_lease(struct worker *w, int64_t token, int64_t xid, struct err *e)
{
    if (w->locks == NULL || ll_valid(w->lock, (uint32_t)(w->config->lease_ms / 20)) ||
        MUTANT("lease-not-checked"))
        return 0;
    pg_rollback(w->pg);
    worker_count(w, METRIC_lost, 1);
    journal(
        w, "lost", "before_commit", w->batch->keys[0].name, token, xid,
        "the lease ran out while the batch was worked; rolled back, the rows stay due");
    return err_set(e, ERR_LOST, "the lease ran out before COMMIT");
}

static int commit(struct worker *w,
                  const struct job_type *job,
                  const struct job_batch *jb,
                  int64_t xid,
                  const struct metrics *counted,
                  struct err *e)
{
    if (check_lease(w, jb->token, xid, e) != 0)
        return (int)e->code;
    if (MUTANT("release-before-commit"))
        turn_release(w);
    HISTORY_COMMIT(w, jb, xid, counted);
    POINT(w, "before_commit");
    if (pg_commit(w->pg, e) != 0) {
        if (e->code == ERR_UNKNOWN && !MUTANT("blind-retry-on-unknown"))
            settle_note(w, jb, job, xid, counted);
        return (int)e->code;
    }
    POINT(w, "after_commit");
    metrics_add(&w->slot->counters, counted);
    worker_count(w, METRIC_batches, 1);
    return 0;
}

/* Worked alone, and we are still alive: it is no suspect any more. */
static int absolve(struct worker *w, const struct job_type *job, struct err *e)
{
    const struct pg_param params[] = {pg_text(job->name), pg_int8(w->batch->items[0])};

    if (!w->batch->is_suspect)
        return 0;
    return pg_exec(w->pg, SQL_POOL_ABSOLVE_SUSPECT, params, 2, NULL, e);
}

static int claim_and_apply(struct worker *w,
                           const struct job_type *job,
                           int64_t token,
                           int64_t only,
                           struct err *e)
{
    struct batch *b = w->batch;
    struct metrics counted = {{0}};
    struct job_batch jb = {
        .pg = w->pg,
        .token = token,
        .worker = w->name,
        .now = w->now,
        .rows = &b->work,
        .retry_s = w->config->retry_s,
        .retry_ct = w->config->retry_ct,
    };
    int64_t xid;
    size_t n;

    if (pg_begin(w->pg, e) != 0 || claim_rows(w, token, &xid, e) != 0) {
        pg_rollback(w->pg);
        return (int)e->code;
    }
    POINT(w, "after_claim");
    n = batch_workable(b, true, only);
    b->worked += n;
    b->first_worked = b->first_worked || (n > 0 && b->work.items[0] == b->items[0]);
    if (n == 0) {
        pg_rollback(w->pg);
        return 0;
    }
    b->youngest = b->work.items[n - 1];
    if (job->apply(&jb, &counted, e) != 0 || absolve(w, job, e) != 0) {
        pg_rollback(w->pg);
        return (int)e->code;
    }
    return commit(w, job, &jb, xid, &counted, e);
}

/* One transaction over the workable items, or over `only` one of them. */
static int transact(struct worker *w,
                    const struct job_type *job,
                    int64_t token,
                    int64_t only,
                    struct err *e)
{
    int code;

    HISTORY_INVOKE(w, job, token, only);
    POINT(w, "before_begin");
    code = claim_and_apply(w, job, token, only, e);
    HISTORY_END(w, code);
    return code;
}

static bool is_broken_invariant(const struct err *e)
{
    return e->code == ERR_CONSTRAINT || e->code == ERR_BUG;
}

/* An effect met a constraint although its row was claimed: rolled back already. Works
 * the items one by one and sets aside the one that breaks, so that the rest flows. */
static int transact_each(struct worker *w,
                         const struct job_type *job,
                         int64_t token,
                         struct err *e)
{
    struct batch *b = w->batch;

    for (size_t i = 0; i < b->n; i++) {
        struct err why = {0};
        int code;

        if (batch_workable(b, false, b->items[i]) == 0)
            continue;
        code = transact(w, job, token, b->items[i], &why);
        if (code != 0 && is_broken_invariant(&why))
            code = park_item(w, job, b->items[i], token, why.msg, &why);
        if (code != 0) {
            *e = why;
            return code;
        }
    }
    return 0;
}

/* ---- after ---- */

static void note_pace(struct pace *pace, int64_t start_us)
{
    int64_t now = clk_us();

    if (pace->first_us == 0)
        pace->first_us = start_us;
    pace->last_us = now;
    histogram_record(&pace->batch_us, now - start_us);
}

/* Rows of the job became suspects since the pull, and these may be among them. They are
 * charged before the dead one's keys are freed, so whoever was given those sees it;
 * unless its lease was over before its successor had come so far. */
static bool is_stale(const struct worker *w, const struct job_type *job)
{
    return w->batch->accusals != w->accusals[index_of(job)];
}

static int work(struct worker *w,
                const struct job_type *job,
                int64_t token,
                enum turn *turn,
                struct err *e)
{
    struct batch *b = w->batch;
    size_t n;
    int code;

    *turn = TURN_BUSY;
    n = batch_workable(b, false, 0);
    if (is_stale(w, job))
        *turn = TURN_STALE;
    if (n == 0 || *turn == TURN_STALE) {
        turn_release(w);
        return 0;
    }
    if (job->in_order && n * 2 >= b->n && !b->is_suspect)
        (void)queue_enter(w, index_of(job), false);
    code = transact(w, job, token, 0, e);
    if (code != 0 && is_broken_invariant(e))
        code = transact_each(w, job, token, e);
    if (code == ERR_UNKNOWN)
        return code; /* the locks stay until it is known what became of it */
    turn_release(w);
    if (code == ERR_LOST)
        return 0;
    *turn = code == 0 && b->worked > 0 ? TURN_WORKED : TURN_BUSY;
    if (code == 0)
        code = claim_report(w, job, token, e);
    return code;
}

/* While the batch is worked it is published: should the worker die over it, the next
 * one in its slot knows of what. */
static int run_batch(struct worker *w,
                     const struct job_type *job,
                     const struct turn_order *order,
                     enum turn *turn,
                     struct err *e)
{
    int64_t token;

    hold_set(&w->slot->hold, w->slot->incarnation, index_of(job), w->batch);
    POINT(w, "before_lock");
    if (take_locks(w, order->patient, &token, e) != 0)
        return (int)e->code; /* may be the end of the process: stays published */
    if (token != 0) {
        POINT(w, "after_lock");
        if (work(w, job, token, turn, e) != 0)
            return (int)e->code;
    }
    hold_clear(&w->slot->hold);
    return 0;
}

/* Tells the others of the pool that the batch is from the first n of its buckets. One
 * row alone, which may wait for its keys or be deadly, keeps them from none. */
static void tell_where(struct worker *w,
                       const struct job_type *job,
                       const struct turn_order *order,
                       size_t n)
{
    if (!job->in_order && !order->patient && !order->suspect)
        queue_go_to(w, index_of(job), order->buckets,
                    n < order->bucket_ct ? n : order->bucket_ct);
}

/* Pulls, and waits its turn if it is to; anew when somebody has served the bucket
 * meanwhile, or died over it. */
static int pull(struct worker *w,
                const struct job_type *job,
                const struct turn_order *order,
                int64_t *too_large,
                struct err *e)
{
    bool waited = false;
    unsigned served;

    do {
        served = order->line == NULL ? 0 : order->line->served;
        w->batch->accusals = w->accusals[index_of(job)];
        tell_where(w, job, order, 1);
        if (batch_pull(w, job, order, too_large, e) != 0)
            return (int)e->code;
        tell_where(w, job, order, w->batch->served + 1);
        if (w->batch->n > 0 && order->queues)
            waited = queue_enter(w, index_of(job), !waited);
    } while (waited && ((order->line != NULL && order->line->served != served) ||
                        is_stale(w, job)));
    return 0;
}

static void note_waste(struct worker *w,
                       const struct turn_order *order,
                       enum turn turn,
                       int64_t start_us)
{
    struct waste *waste = &w->slot->waste;

    waste->turns++;
    waste->empty += turn == TURN_EMPTY;
    waste->refused += turn == TURN_BUSY;
    waste->patient += order->patient;
    waste->pulled += (int64_t)w->batch->n;
    if (turn != TURN_WORKED)
        waste->vain_us += clk_us() - start_us;
}

static int pull_and_work(struct worker *w,
                         const struct job_type *job,
                         const struct turn_order *order,
                         enum turn *turn,
                         struct err *e)
{
    int64_t too_large;

    do {
        *turn = TURN_EMPTY;
        if (pull(w, job, order, &too_large, e) != 0)
            return (int)e->code;
        if (too_large != 0) {
            *turn = TURN_WORKED;
            return park_item(w, job, too_large, 0,
                             "it needs more keys than one lock call takes", e);
        }
        if (w->batch->n == 0)
            return 0;
        *turn = TURN_BUSY;
        if (run_batch(w, job, order, turn, e) != 0)
            return (int)e->code;
    } while (*turn == TURN_STALE); /* as often as somebody dies meanwhile */
    return 0;
}

int turn_run(struct worker *w,
             const struct job_type *job,
             const struct turn_order *order,
             enum turn *turn,
             struct err *e)
{
    int64_t start_us = clk_us() - w->slot->waste.paused_us;
    int code = pull_and_work(w, job, order, turn, e);

    start_us += w->slot->waste.paused_us; /* waiting is no part of it */
    note_waste(w, order, *turn, start_us);
    if (*turn == TURN_WORKED && w->batch->n > 0) {
        w->slot->has_worked = 1;
        note_pace(&w->slot->pace, start_us);
    }
    return code;
}
