/* audit_share: statements shared out among connections that see one snapshot. */
#ifndef LEDGERLOCK_AUDIT_SHARE_H
#define LEDGERLOCK_AUDIT_SHARE_H

#include "worker/audit.h"

/* One statement: a query by its id, with now as its only parameter if it takes one, or
 * a text without any. */
struct audit_statement {
    const char *name; /* for error messages; NULL: the query's own is enough */
    const char *text; /* NULL: the query */
    enum sql_id id;
    bool takes_now;
};

/* Gets the rows of a statement, by its place, and owns them. */
typedef int (*audit_take_fn)(void *arg,
                             size_t place,
                             struct pg_result *res,
                             struct err *e);

struct audit_share {
    struct pg *pg; /* in the transaction that audit_begin began */
    const struct audit_request *request;
    const char *now; /* as that told it */
    const struct audit_statement *statements;
    size_t statement_ct;
    audit_take_fn take;
    void *arg;
};

/* Runs every statement once, on pg and on the connections of request->more, in turn
 * from the first; take is called as they end. A connection of `more` that does not get
 * into the snapshot is warned of and left out; one that is lost on the way, like a
 * statement that fails, ends it all with the error. Then answers may be outstanding:
 * close the connections of `more`, and roll pg back. */
MUST_CHECK int audit_share_run(const struct audit_share *s, struct err *e);

#endif
