/* Renewal: locks that live on, and batches of them. */
#include <string.h>
#include <time.h>

#include "tests/lib/play.h"
#include "tests/lib/renew_world.h"

enum { LEASE_MS = 20000, INTERVAL_MS = 300 };

PLAY_CASE(play_on_one, renewed_lock_outlives_its_lease_with_the_same_token)
{
    int64_t token;

    play("a stepped; a take k; a renew");
    token = ll_token(play_lock("a"));
    for (int i = 0; i < 6; i++)
        play("time 20000; a round: 0; a valid; ttl k: 45000-60000");
    promise_int_equal(ll_token(play_lock("a")), token);
    play("minted: 0; a release; copies k: 0; time 60000; a round: 0; copies k: 0; "
         "a losses: 0");
}

PLAY_ONE(renewal_never_shortens_and_gives_an_end_back,
         "a take k 20000; a renew 300; a2 take j 20000; a2 renew; redis PERSIST @k; "
         "redis PEXPIRE @j 120000; a renewed 4; redis PTTL @k: 1-20000; "
         "redis PTTL @j: 60000-120000; a losses: 0");

LOCK_CASE(closed_renewer_leaves_its_locks_to_their_lease)
{
    struct told told = {0};
    struct ll_renewer *r = open_renewer(w->a, &told, INTERVAL_MS);

    renew_two(w, r, LEASE_MS);
    ll_renewer_close(r);
    assert_int_equal(ll_release(w->lb), LL_OK);
    lock_raw_do(w, "PEXPIRE lock:user:1 1000"); /* far beyond the next renewal */
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

/* Guarantee: A lock that is due later, given to a renewer that sleeps, delays no
 * renewal of one that is due earlier. */
LOCK_CASE(lock_that_is_due_later_delays_no_other)
{
    struct told told = {0};
    RENEWER *r = open_renewer(w->a, &told, 0);

    assert_int_equal(ll_try(w->la, "user:1", 6000), LL_OK);
    assert_int_equal(ll_try(w->lb, "user:2", 60000), LL_OK);
    fixture_pause_ms(200); /* the renewer sleeps */
    assert_int_equal(ll_renew(r, w->la, 0, 0), LL_OK);
    assert_int_equal(ll_renew(r, w->lb, 0, 0), LL_OK);
    await_renewals(r, 1);
    promise_int_equal(told.times, 0);
    promise_true(ll_valid(w->la, 0));
}

/* ---- on_lost ---- */

static struct {
    struct told told;
    atomic_bool may_end, has_waited_in_vain;
} slow;

static void note_loss_slowly(struct ll_lock *l, int code, void *arg)
{
    int64_t limit_ms = fixture_now_ms() + 20000;

    (void)arg;
    note_loss(l, code, &slow.told);
    while (!slow.may_end && fixture_now_ms() < limit_ms)
        fixture_pause_ms(5);
    slow.has_waited_in_vain = !slow.may_end;
}

/* Guarantee: A release waits for no on_lost of another lock, also of the same renewal.
 */
LOCK_CASE(release_waits_for_no_loss_of_another_lock)
{
    struct ll_renew_options o = {
        .size = sizeof o, .interval_ms = 300, .on_lost = note_loss_slowly};
    RENEWER *r;

    memset(&slow, 0, sizeof slow);
    assert_int_equal(ll_renewer_open(&r, w->a, &o), LL_OK);
    figures_begin(r);
    renew_two(w, r, LEASE_MS);
    await_renewals(r, 2);
    lock_raw_do(w, "DEL lock:user:1");
    LOCK_AWAIT(slow.told.times > 0);
    assert_int_equal(ll_release(w->lb), LL_OK);
    slow.may_end = true;
    ll_renew_stop(r, w->la);
    promise_false(slow.has_waited_in_vain);
    promise_int_equal(slow.told.times, 1);
}

/* ---- batches ---- */

/* The second is due five seconds later. */
PLAY_ONE(lock_that_is_being_released_is_not_renewed,
         "p limits 500; p connect; p try k; proxy refuse; p release: fault; "
         "p renew: inval; proxy welcome; p release; copies k: 0");

PLAY_ONE(locks_of_several_leases_go_together,
         "a stepped; a2 take late 75000; a take early; a2 renew; "
         "a renew; redis CONFIG RESETSTAT; time 20000; a round: 0; calls evalsha: 1; "
         "ttl early: 45000-60000; ttl late: 60000-75000");

/* The key of b, in their midst, is left alone. */
PLAY_ONE(locks_beyond_one_script_call_are_renewed_call_by_call,
         "a stepped; b take k:500; a any k:0..799: partial; a2 all m:0..799; a renew; "
         "a2 renew; redis CONFIG RESETSTAT; time 20000; a round: 0; calls evalsha: 2; "
         "time 20000; a round: 0; calls evalsha: 4; time 10000; a valid 20000; "
         "a2 valid 20000; keys: 1600; ttl k:0: 35000-50000; ttl m:799: 35000-50000; "
         "ttl k:500: 1-10000; del m:799; time 10000; a round: 1; a2 loss: lost");

/* Guarantee: A renewer that cannot reach Redis rests between its tries, also when its
 * locks have more keys than fit into one call. */
PLAY_CASE(play_on_one, renewer_without_redis_rests)
{
    struct told told = {0};
    RENEWER *r = open_stepped(play_client("a"), &told, 0);

    play("a any k:0..599; a2 all m:0..599");
    assert_int_equal(ll_renew(r, play_lock("a"), 0, 0), LL_OK);
    assert_int_equal(ll_renew(r, play_lock("a2"), 0, 0), LL_OK);
    play("time 20000; server kill");
    assert_true(ll_renew_now(r) < 0);
    for (int i = 0; i < 4; i++) /* those that are tried at once */
        (void)!ll_renew_now(r);
    assert_true(ll_renew_due(r) > 0);
    assert_int_equal(told.times, 0);
    play("server start");
}

static void *let_it_go_on(void *server)
{
    fixture_pause_ms(200);
    assert_int_equal(kill(*(pid_t *)server, SIGCONT), 0);
    return NULL;
}

/* Guarantee: 500 locks are renewed by one script call a round, and none runs out
 * though the server stops for 200 ms. */
PLAY_CASE(play_on_one, renew_500_locks)
{
    enum { LOCKS = 500, LEASE = 60000 };

    static struct ll_lock *locks[LOCKS];
    struct told told = {0};
    RENEWER *r = open_stepped(play_client("a"), &told, 0);
    pthread_t thread;

    hold_many(play_client("a"), r, locks, LOCKS, LEASE);
    play("a take j; a extend; redis CONFIG RESETSTAT"); /* it knows the script */
    for (int i = 0; i < 4; i++) {
        play("time 20000; server stop");
        assert_int_equal(
            pthread_create(&thread, NULL, let_it_go_on, &w->servers[0].pid), 0);
        assert_int_equal(ll_renew_now(r), LL_OK);
        assert_int_equal(pthread_join(thread, NULL), 0);
    }
    play("keys: 500; calls evalsha: 4");
    for (size_t i = 0; i < LOCKS; i++)
        promise_true(ll_valid(locks[i], LEASE / 2));
    assert_int_equal(figures_of(r).renewals, 4 * LOCKS);
    assert_int_equal(figures_of(r).trips, 4);
    assert_int_equal(told.times, 0);
    free_many(locks, LOCKS);
}
