/* visit: which cell a worker serves, and until when. A worker process serves one cell.
 * That worker leaves between two batches, when another cell of the pool waits; the
 * supervisor starts the next worker of the slot at the cell that nobody of the pool
 * serves for longest. */
#ifndef LEDGERLOCK_VISIT_H
#define LEDGERLOCK_VISIT_H

#include "worker/pool/shared.h"

/* Chooses the cell for the worker that starts next in the slot, and enters it into the
 * slot: the one with a batch in flight, else one that no worker of the pool serves for
 * longest, else one that is behind. False if there is none to go to before *at_ms. */
bool visit_choose(struct shared *shared, size_t slot, int64_t now_ms, int64_t *at_ms);

/* With a new connection: checks the database where nobody did, and takes one of the
 * places that the workers of all pools have in it, one a worker of the job, by an
 * advisory lock that ends with the session. *has is false if all are taken. */
MUST_CHECK int
visit_take_place(struct shared *shared, struct session *s, bool *has, struct err *e);

/* After a batch (is_idle: it found nothing to do): true if the worker is to leave. */
bool visit_is_over(struct shared *shared, size_t slot, int64_t begun_ms, bool is_idle);

/* Before a worker leaves a cell in which it could work, or had no place (is_full). */
void visit_leave(struct shared *shared, size_t slot, bool is_full);

/* The job of the slot in its cell; without cells in the first. */
struct cell_job *visit_job(struct shared *shared, size_t slot);

/* A pause, not longer than until the cell is to be left. */
int64_t visit_rest_ms(const struct shared *shared, int64_t ms);

/* A worker pulled as many rows as it may. */
void visit_note_behind(struct shared *shared, size_t slot);

/* A worker could not work there, and leaves; a worker could again. */
void visit_note_away(struct shared *shared, size_t slot, const char *why);
void visit_note_well(struct shared *shared, size_t slot);

/* Since when some job cannot be worked there (clk_ms); 0: all can. */
int64_t visit_away_since(const struct cell_state *cell);

#endif
