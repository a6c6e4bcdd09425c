/* in_doubt: by the transaction's status until it is over, then by the effects
 * themselves.
 *
 * The status alone would not do: after a crash of the server the id of a transaction
 * that never reached the disk is given out again. A token is given out once. */
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "common/base/clock.h"
#include "worker/batch/batch.h"

/* Waits while the transaction runs. A transaction whose number the server does not know
 * any more (22023) is over, and not known to be committed. */
static int wait_for_end(struct session *s, bool *committed, struct err *e)
{
    const struct pg_param param = pg_int8(s->attempt.xid);
    int64_t deadline = clk_ms() + s->config->lease_ms;
    bool running = true;
    struct pg_result *res;

    for (*committed = false; running; clk_pause_ms(running ? 20 : 0)) {
        if (pg_exec(s->pg, SQL_POOL_XACT_STATUS, &param, 1, &res, e) != 0)
            return strcmp(e->sqlstate, "22023") == 0 ? 0 : (int)e->code;
        running = strcmp(pg_get_text(res, 0, 0), "in progress") == 0;
        *committed = strcmp(pg_get_text(res, 0, 0), "committed") == 0;
        pg_result_free(res);
        if (running && clk_ms() > deadline)
            return err_set(e, ERR_TIMEOUT,
                           "LL-3006 transaction %" PRId64 " is still in progress",
                           s->attempt.xid);
    }
    return 0;
}

static int find_effects(struct session *s, int64_t *found, struct err *e)
{
    const struct attempt *a = &s->attempt;
    const struct pg_param params[] = {pg_int8(a->token),
                                      pg_int8_array(a->rows.items, a->rows.n)};

    return pg_ask(s->pg, s->job->effects, params, 2, found, e);
}

int in_doubt_settle(struct session *s, struct err *e)
{
    struct attempt *a = &s->attempt;
    bool committed;
    int64_t found = 0;
    char detail[120];

    if (wait_for_end(s, &committed, e) != 0 || find_effects(s, &found, e) != 0)
        return (int)e->code;
    /* A batch may write nothing that carries its token, as when it ends a subscription
     * at its cancel date: then the status decides. */
    committed = found > 0 || (committed && a->done.effects == 0);
    a->code = committed ? 0 : ERR_LOST;
    a->in_doubt = false;
    s->measures->settled[committed]++;
    session_reach(s, HOOK_SETTLED);
    if (committed)
        batch_count(s);
    (void)snprintf(detail, sizeof detail, "settled: %s, %" PRId64 " effects found",
                   committed ? "committed" : "rolled back", found);
    incident_log(s, "commit_unknown", "commit", s->job->name, detail);
    batch_release(s);
    inflight_clear(s->inflight);
    return 0;
}
