/* One node of three is slow, stopped, killed or wiped: acquires go on, and are not held
 * up by it; when it is back, it takes part again, and no key is left on it. */
#include "tests/lib/quorum_world.h"

enum { LEASE_MS = 10000, SLOW_MS = 900, SELDOM_SLOW_MS = 600 };

enum { HELD_UP_MS = 500, TRIES = 5 };

/* Rounds without a pause between them, and rounds between which every answer has time.
 */
static const struct pace {
    int for_ms, pause_ms;
} busy = {3500, 1}, seldom = {6000, 900}, briefly = {300, 5};

static const char *const names[] = {"k0", "k1", "k2", "k3"};

/* Acquires and releases for a while, and tells of the longest round. */
static int64_t longest_round(struct ll_lock *l, struct pace pace)
{
    int64_t end = quorum_now_ms() + pace.for_ms, worst = 0;

    for (int i = 0; quorum_now_ms() < end; i++) {
        int64_t before = quorum_now_ms(), took;

        assert_int_equal(ll_try(l, names[i % 4], LEASE_MS), LL_OK);
        assert_int_equal(ll_release(l), LL_OK);
        took = quorum_now_ms() - before;
        worst = took > worst ? took : worst;
        fixture_pause_ms(pace.pause_ms);
    }
    return worst;
}

/* A busy machine does not add to every try. */
static void assert_not_held_up(struct ll_lock *l, struct pace pace)
{
    int64_t worst = HELD_UP_MS;

    for (int i = 0; i < TRIES && worst >= HELD_UP_MS; i++)
        worst = longest_round(l, pace);
    assert_true(worst < HELD_UP_MS);
}

static void assert_nothing_left(struct quorum_world *w)
{
    for (size_t i = 0; i < 4; i++)
        quorum_wait_copies(w, names[i], 0);
}

GROUP(.start = quorum_start_servers, .stop = quorum_stop_servers);

/* Guarantee: A slow server of a quorum holds nobody up and catches up. */
QUORUM_CASE(slow_node_holds_nobody_up_and_catches_up)
{
    proxy_delay(&w->proxies[2], SLOW_MS);
    assert_not_held_up(w->la, busy);
    assert_true(proxy_count(&w->proxies[2], PROXY_DELAYED) > 0);
    proxy_pass(&w->proxies[2]);
    assert_nothing_left(w);
    quorum_take_everywhere(w, w->la, "k0", LEASE_MS);
}

/* Looked at again at another time than the others: theirs are not the answers that are
 * enough. */
QUORUM_CASE(slow_node_that_is_seldom_asked_holds_nobody_up)
{
    fixture_pause_ms(500);
    proxy_cut_all(&w->proxies[2]);
    (void)longest_round(w->la, briefly); /* it is connected anew */
    fixture_pause_ms(250);               /* the others are looked at next, it is not */
    proxy_delay(&w->proxies[2], SELDOM_SLOW_MS);
    assert_not_held_up(w->la, seldom);
    proxy_pass(&w->proxies[2]);
    assert_nothing_left(w);
}

CASE(stopped_node_holds_nobody_up_and_is_left_without_a_key)
{
    QUORUM w;

    quorum_open(&w, 3, QUORUM_MAX_LEASE_MS);
    assert_int_equal(kill(w.servers[2].pid, SIGSTOP), 0);
    assert_not_held_up(w.lb, busy);
    assert_int_equal(kill(w.servers[2].pid, SIGCONT), 0);
    assert_nothing_left(&w);
    quorum_take_everywhere(&w, w.lb, "k0", LEASE_MS);
}

/* Guarantee: A killed server of a quorum holds nobody up, and is used again when it
 * is back. */
CASE(killed_node_holds_nobody_up_and_is_used_again)
{
    QUORUM w;

    quorum_open(&w, 3, QUORUM_MAX_LEASE_MS);
    quorum_kill(&w, 2);
    assert_not_held_up(w.lb, busy);
    quorum_restart(&w, 2);
    assert_not_held_up(w.lb, busy);
    assert_int_equal(quorum_ask(&w, 2, "EXISTS %s!last"), 0); /* it granted nothing */
    quorum_age(&w, 2);
    quorum_take_everywhere(&w, w.lb, "k0", LEASE_MS);
}

QUORUM_CASE(wiped_node_holds_nobody_up)
{
    int64_t token;

    quorum_take_everywhere(w, w->la, "held", LEASE_MS);
    token = ll_token(w->la);
    (void)quorum_ask(w, 1, "FLUSHALL");
    assert_not_held_up(w->lb, busy);
    assert_true(ll_token(w->lb) > token);
    assert_int_equal(ll_try(w->lb, "held", LEASE_MS), LL_BUSY);
    assert_int_equal(ll_extend(w->la, LEASE_MS), LL_OK);
    assert_int_equal(ll_release(w->la), LL_OK);
}

/* Guarantee: A wiped server of a quorum may cost the lock that only it and one more had
 * granted: the next holder has a higher token, and the first hears of it. */
QUORUM_CASE(key_of_a_bare_majority_goes_to_another_when_one_of_it_is_wiped)
{
    int64_t left_ms;
    int code = LL_OK;

    proxy_refuse(&w->proxies[2], true);
    quorum_take(w->la, "k", LEASE_MS);
    proxy_refuse(&w->proxies[2], false);
    assert_int_equal(quorum_copies(w, "k"), 2);
    (void)quorum_ask(w, 1, "FLUSHALL");
    fixture_pause_ms(100); /* a token may be 5 ms ahead of the clocks */
    assert_int_equal(ll_try(w->lb, "k", LEASE_MS), LL_OK);
    promise_true(ll_token(w->lb) > ll_token(w->la));
    FIXTURE_AWAIT((code = ll_extend(w->la, LEASE_MS)) != LL_E_NO_QUORUM,
                  "the client is not connected to the third server again");
    promise_int_equal(code, LL_LOST);
    assert_int_equal(ll_verify(w->lb, &left_ms), LL_OK);
}
