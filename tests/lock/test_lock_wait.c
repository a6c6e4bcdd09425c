/* Waiting for locks: wake-ups, how long, several keys, and many waiters on one held
 * lock: no herd, no busy loop. */
#include <stdatomic.h>

#include "tests/lib/lock_waiters.h"
#include "tests/lib/play.h"

static const struct rlock_key one_key = {"one", 3};

static int take_one(struct rlock *l, unsigned wait_ms)
{
    return rlock_acquire_wait(l, &one_key, 1, RLOCK_ALL, 60000, wait_ms, -1);
}

/* ---- wake-ups ---- */

/* Hands a lock over to eight waiters, one after the other; acquires and releases sent.
 */
static long long hand_over_to_eight(struct lock_world *w)
{
    struct waiter *waiters;

    assert_int_equal(rlock_try(w->la, "one", 60000), RLOCK_OK);
    waiters = waiters_start(8, (struct waiter){.rounds = 1,
                                               .wait_ms = 4 * LOCK_SOON_MS,
                                               .reply_ms = LOCK_SOON_MS});
    LOCK_AWAIT(waiters_blocked(w) == 8);
    lock_raw_do(w, "CONFIG RESETSTAT");
    assert_int_equal(rlock_release(w->la), RLOCK_OK);
    waiters_join(waiters, 8);
    for (int i = 0; i < 8; i++)
        promise_int_equal(waiters[i].granted, 1);
    promise_true(waiters_calls(w, "lpush") <= 9);
    free(waiters);
    return waiters_calls(w, "evalsha");
}

/* Eight acquires and nine releases, and hardly one that looks by itself, which each
 * does every 200 ms: seen once is enough, since a busy machine may be slower than that.
 */
LOCK_CASE(release_wakes_one_waiter_at_once)
{
    long long least = INT64_MAX;

    for (int i = 0; i < 50 && least > 20; i++) {
        long long sent = hand_over_to_eight(w);

        if (waiters_calls(w, "lpush") >= 8)
            least = sent < least ? sent : least;
        lock_raw_do(w, "DEL lock:!wake:one"); /* of the last release */
    }
    assert_in_range(least, 17, 20);
}

/* A waiter leaves its mark in the value of the key, and a wake-up stays for a second
 * when its waiter has gone. */
PLAY_FRESH(
    release_without_waiters_pushes_nothing,
    "a connect; redis CONFIG RESETSTAT; a try k; a release; calls lpush: 0; "
    "redis DBSIZE: 1; a try k; b begin k 60000; await redis GET @k: |w; "
    "a release; b end; b release; redis DEL @!wake:k; a try k; b wait k 150: timeout; "
    "redis CONFIG RESETSTAT; a release; await calls lpush: 1; "
    "redis DEL @!wake:k; redis RPUSH @!wake:k 1; a try k; b wait k 150: timeout; "
    "redis RPUSH @!wake:k 1; a release; await calls exists: 2; calls lpush: 1");

PLAY_ONE(wakeup_command_forbidden_is_no_fault,
         "redis ACL SETUSER default -blpop; a try k; b wait k 150: timeout; "
         "a release; b wait k 60000; redis ACL SETUSER default +blpop");

/* ---- how long ---- */

/* Seen once is enough: a busy machine may be late. */
/* Guarantee: A waiter does not sleep past the holder's lease. */
LOCK_CASE(wait_never_sleeps_past_the_holders_lease)
{
    int64_t quickest = INT64_MAX;

    for (int i = 0; i < 200 && quickest >= 100000; i++) {
        int64_t took = waiters_now_us();

        lock_raw_do(w, "SET lock:one somebody PX 40");
        assert_int_equal(take_one(w->la, 60000), RLOCK_OK);
        took = waiters_now_us() - took;
        assert_true(took >= 38000);
        quickest = took < quickest ? took : quickest;
        assert_int_equal(rlock_release(w->la), RLOCK_OK);
    }
    assert_true(quickest < 100000); /* without it: 100 ms and more */
}

/* The attempt leaves no marks. */
PLAY_FRESH(wait_of_zero_is_one_attempt,
           "a connect; a wait k 0; b wait k 0: timeout; b granted: 0; redis DBSIZE: 2");

/* Guarantee: A server that goes away during a wait is told as a fault, not as a
 * timeout. */
PLAY_FRESH(wait_on_a_server_that_went_away_is_a_fault_not_a_timeout,
           "a connect; server kill; a wait k 3000: unavailable");

/* ---- an end from outside ---- */

/* A wait that ends by a descriptor, and what ends it. */
struct cancel {
    struct proxy *proxy; /* NULL: none */
    int fds[2];
};

static void *cancel_soon(void *cancel)
{
    const struct cancel *c = cancel;

    if (c->proxy != NULL)
        assert_true(proxy_wait(c->proxy, PROXY_SWALLOWED, 1, LOCK_SOON_MS / 1000));
    else
        fixture_pause_ms(300);
    assert_int_equal(write(c->fds[1], "x", 1), 1);
    return NULL;
}

/* Waits twice for the key that somebody holds: the second is cancelled at once, since
 * the descriptor is readable still. */
static void cancel_a_wait(struct rlock *l, struct proxy *proxy)
{
    struct cancel cancel = {.proxy = proxy};
    pthread_t thread;

    assert_int_equal(pipe(cancel.fds), 0);
    assert_int_equal(pthread_create(&thread, NULL, cancel_soon, &cancel), 0);
    for (int i = 0; i < 2; i++)
        promise_int_equal(
            rlock_acquire_wait(l, &one_key, 1, RLOCK_ALL, 5000, 200000, cancel.fds[0]),
            RLOCK_CANCELLED);
    assert_int_equal(pthread_join(thread, NULL), 0);
    (void)close(cancel.fds[0]);
    (void)close(cancel.fds[1]);
}

