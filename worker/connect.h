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

/* Whether an answer of ll_connect is for good: the server must not be used for locks,
 * or cannot, and waiting changes nothing. */
bool connect_is_refused(int code);

/* Closes what the two have opened. */
void connect_close(struct worker *w);

#endif
