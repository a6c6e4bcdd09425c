/* pool: the supervisor. Forks the workers, starts the dead again, drains, reports. */
#ifndef LEDGERLOCK_POOL_H
#define LEDGERLOCK_POOL_H

#include "worker/pool/companion.h"

/* The orders that `run` was given. */
struct pool_order {
    struct config *config;   /* replaced in place when a reload succeeds */
    struct pool_cells cells; /* list and check; a list without cells: the database of
                                config alone */
    unsigned jobs;           /* bits of the registry */
    const char *now;         /* NULL: the database's clock */
    int64_t now_us;          /* the same as a number */
    bool once;
    bool *was_told;             /* set when a signal told it to stop; may be NULL */
    int64_t to_do[JOB_TYPE_CT]; /* once: about how much the counters of each job will
                                   count, as it was read at the start; 0: not known */
    const struct companion *companion; /* used if companion_fd is not -1 */
    int companion_fd;                  /* closed by pool_run */

    /* On HUP: reads the configuration again into *fresh and checks it; ERR_* keeps the
     * old one. */
    int (*reload)(struct config *fresh, struct err *e);
};

/* Workers that the settings give to a job: pool.workers counts for one that several
 * serve at once. */
int64_t pool_workers(const struct config *c, int job);

/* Runs until told to stop (TERM, INT, QUIT: drain within config.grace_ms; a second one:
 * at once) or, with once, until every worker found nothing due. Works as process 1.
 * With once, prints one line that says what was done, left and parked. Returns the exit
 * code: 0, 7 (work was left), 8 (something was parked), 9 (an error let nothing be
 * committed for config.give_up_ms), 70 (workers keep dying and nothing is committed),
 * or the worker's own when it asks not to be started again. */
enum exit_code pool_run(const struct pool_order *order);

#endif
