/* pool: the supervisor. Forks the workers, starts the dead again, drains, reports. */
#ifndef LEDGERLOCK_POOL_H
#define LEDGERLOCK_POOL_H

#include "common/config.h"
#include "worker/worker.h"

/* What `run` was asked for. */
struct pool_order {
    struct config *config; /* replaced in place when a reload succeeds */
    const char *now;       /* NULL: the database's clock */
    bool once;

    /* On HUP: reads the configuration again into *fresh and checks it against the
     * servers; ERR_* keeps the old one. */
    int (*reload)(struct config *fresh, unsigned *jobs, struct err *e);
    unsigned jobs;
    struct slot *slots; /* one more than config.workers, zeroed, in memory that forks
                           share; NULL: the pool's own */
};

/* Runs until told to stop (TERM, INT: drain within config.grace_ms; a second one: at
 * once) or, with once, until every worker found nothing due. Works as process 1.
 * Returns the exit code: 0 when drained, the worker's own when it asks not to be
 * started again, 70 when a worker keeps dying before it got anywhere. */
enum exit_code pool_run(const struct pool_order *order);

#endif
