/* incidents: one row and one log line each; a row waits while there is no connection.
 */
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "common/base/clock.h"
#include "common/base/log.h"
#include "common/base/utf8.h"
#include "worker/batch/batch.h"

static int write_row(struct session *s, const struct incident *i, struct err *e)
{
    const struct pg_param params[] = {
        pg_text(i->resource), pg_int8(i->token),
        pg_text(s->name),     pg_text(i->kind),
        pg_text(i->phase),    i->xid != 0 ? pg_int8(i->xid) : pg_null(),
        pg_text(i->detail),   pg_int8(clk_ms() - i->at_ms),
    };

    return pg_exec(s->pg, SQL_POOL_LOG_INCIDENT, params, 8, NULL, e);
}

static void say_not_written(const struct incident *i, const char *why)
{
    log_warn("incident.not_written", "code=LL-6002 kind=%s err=%s", i->kind,
             LOG_TEXT(why));
}

int incidents_write(struct session *s, struct err *e)
{
    size_t done = 0;

    for (; done < s->unwritten_ct && pg_is_usable(s->pg); done++) {
        struct err why = {0};

        if (write_row(s, &s->unwritten[done], &why) == 0)
            continue;
        if (!pg_is_usable(s->pg)) {
            *e = why;
            break;
        }
        say_not_written(&s->unwritten[done], why.msg); /* and would not be again */
    }
    s->unwritten_ct -= done;
    memmove(s->unwritten, &s->unwritten[done],
            s->unwritten_ct * sizeof s->unwritten[0]);
    return (int)e->code;
}

void incident_log(struct session *s,
                  const char *kind,
                  const char *phase,
                  const char *resource,
                  const char *detail)
{
    struct incident i = {.kind = kind,
                         .phase = phase,
                         .token = s->attempt.token,
                         .xid = s->attempt.xid,
                         .at_ms = clk_ms()};
    struct err ignored = {0};
    char event[48];

    (void)snprintf(i.resource, sizeof i.resource, "%s", resource);
    (void)snprintf(i.detail, sizeof i.detail, "%s", detail);
    utf8_cut(i.detail);
    (void)snprintf(event, sizeof event, "lock.%s", kind);
    log_warn(event,
             "code=LL-6003 phase=%s resource=%s token=%" PRId64 " xid=%" PRId64
             " detail=%s",
             phase, resource, i.token, i.xid, LOG_TEXT(detail));
    if (s->unwritten_ct == INCIDENTS_KEPT)
        say_not_written(&i, "too many wait already");
    else
        s->unwritten[s->unwritten_ct++] = i;
    (void)!incidents_write(s, &ignored);
}

void incidents_give_up(struct session *s)
{
    for (size_t i = 0; i < s->unwritten_ct; i++)
        say_not_written(&s->unwritten[i], "PostgreSQL did not come back");
    s->unwritten_ct = 0;
}
