/* chaos_world: a pool in the middle of work whose outcome is known, on a Redis of its
 * own, with a proxy before each server; passwords that no log may show; and one check
 * at the end. */
#ifndef LEDGERLOCK_CHAOS_WORLD_H
#define LEDGERLOCK_CHAOS_WORLD_H

#include "tests/lib/pool_world.h"
#include "tests/lib/proxy.h"

/* The lease of every pool here; and how long after the end of a fault the pool may take
 * until something is done again. */
enum { CHAOS_LEASE_MS = 2000, CHAOS_RECOVERY_MS = 2 * CHAOS_LEASE_MS + 2000 };

struct chaos {
    struct fixture f;       /* the servers themselves, as the worker */
    struct fixture through; /* the same, through the proxies */
    struct fixture_redis redis;
    struct proxy to_postgres, to_redis;
    struct fixture_child pool;
    struct pool_work work; /* set before chaos_fill */
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

/* The fault is over: something must be done within CHAOS_RECOVERY_MS, everything within
 * `seconds`. Tells how long the first took. */
void chaos_recovers(int seconds);

/* Tells the pool to stop, and checks everything. */
void chaos_end(void);

/* All invariants, from the tables and the logs alone: every effect once and none
 * missed, no key without an end, no password in any log. */
void chaos_check(void);

/* Nothing more is done, for that long; what is in flight gets `ms` too. */
void chaos_assert_stands_still(int ms);

/* A figure of the database, as its owner. */
int64_t chaos_ask(const char *sql);

/* One command on the world's Redis. */
void chaos_redis(char *reply, size_t size, const char *command);
void chaos_redis_ok(const char *command);

#endif
