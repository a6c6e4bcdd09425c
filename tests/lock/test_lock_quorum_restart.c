/* A node that started less than the longest lease ago may have forgotten locks that are
 * held: it grants nothing, by its own uptime, and then again. */
#include "tests/lib/quorum_world.h"

enum { MAX_LEASE_MS = 1000, LONGER_MS = 3000, LATE_MS = 2500 };

/* Tries until the lock is granted; until then there is no quorum and no key left, or
 * the key is busy where somebody holds it. */
static void take_in_the_end(struct quorum_world *w, struct ll_lock *l, bool is_held)
{
    int64_t end = quorum_now_ms() + 60000;
    int code;

    while ((code = ll_try(l, "k", w->max_lease_ms)) != LL_OK) {
        assert_true(code == LL_E_NO_QUORUM || (is_held && code == LL_BUSY));
        assert_true(ll_token(l) == 0);
        assert_true(is_held || quorum_copies(w, "k") == 0);
        assert_true(quorum_now_ms() < end);
        fixture_pause_ms(2);
    }
}

/* a holds it on nodes 0 and 1; b sees all. Node 1 forgets: without its wait b would get
 * it from nodes 1 and 2. */
/* Guarantee: A server of a quorum that restarted grants nothing until the longest
 * lease from before is over. */
CASE(restarted_node_does_not_give_away_what_it_forgot)
{
    QUORUM w;
    int64_t token;

    quorum_open(&w, 3, MAX_LEASE_MS);
    proxy_refuse(&w.proxies[2], true);
    quorum_take(w.la, "k", MAX_LEASE_MS);
    token = ll_token(w.la);
    assert_int_equal(quorum_copies(&w, "k"), 2);
    quorum_kill(&w, 1);
    quorum_restart(&w, 1);
    take_in_the_end(&w, w.lb, true);
    assert_false(ll_valid(w.la, 0));
    assert_true(ll_token(w.lb) > token);
}

/* A lock takes both others from now on. Returns the time before the start. */
static int64_t restart_one_of_two(struct quorum_world *w)
{
    int64_t began;

    quorum_kill(w, 0);
    quorum_kill(w, 1);
    began = quorum_now_ms();
    quorum_restart(w, 1);
    return began;
}

CASE(restarted_node_grants_after_the_longest_lease)
{
    QUORUM w;
    int64_t began, token;

    quorum_open(&w, 3, MAX_LEASE_MS);
    quorum_take(w.lb, "k", MAX_LEASE_MS);
    token = ll_token(w.lb);
    assert_int_equal(ll_release(w.lb), LL_OK);
    began = restart_one_of_two(&w);
    take_in_the_end(&w, w.lb, false);
    assert_true(quorum_now_ms() - began >= MAX_LEASE_MS);
    assert_true(ll_token(w.lb) > token);
}

/* Its uptime is that of the moment when it answers, not of the one when it was asked.
 */
CASE(restarted_node_that_is_asked_late_waits_as_long)
{
    QUORUM w;
    CLIENT *c;
    LOCK *l;
    int64_t began;

    quorum_open(&w, 3, LONGER_MS);
    c = quorum_client_limited(&w, w.url, 20000, QUORUM_REPLY_MS);
    l = ll_new(c);
    began = restart_one_of_two(&w);
    proxy_late(&w.proxies[1], "INFO", 4, 1, LATE_MS);
    take_in_the_end(&w, l, false);
    assert_int_equal(proxy_count(&w.proxies[1], PROXY_LATE), 1);
    assert_true(quorum_now_ms() - began >= LONGER_MS);
}