/* The waiter listens when the answers stop, hears of the end at once, and asks nobody
 * more, which would take a minute. */
/* Guarantee: A descriptor ends a wait though the server stands still. */
PLAY_CASE(play_on_one, wait_is_cancelled_though_the_server_stands_still)
{
    int64_t began_us = waiters_now_us();

    play("a take one; p limits 60000 2000; await p connect; proxy swallow_after BLPOP");
    cancel_a_wait(play_lock("p"), &w->proxies[0]);
    promise_true(waiters_now_us() - began_us < LOCK_SOON_MS * INT64_C(1000));
}

static void cancel_a_wait_of_b(void)
{
    play("a take one");
    cancel_a_wait(play_lock("b"), NULL);
    play("b granted: 0; a valid");
}

/* Guarantee: A descriptor ends a wait, and the server is asked no more. */
PLAY_CASE(play_on_one, wait_is_cancelled_by_a_descriptor)
{
    cancel_a_wait_of_b();
}

PLAY_CASE(play_on_quorum, wait_over_a_quorum_is_cancelled_by_a_descriptor)
{
    cancel_a_wait_of_b();
}

/* ---- several keys ---- */

/* b waits until a gives back the first of them. */
PLAY_ONE(wait_any_takes_the_first_that_is_freed,
         "c all y,z; a take x; b begin x,y,z 60000 any; await blocked: 1; a release; "
         "b end: partial; b key 0; b granted: 1");

PLAY_ONE(wait_all_holds_nothing_until_all_are_free,
         "a take x; b wait y,x 50: timeout; copies y: 0; b begin y,x 60000 all; "
         "await blocked: 1; copies y: 0; a release; b end; b granted: 2");

/* ---- many waiters ---- */

enum { WAITERS = 64 };

/* Guarantee: 64 waiters: the commands for each hand-over are bounded, and each
 * waiter gets the lock. */
LOCK_CASE(herd_64_waiters)
{
    struct waiter *waiters;
    long long sent, run, handovers = 0;
    int64_t began, slowest = 0;

    lock_raw_do(w, "CONFIG RESETSTAT");
    began = waiters_now_us();
    waiters = waiters_start(
        WAITERS, (struct waiter){.rounds = 12, .wait_ms = 120000, .hold_us = 1500});
    fixture_pause_ms(100);
    waiters_assert_ends(w);
    waiters_join(waiters, WAITERS);
    began = waiters_now_us() - began;
    sent = waiters_sent(w);
    run = waiters_run(w) - 13 * WAITERS; /* the handshakes */
    for (size_t i = 0; i < WAITERS; i++) {
        assert_int_equal(waiters[i].code, RLOCK_OK);
        assert_int_equal(waiters[i].granted, 12);
        handovers += waiters[i].granted;
        slowest = waiters[i].slowest_ms > slowest ? waiters[i].slowest_ms : slowest;
    }
    print_message("%lld hand-overs, %.0f/s, %.1f commands each from clients, %.1f with "
                  "those inside scripts; longest wait %lld ms\n",
                  handovers, (double)handovers * 1e6 / (double)began,
                  (double)sent / (double)handovers, (double)run / (double)handovers,
                  (long long)slowest);
    promise_int_equal(waiters_overlaps(), 0);
    /* A hand-over takes some; each waiter asks by itself five times a second besides.
     */
    assert_true(sent <= 4 * handovers + 2 * WAITERS * (began / 100000 + 1));
    free(waiters);
}

/* Guarantee: A waiter ends within its time limit and does not poll in a busy loop. */
LOCK_CASE(herd_times_out_within_its_limit_without_a_busy_loop)
{
    struct waiter *waiters;
    long long sent;

    assert_int_equal(rlock_try(w->la, "one", 60000), RLOCK_OK);
    sent = waiters_sent(w);
    waiters = waiters_start(WAITERS, (struct waiter){.rounds = 1, .wait_ms = 2000});
    waiters_join(waiters, WAITERS);
    sent = waiters_sent(w) - sent;
    for (size_t i = 0; i < WAITERS; i++) {
        assert_true(waiters_in_vain(&waiters[i]));
        assert_in_range(waiters[i].slowest_ms, 2000, LOCK_SOON_MS);
    }
    print_message("%.1f commands per waiter and second\n",
                  (double)sent / WAITERS / 2.0);
    assert_true(sent <= 2LL * WAITERS * 2 * 14);
    waiters_assert_ends(w);
    free(waiters);
}

/* Guarantee: A waiter whose wake-ups are all lost gets the lock by polling. */
LOCK_CASE(wakeup_is_only_a_hint)
{
    struct waiter *waiters;

    lock_raw_do(w, "ACL SETUSER default -lpush");
    lock_raw_do(w, "CONFIG RESETSTAT");
    waiters = waiters_start(
        8, (struct waiter){.rounds = 4, .wait_ms = 120000, .hold_us = 1000});
    waiters_join(waiters, 8);
    for (size_t i = 0; i < 8; i++)
        promise_int_equal(waiters[i].granted, 4);
    promise_int_equal(waiters_overlaps(), 0);
    assert_int_equal(waiters_calls(w, "lpush"), 0);
    lock_raw_do(w, "ACL SETUSER default +lpush");
    free(waiters);
}
