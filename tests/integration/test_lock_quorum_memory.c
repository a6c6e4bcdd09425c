/* Nodes of a quorum that forget everything, or never knew anything: they do not vote,
 * and come back above every token. */
#include "tests/lib/quorum_world.h"

enum { LEASE_MS = 10000, SHORT_LEASE_MS = 300, WAIT_MS = 350 };

/* Until the code is wanted; fails after two seconds. */
static int64_t seed_until(struct ll_client *c, int64_t floor)
{
    int64_t end = quorum_now_ms() + 2000, wait_ms;
    int code;

    while ((code = ll_seed(c, floor, &wait_ms)) == LL_E_AMNESIA) {
        assert_in_range(wait_ms, 1, WAIT_MS);
        assert_true(quorum_now_ms() < end);
        fixture_pause_ms(wait_ms);
    }
    assert_int_equal(code, LL_OK);
    return quorum_now_ms();
}

static void servers_never_used_vote_after_a_seed(void **state)
{
    struct quorum_world w;
    struct ll_client *c;
    struct ll_lock *l;
    int64_t begin = quorum_now_ms(), wait_ms;

    (void)state;
    quorum_open(&w, 3, false);
    c = quorum_client(&w, w.url, 200, SHORT_LEASE_MS);
    l = ll_new(c);
    assert_int_equal(ll_try(l, "k", SHORT_LEASE_MS), LL_E_AMNESIA);
    assert_int_equal(quorum_copies(&w, "k"), 0);
    assert_int_equal(ll_seed(c, 0, &wait_ms), LL_E_AMNESIA);
    assert_true(seed_until(c, 0) >= begin + SHORT_LEASE_MS);
    assert_int_equal(ll_try(l, "k", SHORT_LEASE_MS), LL_OK);
    assert_int_equal(ll_seed(c, 0, &wait_ms), LL_OK); /* again: nothing to do */
    assert_int_equal(ll_extend(l, SHORT_LEASE_MS), LL_OK);
    ll_free(l);
    ll_close(c);
    quorum_close(&w);
}

/* Takes and frees the lock until the time is up; tokens must grow. */
static int64_t churn(struct ll_lock *l, int64_t last, int ms)
{
    int64_t end = quorum_now_ms() + ms;

    do {
        assert_int_equal(ll_try(l, "k", SHORT_LEASE_MS), LL_OK);
        assert_true(ll_token(l) > last);
        last = ll_token(l);
        assert_int_equal(ll_release(l), LL_OK);
        fixture_pause_ms(5);
    } while (quorum_now_ms() < end);
    return last;
}

static void quorum_amnesic_node(void **state)
{
    struct quorum_world w;
    struct ll_client *c;
    struct ll_lock *l;
    int64_t last;

    (void)state;
    quorum_open(&w, 3, true);
    (void)quorum_plant_skew(&w);
    c = quorum_client(&w, w.plain_url, 200, SHORT_LEASE_MS);
    l = ll_new(c);
    last = churn(l, 0, 20);
    quorum_kill(&w, 1);
    quorum_restart(&w, 1);
    fixture_pause_ms(1100); /* longer than a dead node is left alone */
    last = churn(l, last, SHORT_LEASE_MS / 2);
    assert_int_equal(quorum_ask(&w, 1, "EXISTS %s!amnesia"), 1); /* seen, and silent */
    assert_int_equal(quorum_ask(&w, 1, "EXISTS %s!node"), 0);
    fixture_pause_ms(WAIT_MS);
    last = churn(l, last, 0); /* lets it in again, with the others' highest counter */
    assert_int_equal(quorum_ask(&w, 1, "EXISTS %s!amnesia"), 0);
    assert_true(quorum_ask(&w, 1, "HGET %s!node c") >= last);
    quorum_kill(&w, 0); /* now its vote is needed, and its counter is right */
    last = churn(l, last, 50);
    quorum_kill(&w, 2);
    quorum_restart(&w, 2);
    fixture_pause_ms(1100);
    assert_int_equal(ll_try(l, "k", SHORT_LEASE_MS), LL_E_NO_QUORUM);
    quorum_restart(&w, 0); /* two of three have forgotten: nobody may guess */
    fixture_pause_ms(1100);
    assert_int_equal(ll_try(l, "k", SHORT_LEASE_MS), LL_E_AMNESIA);
    assert_int_equal(quorum_copies(&w, "k"), 0);
    (void)seed_until(c, last + 1000);
    assert_int_equal(ll_try(l, "k", SHORT_LEASE_MS), LL_OK);
    assert_true(ll_token(l) > last + 1000);
    ll_free(l);
    ll_close(c);
    quorum_close(&w);
}

