/* lab_pool: the shipped strategy in the laboratory: the pool's own workers, unchanged,
 * on the pool's own tables, held and cut by relays on their connections. */
#ifndef LEDGERLOCK_LAB_POOL_H
#define LEDGERLOCK_LAB_POOL_H

#include "worker/lab.h"

/* Seats of a schedule: two that hold locks when the fault comes (one charges, one
 * serves orders), and one that comes later and does both. */
enum { POOL_BILLER, POOL_SELLER, POOL_OTHER, POOL_SEATS };

/* Makes work that is due, on rows that nothing has touched yet. */
MUST_CHECK int lab_pool_put(struct lab *l, int64_t subscribers, struct err *e);

/* Starts a worker in a seat; it ends when nothing is due. */
MUST_CHECK int lab_pool_start(struct lab *l, int seat, struct err *e);

/* Whether the worker of the seat has ended; how many keys it met busy. */
bool lab_pool_is_over(struct lab *l, int seat);
int64_t lab_pool_busy(const struct lab *l, int seat);

/* Charges and orders decided so far; -1: PostgreSQL cannot be asked. */
int64_t lab_pool_done(struct lab *l);

#endif
