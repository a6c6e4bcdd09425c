/* loop: the life of one worker process. */
#ifndef LEDGERLOCK_LOOP_H
#define LEDGERLOCK_LOOP_H

#include <stdbool.h>

#include "worker/worker.h"

/* Opens the connections (again and again while a server is away), walks the buckets of
 * every job until told to stop, or with w->once until nothing is due. Returns the exit
 * code of the process. Runs in a process of its own: installs its signal handlers. */
enum exit_code loop_run(struct worker *w);

/* Whether this process was told to stop. */
bool loop_is_stopping(void);

#endif
