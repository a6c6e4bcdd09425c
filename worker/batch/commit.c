/* commit: one batch from pull to release, and its transactions. */
#include <string.h>

#include "common/base/clock.h"
#include "common/base/log.h"
#include "worker/batch/batch.h"
#include "worker/batch/flights.h"

enum {
    FAILURES_MAX = 20, /* in a row, one by one: then nothing will do */
    TOKENS_MAX = 3     /* of one batch, each above the fences that it met */
};

/* ---- one transaction ---- */

/* Before COMMIT is sent: is the lease still ours by our own clock? */
static int check_lease(const struct session *s, struct err *e)
{
    if (s->locks == NULL || rlock_valid(s->lock, (uint32_t)(s->config->lease_ms / 20)))
        return 0;
    return err_set(e, ERR_LOST, "LL-4001 the lease ran out before COMMIT");
}

void batch_count(struct session *s)
{
    const struct job_result *done = &s->attempt.done;
    const struct job_rows *rows = &s->attempt.rows;
    struct batch_outcome *out = &s->batch->out;
    struct death_count *over =
        rows->n == 1 ? death_count_find(s->deaths, s->job, rows->items[0]) : NULL;
    int64_t decided = 0;

    if (over != NULL)
        over->deaths = 0; /* it can be worked */
    for (size_t i = 0; s->job->counters[i].name != NULL; i++) {
        s->counters->value[COUNT_JOB + i] += done->counts[i];
        decided += done->counts[i];
    }
    s->measures->stale += (int64_t)rows->n > decided ? (int64_t)rows->n - decided : 0;
    session_count(s, COUNT_batches, 1);
    atomic_fetch_add(s->commits, 1);
    out->worked += rows->n;
    out->due_again = out->due_again || done->due_again > 0;
}

static int commit(struct session *s, struct err *e)
{
    session_reach(s, HOOK_BEFORE_COMMIT);
    if (pg_commit(s->pg, e) != 0) {
        s->attempt.in_doubt = e->code == ERR_UNKNOWN;
        if (s->attempt.in_doubt)
            session_count(s, COUNT_commit_unknown, 1);
        return (int)e->code;
    }
    session_reach(s, HOOK_AFTER_COMMIT);
    batch_count(s);
    return 0;
}

int batch_apply(struct session *s, struct err *e)
{
    const struct job_type *job = s->job;
    const struct job_rows *rows = &s->attempt.rows;
    struct job_result *done = &s->attempt.done;
    const struct pg_param params[] = {
        pg_int8(s->attempt.token),
        pg_text(s->name),
        pg_text(s->now),
        pg_int8_array(rows->items, rows->n),
        pg_tid_array(rows->places, rows->n),
        pg_int8_array(rows->owners, rows->n),
        pg_int8(job->setting != NULL ? job->setting(s->config) : 0),
        pg_text(job->form != NULL ? job->form(s->config) : NULL),
    };
    struct pg_result *res;
    size_t at = 0;

    if (pg_exec(s->pg, job->apply, params, job->apply_params, &res, e) != 0)
        return months_is_missing(e)
                   ? err_wrap(e, "a month has no partition; `ledgerlock audit` names "
                                 "one that is gone (months_as_built)")
                   : (int)e->code;
    for (; job->counters[at].name != NULL; at++)
        done->counts[at] = pg_get_int8(res, 0, at);
    done->due_again = pg_get_int8(res, 0, at);
    done->effects = pg_get_int8(res, 0, at + 1);
    pg_result_free(res);
    return 0;
}

/* Nothing is applied when no item has all its rows claimed. */
static int claim_and_apply(struct session *s, struct err *e)
{
    struct attempt *a = &s->attempt;

    if (pg_begin(s->pg, e) != 0 || batch_claim(s, e) != 0)
        return (int)e->code;
    if (!a->is_fenced)
        items_move(s, ITEM_TRIED, KEY_CLAIMED, ITEM_CLAIMED);
    if (items_list(s, ITEM_CLAIMED, &a->rows) == 0)
        return 0;
    s->inflight->is_claimed = true;
    session_reach(s, HOOK_AFTER_CLAIM);
    if (batch_apply(s, e) != 0 || check_lease(s, e) != 0)
        return (int)e->code;
    return commit(s, e);
}

