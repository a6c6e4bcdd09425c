/* flights: the calls of a job outside of the database (struct job_calls), from the
 * COMMIT that says they are sent until what was answered is settled.
 *
 * A flight is what one batch has sent. The batch's lock goes over to it, is extended
 * while a call is under way, and gives each user free when the last call for that user
 * is settled. Nothing depends on the lock: the state and the token of a row decide. */
#ifndef LEDGERLOCK_FLIGHTS_H
#define LEDGERLOCK_FLIGHTS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "common/base/err.h"

struct session;
struct flights;

/* Once in the life of a worker, before its first batch: opens the calls of its job, if
 * it makes any, and makes those due that a dead worker of the slot had sent. The errors
 * of calls_open, and of PostgreSQL. */
MUST_CHECK int flights_open(struct session *s, struct err *e);
void flights_close(struct session *s);

/* After the COMMIT of a batch: takes its lock over, and begins its calls. False: there
 * are none to be made, and the batch releases its lock itself. */
bool flights_take(struct session *s);

/* For at most ms: sends, receives, extends the locks, settles answers and gives back
 * what is settled. An answer that cannot be settled now waits until its row is due
 * again. */
void flights_step(struct session *s, int64_t ms);

/* The worker ends: what is still under way is due at once, for others. */
void flights_give_up(struct session *s);

/* The client of the locks is closed: they end with their leases. */
void flights_forget_locks(struct session *s);

/* Calls whose answers are not settled; 0 for a job that makes none. */
size_t flights_under_way(const struct session *s);

/* True while the gateway is spared, since its answers decide nothing. */
bool flights_are_sick(const struct session *s);

/* How many more may be sent now; a job that makes none has room for any. After answers
 * that decide nothing, and no other, there is room for one now and then. */
size_t flights_room(const struct session *s);

#endif
