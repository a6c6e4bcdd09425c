/* listen: the listener of a pool: one process that hears what the doors announce and
 * wakes sleeping workers.
 *
 * While workers find work it asks nobody for anything. When they lie down it asks the
 * doors to notify (sql/queries/bell_watch.sql), and lets one worker look once more for
 * what came before they heard. All of it is a hint: without it a worker finds the same
 * work at its next poll. */
#ifndef LEDGERLOCK_LISTEN_H
#define LEDGERLOCK_LISTEN_H

#include "worker/worker.h"

/* Runs in a process of its own until told to stop; PostgreSQL being away is waited out.
 * w->slot is the listener's own, `slots` are those of the w->peers workers. Returns the
 * exit code: 0, or 70. */
enum exit_code listen_run(struct worker *w, struct slot *slots);

#endif
