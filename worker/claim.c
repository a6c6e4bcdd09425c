/* claim: the rows of a batch in its transaction, and what to do about those refused. */
#include "worker/claim.h"

#include <inttypes.h>
#include <stdio.h>

#include "worker/batch.h"
#include "worker/epoch.h"
#include "worker/journal.h"
#include "worker/park.h"

struct kind_row {
    enum sql_id claim;
    enum sql_id fence;
};

static const struct kind_row kinds[] = {
#define KIND_ROW(name, claim, fence) {claim, fence},
    RESOURCE_KINDS(KIND_ROW)
#undef KIND_ROW
};

/* What was claimed comes in the order of the keys; whether all of it is among them. */
static bool
mark_claimed(struct batch *b, enum resource_kind kind, const struct pg_result *res)
{
    bool tells_place = pg_columns(res) > 2;
    const struct pg_array ids = pg_get_int8s(res, 0, 1);
    const struct pg_array places =
        tells_place ? pg_get_tids(res, 0, 2) : (struct pg_array){0};
    const struct pg_array balances =
        tells_place ? pg_get_int8s(res, 0, 3) : (struct pg_array){0};
    size_t at = 0;

    for (size_t i = 0; i < b->key_ct && at < ids.n; i++) {
        struct batch_key *key = &b->keys[i];

        if (key->kind != kind || key->id != pg_int8_at(&ids, at))
            continue;
        key->claimed = true;
        key->place = pg_tid_at(&places, at);
        key->balance_minor = pg_int8_at(&balances, at);
        at++;
    }
    return at == ids.n;
}

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
    bool in_order;

    if (n == 0)
        return 0;
    if (pg_exec(w->pg, kinds[kind].claim, params, 2, &res, e) != 0)
        return (int)e->code;
    *xid = pg_get_int8(res, 0, 0);
    in_order = mark_claimed(b, kind, res);
    pg_result_free(res);
    return in_order ? 0
                    : err_set(e, ERR_BUG,
                              "the claim told rows out of the order of the keys");
}

int claim_rows(struct worker *w, int64_t token, int64_t *xid, struct err *e)
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

/* ---- what was refused ---- */

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
                park_item(w, job, b->items[i], 0,
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

int claim_report(struct worker *w,
                 const struct job_type *job,
                 int64_t token,
                 struct err *e)
{
    for (int kind = 0; kind < RESOURCE_KIND_COUNT; kind++) {
        if (report_unclaimed(w, job, (enum resource_kind)kind, token, e) != 0)
            return (int)e->code;
    }
    return 0;
}
