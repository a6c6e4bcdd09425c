/* audit: every invariant of sql/audit and the totals, from one snapshot. */
#ifndef LEDGERLOCK_AUDIT_H
#define LEDGERLOCK_AUDIT_H

#include <jansson.h>
#include <stdbool.h>
#include <stdint.h>

#include "common/base/err.h"
#include "common/pg/pg.h"

struct audit_order {
    const char *now; /* counts as now, in a form that PostgreSQL reads (NULL: its
                        clock) */
    int64_t lag_s;   /* a due row may wait so long before it breaks nothing_due_left */
    bool sealed;     /* the rows of closed months, too */
    struct pg *second;   /* another connection, which takes half of the work, or NULL */
    bool in_transaction; /* of the caller, whose first statement with a snapshot this
                            is; without totals */
};

/* Runs the audit in one snapshot, in a REPEATABLE READ, READ ONLY transaction of its
 * own, so it is right while workers run. *out, owned by the caller, is the document
 * that `audit
 * --json` prints; docs/audit.md describes it. *out is NULL on error; ERR_INVALID for a
 * bad now. */
MUST_CHECK int audit_gather(struct pg *pg,
                            const struct audit_order *order,
                            json_t **out,
                            struct err *e);

/* The invariants, into the document; *ok is false if one is broken. */
MUST_CHECK int audit_invariants(
    struct pg *pg, struct pg *second, json_t *doc, bool *ok, struct err *e);

/* True of the invariants that name rows which are due or parked: they are work that is
 * left, and break no promise. */
bool audit_is_work_left(const char *invariant);

/* The totals, read in the transaction of audit_gather. The caller owns *out, also on
 * error. is_twice false: the invariants have shown already that no charge exists twice,
 * so the index is not read again. */
MUST_CHECK int audit_totals(
    struct pg *pg, const char *now, bool is_twice, json_t **out, struct err *e);

#endif
