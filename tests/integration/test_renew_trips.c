/* renew: a hundred held locks are renewed in one round trip in every mode, without
 * scripts in two; counted by a proxy, not by the library. */
#include "tests/lib/quorum_world.h"
#include "tests/lib/renew_world.h"

enum { LOCKS = 100, LEASE_MS = 3000, INTERVAL_MS = 300, ROUNDS = 4, DELAY_MS = 5 };

static struct ll_lock *locks[LOCKS];

/* Waits until a round has just ended: the next one is far away. */
static struct ll_renew_figures round_ends(struct ll_renewer *r, uint64_t round)
{
    for (int ms = 0; figures_of(r).rounds < round; ms++) {
        assert_true(ms < 10000);
        fixture_pause_ms(1);
    }
    return figures_of(r);
}

/* Lets client c hold and renew the locks; returns the round trips of ROUNDS rounds, as
 * the proxy has seen them. */
static unsigned trips_of(struct ll_client *c, struct proxy *proxies, size_t n)
{
    struct told told = {0};
    struct ll_renewer *r = open_renewer(c, &told, INTERVAL_MS);
    struct ll_renew_figures from, to;
    unsigned turns;

    hold_many(c, r, locks, LOCKS, LEASE_MS);
    for (size_t i = 0; i < n; i++)
        proxy_delay(&proxies[i], DELAY_MS);
    from = round_ends(r, figures_of(r).rounds + 2); /* they have come into step */
    turns = proxy_count(&proxies[0], PROXY_TURNS);
    to = round_ends(r, from.rounds + ROUNDS);
    turns = proxy_count(&proxies[0], PROXY_TURNS) - turns;
    assert_int_equal(to.renewals - from.renewals, ROUNDS * LOCKS);
    assert_int_equal(to.round_trips - from.round_trips, turns); /* it says the same */
    assert_true(to.slowest_us >= DELAY_MS * 1000);
    for (size_t i = 0; i < LOCKS; i++)
        assert_int_equal(ll_release(locks[i]), LL_OK);
    assert_int_equal(told.times, 0);
    free_many(locks, LOCKS);
    ll_renewer_close(r);
    return turns;
}

static unsigned trips_to_one_server(struct ll_client *(*open)(const char *, uint32_t))
{
    struct proxy proxy = {0};
    struct ll_client *c;
    unsigned turns;

    proxy_open_redis(&proxy, lock_server.url);
    c = open(proxy.url, 0);
    turns = trips_of(c, &proxy, 1);
    ll_close(c);
    proxy_close(&proxy);
    return turns;
}

static void with_scripts_a_hundred_locks_are_renewed_in_one_round_trip(void **state)
{
    (void)state;
    assert_int_equal(trips_to_one_server(lock_client), ROUNDS);
}

static void without_scripts_a_hundred_locks_are_renewed_in_two(void **state)
{
    (void)state;
    assert_int_equal(trips_to_one_server(lock_plain_client), 2 * ROUNDS);
}

static void in_a_quorum_a_hundred_locks_are_renewed_in_one(void **state)
{
    struct quorum_world *w = *state;

    assert_int_equal(trips_of(w->a, w->proxies, w->n), ROUNDS);
}

/* ---- what happens beside it ---- */

/* Somebody changes one of the keys all the time, between look and change too. */
static void without_scripts_a_lock_that_is_changed_takes_no_other_with_it(void **state)
{
    struct lock_world *w = *state;
    struct told told = {0};
    struct ll_renewer *r = open_renewer(w->a, &told, INTERVAL_MS);
    struct ll_renew_figures f;
    int64_t until_ms;

    hold_many(w->a, r, locks, LOCKS, LEASE_MS);
    until_ms = ll_now_ms() + 20000;
    for (f = figures_of(r); f.round_trips < 3 * f.rounds + 10; f = figures_of(r)) {
        lock_raw_do(w, "PEXPIRE lock:many:7 2900"); /* aborts an EXEC in the end */
        assert_true(ll_now_ms() < until_ms);
    }
    fixture_pause_ms(LEASE_MS);
    assert_int_equal(lock_raw_integer(w, "EXISTS lock:many:7"), 1);
    lock_raw_do(w, "SET lock:many:7 somebody PX 5000");
    assert_int_equal(read_losses(r, LEASE_MS), 1);
    assert_ptr_equal(told.last, locks[7]);
    for (int i = 0; i < LOCKS; i++)
        assert_int_equal(ll_release(locks[i]), i == 7 ? LL_NOT_OWNER : LL_OK);
    free_many(locks, LOCKS);
    ll_renewer_close(r);
}

static void quorum_that_forgot_its_scripts_is_renewed_in_the_same_round(void **state)
{
    struct quorum_world *w = *state;
    struct told told = {0};
    struct ll_renewer *r = open_renewer(w->b, &told, INTERVAL_MS);
    struct ll_renew_figures f;

    hold_many(w->b, r, locks, LOCKS, LEASE_MS);
    f = round_ends(r, figures_of(r).rounds + 2);
    for (size_t i = 0; i < w->n; i++)
        (void)quorum_ask(w, i, "SCRIPT FLUSH");
    f.rounds++;
    assert_int_equal(round_ends(r, f.rounds).renewals, f.renewals + LOCKS);
    assert_true(figures_of(r).round_trips >= f.round_trips + 2); /* asked twice */
    for (int i = 0; i < LOCKS; i++)
        assert_int_equal(ll_release(locks[i]), LL_OK);
    assert_int_equal(told.times, 0);
    free_many(locks, LOCKS);
    ll_renewer_close(r);
}

int main(void)
{
    const struct CMUnitTest one[] = {
        LOCK_TEST(with_scripts_a_hundred_locks_are_renewed_in_one_round_trip),
        PLAIN_TEST(without_scripts_a_hundred_locks_are_renewed_in_two),
        PLAIN_TEST(without_scripts_a_lock_that_is_changed_takes_no_other_with_it),
    };
    const struct CMUnitTest quorum[] = {
        QUORUM_TEST(in_a_quorum_a_hundred_locks_are_renewed_in_one),
        QUORUM_TEST(quorum_that_forgot_its_scripts_is_renewed_in_the_same_round),
    };
    int failed;

    fixture_need_servers();
    failed = cmocka_run_group_tests(one, lock_start_server, lock_stop_server);
    return failed +
           cmocka_run_group_tests(quorum, quorum_start_servers, quorum_stop_servers);
}
