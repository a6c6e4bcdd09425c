/* Renewal: locks that live on, and batches of them. */
#include <time.h>

#include "tests/lib/lock_waiters.h"
#include "tests/lib/play.h"
#include "tests/lib/renew_world.h"

enum { LEASE_MS = 6000, INTERVAL_MS = 300 };

LOCK_CASE(renewed_lock_outlives_its_lease_with_the_same_token)
{
    struct told told = {0};
    RENEWER *r = open_renewer(w->a, &told, INTERVAL_MS);
    int64_t began_ms = ll_now_ms(), token;

    assert_int_equal(ll_try(w->la, "user:1", LEASE_MS), LL_OK);
    token = ll_token(w->la);
    assert_int_equal(ll_renew(r, w->la, 0, 0), LL_OK);
    for (int i = 0; i < 24; i++) { /* longer than a lease */
        await_renewals(r, 1);
        assert_true(ll_valid(w->la, 0));
        assert_in_range(lock_raw_integer(w, "PTTL lock:user:1"), 1, LEASE_MS);
    }
    assert_int_equal(ll_token(w->la), token);
    assert_int_equal(ll_release(w->la), LL_OK);
    assert_in_range(figures_of(r).renewals, 24,
                    (uint64_t)(ll_now_ms() - began_ms) / (INTERVAL_MS * 3 / 4));
    assert_int_equal(lock_raw_integer(w, "EXISTS lock:user:1"), 0);
    fixture_pause_ms(LEASE_MS);
    assert_int_equal(read_losses(r, 0) + told.times, 0);
}

PLAY_ONE(renewal_never_shortens_and_gives_an_end_back,
         "a take k 6000; a renew 300; a2 take j 6000; a2 renew; redis PERSIST @k; "
         "redis PEXPIRE @j 60000; a renewed 4; redis PTTL @k: 1-6000; "
         "redis PTTL @j: 30000-60000; a losses: 0");

LOCK_CASE(closed_renewer_leaves_its_locks_to_their_lease)
{
    struct told told = {0};
    struct ll_renewer *r = open_renewer(w->a, &told, INTERVAL_MS);

    renew_two(w, r, LEASE_MS);
    ll_renewer_close(r);
    assert_int_equal(ll_release(w->lb), LL_OK);
    LOCK_AWAIT(lock_raw_integer(w, "EXISTS lock:user:1") == 0);
    assert_int_equal(ll_release(w->la), LL_GONE);
    assert_int_equal(told.times, 0);
}

static double cpu_ms(void)
{
    struct timespec ts;

    (void)clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &ts);
    return (double)ts.tv_sec * 1e3 + (double)ts.tv_nsec / 1e6;
}

LOCK_CASE(renewer_with_nothing_due_sleeps)
{
    struct told told = {0};
    RENEWER *r = open_renewer(w->a, &told, 0);
    double before;

    assert_int_equal(ll_try(w->la, "user:1", 60000), LL_OK);
    assert_int_equal(ll_renew(r, w->la, 0, 0), LL_OK);
    before = cpu_ms();
    fixture_pause_ms(1000);
    assert_true(cpu_ms() - before < 50);
    assert_int_equal(figures_of(r).rounds, 0);
}

/* ---- batches ---- */

LOCK_CASE(locks_of_several_leases_go_together)
{
    struct told told = {0};
    RENEWER *r = open_renewer(w->a, &told, 0);

    ll_set_tolerance(w->lb, 5000);
    assert_int_equal(ll_try(w->lb, "late", LEASE_MS + 100), LL_OK);
    assert_int_equal(ll_try(w->la, "early", LEASE_MS), LL_OK);
    assert_int_equal(ll_renew(r, w->lb, 0, 0), LL_OK);
    assert_int_equal(ll_renew(r, w->la, 0, 0), LL_OK);
    lock_raw_do(w, "CONFIG RESETSTAT");
    LOCK_AWAIT(figures_of(r).renewals > 0);
    assert_int_equal(waiters_calls(w, "evalsha"), 1);
    assert_int_equal(figures_of(r).rounds, 1);
    assert_int_equal(figures_of(r).renewals, 2);
    assert_in_range(lock_raw_integer(w, "PTTL lock:early"), LEASE_MS / 2, LEASE_MS);
    assert_in_range(lock_raw_integer(w, "PTTL lock:late"), LEASE_MS / 2 + 5000,
                    LEASE_MS + 100 + 5000);
}

LOCK_CASE(batch_beyond_one_script_call_is_renewed_call_by_call)
{
    enum { KEYS = 2 * LL_KEYS_MAX + 300 };

    struct told told = {0};
    RENEWER *r = open_renewer(w->a, &told, INTERVAL_MS);
    struct ll_renew_figures f;

    assert_int_equal(ll_try(w->lb, "k:1500", 60000), LL_OK); /* not ours: left alone */
    assert_int_equal(ll_acquire(w->la, lock_keys(KEYS, 1), KEYS, LL_ANY, 20000),
                     LL_PARTIAL);
    assert_int_equal(ll_renew(r, w->la, 0, 0), LL_OK);
    LOCK_AWAIT(figures_of(r).rounds >= 4);
    assert_true(ll_valid(w->la, 0));
    assert_int_equal(lock_raw_integer(w, "DBSIZE"), KEYS + 1);
    assert_true(lock_raw_integer(w, "PTTL lock:k:1500") <= 59500);
    f = figures_of(r);
    assert_int_equal(f.round_trips, 3 * f.rounds);
    lock_raw_do(w, "DEL lock:k:2299"); /* the very last key */
    assert_int_equal(read_losses(r, LOCK_SOON_MS), 1);
    assert_int_equal(told.times, 1);
    assert_int_equal(told.code, LL_LOST);
}

/* Guarantee: 500 locks are renewed by one script call a round, and none runs out
 * though the server stops for 200 ms. */
LOCK_CASE(renew_500_locks)
{
    enum { LOCKS = 500, LEASE = 5000, INTERVAL = 300, STALL = 400 };

    static struct ll_lock *locks[LOCKS];
    struct told told = {0};
    RENEWER *r = open_renewer(w->a, &told, INTERVAL);
    struct ll_renew_figures f;

    hold_many(w->a, r, locks, LOCKS, LEASE);
    lock_raw_do(w, "CONFIG RESETSTAT");
    for (int i = 0; i < 4; i++) { /* each stall is longer than a renewal is away */
        await_renewals(r, LOCKS);
        assert_int_equal(kill(lock_server.pid, SIGSTOP), 0);
        fixture_pause_ms(STALL);
        assert_int_equal(kill(lock_server.pid, SIGCONT), 0);
    }
    assert_int_equal(lock_raw_integer(w, "DBSIZE"), LOCKS + 1);
    for (size_t i = 0; i < LOCKS; i++)
        assert_true(ll_valid(locks[i], 0));
    f = figures_of(r);
    assert_true(f.renewals >= 3 * LOCKS);
    assert_true(f.round_trips <= 2 * f.rounds);
    assert_in_range(waiters_calls(w, "evalsha"), 1, 2 * f.rounds);
    assert_true(f.slowest_us > 20000);
    assert_int_equal(read_losses(r, 0) + told.times, 0);
    free_many(locks, LOCKS);
}