static void flushed_node_stays_out_and_ends_what_it_held(void **state)
{
    struct quorum_world w;

    (void)state;
    quorum_open(&w, 3, true);
    assert_int_equal(ll_try(w.la, "k", LEASE_MS), LL_OK);
    (void)quorum_ask(&w, 0, "FLUSHALL");
    assert_int_equal(ll_extend(w.la, LEASE_MS), LL_OK);
    assert_int_equal(ll_try(w.lb, "k", LEASE_MS), LL_BUSY);
    assert_int_equal(quorum_ask(&w, 0, "EXISTS %sk"), 0);
    (void)quorum_ask(&w, 1, "FLUSHALL");
    assert_int_equal(ll_extend(w.la, LEASE_MS), LL_LOST);
    assert_int_equal(ll_try(w.lb, "k", LEASE_MS), LL_E_AMNESIA);
    quorum_close(&w);
}

/* Its first replica gives a server another replication id: connections from before know
 * it by the old one, and must not fight over its record with the new ones. */
static void node_with_another_ident_comes_back_for_all_clients(void **state)
{
    struct quorum_world w;
    struct ll_client *old, *fresh;
    struct ll_lock *lo, *lf;
    int64_t last;

    (void)state;
    quorum_open(&w, 3, true);
    fixture_redis_stop(&w.servers[0]);
    fixture_redis_start(&w.servers[0], "--enable-debug-command", "yes", NULL);
    quorum_reconnect(&w, 0);
    quorum_plant(&w, 0, 0);
    old = quorum_client(&w, w.plain_url, 200, SHORT_LEASE_MS);
    fresh = quorum_client(&w, w.plain_url, 200, SHORT_LEASE_MS);
    lo = ll_new(old);
    lf = ll_new(fresh);
    last = churn(lo, 0, 0);
    (void)quorum_ask(&w, 0, "DEBUG CHANGE-REPL-ID");
    last = churn(lf, last, 0);
    fixture_pause_ms(WAIT_MS);
    last = churn(lf, last, 0); /* lets it in under its new name */
    assert_int_equal(quorum_ask(&w, 0, "EXISTS %s!amnesia"), 0);
    last = churn(lo, last, 0); /* still calls it by the old one */
    fixture_pause_ms(2 * WAIT_MS);
    last = churn(lo, last, 0);
    (void)quorum_ask(&w, 0, "DEBUG CHANGE-REPL-ID");
    ll_disconnect(fresh);
    (void)quorum_ask(&w, 0, "FLUSHALL"); /* both note it, under two names */
    for (int i = 0; i < 40; i++)
        last = churn(i % 2 == 0 ? lo : lf, last, 20);
    assert_int_equal(quorum_ask(&w, 0, "EXISTS %s!node"), 1);
    quorum_kill(&w, 1); /* now both need its vote */
    for (int i = 0; i < 4; i++)
        last = churn(i % 2 == 0 ? lo : lf, last, WAIT_MS);
    ll_free(lo);
    ll_free(lf);
    ll_close(old);
    ll_close(fresh);
    quorum_close(&w);
}

/* With one node missing two of three vote no more: the others' counters are too few to
 * begin again from. */
static void node_is_not_readmitted_while_too_few_others_can_be_read(void **state)
{
    struct quorum_world w;
    struct ll_client *c;
    struct ll_lock *l;
    int64_t wait_ms;

    (void)state;
    quorum_open(&w, 3, true);
    c = quorum_client(&w, w.plain_url, 200, SHORT_LEASE_MS);
    l = ll_new(c);
    (void)churn(l, 0, 10);
    (void)quorum_ask(&w, 0, "FLUSHALL");
    quorum_kill(&w, 2);
    assert_int_equal(ll_try(l, "k", SHORT_LEASE_MS), LL_E_NO_QUORUM);
    fixture_pause_ms(WAIT_MS);
    assert_int_equal(ll_try(l, "k", SHORT_LEASE_MS), LL_E_NO_QUORUM);
    assert_int_equal(ll_seed(c, 0, &wait_ms), LL_E_NO_QUORUM);
    assert_int_equal(quorum_ask(&w, 0, "EXISTS %s!node"), 0);
    assert_int_equal(quorum_copies(&w, "k"), 0);
    ll_free(l);
    ll_close(c);
    quorum_close(&w);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(servers_never_used_vote_after_a_seed),
        cmocka_unit_test(quorum_amnesic_node),
        cmocka_unit_test(flushed_node_stays_out_and_ends_what_it_held),
        cmocka_unit_test(node_with_another_ident_comes_back_for_all_clients),
        cmocka_unit_test(node_is_not_readmitted_while_too_few_others_can_be_read),
    };

    fixture_need_servers();
    return cmocka_run_group_tests(tests, NULL, NULL);
}
