/* run_checks: what `run` asks both servers before a worker starts. */
#ifndef LEDGERLOCK_RUN_CHECKS_H
#define LEDGERLOCK_RUN_CHECKS_H

#include "worker/pool/pool.h"

/* Checks PostgreSQL, the schema, this role's rights, durability, clocks and Redis for
 * the jobs of the order, makes months, and with `once` counts order->to_do. Every error
 * says what to do. */
MUST_CHECK int
run_check_database(const struct config *c, struct pool_order *order, struct err *e);

#endif
