/* Quorums that are none: what they say of themselves is refused, at the start or as
 * soon as it is seen. */
#include "tests/lib/quorum_world.h"

#include "common/lock/internal.h"

enum { LEASE_MS = 40 };

/* A client over other servers than the world's, or with another longest lease. */
static struct ll_client *
open_over(const struct quorum_world *w, const char *url, uint32_t max_lease_ms)
{
    return LOCK_OPEN(.url = url, .prefix = w->prefix, .reply_ms = QUORUM_REPLY_MS,
                     .max_lease_ms = max_lease_ms);
}

/* Refused again and again, in the same words; nothing is granted. */
static void assert_refused(struct quorum_world *w,
                           const char *url,
                           uint32_t max_lease_ms,
                           const char *why)
{
    CLIENT *c = open_over(w, url, max_lease_ms);
    LOCK *l = ll_new(c);
    int code;

    for (int i = 0; (code = ll_try(l, "k", LEASE_MS)) != LL_E_INVAL; i++) {
        assert_true(i < 100); /* the wrong node need not be the first that answers */
        assert_true(code == LL_OK || code == LL_E_NO_QUORUM ||
                    code == LL_E_UNAVAILABLE);
        assert_true(code != LL_OK || ll_release(l) == LL_OK);
        fixture_pause_ms(5);
    }
    for (int i = 0; i < 200; i++) {
        assert_int_equal(ll_try(l, "k", LEASE_MS), LL_E_INVAL);
        fixture_assert_contains(ll_error(c), why);
        fixture_pause_ms(3);
    }
    assert_int_equal(ll_granted(l), 0);
    quorum_wait_copies(w, "k", 0);
}

/* One through the proxy and once without: the addresses differ, the server does not. */
QUORUM_CASE(one_server_under_several_names_is_no_quorum)
{
    const char *one = w->servers[0].url, *again = w->proxies[0].url;
    char url[4 * FIXTURE_URL];

    (void)snprintf(url, sizeof url, "%s,%s,%s", one, again, one);
    assert_refused(w, url, QUORUM_MAX_LEASE_MS, "are one server");
    (void)snprintf(url, sizeof url, "%s,%s,%s", w->servers[1].url, one, again);
    assert_refused(w, url, QUORUM_MAX_LEASE_MS, "are one server");
}

QUORUM_CASE(another_longest_lease_is_refused)
{
    static const char why[] = "max_lease_ms is 20000 there and";

    assert_refused(w, w->plain_url, 50, why);
    assert_refused(w, w->plain_url, 2 * QUORUM_MAX_LEASE_MS, why);
    quorum_take(w->la, "k", QUORUM_MAX_LEASE_MS); /* who was first goes on */
}

QUORUM_CASE(longest_lease_can_be_changed_by_deleting_its_key)
{
    CLIENT *c = open_over(w, w->plain_url, 2 * QUORUM_MAX_LEASE_MS);
    LOCK *l = ll_new(c);

    LOCK_AWAIT(ll_connect(c) == LL_E_INVAL);
    ll_disconnect(w->a);
    ll_disconnect(w->b); /* those of before have ended */
    for (size_t i = 0; i < w->n; i++)
        assert_int_equal(quorum_ask(w, i, "DEL %s!max_lease"), 1);
    quorum_take_everywhere(w, l, "k", 2 * QUORUM_MAX_LEASE_MS);
    for (size_t i = 0; i < w->n; i++)
        assert_int_equal(quorum_ask(w, i, "GET %s!max_lease"), 2 * QUORUM_MAX_LEASE_MS);
}

/* A node that was restarted empty, and met a client with another longest lease first.
 */
static void misconfigure(struct quorum_world *w, size_t node)
{
    assert_int_equal(quorum_ask(w, node, "SETRANGE %s!max_lease 0 3"), 5);
    proxy_cut_all(&w->proxies[node]);
}

QUORUM_CASE(node_with_another_longest_lease_has_no_vote_and_hinders_nobody)
{
    LOCK *other = ll_new(w->a);

    quorum_take_everywhere(w, w->la, "k", QUORUM_MAX_LEASE_MS);
    misconfigure(w, 0);
    while (w->a->nodes[0].failure != LL_E_INVAL) {
        assert_int_equal(ll_extend(w->la, QUORUM_MAX_LEASE_MS), LL_OK);
        fixture_pause_ms(1);
    }
    assert_int_equal(ll_extend(w->la, QUORUM_MAX_LEASE_MS), LL_OK);
    assert_int_equal(ll_try(other, "other", QUORUM_MAX_LEASE_MS), LL_OK);
    assert_int_equal(ll_release(other), LL_OK);
    proxy_refuse(&w->proxies[1], true); /* a passing fault */
    for (int i = 0; i < 10; i++) {
        (void)!ll_extend(w->la, QUORUM_MAX_LEASE_MS);
        fixture_pause_ms(10);
    }
    assert_int_equal(ll_extend(w->la, QUORUM_MAX_LEASE_MS), LL_E_NO_QUORUM);
    proxy_refuse(&w->proxies[1], false);
    misconfigure(w, 1); /* no majority can be left */
    LOCK_AWAIT(ll_extend(w->la, QUORUM_MAX_LEASE_MS) == LL_E_INVAL);
    fixture_assert_contains(ll_error(w->a), "max_lease_ms is 30000 there and 20000");
}
