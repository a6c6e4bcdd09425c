/* journal: lock_incidents, written outside the transaction that they tell of. */
#ifndef LEDGERLOCK_JOURNAL_H
#define LEDGERLOCK_JOURNAL_H

#include "worker/worker.h"

/* One incident. kind as in the table's CHECK; xid 0: none. Logged as "lock.<kind>" too;
 * never fails the work. When the connection is broken it is kept, the first
 * INCIDENTS_KEPT of them, for journal_catch_up. */
void journal(struct worker *w,
             const char *kind,
             const char *phase,
             const char *resource,
             int64_t token,
             int64_t xid,
             const char *detail);

/* Writes what was kept, on a new connection, with the time at which it happened. What
 * an error leaves is kept further. */
MUST_CHECK int journal_catch_up(struct worker *w, struct err *e);

/* The process ends: says in the log what stays unwritten. */
void journal_give_up(struct worker *w);

#endif
