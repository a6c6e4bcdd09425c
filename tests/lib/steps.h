/* steps: one line for one step of a test over the pool of a world (world.h). Words of
 * the program are parted by blanks, as in runs.h. */
#ifndef LEDGERLOCK_STEPS_H
#define LEDGERLOCK_STEPS_H

#include "tests/lib/runs.h"
#include "tests/lib/world.h"

#define STEPS_TAKE(at) __attribute__((format(printf, at, at + 1)))

/* Defines a function for `.open`: a world as this plan says. */
#define WORLD_OPEN(name, ...)                                                          \
    static void name(void)                                                             \
    {                                                                                  \
        static const struct world_plan plan = {__VA_ARGS__};                           \
                                                                                       \
        world_open_as(&plan);                                                          \
    }

/* Starts world.pool: in world.f, or in another, as world.through. */
#define pool_start(...) pool_start_in(&world.f, __VA_ARGS__)
#define pool_start_in(f, ...) starts(f, &world.pool, __VA_ARGS__)

/* TERM for world.pool; asserts that it ends with exit code 0. */
void pool_stop(void);

/* Asserts that the log of world.pool has the text so often. */
void pool_logged(int64_t times, const char *text);

/* The workers of world.pool, of which there must be n; the pid of the first. And
 * whether one is among n of them. */
pid_t pool_workers(size_t n);
bool pool_has(const pid_t *pids, size_t n, pid_t pid);

/* The process of world.pool that serves its page; 0: none does. */
pid_t pool_page(void);

/* runs and says of runs.h, in world.f. */
#define world_runs(...) runs(&world.f, __VA_ARGS__)
#define world_says(...) says(&world.f, __VA_ARGS__)

/* Asserts that the query of world_ask answers n. */
void world_is(int64_t n, const char *sql, ...) STEPS_TAKE(2);

/* Statements and questions as the superuser, without a search_path. */
void super_do(const char *sql, ...) STEPS_TAKE(1);
int64_t super_ask(const char *sql, ...) STEPS_TAKE(1);

/* A session of his, with search_path ledgerlock; the caller's. */
PGconn *super_open(void);

/* Rows that are parked, and incidents that say so. */
int64_t world_parked(void);

/* A command to the Redis of the world; the answer is overwritten by the next. */
const char *redis_do(const char *command, ...) STEPS_TAKE(1);

#endif
