/* Many waiters on one held lock: no herd, no busy loop, the time limit. */
#include "tests/lib/lock_waiters.h"

#include <stdatomic.h>

enum { WAITERS = 64 };

/* ---- the herd ---- */

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
        assert_int_equal(waiters[i].code, LL_OK);
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

    assert_int_equal(ll_try(w->la, "one", 60000), LL_OK);
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

/* Takes the marks and the wake-ups away as fast as it can. */
static void *drop_wakeups(void *arg)
{
    atomic_bool *stop = arg;
    redisContext *raw = lock_raw_connection(lock_server.url);

    while (!atomic_load(stop))
        freeReplyObject(
            redisCommand(raw, "DEL lock:!waiters lock:!wait:one lock:!wake:one"));
    redisFree(raw);
    return NULL;
}

/* How many of 32 wake-ups came through; each waiter gets the lock all the same. */
static long long hand_over_without_wakeups(struct lock_world *w)
{
    struct waiter *waiters;
    atomic_bool stop = false;
    pthread_t dropper;

    lock_raw_do(w, "CONFIG RESETSTAT");
    assert_int_equal(pthread_create(&dropper, NULL, drop_wakeups, &stop), 0);
    LOCK_AWAIT(waiters_calls(w, "del") > 0);
    lock_raw_do(w, "CONFIG RESETSTAT");
    waiters = waiters_start(
        8, (struct waiter){.rounds = 4, .wait_ms = 120000, .hold_us = 1000});
    waiters_join(waiters, 8);
    atomic_store(&stop, true);
    (void)pthread_join(dropper, NULL);
    for (size_t i = 0; i < 8; i++)
        promise_int_equal(waiters[i].granted, 4);
    promise_int_equal(waiters_overlaps(), 0);
    free(waiters);
    return waiters_calls(w, "lpush");
}

/* Guarantee: A waiter whose wake-ups are all lost gets the lock by polling. */
LOCK_CASE(wakeup_is_only_a_hint)
{
    long long came = 32;

    for (int i = 0; i < 5 && came >= 16; i++)
        came = hand_over_without_wakeups(w);
    print_message("%lld wake-ups came through\n", came);
    assert_true(came < 16);
}
