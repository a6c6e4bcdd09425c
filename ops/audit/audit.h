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
 * --json` prints; docs/promises.md describes it. *out is NULL on error; ERR_INVALID for
 * a bad now. */
MUST_CHECK int audit_gather(struct pg *pg,
                            const struct audit_order *order,
                            json_t **out,
                            struct err *e);

/* The answers to the statements of the totals. */
enum { TOTALS = 9, TOTALS_TWICE = 2 };

struct totals {
    struct pg_result *of[TOTALS]; /* NULL: not asked; of TOTALS_TWICE: none */
};

/* Asks one of them, in the transaction of audit_gather. */
MUST_CHECK int
totals_ask(struct pg *pg, size_t i, const char *now, struct totals *t, struct err *e);

/* The totals as a document, which the caller owns, also on error. */
MUST_CHECK int totals_put(const struct totals *t, json_t **out, struct err *e);

void totals_free(struct totals *t);

/* The invariants, into the document, and all totals but TOTALS_TWICE, unless they are
 * NULL; *ok is false if an invariant is broken. */
MUST_CHECK int audit_invariants(struct pg *pg,
                                struct pg *second,
                                json_t *doc,
                                struct totals *totals,
                                bool *ok,
                                struct err *e);

/* True of the invariants that name rows which are due or parked: they are work that is
 * left, and break no promise. */
bool audit_is_work_left(const char *invariant);

#endif
