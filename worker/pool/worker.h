/* worker: the life of one worker process. */
#ifndef LEDGERLOCK_WORKER_H
#define LEDGERLOCK_WORKER_H

#include "worker/pool/shared.h"

/* The life of the worker in a slot; now: NULL for the database's clock. Works until it
 * is told to stop (TERM, which it blocks and asks for), or, if once, until
 * nothing is due: EXIT_OK, or EXIT_LEFT when the due rows could not be had for three
 * leases (its slot says why). The pool had its first success before a worker was
 * started: what is refused since is waited for, and no error ends a worker. */
enum exit_code worker_run(const struct config *c,
                          const char *now,
                          bool once,
                          struct shared *shared,
                          int slot);

#endif
