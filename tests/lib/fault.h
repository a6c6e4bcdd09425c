/* fault: a pool of the test build in the middle of a load whose outcome is known
 * (load.h), with clients at work; a fault; its end; and one check, which ends with the
 * checker. The world (world.h) has a Redis of its own and a proxy before each server.
 *
 *   FAULT_WORLD(.load = &fault_usual);
 *
 *   CASE_ROWS(pool_goes_on_after, faults) { fault_happens(row); }
 */
#ifndef LEDGERLOCK_FAULT_H
#define LEDGERLOCK_FAULT_H

#include "tests/lib/gate.h"
#include "tests/lib/world.h"

/* Of every pool here. */
enum { FAULT_LEASE_MS = 2000 };

extern const struct load_size fault_usual, fault_small;

#define FAULT_PLAN                                                                     \
    .points = true, .checker = true, .redis = true, .proxies = true, .any = true,      \
    .lease_ms = FAULT_LEASE_MS, .poll_ms = 50, .batch = 5
#define FAULT_WORLD(...) WORLD(FAULT_PLAN, __VA_ARGS__)

/* True if all of chaos was asked for (LL_TEST_CHAOS=full), not the quick set.
 */
bool fault_is_full(void);
bool fault_is_meant(void);

/* ---- one fault ----------------------------------------------------------- */

/* A row of a table. */
struct fault {
    const char *name;
    void (*set)(bool on);
    const char *on, *off;     /* or commands to Redis; several with "; " between them */
    const char *down, *words; /* what the pool says of it; NULL: nothing is asked */
    const char *up;           /* and of its end */
    bool is_still;            /* nothing is done meanwhile */
    int done;                 /* so much is done meanwhile */
    bool is_shipped;          /* fault_as_shipped */
    bool is_rare; /* left out by .when = fault_is_meant, see fault_is_full */
};

/* Starts the pool, waits until it is midway, and lets the fault begin; asserts that it
 * is as the row says and met work; ends it. All is done then, by the same workers, and
 * the incidents tell what their counters tell. */
void fault_happens(const struct fault *fault);

/* ---- its parts ----------------------------------------------------------- */

/* From now on the program is the one that is shipped, which writes no histories: the
 * checker sees the rows alone. Each kind of fault is met by both programs. */
void fault_as_shipped(void);

/* Every batch takes its time until fault_recovers, so that the faults meet work. */
void fault_slow_down(void);

/* Starts the pool through the proxies with so many workers of each job, and at the
 * first time the clients; the second has one worker, of billing, and another pool works
 * the orders from fault_recovers on; the third has four and waits until it is midway,
 * where it stays until fault_recovers: many users are held (gate.h). */
void fault_start(const char *workers);
void fault_start_one(void);
void fault_start_midway(void);

/* Lets go of some of these users (gate_feed, 24 times) and waits until so much more is
 * done. */
void fault_work_wait(int64_t more);

/* Holds back what fault_start_midway holds back, in so many portions. */
void fault_hold_back(int portions);

/* Asserts that something is left to be done: the fault met work. */
void fault_assert_midway(void);

/* Asserts that nothing more is done when what was in flight has had its lease. */
void fault_assert_still(void);

/* Sends a signal and tells the checker of it when it kills or stops; a killed process
 * is gone on return. false: it was gone before. */
bool fault_kill(pid_t pid, int signal);

/* No fault is left: something must be done within the bound of the world if anything is
 * left, and then everything, with what the clients have still to call. */
void fault_recovers(void);

/* Tells the pool to stop, and checks everything: every effect is there once and none is
 * missed, no key is without an end, and all that the checker knows holds. */
void fault_end(void);
void fault_check(void);

/* fault_assert_midway, fault_recovers and fault_end. */
void fault_finish(void);

/* The checker alone, at an instant; the rest is for work of another kind. */
void fault_check_rows(const char *now);

/* One command on the world's Redis; the checker is told of those that lose keys. The
 * last starts it again, with the password and with these arguments. */
void fault_redis(char *reply, size_t size, const char *command);
void fault_redis_ok(const char *command);
void fault_redis_start(const char *name, const char *value);

#endif
