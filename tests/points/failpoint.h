/* failpoint: named places of a batch at which a worker of a test program stops and
 * waits until it is told to go on.
 *
 * LL_TEST_POINTS is the path of a listening Unix socket. At every place a
 * worker sends one line, "WORKER PID PLACE\n", and waits for one byte. When nobody
 * listens, or nobody listens any more, it goes on without asking again.
 * LL_TEST_POINT is PLACE=kill or PLACE=stop: the worker that comes there first
 * sends itself that signal; with LL_TEST_POINT_ONCE, only the one that can make
 * that file. */
#ifndef LEDGERLOCK_FAILPOINT_H
#define LEDGERLOCK_FAILPOINT_H

#include "worker/jobs/job.h"

/* In the order of a batch: before_lock, after_lock, before_begin, after_claim,
 * before_commit, after_commit, before_release; then before_settle and after_settle, of
 * the answers of a gateway. */
void failpoint_reach(const char *worker, const char *place);

/* LL_TEST_POISON is a list "JOB:ITEM,JOB:ITEM": a worker that has claimed the
 * rows of a transaction and finds one of these among them ends by SIGSEGV. */
void poison_reach(const char *job, const struct job_rows *rows);

#endif
