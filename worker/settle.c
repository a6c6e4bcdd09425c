/* settle: by the transaction's status until it is over, then by the effects themselves.
 *
 * The status alone would not do: after a crash of the server the id of a transaction
 * that never reached the disk is given out again. A token is given out once. */
#include "worker/settle.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "common/clock.h"
#include "common/lock/mutant.h"
#include "worker/history.h"
#include "worker/journal.h"

void settle_note(struct worker *w,
                 const struct job_batch *b,
                 const struct job_type *job,
                 int64_t xid,
                 const struct metrics *counted)
{
    struct unknown *u = &w->unknown;

    u->pending = true;
    u->job = job;
    u->token = b->token;
    u->xid = xid;
    u->n = b->rows->n;
    u->counted = *counted;
    memcpy(u->items, b->rows->items, u->n * sizeof u->items[0]);
    worker_count(w, METRIC_commit_unknown, 1);
}

/* Whether the transaction still runs. One that the server cannot tell about is over. */
static int is_running(struct worker *w, bool *running, bool *committed, struct err *e)
{
    const struct pg_param param = pg_int8(w->unknown.xid);
    struct pg_result *res;

    *running = *committed = false;
    if (pg_exec(w->pg, SQL_POOL_XACT_STATUS, &param, 1, &res, e) != 0)
        return pg_is_usable(w->pg) ? 0 : (int)e->code;
    *running = strcmp(pg_get_text(res, 0, 0), "in progress") == 0;
    *committed = strcmp(pg_get_text(res, 0, 0), "committed") == 0;
    pg_result_free(res);
    return 0;
}

static int find_effects(struct worker *w, int64_t *found, struct err *e)
{
    const struct unknown *u = &w->unknown;
    const struct pg_param params[] = {pg_int8(u->token), pg_int8_array(u->items, u->n)};
    struct pg_result *res;

    if (pg_exec(w->pg, u->job->settle, params, 2, &res, e) != 0)
        return (int)e->code;
    *found = pg_get_int8(res, 0, 0);
    pg_result_free(res);
    return 0;
}

/* Whether the batch decided anything that carries its token; ending a subscription at
 * its cancel date does not. */
static bool has_effects(const struct metrics *counted)
{
    return counted->value[METRIC_charged] + counted->value[METRIC_declined] +
               counted->value[METRIC_fulfilled] + counted->value[METRIC_rejected] >
           0;
}

int settle_pending(struct worker *w, struct err *e)
{
    struct unknown *u = &w->unknown;
    int64_t deadline = clk_ms() + w->config->lease_ms;
    bool running = true, committed = false;
    int64_t found = 0;
    char detail[120];

    if (!u->pending)
        return 0;
    while (running && !MUTANT("settle-not-waiting")) {
        if (is_running(w, &running, &committed, e) != 0)
            return (int)e->code;
        if (running && clk_ms() > deadline)
            return err_set(e, ERR_TIMEOUT,
                           "transaction %" PRId64 " is still in progress", u->xid);
        if (running)
            clk_pause_ms(20);
    }
    if (find_effects(w, &found, e) != 0)
        return (int)e->code;
    committed = found > 0 || (committed && !has_effects(&u->counted));
    HISTORY_SETTLED(w, committed);
    if (committed)
        metrics_add(&w->slot->counters, &u->counted);
    u->pending = false;
    (void)snprintf(detail, sizeof detail, "settled: %s, %" PRId64 " effects found",
                   committed ? "committed" : "rolled back", found);
    journal(w, "commit_unknown", "commit", u->job->name, u->token, u->xid, detail);
    return 0;
}
