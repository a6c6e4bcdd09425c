/* loop: the life of one worker process. */
#ifndef LEDGERLOCK_LOOP_H
#define LEDGERLOCK_LOOP_H

#include "worker/worker.h"

/* Opens the connections (again and again while a server is away), walks the buckets of
 * every job until told to stop, or with w->once until nothing is due. Returns the exit
 * code of the process. Runs in a process of its own: installs its signal handlers. */
enum exit_code loop_run(struct worker *w);

/* Opens the worker's PostgreSQL connection, every timeout shorter than the lease, every
 * statement of its jobs prepared. */
MUST_CHECK int loop_open_postgres(struct worker *w, struct err *e);

/* Makes the worker's lock client (no I/O yet); none when locks.mode is database-only.
 */
MUST_CHECK int loop_open_locks(struct worker *w, struct err *e);

/* Closes what the two have opened. */
void loop_close(struct worker *w);

#endif
