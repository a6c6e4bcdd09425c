/* audit_share: who runs which statement next. One thread: a connection that has its
 * answer is handed the next statement. */
#include "worker/audit_share.h"

#include <assert.h>
#include <stdio.h>
#include <string.h>

#include "common/log.h"

enum { SNAPSHOT = 64 };

/* A connection of `more` first begins in the snapshot, then is set like the first. */
struct lane {
    struct pg *pg;

    enum { LANE_BEGINS, LANE_SETS, LANE_IDLE, LANE_WORKS, LANE_GONE } state;

    size_t place; /* LANE_WORKS: of its statement */
};

struct run {
    const struct audit_share *s;
    struct lane lanes[AUDIT_MOST_CONNECTIONS];
    struct pg
        *pgs[AUDIT_MOST_CONNECTIONS]; /* of the lanes, as pg_wait_any takes them */
    size_t lane_ct;
    size_t next;    /* statement to be sent */
    size_t done_ct; /* statements taken */
};

/* ---- into the snapshot ---- */

static int export_snapshot(struct pg *pg, char name[SNAPSHOT], struct err *e)
{
    struct pg_result *res;

    if (pg_exec(pg, SQL_AUDIT_EXPORT_SNAPSHOT, NULL, 0, &res, e) != 0)
        return (int)e->code;
    (void)snprintf(name, SNAPSHOT, "%s", pg_get_text(res, 0, 0));
    pg_result_free(res);
    return 0;
}

/* The work gets done without it. */
static void leave_out(struct lane *lane, const struct err *why)
{
    char quoted[600];

    log_warn("audit.left_out", "err=%s", log_quote(quoted, sizeof quoted, why->msg));
    lane->state = LANE_GONE;
}

static int open_lanes(struct run *r, struct err *e)
{
    const struct audit_request *request = r->s->request;
    char snapshot[SNAPSHOT] = "";

    assert(request->more_ct < AUDIT_MOST_CONNECTIONS);
    r->lanes[r->lane_ct++] = (struct lane){.pg = r->s->pg, .state = LANE_IDLE};
    if (request->more_ct > 0 && export_snapshot(r->s->pg, snapshot, e) != 0)
        return (int)e->code;
    for (size_t i = 0; i < request->more_ct; i++) {
        struct lane *lane = &r->lanes[r->lane_ct++];
        struct err why = {0};

        *lane = (struct lane){.pg = request->more[i], .state = LANE_BEGINS};
        if (pg_send_begin_shared(lane->pg, snapshot, &why) != 0)
            leave_out(lane, &why);
    }
    for (size_t i = 0; i < r->lane_ct; i++)
        r->pgs[i] = r->lanes[i].pg;
    return 0;
}

/* The next step of a lane that has begun, or is set. */
static void enter(struct run *r, struct lane *lane)
{
    struct pg_param params[] = {pg_text(r->s->now), pg_int8(r->s->request->lag_s)};
    struct err why = {0};

    if (pg_take(lane->pg, NULL, &why) != 0 ||
        (lane->state == LANE_BEGINS &&
         pg_send(lane->pg, SQL_AUDIT_BEGIN, params, 2, &why) != 0))
        leave_out(lane, &why);
    else
        lane->state = lane->state == LANE_BEGINS ? LANE_SETS : LANE_IDLE;
}

/* ---- the work ---- */

static int wrap(const struct audit_statement *st, struct err *e)
{
    return err_wrap(e, "%s", st->name != NULL ? st->name : sql_texts[st->id].stem);
}

static int send_next(struct run *r, struct lane *lane, struct err *e)
{
    const struct audit_statement *st = &r->s->statements[r->next];
    struct pg_param params[] = {pg_text(r->s->now)};
    int code = st->text != NULL ? pg_send_text(lane->pg, st->text, e)
                                : pg_send(lane->pg, st->id, params, st->takes_now, e);

    if (code != 0)
        return wrap(st, e);
    lane->place = r->next++;
    lane->state = LANE_WORKS;
    return 0;
}

static int hand_out(struct run *r, struct err *e)
{
    for (size_t i = 0; i < r->lane_ct && r->next < r->s->statement_ct; i++) {
        if (r->lanes[i].state == LANE_IDLE && send_next(r, &r->lanes[i], e) != 0)
            return (int)e->code;
    }
    return 0;
}

static int take(struct run *r, struct lane *lane, struct err *e)
{
    struct pg_result *res;

    if (pg_take(lane->pg, &res, e) != 0)
        return wrap(&r->s->statements[lane->place], e);
    lane->state = LANE_IDLE;
    r->done_ct++;
    return r->s->take(r->s->arg, lane->place, res, e);
}

int audit_share_run(const struct audit_share *s, struct err *e)
{
    struct run r = {.s = s};
    int code = open_lanes(&r, e);

    while (code == 0 && r.done_ct < s->statement_ct) {
        struct lane *lane;

        code = hand_out(&r, e);
        if (code != 0)
            break;
        lane = &r.lanes[pg_wait_any(r.pgs, r.lane_ct)];
        if (lane->state == LANE_WORKS)
            code = take(&r, lane, e);
        else
            enter(&r, lane);
    }
    return code;
}
