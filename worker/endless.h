/* endless: lock keys that never end. Each of ours has a time to live, so such a key is
 * somebody else's leftover: it is told of, and never broken. */
#ifndef LEDGERLOCK_ENDLESS_H
#define LEDGERLOCK_ENDLESS_H

#include <stdbool.h>

#include "worker/worker.h"

/* After an acquire: says each busy key without an end, once for the pool, with the
 * command that frees it. */
void endless_note(struct worker *w);

/* After a sweep that found something due: whether such keys were met and nothing at all
 * could be worked for three leases. `worked`: this sweep did something. */
bool endless_is_all(struct worker *w, bool worked);

/* Forgets how long nothing could be worked: a server was away. */
void endless_restart(struct worker *w);

#endif
