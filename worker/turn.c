/* turn: pull, lock, apply, release. */
#include "worker/turn.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "common/clock.h"
#include "common/lock/mutant.h"
#include "common/log.h"
#include "worker/batch.h"
#include "worker/epoch.h"
#include "worker/history.h"
#include "worker/journal.h"
#include "worker/point.h"
#include "worker/settle.h"

enum { PATIENCE_SHARE = 20 }; /* of a lease, to wait for the keys of one row */

struct kind_row {
    enum sql_id claim;
    enum sql_id fence;
};

static const struct kind_row kinds[] = {
#define KIND_ROW(name, claim, fence) {claim, fence},
    RESOURCE_KINDS(KIND_ROW)
#undef KIND_ROW
};

/* ---- lock ---- */

static int lock_fault(struct worker *w, int code, struct err *e)
{
    char words[256];

    if (code == LL_E_EPOCH)
        return epoch_raise(w, 0, "Redis lost or changed its token record", e);
    (void)snprintf(words, sizeof words, "%s", ll_error(w->locks));
    if (code == LL_E_UNCERTAIN) {
        worker_count(w, METRIC_uncertain, 1);
        journal(w, "uncertain", "acquire", w->batch->keys[0].name, 0, 0, words);
    }
    return err_set(e, ERR_REDIS, "%s (%s)", ll_strerror(code), words);
}

