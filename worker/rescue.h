/* rescue: a worker clears up after the one that died before it in its slot. */
#ifndef LEDGERLOCK_RESCUE_H
#define LEDGERLOCK_RESCUE_H

#include <sys/types.h>

#include "worker/worker.h"

/* The supervisor notes how the worker of a slot ended, in words; was_told: it had been
 * told to stop, so its death is nobody's fault. */
void rescue_note_death(struct slot *slot, int status, bool was_told);

/* Charges the rows that the dead one worked with its death, parks those that have had
 * enough, ends its session and frees its keys. The keys come last: nobody else gets the
 * rows before it is known that they are suspects. Does nothing when nothing is left.
 * Errors leave it to be done: call it again; Redis is not asked any more when the lease
 * is over. */
MUST_CHECK int rescue_predecessor(struct worker *w, struct err *e);

#endif
