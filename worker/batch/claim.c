/* claim: the rows of a batch in its transaction, and what to do about those refused. */
#include <inttypes.h>
#include <stdio.h>

#include "common/base/clock.h"
#include "worker/batch/batch.h"

/* Marks the claimed keys. False: the claim told a row that it was not asked for. */
static bool
mark_claimed(struct batch *b, enum resource_kind kind, const struct pg_result *res)
{
    const struct pg_array ids = pg_get_int8s(res, 0, 1);

    for (size_t i = 0; i < ids.n; i++) {
        struct batch_key *key = batch_find(b, (int)kind, pg_int8_at(&ids, i));

        if (key == NULL || key->state != KEY_WANTED)
            return false;
        key->state = KEY_CLAIMED;
    }
    return true;
}

/* Ids of a kind that are wanted and not claimed, into b->ids. */
static size_t list_unclaimed(struct batch *b, enum resource_kind kind)
{
    size_t n = 0;

    for (size_t i = 0; i < b->key_ct; i++) {
        if (b->keys[i].state == KEY_WANTED && b->keys[i].kind == kind)
            b->ids[n++] = b->keys[i].id;
    }
    return n;
}

/* Why the n rows of b->ids were not claimed. */
static int ask_refused(
    struct session *s, int kind, size_t n, struct pg_result **res, struct err *e)
{
    const struct pg_param params[] = {pg_int8(s->attempt.token),
                                      pg_int8_array(s->batch->ids, n)};

    return pg_exec(s->pg, resources[kind].refused, params, 2, res, e);
}

/* Some rows were not claimed. Of a job that one worker serves in order: was one left
 * out for a fence that a higher token can pass? */
static int find_fenced(struct session *s, struct err *e)
{
    for (int kind = 0; kind < s->job->kinds && !job_is_shared(s->job, s->config);
         kind++) {
        size_t n = list_unclaimed(s->batch, (enum resource_kind)kind);
        struct pg_result *res;

        if (n == 0)
            continue;
        if (ask_refused(s, kind, n, &res, e) != 0)
            return (int)e->code;
        for (size_t row = 0; row < pg_rows(res); row++) {
            if (!pg_is_null(res, row, 1) && pg_is_null(res, row, 2) &&
                pg_get_int8(res, row, 3) == 0)
                s->attempt.is_fenced = true;
        }
        pg_result_free(res);
    }
    return 0;
}

int batch_claim(struct session *s, struct err *e)
{
    struct batch *b = s->batch;
    bool is_ours = true, is_whole = true;

    for (int kind = 0; kind < s->job->kinds && is_ours; kind++) {
        size_t n = list_unclaimed(b, (enum resource_kind)kind);
        const struct pg_param params[] = {pg_int8(s->attempt.token),
                                          pg_int8_array(b->ids, n)};
        struct pg_result *res;

        if (n == 0)
            continue;
        if (pg_exec(s->pg, resources[kind].claim, params, 2, &res, e) != 0)
            return (int)e->code;
        s->attempt.xid = pg_get_int8(res, 0, 0);
        is_ours = mark_claimed(b, (enum resource_kind)kind, res);
        is_whole = is_whole && pg_get_int8s(res, 0, 1).n == n;
        pg_result_free(res);
    }
    if (!is_ours)
        return err_set(e, ERR_BUG,
                       "LL-9004 the claim told a row that it was not asked for");
    return is_whole ? 0 : find_fenced(s, e);
}

/* ---- those that were refused ---- */

/* Parks the items that need a row that no batch can ever claim. */
static int park_dependents(struct session *s,
                           const struct batch_key *key,
                           const char *why,
                           struct err *e)
{
    static int64_t items[BATCH_MAX];
    const struct batch *b = s->batch;
    size_t n = 0;

    for (size_t i = 0; i < b->n; i++) {
        for (size_t r = b->first_ref[i]; r < b->first_ref[i + 1]; r++) {
            if (&b->keys[b->refs[r].key] == key)
                items[n++] = b->items[i];
        }
    }
    return park_items(s, items, n, why, e);
}

/* A fence that no token can pass yet: its row is busy, so that the tokens of all
 * workers do not follow it. Told once, of the highest. */
static void
note_far_fence(struct session *s, const struct batch_key *key, int64_t fence)
{
    char detail[80];

    if (fence <= s->far_fence)
        return;
    s->far_fence = fence;
    (void)snprintf(detail, sizeof detail,
                   "its row carries a fence far ahead of the clock, %" PRId64, fence);
    incident_log(s, "fenced", "claim", key->name, detail);
}

/* Fenced rows, the highest fence first, then absent ones, then far fences. A row with a
 * newer fence than our token: the next token is above it. Without Redis locks another
 * batch was just faster. With them it is an incident: either the lease was lost and
 * somebody else wrote the row, or tokens are behind the rows: Redis lost its last one
 * and its clock is behind, or another source of tokens worked here. */
static int take_refused(struct session *s,
                        enum resource_kind kind,
                        const struct pg_result *res,
                        struct err *e)
{
    char detail[80];

    for (size_t row = 0; row < pg_rows(res); row++) {
        struct batch_key *key =
            batch_find(s->batch, (int)kind, pg_get_int8(res, row, 0));

        if (key == NULL)
            continue;
        if (pg_get_int8(res, row, 3) != 0) {
            note_far_fence(s, key, pg_get_int8(res, row, 1));
            continue;
        }
        key->state = KEY_GRANTED; /* it is not busy */
        if (!pg_is_null(res, row, 1))
            session_count(s, s->locks != NULL ? COUNT_fenced : COUNT_busy, 1);
        if (pg_is_null(res, row, 2))
            batch_raise_floor(s, pg_get_int8(res, row, 1));
        else if (park_dependents(s, key, pg_get_text(res, row, 2), e) != 0)
            return (int)e->code;
        if (row > 0 || pg_is_null(res, row, 1) || s->locks == NULL)
            continue;
        (void)snprintf(detail, sizeof detail,
                       "rows carry a newer fence, up to %" PRId64,
                       pg_get_int8(res, row, 1));
        incident_log(s, "fenced", "claim", key->name, detail);
    }
    return 0;
}

int batch_report_refused(struct session *s, struct err *e)
{
    struct batch *b = s->batch;
    int code = 0;

    for (int kind = 0; kind < s->job->kinds && code == 0; kind++) {
        size_t n = list_unclaimed(b, (enum resource_kind)kind);
        struct pg_result *res;

        if (n == 0)
            continue;
        if (ask_refused(s, kind, n, &res, e) != 0)
            return (int)e->code;
        code = take_refused(s, (enum resource_kind)kind, res, e);
        pg_result_free(res);
        n = list_unclaimed(b, (enum resource_kind)kind);
        session_count(s, s->locks != NULL ? COUNT_row_locked : COUNT_busy, (int64_t)n);
        for (size_t i = 0; i < n; i++)
            (void)busy_note(&s->busy, kind, b->ids[i], BUSY_ROW_LOCKED, clk_ms());
    }
    return code;
}
