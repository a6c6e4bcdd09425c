/* crowd: processes that do the same work at once, and the memory that they share. */
#ifndef LEDGERLOCK_CROWD_H
#define LEDGERLOCK_CROWD_H

#include "tests/lib/fixture.h"

enum { CROWD_SECONDS = 600, CROWD_MOST = 64 };

/* Zeroed memory that the test and its later processes share, until the program ends. */
void *crowd_memory(size_t size);

/* n processes, each of which ends with what work(i, arg) returns. */
void crowd_start(pid_t *pids, int n, int (*work)(int i, void *arg), void *arg);

/* Waits for them; all must end with 0. */
void crowd_join(const pid_t *pids, int n);

/* Both. */
void crowd_run(int n, int (*work)(int i, void *arg), void *arg);

#endif
