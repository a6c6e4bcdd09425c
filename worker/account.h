/* account: what a worker tells of itself: to its supervisor through its slot, to
 * everybody through the workers table. */
#ifndef LEDGERLOCK_ACCOUNT_H
#define LEDGERLOCK_ACCOUNT_H

#include "worker/worker.h"

/* How it sees one of its servers (a field of its slot); e says why when that is down.
 */
void account_server(struct worker *w,
                    volatile sig_atomic_t *server,
                    enum slot_server state,
                    const struct err *e);

/* Writes the counters into the workers table, at most once a second, every five when
 * they did not change. Failing is no error: the next time they are written as a whole.
 */
void account(struct worker *w);

/* The same at once. */
void account_now(struct worker *w);

#endif
