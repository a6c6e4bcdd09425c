/* Quorums that are none: what they say of themselves is refused, at the start or as
 * soon as it is seen. */
#include "tests/lib/play.h"

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
    LONE *l = ll_new(open_over(w, url, max_lease_ms));
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
        fixture_assert_contains(ll_error(l->client), why);
        fixture_pause_ms(3);
    }
    assert_int_equal(ll_granted(l), 0);
    quorum_wait_copies(w, "k", 0);
}

/* One through the proxy and once without: the addresses differ, the server does not. */
PLAY_CASE(play_on_quorum, one_server_under_several_names_is_no_quorum)
{
    const char *one = w->servers[0].url, *again = w->proxies[0].url;
    char url[4 * FIXTURE_URL];

    (void)snprintf(url, sizeof url, "%s,%s,%s", one, again, one);
    assert_refused(w, url, w->max_lease_ms, "are one server");
    (void)snprintf(url, sizeof url, "%s,%s,%s", w->servers[1].url, one, again);
    assert_refused(w, url, w->max_lease_ms, "are one server");
}

PLAY_CASE(play_on_quorum, another_longest_lease_is_refused)
{
    static const char why[] = "max_lease_ms is 120000 there and";

    play("a everywhere");
    assert_refused(w, w->plain_url, 50, why);
    assert_refused(w, w->plain_url, 2 * w->max_lease_ms, why);
    play("await a try k 120000"); /* who was first goes on */
}

PLAY_CASE(play_on_quorum, longest_lease_can_be_changed_by_deleting_its_key)
{
    LONE *l = NULL;

    play("a everywhere");
    l = ll_new(open_over(w, w->plain_url, 2 * w->max_lease_ms));
    LOCK_AWAIT(ll_connect(l->client) == LL_E_INVAL);
    play("a disconnect; redis DEL @!max_lease: 1"); /* those of before have ended */
    quorum_take_everywhere(w, l, "k", 2 * w->max_lease_ms);
    play("redis GET @!max_lease: 240000");
}

/* A node that was restarted empty, and met a client with another longest lease first.
 */
static void misconfigure(struct quorum_world *w, size_t node)
{
    assert_int_equal(quorum_ask(w, node, "SETRANGE %s!max_lease 0 3"), 6);
    proxy_cut_all(&w->proxies[node]);
}

PLAY_CASE(play_on_quorum,
          node_with_another_longest_lease_has_no_vote_and_hinders_nobody)
{
    struct ll_client *c = play_client("p");

    play("p take k");
    misconfigure(w, 0);
    while (c->nodes[0].failure != LL_E_INVAL)
        play("p extend; rest 1");
    play("p extend; p2 try other; p2 release; proxy1 refuse"); /* a passing fault */
    for (int i = 0; i < 10; i++) {
        (void)!ll_extend(play_lock("p"), LEASE_MS);
        fixture_pause_ms(10);
    }
    play("p extend: no_quorum; proxy1 welcome");
    misconfigure(w, 1); /* no majority can be left */
    play("await p extend: inval; p error: max_lease_ms is 320000 there and 120000");
}
