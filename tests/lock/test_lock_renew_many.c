/* A renewer of many locks: its work grows as they do, and no faster. Work is the
 * processor's time of the thread that does it, ten times as many locks against a tenth
 * of them; a machine that is busy changes both. */
#include <time.h>

#include "tests/lib/play_inside.h"

/* Ten times the work, or a hundred times where each lock is compared with all. */
enum { FEW = 2000, MANY = 10 * FEW, MOST_TIMES = 30, LEASE_MS = 60000, REPEATS = 3 };

/* The same work. */
enum { MOST_OF_THE_SAME = 4 };

static struct rlock *locks[MANY];

static int64_t thread_us(void)
{
    struct timespec ts;

    (void)clock_gettime(CLOCK_THREAD_CPUTIME_ID, &ts);
    return (int64_t)ts.tv_sec * 1000000 + ts.tv_nsec / 1000;
}

/* Of rounds on this thread until nothing is due. */
static int64_t work_us(struct rlock_renewer *r)
{
    int64_t began_us = thread_us();

    for (int i = 0; i < MANY && renew_due(r) == 0; i++)
        (void)!renew_now(r);
    return thread_us() - began_us;
}

/* The first n, which have a round behind them: the renewer is connected, and the script
 * is known. */
static struct rlock_renewer *hold(size_t n)
{
    struct play_actor *a = play_actor_of("a");

    play("a stepped");
    hold_many(play_client("a"), a->r, locks, n, LEASE_MS);
    play("time 20000");
    (void)work_us(a->r);
    play("promise a losses: 0");
    return a->r;
}

static void let_go(size_t n)
{
    play("a close_renewer; redis FLUSHALL");
    free_many(locks, n);
    play_actor_of("a")->told.times = 0;
}

/* ---- renewals ---- */

static int64_t renew(size_t n)
{
    struct rlock_renewer *r = hold(n);
    int64_t least_us = INT64_MAX;

    for (int i = 0; i < REPEATS; i++) {
        int64_t us;

        play("redis CONFIG RESETSTAT; time 20000");
        us = work_us(r);
        least_us = us < least_us ? us : least_us;
        promise_int_equal(
            lock_info(playing.w->raw[0], "commandstats", "cmdstat_evalsha:calls="),
            n / RLOCK_KEYS_MAX);
    }
    play("promise a losses: 0");
    for (size_t i = 0; i < n; i++)
        promise_true(rlock_valid(locks[i], LEASE_MS / 2));
    let_go(n);
    return least_us;
}

/* Guarantee: A renewer renews 20,000 locks by twenty calls, with the work of ten times
 * 2,000. */
PLAY_CASE(play_on_one, work_of_renewals_grows_as_their_number)
{
    int64_t few_us = renew(FEW), many_us = renew(MANY);

    print_message("%d locks: %lld us; %d: %lld us\n", FEW, (long long)few_us, MANY,
                  (long long)many_us);
    assert_true(many_us < MOST_TIMES * few_us);
}

/* ---- one among many ---- */

enum { ROUNDS = 40, LONG_MS = 24 * 3600 * 1000 };

/* So many rounds of one lock, beside n that are not due, nor nearly. */
static int64_t renew_one_beside(size_t n)
{
    struct play_actor *a = play_actor_of("a");
    int64_t us = 0;

    play("a stepped");
    hold_many(play_client("a"), a->r, locks, n, LONG_MS);
    play("a take k; a renew 0 0 9000000; time 20000; a round: 0; "
         "redis CONFIG RESETSTAT");
    for (int i = 0; i < ROUNDS; i++) {
        play("time 20000");
        us += work_us(a->r);
    }
    play("calls evalsha: 40; promise a losses: 0; promise a valid; a release");
    let_go(n);
    return us;
}

/* Guarantee: A round of one lock costs the same beside 20,000 locks as beside 200. */
PLAY_CASE(play_on_one, work_of_a_round_is_that_of_the_locks_that_are_due)
{
    int64_t few_us = renew_one_beside(FEW / 10), many_us = renew_one_beside(MANY);

    print_message("%d rounds beside %d locks: %lld us; beside %d: %lld us\n", ROUNDS,
                  FEW / 10, (long long)few_us, MANY, (long long)many_us);
    assert_true(many_us < MOST_OF_THE_SAME * few_us);
}

/* ---- losses ---- */

/* The server has gone, and the leases end. */
static int64_t lose(size_t n)
{
    struct rlock_renewer *r = hold(n);
    int64_t us;

    play("server stop; boot 59000");
    us = work_us(r);
    play("server cont; boot -59000");
    promise_int_equal(play_actor_of("a")->told.times, n);
    let_go(n);
    return us;
}

/* Guarantee: A renewer tells of 20,000 losses with the work of ten times 2,000. */
PLAY_CASE(play_on_one, work_of_losses_grows_as_their_number)
{
    int64_t few_us = lose(FEW), many_us = lose(MANY);

    print_message("%d losses: %lld us; %d: %lld us\n", FEW, (long long)few_us, MANY,
                  (long long)many_us);
    assert_true(many_us < MOST_TIMES * few_us);
}
