/* point: named places of a turn where a worker of a test build stops and waits until it
 * is told to go on. In a normal build nothing of it is there.
 *
 * LEDGERLOCK_TEST_POINTS is the path of a listening Unix socket. At every point a
 * worker sends one line, "WORKER PID POINT\n", and waits for one byte. When nobody
 * listens, or nobody listens any more, it goes on without asking again.
 * LEDGERLOCK_TEST_POINT is POINT=kill or POINT=stop: the worker that comes there first
 * sends itself that signal; with LEDGERLOCK_TEST_POINT_ONCE, only who can make that
 * file. */
#ifndef LEDGERLOCK_POINT_H
#define LEDGERLOCK_POINT_H

#ifdef LEDGERLOCK_POINTS

/* In the order of a turn: before_lock, after_lock, before_begin, after_claim,
 * before_commit, after_commit, before_release. */
void point_reach(const char *worker, const char *point);

#define POINT(w, point) point_reach((w)->name, point)
#else
#define POINT(w, point) ((void)0)
#endif

#endif