/* One transaction over the workable items, or over `only` one of them. A lost lease is
 * no error: they stay due. */
static int transact(struct session *s, int64_t only, struct err *e)
{
    struct attempt *a = &s->attempt;
    int64_t begun_us = clk_us();

    a->only = only;
    a->xid = 0;
    a->rows.n = 0;
    a->done = (struct job_result){.effects = 0};
    items_want(s);
    session_reach(s, HOOK_BEFORE_BEGIN);
    a->code = claim_and_apply(s, e);
    if (!a->in_doubt)
        pg_rollback(s->pg); /* unless it is committed */
    s->inflight->is_claimed = false;
    items_move(s, ITEM_CLAIMED, KEY_BUSY, a->code == 0 ? ITEM_WORKED : ITEM_GRANTED);
    items_move(s, ITEM_TRIED, KEY_BUSY, ITEM_GRANTED);
    histogram_add(&s->measures->transaction, clk_us() - begun_us);
    session_reach(s, HOOK_ENDED);
    if (a->code != 0 && a->code != ERR_LOST)
        return a->code;
    if (a->code == ERR_LOST && !a->is_lost) {
        a->is_lost = true;
        batch_note_lost(s, "before_commit",
                        "the lease ran out while the batch was worked; rolled back, "
                        "the rows stay due");
    }
    return batch_report_refused(s, e);
}

/* ---- when it breaks ---- */

/* A trigger that asks another server may report that one's end, with which the server
 * itself would end our session. When the disk is full, no row is tried before another.
 */
static bool is_of_another_server(const struct err *e)
{
    return strncmp(e->sqlstate, "08", 2) == 0 || strncmp(e->sqlstate, "57P", 3) == 0;
}

/* True if an error may be of one of the rows: neither a server's state nor a collision.
 * An object that is missing or denied when the rows are claimed may be a trigger's. */
static bool may_be_a_row(const struct session *s, const struct err *e)
{
    if (e->code == ERR_DENIED || e->code == ERR_SCHEMA)
        return s->attempt.rows.n > 0 && pg_is_usable(s->pg);
    return e->code != ERR_UNKNOWN && e->code != ERR_REDIS && e->code != ERR_CONFLICT &&
           e->code != ERR_TIMEOUT && (e->code != ERR_CONN || is_of_another_server(e)) &&
           pg_is_usable(s->pg);
}

/* Leaves out the owner of an item: others of his may break it too. True if that is new.
 */
static bool leave_out(struct session *s, size_t i, enum busy_cause cause)
{
    const struct batch *b = s->batch;
    const struct batch_key *owner = &b->keys[b->refs[b->first_ref[i]].key];

    s->inflight->states[i] = ITEM_LEFT;
    return busy_note(&s->busy, (int)owner->kind, owner->id, cause, clk_ms());
}

/* The month of an item is one of many that are made, a few with each batch: others go
 * on, and it is tried again in the next round. */
static bool waits_for_month(struct session *s, size_t i, const struct err *why)
{
    const struct batch_outcome *out = &s->batch->out;
    struct err ignored = {0};

    if (months_is_missing(why) && !out->wants_months)
        (void)!months_make(s, &ignored);
    if (!months_is_missing(why) || !out->makes_months)
        return false;
    (void)leave_out(s, i, BUSY_MONTH);
    return true;
}

/* Works the items one by one, so that one that cannot be worked keeps no other from it:
 * one that is at fault itself is parked, the owner of any other is left out for a
 * while. When not one of them can be worked, the first error is returned. */
