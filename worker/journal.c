/* journal: one row and one log line per incident. */
#include "worker/journal.h"

#include <inttypes.h>
#include <stdio.h>

#include "common/log.h"

void journal(struct worker *w,
             const char *kind,
             const char *phase,
             const char *resource,
             int64_t token,
             int64_t xid,
             const char *detail)
{
    const struct pg_param params[] = {
        pg_text(resource), pg_int8(token), pg_text(w->name),
        pg_text(kind),     pg_text(phase), xid != 0 ? pg_int8(xid) : pg_null(),
        pg_text(detail),
    };
    struct err e = {0};
    char event[48], quoted[300];

    (void)snprintf(event, sizeof event, "lock.%s", kind);
    log_warn(event, "phase=%s resource=%s token=%" PRId64 " xid=%" PRId64 " detail=%s",
             phase, resource, token, xid, log_quote(quoted, sizeof quoted, detail));
    if (!pg_is_usable(w->pg) ||
        pg_exec(w->pg, SQL_POOL_JOURNAL_INCIDENT, params, 7, NULL, &e) != 0)
        log_warn("journal.not_written", "kind=%s err=%s", kind,
                 log_quote(quoted, sizeof quoted, e.msg));
}
