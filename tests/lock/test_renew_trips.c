/* renew: a hundred held locks are renewed in one round trip, on one server and over a
 * quorum; counted by a proxy, not by the library. */
#include "tests/lib/play.h"
#include "tests/lib/renew_world.h"

enum { LOCKS = 100, LEASE_MS = 20000, INTERVAL_MS = 300, ROUNDS = 6 };

enum { DELAY_MS = 5 };

static struct ll_lock *locks[LOCKS];

/* A node that is slower than a majority still owes its answer: it is waited for. */
static void await_answers(const struct ll_renewer *r)
{
    for (size_t i = 0; i < r->client->node_ct; i++) {
        const struct ll_node *node = &r->client->nodes[i];

        LOCK_AWAIT(node->owed == 0 || ll_node_ready(node) != 0);
    }
}

/* n rounds, each when it is due. */
static struct figures make_rounds(struct ll_renewer *r, unsigned n)
{
    uint64_t until = figures_of(r).rounds + n;

    while (figures_of(r).rounds < until) {
        fixture_pause_ms(ll_renew_due(r));
        assert_int_equal(ll_renew_now(r), LL_OK);
        await_answers(r);
    }
    return figures_of(r);
}

static bool is_connected(const struct ll_client *c)
{
    size_t n = 0;

    for (size_t i = 0; i < c->node_ct; i++)
        n += c->nodes[i].state == LL_UP ? 1 : 0;
    return n == c->node_ct;
}

static void give_back(const struct told *told)
{
    for (size_t i = 0; i < LOCKS; i++)
        assert_int_equal(ll_release(locks[i]), LL_OK);
    assert_int_equal(told->times, 0);
    free_many(locks, LOCKS);
}

/* Lets client c hold and renew the locks: the round trips of ROUNDS rounds, as each
 * proxy has seen them, are one each. */
static void see_trips(struct ll_client *c, struct proxy *proxies, size_t n)
{
    struct told told = {0};
    RENEWER *r = open_stepped(c, &told, INTERVAL_MS);
    struct figures from, to;
    unsigned before[LL_NODES_MAX];

    hold_many(c, r, locks, LOCKS, LEASE_MS);
    for (size_t i = 0; i < n; i++)
        proxy_delay(&proxies[i], DELAY_MS);
    from = make_rounds(r, 2); /* they have come into step */
    LOCK_AWAIT(is_connected(r->client) || (from = make_rounds(r, 1), false));
    for (size_t i = 0; i < n; i++)
        before[i] = proxy_count(&proxies[i], PROXY_TRIPS);
    to = make_rounds(r, ROUNDS);
    assert_int_equal(to.renewals - from.renewals, ROUNDS * LOCKS);
    assert_int_equal(to.trips - from.trips, ROUNDS);
    for (size_t i = 0; i < n; i++)
        assert_int_equal(proxy_count(&proxies[i], PROXY_TRIPS) - before[i], ROUNDS);
    give_back(&told);
}

PLAY_CASE(play_on_one, on_one_server_a_hundred_locks_are_renewed_in_one_round_trip)
{
    see_trips(play_client("p"), w->proxies, w->n);
}

PLAY_CASE(play_on_quorum, in_a_quorum_a_hundred_locks_are_renewed_in_one)
{
    play("p everywhere");
    see_trips(play_client("p"), w->proxies, w->n);
}

/* ---- what happens beside it ---- */

PLAY_CASE(play_on_quorum, quorum_that_forgot_its_scripts_is_renewed_in_the_same_round)
{
    struct told told = {0};
    RENEWER *r = open_stepped(play_client("b"), &told, INTERVAL_MS);
    struct figures f;

    play("b everywhere");
    hold_many(play_client("b"), r, locks, LOCKS, LEASE_MS);
    f = make_rounds(r, 2);
    play("redis SCRIPT FLUSH");
    assert_int_equal(make_rounds(r, 1).renewals, f.renewals + LOCKS);
    assert_true(figures_of(r).trips >= f.trips + 2); /* asked twice */
    give_back(&told);
}