static int transact_each(struct session *s, struct err *e)
{
    struct batch *b = s->batch;
    struct err first = {0};
    int64_t end_ms = clk_ms() + s->config->lease_ms / 2; /* the rest: another batch */
    size_t tried = 0;
    int failures = 0;
    bool is_news = false;

    for (size_t i = 0; i < b->n && failures < FAILURES_MAX && !s->attempt.is_lost &&
                       !s->attempt.is_fenced && clk_ms() < end_ms;
         i++) {
        size_t worked = b->out.worked;
        struct err why = {0};

        if (s->inflight->states[i] != ITEM_GRANTED)
            continue;
        if (transact(s, b->items[i], &why) == 0) {
            failures = b->out.worked > worked ? 0 : failures;
            continue;
        }
        if (waits_for_month(s, i, &why))
            continue;
        failures++;
        tried = i;
        if (may_be_a_row(s, &why) && !parked_is_rows_fault(s->job, &why)) {
            is_news = leave_out(s, i, BUSY_ERROR) || is_news;
            first = first.code == 0 ? why : first;
        } else if (!may_be_a_row(s, &why) ||
                   park_items(s, &b->items[i], 1, why.msg, &why) != 0) {
            *e = why;
            return (int)e->code;
        }
    }
    /* Rows beside them flow, so the pool as a whole has no fault to tell of. */
    if (is_news && b->out.worked > 0)
        log_warn(
            "worker.left_out",
            "code=LL-6001 err=%s note=\"nothing is parked for it; it is tried again\"",
            LOG_TEXT(first.msg));
    if (first.code == 0 || b->out.worked > 0)
        return 0;
    if (s->job->shards == 0) {
        b->out.is_refused = true;
        b->out.last.at = b->times[tried];
        b->out.last.id = b->items[tried];
    }
    *e = first;
    return (int)e->code;
}

/* All at once if that can be, also when a month was missing and this worker, or another
 * one, has made it. */
static int transact_all(struct session *s, struct err *e)
{
    struct err why = {0};
    int code = transact(s, 0, e);

    if (code != 0 && months_is_missing(e)) {
        if (months_make(s, &why) == 0) {
            *e = (struct err){0};
            code = transact(s, 0, e);
        } else if (!pg_is_usable(s->pg)) {
            *e = why;
            code = (int)why.code;
        }
    }
    if (code != 0 && may_be_a_row(s, e))
        code = transact_each(s, e);
    if ((code == ERR_CONFLICT || code == ERR_TIMEOUT) && s->batch->n == 1)
        (void)leave_out(s, 0, BUSY_ERROR);
    return code;
}

/* ---- a batch ---- */

/* From the lock to the release. ERR_UNKNOWN: the locks stay until it is known what
 * became of it. */
static int
lock_and_work(struct session *s, const struct batch_order *order, struct err *e)
{
    int code;

    session_reach(s, HOOK_BEFORE_LOCK);
    code = batch_lock(s, e);
    if (code != 0 || s->attempt.token == 0)
        return code;
    session_reach(s, HOOK_AFTER_LOCK);
    code = order->items != NULL ? transact_each(s, e) : transact_all(s, e);
    if (code != ERR_UNKNOWN && !(s->job->calls != NULL && flights_take(s)))
        batch_release(s);
    return code;
}

/* While it is worked it is published: should the worker die over it, its successor
 * knows of what. */
int batch_run(struct session *s, const struct batch_order *order, struct err *e)
{
    int tries = 0, code = batch_pull(s, order, e);

    if (code != 0 || s->batch->n == 0)
        return code;
    items_publish(s->batch, s->inflight, s->incarnation);
    s->measures->lease_end_ms = 0; /* until it has them */
    s->inflight->commits = *s->commits;
    do
        code = lock_and_work(s, order, e);
    while (code == 0 && s->attempt.is_fenced && ++tries < TOKENS_MAX);
    if (code == 0 && s->attempt.is_fenced) {
        code = err_set(e, ERR_CONFLICT, "LL-3010 rows carry ever newer fences");
        if (s->batch->n == 1)
            (void)leave_out(s, 0, BUSY_ERROR);
    }
    if (code != ERR_UNKNOWN)
        inflight_clear(s->inflight);
    return code;
}
