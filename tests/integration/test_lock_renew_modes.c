/* Renewal on a server without scripts, and over a quorum. */
#include "tests/lib/quorum_world.h"
#include "tests/lib/renew_world.h"

enum { LEASE_MS = 900 };

/* ---- without scripts ---- */

static struct ll_client *plain_client(void)
{
    struct ll_options o = {
        .size = sizeof o, .url = lock_server.url, .no_scripts = true};
    struct ll_client *c;

    assert_int_equal(ll_open(&c, &o, NULL, 0), LL_OK);
    return c;
}

static void without_scripts_every_lock_is_renewed_and_a_loss_told(void **state)
{
    struct lock_world *w = *state;
    struct told told = {0};
    struct ll_client *c = plain_client();
    struct ll_renewer *r = open_renewer(c, &told, 0);
    struct ll_lock *locks[10];

    hold_many(c, r, locks, 10, LEASE_MS);
    lock_raw_do(w, "CONFIG RESETSTAT");
    fixture_pause_ms(2 * LEASE_MS);
    assert_int_equal(lock_raw_integer(w, "DBSIZE"), 11);
    assert_true(figures_of(r).renewals >= 40);
    assert_true(figures_of(r).round_trips <= 2 * figures_of(r).renewals);
    assert_int_equal(told.times, 0);
    lock_raw_do(w, "SET lock:many:3 somebody PX 5000");
    assert_int_equal(read_losses(r, LEASE_MS), 1);
    assert_ptr_equal(told.last, locks[3]);
    assert_int_equal(told.code, LL_LOST);
    for (int i = 0; i < 10; i++)
        assert_int_equal(ll_release(locks[i]), i == 3 ? LL_NOT_OWNER : LL_OK);
    assert_int_equal(lock_raw_integer(w, "DBSIZE"), 2);
    assert_int_equal(told.times, 1);
    free_many(locks, 10);
    ll_renewer_close(r);
    ll_close(c);
}

/* ---- a quorum ---- */

static void quorum_is_renewed_with_a_node_down(void **state)
{
    struct quorum_world *w = *state;
    struct told told = {0};
    struct ll_renewer *r = open_renewer(w->a, &told, 0);
    struct ll_lock *locks[10];

    hold_many(w->a, r, locks, 10, LEASE_MS);
    proxy_refuse(&w->proxies[0], true);
    fixture_pause_ms(3 * LEASE_MS);
    assert_true(proxy_count(&w->proxies[0], PROXY_REFUSED) > 0);
    assert_true(figures_of(r).renewals >= 50);
    for (int i = 0; i < 10; i++)
        assert_true(ll_valid(locks[i], 0));
    assert_int_equal(quorum_copies(w, "many:9"), 2);
    (void)quorum_ask(w, 1, "DEL %smany:5"); /* a majority says that it is gone */
    (void)quorum_ask(w, 2, "DEL %smany:5");
    assert_int_equal(read_losses(r, LEASE_MS), 1);
    assert_ptr_equal(told.last, locks[5]);
    assert_int_equal(told.code, LL_LOST);
    for (int i = 0; i < 10; i++)
        (void)ll_release(locks[i]);
    assert_int_equal(quorum_copies(w, "many:9"), 0);
    fixture_pause_ms(LEASE_MS);
    assert_int_equal(told.times, 1);
    free_many(locks, 10);
    ll_renewer_close(r);
}

static void quorum_out_of_reach_is_told_before_the_deadline(void **state)
{
    struct quorum_world *w = *state;
    struct told told = {0};
    struct ll_renewer *r = open_renewer(w->a, &told, 0);
    struct ll_lock *locks[3];
    int lost = 0;

    hold_many(w->a, r, locks, 3, LEASE_MS);
    fixture_pause_ms(LEASE_MS);
    proxy_refuse(&w->proxies[0], true);
    proxy_swallow(&w->proxies[1], true);
    for (int n = 1; n > 0; lost += n)
        n = read_losses(r, LEASE_MS + 200);
    assert_int_equal(lost, 3);
    assert_int_equal(told.times, 3);
    assert_true(told.code < 0);
    assert_true(told.least_left_ms > 0);
    free_many(locks, 3);
    ll_renewer_close(r);
}

int main(void)
{
    const struct CMUnitTest plain[] = {
        LOCK_TEST(without_scripts_every_lock_is_renewed_and_a_loss_told),
    };
    const struct CMUnitTest quorum[] = {
        QUORUM_TEST(quorum_is_renewed_with_a_node_down),
        QUORUM_TEST(quorum_out_of_reach_is_told_before_the_deadline),
    };
    int failed;

    fixture_need_servers();
    failed = cmocka_run_group_tests(plain, lock_start_server, lock_stop_server);
    return failed +
           cmocka_run_group_tests(quorum, quorum_start_servers, quorum_stop_servers);
}
