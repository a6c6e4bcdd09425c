/* audit: every invariant of sql/audit and the totals, from one snapshot. */
#ifndef LEDGERLOCK_AUDIT_H
#define LEDGERLOCK_AUDIT_H

#include <jansson.h>
#include <stdint.h>

#include "common/err.h"
#include "common/pg.h"

struct audit_request {
    const char
        *now; /* instant that counts as now, as PostgreSQL reads it; NULL: its clock */
    int64_t
        lag_s; /* how long something due may wait before it breaks nothing_due_left */
};

/* Runs the audit in one REPEATABLE READ, READ ONLY transaction of its own, so it is
 * right while workers run. *out, owned by the caller, is the document that `audit
 * --json` prints; docs/audit.md describes it. *out is NULL on error; ERR_INVALID for a
 * bad now. */
MUST_CHECK int audit_gather(struct pg *pg,
                            const struct audit_request *request,
                            json_t **out,
                            struct err *e);

#endif
