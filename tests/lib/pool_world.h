/* pool_world: work for a pool whose outcome is known beforehand, and eyes on the
 * processes, the log and the locks of a running one. */
#ifndef LEDGERLOCK_POOL_WORLD_H
#define LEDGERLOCK_POOL_WORLD_H

#include "tests/lib/fixture.h"

/* These functions wait for something that must come, so this is no bound of the
 * program: it says how long a test takes to fail, and a slow machine needs less. */
enum { POOL_WAIT_MS = 120000 };

/* ---- work ---- */

/* `users` with one daily subscription each, of which `periods` are due, and money
 * enough for all; `orders` for one piece each of one SKU, of which there are `units`.
 */
struct pool_work {
    int users, periods, orders, units;
};

/* Puts it into the database of a world (world.h): world.work. The rest is of that. */
void pool_work_put(const struct pool_work *work);

/* The instant for --now at which that much is due. Overwritten by the next call. */
const char *pool_work_now(void);

/* Periods charged and orders decided so far. */
int64_t pool_work_done(void);

/* Asserts that nothing more is done for so long. */
void pool_assert_stands_still(int ms);

/* How much pool_work_done is when nothing is left. */
int64_t pool_work_all(void);

/* Waits until at least so much is done. */
void pool_work_wait(int64_t done);

/* Asserts that every row is what the numbers of `work` say: nothing twice, nothing
 * missed; and that the audit and the checker of the rows hold. */
void pool_work_assert_exact(void);

/* Opens the gate (gate.h), waits until all is done, stops the pool of the world, and
 * asserts that. */
void pool_work_finish(void);

/* Counts incidents: kind, and a part of the detail ("" for any). */
int64_t pool_incidents(const char *kind, const char *detail);

/* Sum of one counter over all workers, or those of a job, as they have reported it. */
int64_t pool_counter(const char *name);
int64_t pool_counter_of(const char *job, const char *name);

/* How often sessions of the workers' role were seen to begin another statement within
 * `ms`: those of one session that follow each other at once count as one. (The server's
 * own statistics come up to ten seconds late.) The look lasts until a begin was seen;
 * when that or a slow machine made it longer, the answer is that of so long. */
int pool_asks(int64_t ms);

/* ---- processes ---- */

enum { POOL_CHILDREN = 32 };

/* A file of /proc of a process, overwritten by the next call; "" when it is gone, and a
 * byte 0 is a blank. */
const char *pool_proc(pid_t pid, const char *file);

/* Children of a process; returns how many. And the one by this name ("billing:0"), or
 * 0.
 */
size_t pool_children(pid_t pid, pid_t pids[POOL_CHILDREN]);
pid_t pool_child(pid_t pid, const char *name);

/* Waits for exactly n of them. */
void pool_wait_children(pid_t pid, size_t n);

/* Its state, as in ps ("T": stopped); and true if it is there and no zombie. */
char pool_state(pid_t pid);
bool pool_is_alive(pid_t pid);

/* ---- the log of a run ---- */

/* How often a text stands in it. */
unsigned pool_log_count(const struct fixture_child *child, const char *text);

/* Waits until it stands there; prints the log when it never does. */
void pool_log_wait(const struct fixture_child *child, const char *text);

/* Waits until the run ends, asserts that it is with this code, and prints its log when
 * it is not. */
void pool_assert_ends(struct fixture_child *child, int code);

/* TERM for it; asserts that it ends with exit code 0. */
void pool_end(struct fixture_child *child);

/* ---- Redis ---- */

/* Sends a command given as words; the answer as text, of an array its length. */
void pool_redis(const char *url, char *reply, size_t size, const char *command);

/* The password that these functions send from now on; NULL: none. Borrowed. */
void pool_redis_password(const char *password);
const char *pool_redis_secret(void);

/* Starts a Redis that asks for the password of secrets.h: the runs that follow and
 * these functions send it. */
void pool_redis_start(struct fixture_redis *r);

/* Number of lock keys of this test. */
int64_t pool_lock_keys(void);

/* Name of one of them, without the prefix; false when there is none. */
bool pool_lock_name(char *name, size_t size);

#endif
