/* chaos_world: a pool of the test build in the middle of work whose outcome is known,
 * on a Redis of its own, with a proxy before each server; passwords that no log may
 * show; histories; and one check at the end, which ends with the checker. */
#ifndef LEDGERLOCK_CHAOS_WORLD_H
#define LEDGERLOCK_CHAOS_WORLD_H

#include "tests/lib/checker.h"
#include "tests/lib/pool_world.h"
#include "tests/lib/proxy.h"

/* The lease of every pool here. How long after the end of a fault it may take until
 * something is done again, and until what a dead worker was after is worked again:
 * where nothing else is said, and where the supervisor saw it die. */
enum {
    CHAOS_LEASE_MS = 2000,
    CHAOS_RECOVERY_MS = 2 * CHAOS_LEASE_MS + 2000,
    CHAOS_SEEN_MS = 1000,
};

struct chaos {
    struct fixture f;       /* the servers themselves, as the worker */
    struct fixture through; /* the same, through the proxies */
    struct fixture_redis redis;
    struct proxy to_postgres, to_redis;
    struct fixture_child pool;
    struct pool_work work; /* set before chaos_fill */
    struct checker checker;
    int bound_ms; /* of recovery: CHAOS_RECOVERY_MS until the test changes it */
};

extern struct chaos chaos;

/* Whether all of it was asked for (LEDGERLOCK_TEST_CHAOS=full), not the quick set. */
bool chaos_is_full(void);

/* Set-up and end of one test: an empty world with the usual work to be done; and the
 * end of all that was started. */
int chaos_open(void **state);
int chaos_close(void **state);

/* Opens the world without work: the test sets chaos.work and calls chaos_fill. */
int chaos_open_empty(void **state);
void chaos_fill(void);

/* From now on the program is the one that is shipped, which writes no histories: the
 * checker sees the rows alone. */
void chaos_as_shipped(void);

/* The world's own Redis, started again with the password and with these arguments. */
void chaos_redis_start(const char *name, const char *value);

/* Every batch takes its time, so that the faults meet work; without it the rest goes
 * fast. */
void chaos_slow_down(void);
void chaos_full_speed(void);

/* ---- the pool ---- */

/* Starts it through the proxies. */
void chaos_start(const char *workers);

/* The same with four workers, and waits until it is midway. */
void chaos_start_midway(void);

/* Asserts that something is left to be done: the fault met work. */
void chaos_assert_midway(void);

/* Sends a signal and tells the checker of it when it kills or stops; a killed process
 * is gone on return. false: it was gone before. */
bool chaos_kill(pid_t pid, int signal);

/* No fault is left: something must be done within chaos.bound_ms, everything within
 * `seconds`. Tells how long the first took, and the checker from when on. */
void chaos_recovers(int seconds);

/* Tells the pool to stop, and checks everything. */
void chaos_end(void);

/* All invariants: every effect once and none missed, no key without an end; and all
 * that the checker knows of rows and histories, with the bound. (Passwords are looked
 * for when the world is closed: secrets.h.) */
void chaos_check(void);

/* The checker alone, at an instant; the rest is for work of another kind. */
void chaos_check_rows(const char *now);

/* Nothing more is done, for that long; what is in flight gets `ms` too. */
void chaos_assert_stands_still(int ms);

/* A figure of the database, as its owner. */
int64_t chaos_ask(const char *sql);

/* One command on the world's Redis. */
void chaos_redis(char *reply, size_t size, const char *command);
void chaos_redis_ok(const char *command);

#endif
