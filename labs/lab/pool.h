/* pool: the shipped pool in the laboratory: the program `ledgerlock` as anybody starts
 * it, on its own tables, stopped and cut by proxies on its connections. The pool is
 * known by its command line, its exit codes and its tables alone. */
#ifndef LEDGERLOCK_LAB_POOL_H
#define LEDGERLOCK_LAB_POOL_H

#include "labs/lab/lab.h"

/* The pool that has locks when the fault comes, and the one that comes later: each with
 * one worker that charges and one that serves orders. And the pool of the free run,
 * with four for each job. Orders are served in any order, so pools meet at them. */
enum { POOL_HOLDER, POOL_OTHER, POOL_FREE, POOL_WORKERS = 2 };

/* Makes work that is due, on rows that nothing has touched yet. */
void lab_pool_put(struct lab *l, int64_t subscribers);

/* Starts `ledgerlock run --once`. The holder's connections lead through the proxies. */
void lab_pool_start(struct lab *l, int seat);

/* The same signal to a pool and all of its workers. */
void lab_pool_signal(struct lab *l, int seat, int sig);

/* Of all pools of the cell: charges and orders decided, keys met busy by the workers of
 * each job, batches refused or given up. */
enum lab_pool_count {
    POOL_DONE,
    POOL_BUSY_BILLING,
    POOL_BUSY_ORDERS,
    POOL_VAIN,
    POOL_COUNTS
};

int64_t lab_pool_count(struct lab *l, enum lab_pool_count what);

/* Prints the log of the pools to stderr. */
void lab_pool_show_log(const struct lab *l);

/* Adds to what the pool has met in this cell. */
void lab_pool_met(struct lab *l, const char *name, int64_t ct);

#endif
