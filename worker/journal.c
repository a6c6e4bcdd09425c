/* journal: one row and one log line per incident. */
#include "worker/journal.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "common/clock.h"
#include "common/log.h"

static int write_row(struct worker *w, const struct incident *i, struct err *e)
{
    const struct pg_param params[] = {
        pg_text(i->resource), pg_int8(i->token),
        pg_text(w->name),     pg_text(i->kind),
        pg_text(i->phase),    i->xid != 0 ? pg_int8(i->xid) : pg_null(),
        pg_text(i->detail),   pg_int8(clk_ms() - i->at_ms),
    };

    if (!pg_is_usable(w->pg))
        return err_set(e, ERR_CONN, "PostgreSQL is not there");
    return pg_exec(w->pg, SQL_POOL_JOURNAL_INCIDENT, params, 8, NULL, e);
}

static void say_not_written(const struct incident *i, const char *why)
{
    char quoted[300];

    log_warn("journal.not_written", "kind=%s err=%s", i->kind,
             log_quote(quoted, sizeof quoted, why));
}

static void keep(struct worker *w, const struct incident *i, const char *why)
{
    if (w->unwritten_ct == INCIDENTS_KEPT) {
        say_not_written(i, why);
        return;
    }
    w->unwritten[w->unwritten_ct++] = *i;
}

void journal(struct worker *w,
             const char *kind,
             const char *phase,
             const char *resource,
             int64_t token,
             int64_t xid,
             const char *detail)
{
    struct incident i = {.token = token, .xid = xid, .at_ms = clk_ms()};
    struct err e = {0};
    char event[48], quoted[300];

    (void)snprintf(i.kind, sizeof i.kind, "%s", kind);
    (void)snprintf(i.phase, sizeof i.phase, "%s", phase);
    (void)snprintf(i.resource, sizeof i.resource, "%s", resource);
    (void)snprintf(i.detail, sizeof i.detail, "%s", detail);
    (void)snprintf(event, sizeof event, "lock.%s", kind);
    log_warn(event, "phase=%s resource=%s token=%" PRId64 " xid=%" PRId64 " detail=%s",
             phase, resource, token, xid, log_quote(quoted, sizeof quoted, detail));
    if (write_row(w, &i, &e) == 0)
        return;
    if (pg_is_usable(w->pg))
        say_not_written(&i, e.msg); /* refused, and would be again */
    else
        keep(w, &i, e.msg);
}

int journal_catch_up(struct worker *w, struct err *e)
{
    size_t done = 0;
    int code = 0;

    for (; code == 0 && done < w->unwritten_ct; done++) {
        code = write_row(w, &w->unwritten[done], e);
        if (code != 0 && !pg_is_usable(w->pg))
            break;
        if (code != 0)
            say_not_written(&w->unwritten[done], e->msg);
        code = 0;
    }
    w->unwritten_ct -= done;
    memmove(w->unwritten, &w->unwritten[done],
            w->unwritten_ct * sizeof w->unwritten[0]);
    return code;
}

void journal_give_up(struct worker *w)
{
    for (size_t i = 0; i < w->unwritten_ct; i++)
        say_not_written(&w->unwritten[i], "PostgreSQL did not come back");
    w->unwritten_ct = 0;
}
