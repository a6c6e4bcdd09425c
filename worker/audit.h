/* audit: every invariant of sql/audit and the totals, from one snapshot. */
#ifndef LEDGERLOCK_AUDIT_H
#define LEDGERLOCK_AUDIT_H

#include <jansson.h>
#include <stdint.h>

#include "common/err.h"
#include "common/pg.h"

enum { AUDIT_MOST_CONNECTIONS = 16 };

struct audit_request {
    const char
        *now; /* instant that counts as now, as PostgreSQL reads it; NULL: its clock */
    int64_t
        lag_s; /* how long something due may wait before it breaks nothing_due_left */
    struct pg *const *more; /* further connections to share the work with; borrowed */
    size_t more_ct;
};

/* Runs the audit in one snapshot, in a REPEATABLE READ, READ ONLY transaction of its
 * own on each connection, so it is right while workers run. The connections of `more`
 * take part of the statements; one that cannot is left out with a warning. They are
 * left in their transactions and are only to be closed. *out, owned by the caller, is
 * the document that `audit
 * --json` prints; docs/audit.md describes it. *out is NULL on error; ERR_INVALID for a
 * bad now. */
MUST_CHECK int audit_gather(struct pg *pg,
                            const struct audit_request *request,
                            json_t **out,
                            struct err *e);

#endif
