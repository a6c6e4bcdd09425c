/* orphans: what the gateway took, and no row here has, goes back or pays after all. */
#ifndef LEDGERLOCK_ORPHANS_H
#define LEDGERLOCK_ORPHANS_H

#include "common/base/digits.h"
#include "common/pg/pg.h"
#include "worker/jobs/asks.h"

/* Columns of reconcile_compare. */
enum {
    COUNT,
    FAULT,
    CLASS,
    PAID = 4,
    ATTEMPT,
    REFERENCE,
    CURRENCY = 9,
    LOOSE_MINOR,
    HERE_MINOR,
    COLUMNS = 13
};

/* Of the entry of `res`, rows of reconcile_compare, that has this reference.
 * ERR_INVALID: the entry is none to give back, or to adopt. */
int orphan_refund(struct pg *pg,
                  struct calls *calls,
                  const struct pg_result *res,
                  const char *reference,
                  struct err *e);
int orphan_adopt(struct pg *pg,
                 const struct pg_result *res,
                 const char *reference,
                 struct err *e);

#endif
