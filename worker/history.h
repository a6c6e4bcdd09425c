/* history: what a worker of a test build says of each of its transactions, for a
 * checker that shares no code with it. In a normal build nothing of it is there.
 *
 * LEDGERLOCK_TEST_HISTORY is a folder. Each worker appends to FOLDER/WORKER.jsonl, one
 * write a line, so that what was said is there whatever becomes of the worker:
 *   invoke   before BEGIN: job, token, the keys that it holds and the items it is after
 *   commit   before COMMIT is sent, so while every row it has written is still locked:
 *            xid. Of two transactions that wrote one row, the first has the lower t
 *   ok       COMMIT was answered, or an unknown one turned out committed: xid, items
 *            and how many effects of each kind
 *   fail     rolled back, or an unknown one turned out to be
 *   unknown  the answer to COMMIT was lost; like ok
 * An end has the worker and seq of its invoke. t is CLOCK_MONOTONIC in microseconds. */
#ifndef LEDGERLOCK_HISTORY_H
#define LEDGERLOCK_HISTORY_H

#ifdef LEDGERLOCK_POINTS

#include "worker/worker.h"

void history_invoke(struct worker *w,
                    const struct job_type *job,
                    int64_t token,
                    int64_t only);

/* COMMIT is sent next, and this is what it will have done once that is known. */
void history_commit(struct worker *w,
                    const struct job_batch *b,
                    int64_t xid,
                    const struct metrics *counted);

/* code: of the transaction. */
void history_end(struct worker *w, int code);

void history_settled(struct worker *w, bool committed);

#define HISTORY_INVOKE(w, job, token, only) history_invoke(w, job, token, only)
#define HISTORY_COMMIT(w, b, xid, counted) history_commit(w, b, xid, counted)
#define HISTORY_END(w, code) history_end(w, code)
#define HISTORY_SETTLED(w, committed) history_settled(w, committed)
#else
#define HISTORY_INVOKE(w, job, token, only) ((void)0)
#define HISTORY_COMMIT(w, b, xid, counted) ((void)0)
#define HISTORY_END(w, code) ((void)0)
#define HISTORY_SETTLED(w, committed) ((void)0)
#endif

#endif
