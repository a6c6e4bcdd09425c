/* trace: what a worker of a test program says of each of its transactions, for a
 * checker that shares no code with it.
 *
 * LL_TEST_HISTORY is a folder. Each worker appends to FOLDER/WORKER.jsonl, one
 * write a line, so that what was said is there whatever becomes of the worker:
 *   invoke   before BEGIN: job, token, the keys that it holds and the items it is after
 *   commit   before COMMIT is sent, so while every row it has written is still locked:
 *            xid. Of two transactions that wrote one row, the first has the lower t
 *   ok       COMMIT was answered, or one in doubt turned out committed: xid, items and
 *            the job's counters
 *   fail     rolled back, or one in doubt turned out to be
 *   unknown  the answer to COMMIT was lost; like ok
 * An end has the worker and seq of its invoke. t is CLOCK_MONOTONIC in microseconds. */
#ifndef LEDGERLOCK_TRACE_H
#define LEDGERLOCK_TRACE_H

#include "worker/batch/session.h"

/* The hook of the test program: failpoints and the trace. */
void testkit_hook(const struct session *s, enum hook_point point);

#endif
