/* connect: the connections of one worker: PostgreSQL, and Redis through the lock
 * library.
 */
#ifndef LEDGERLOCK_CONNECT_H
#define LEDGERLOCK_CONNECT_H

#include "worker/worker.h"

/* Opens the worker's PostgreSQL connection, every timeout shorter than the lease, every
 * statement of its jobs prepared. */
MUST_CHECK int connect_postgres(struct worker *w, struct err *e);

/* Makes the worker's lock client (no I/O yet); none when locks.mode is database-only.
 */
MUST_CHECK int connect_locks(struct worker *w, struct err *e);

/* Closes what the two have opened. */
void connect_close(struct worker *w);

#endif
