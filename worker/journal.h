/* journal: lock_incidents, written outside the transaction that they tell of. */
#ifndef LEDGERLOCK_JOURNAL_H
#define LEDGERLOCK_JOURNAL_H

#include "worker/worker.h"

/* One incident. kind as in the table's CHECK; xid 0: none. Logged as "lock.<kind>" too,
 * so it is seen even when PostgreSQL cannot take the row; never fails the work. */
void journal(struct worker *w,
             const char *kind,
             const char *phase,
             const char *resource,
             int64_t token,
             int64_t xid,
             const char *detail);

#endif