/* *token stays 0 when no key was granted. */
static int take_locks(struct worker *w, bool patient, int64_t *token, struct err *e)
{
    uint32_t lease_ms = (uint32_t)w->config->lease_ms;
    struct batch *b = w->batch;
    int code;

    *token = 0;
    if (w->locks == NULL) {
        batch_mark_all(b);
        return epoch_token_without_locks(w, token, e);
    }
    if (patient)
        code = ll_acquire_wait(w->lock, b->names, b->key_ct, LL_ALL, lease_ms,
                               lease_ms / PATIENCE_SHARE);
    else
        code = ll_acquire(w->lock, b->names, b->key_ct, LL_ANY, lease_ms);
    if (code < 0)
        return lock_fault(w, code, e);
    worker_count(w, METRIC_granted, (int64_t)ll_granted(w->lock));
    worker_count(w, METRIC_busy, (int64_t)(b->key_ct - ll_granted(w->lock)));
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

/* ---- claim ---- */

static int claim_kind(struct worker *w,
                      enum resource_kind kind,
                      int64_t token,
                      int64_t *xid,
                      struct err *e)
{
    struct batch *b = w->batch;
    size_t n = batch_wanted(b, kind);
    const struct pg_param params[] = {pg_int8(token), pg_int8_array(b->ids, n)};
    struct pg_result *res;

    if (n == 0)
        return 0;
    if (pg_exec(w->pg, kinds[kind].claim, params, 2, &res, e) != 0)
        return (int)e->code;
    for (size_t row = 0; row < pg_rows(res); row++) {
        struct batch_key *key = batch_find(b, kind, pg_get_int8(res, row, 0));

        if (key != NULL)
            key->claimed = true;
        *xid = pg_get_int8(res, row, 1);
    }
    pg_result_free(res);
    return 0;
}

static int claim_all(struct worker *w, int64_t token, int64_t *xid, struct err *e)
{
    struct batch *b = w->batch;

    *xid = 0;
    for (size_t i = 0; i < b->key_ct; i++)
        b->keys[i].claimed = false;
    for (int kind = 0; kind < RESOURCE_KIND_COUNT; kind++) {
        if (claim_kind(w, (enum resource_kind)kind, token, xid, e) != 0)
            return (int)e->code;
    }
    return 0;
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
    HISTORY_COMMIT(jb, xid, counted);
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
        .items = b->work,
        .retry_s = w->config->retry_s,
        .retry_ct = w->config->retry_ct,
    };
    int64_t xid;

    if (pg_begin(w->pg, e) != 0 || claim_all(w, token, &xid, e) != 0) {
        pg_rollback(w->pg);
        return (int)e->code;
    }
    POINT(w, "after_claim");
    jb.n = batch_workable(b, true, only);
    b->worked += jb.n;
    b->first_worked = b->first_worked || (jb.n > 0 && jb.items[0] == b->items[0]);
    if (jb.n == 0) {
        pg_rollback(w->pg);
        return 0;
    }
    if (job->apply(&jb, &counted, e) != 0) {
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

static int park(struct worker *w,
                const struct job_type *job,
                int64_t item,
                int64_t token,
                const char *why,
                struct err *e)
{
    const struct pg_param param = pg_int8_array(&item, 1);
    char resource[64];

    if (pg_exec(w->pg, job->park, &param, 1, NULL, e) != 0)
        return err_wrap(e, "park %s %" PRId64, job->item, item);
    worker_count(w, METRIC_parked, 1);
    (void)snprintf(resource, sizeof resource, "%s:%" PRId64, job->item, item);
    journal(w, "parked", "apply", resource, token, 0, why);
    return 0;
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
            code = park(w, job, b->items[i], token, why.msg, &why);
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

/* Ids of a kind that were wanted and not returned by the claim, into b->ids. */
static size_t unclaimed(struct batch *b, enum resource_kind kind)
{
    size_t n = 0;

    for (size_t i = 0; i < b->key_ct; i++) {
        if (b->keys[i].wanted && !b->keys[i].claimed && b->keys[i].kind == kind)
            b->ids[n++] = b->keys[i].id;
    }
    return n;
}

/* A fence that no token can ever reach: only a damaged row has one. What needs it is
 * set aside for a person. */
static int
park_behind(struct worker *w, const struct job_type *job, size_t key, struct err *e)
{
    struct batch *b = w->batch;

    for (size_t i = 0; i < b->n; i++) {
        for (size_t r = b->first_ref[i]; r < b->first_ref[i + 1]; r++) {
            if (b->refs[r].key == key &&
                park(w, job, b->items[i], 0,
                     "its row carries a fence beyond every token", e) != 0)
                return (int)e->code;
        }
    }
    return 0;
}

/* Whether somebody else may have got the key, or the row, after us: a newer token than
 * ours is what to expect then. With locks Redis tells; without, the next token does. */
static int was_overtaken(
    struct worker *w, size_t key, int64_t fence, bool *overtaken, struct err *e)
{
    int64_t next;

    if (w->locks != NULL) {
        *overtaken = ll_key_code(w->lock, key) != LL_OK;
        return 0;
    }
    if (epoch_token_without_locks(w, &next, e) != 0)
        return (int)e->code;
    *overtaken = next > fence;
    return 0;
}

/* A row with a newer fence than our token. If nobody overtook us, it is the tokens that
 * went back: raise the epoch above what was seen. */
static int heal_fence(struct worker *w,
                      const struct job_type *job,
                      const struct batch_key *first,
                      int64_t fence,
                      struct err *e)
{
    size_t key = (size_t)(first - w->batch->keys);
    bool overtaken = false;

    if (was_overtaken(w, key, fence, &overtaken, e) != 0)
        return (int)e->code;
    if (overtaken)
        return 0;
    if (epoch_of(fence) >= LL_EPOCH_MAX)
        return park_behind(w, job, key, e);
    return epoch_raise(w, epoch_of(fence), "tokens had gone back", e);
}

/* What the claim did not return: fenced, or held by another session (then it is busy,
 * and its work stays due). */
static int report_unclaimed(struct worker *w,
                            const struct job_type *job,
                            enum resource_kind kind,
                            int64_t token,
                            struct err *e)
{
    struct batch *b = w->batch;
    size_t n = unclaimed(b, kind);
    const struct pg_param params[] = {pg_int8(token), pg_int8_array(b->ids, n)};
    const struct batch_key *first;
    struct pg_result *res;
    int64_t fence;
    size_t fenced;
    char detail[120];

    if (n == 0)
        return 0;
    if (pg_exec(w->pg, kinds[kind].fence, params, 2, &res, e) != 0)
        return (int)e->code;
    fenced = pg_rows(res);
    fence = fenced > 0 ? pg_get_int8(res, 0, 1) : 0;
    first = fenced > 0 ? batch_find(b, kind, pg_get_int8(res, 0, 0)) : NULL;
    pg_result_free(res);
    worker_count(w, METRIC_busy, (int64_t)(n - fenced));
    if (first == NULL)
        return 0;
    worker_count(w, METRIC_fenced, (int64_t)fenced);
    (void)snprintf(detail, sizeof detail,
                   "%zu rows carry a newer fence, up to %" PRId64, fenced, fence);
    journal(w, "fenced", "claim", first->name, token, 0, detail);
    return heal_fence(w, job, first, fence, e);
}

static int work(struct worker *w,
                const struct job_type *job,
                int64_t token,
                enum turn *turn,
                struct err *e)
{
    struct batch *b = w->batch;
    int code;

    *turn = TURN_BUSY;
    if (batch_workable(b, false, 0) == 0) {
        turn_release(w);
        return 0;
    }
    code = transact(w, job, token, 0, e);
    if (code != 0 && is_broken_invariant(e))
        code = transact_each(w, job, token, e);
    if (code == ERR_UNKNOWN)
        return code; /* the locks stay until it is known what became of it */
    turn_release(w);
    if (code == ERR_LOST)
        return 0;
    *turn = code == 0 && b->worked > 0 ? TURN_WORKED : TURN_BUSY;
    for (int kind = 0; code == 0 && kind < RESOURCE_KIND_COUNT; kind++)
        code = report_unclaimed(w, job, (enum resource_kind)kind, token, e);
    return code;
}

int turn_run(struct worker *w,
             const struct job_type *job,
             const struct turn_order *order,
             enum turn *turn,
             struct err *e)
{
    int64_t start_us = clk_us();
    int64_t too_large, token;
    int code;

    *turn = TURN_EMPTY;
    if (batch_pull(w, job, order->bucket, order->limit, &too_large, e) != 0)
        return (int)e->code;
    if (too_large != 0) {
        *turn = TURN_WORKED;
        return park(w, job, too_large, 0, "it needs more keys than one lock call takes",
                    e);
    }
    if (w->batch->n == 0)
        return 0;
    *turn = TURN_BUSY;
    POINT(w, "before_lock");
    if (take_locks(w, order->patient, &token, e) != 0)
        return (int)e->code;
    if (token == 0)
        return 0;
    POINT(w, "after_lock");
    code = work(w, job, token, turn, e);
    if (*turn == TURN_WORKED)
        note_pace(&w->slot->pace, start_us);
    return code;
}
