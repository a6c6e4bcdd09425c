/* renew: a hundred held locks are renewed in one round trip, on one server and over a
 * quorum; counted by a proxy, not by the library. */
#include "tests/lib/quorum_world.h"
#include "tests/lib/renew_world.h"

enum { LOCKS = 100, LEASE_MS = 20000, INTERVAL_MS = 300, ROUNDS = 6 };

enum { DELAY_MS = 5, LATE_MS = 200 };

static struct ll_lock *locks[LOCKS];

/* A renewer whose rounds are made by the test, so that it knows when there is none. */
static struct ll_renewer *open_stepped(struct ll_client *c, struct told *t)
{
    struct ll_renew_options o = {.size = sizeof o,
                                 .interval_ms = INTERVAL_MS,
                                 .on_lost = note_loss,
                                 .arg = t,
                                 .no_thread = true};
    struct ll_renewer *r;

    assert_int_equal(ll_renewer_open(&r, c, &o), LL_OK);
    return r;
}

/* n rounds, each when it is due. */
static struct ll_renew_figures make_rounds(struct ll_renewer *r, unsigned n)
{
    uint64_t until = figures_of(r).rounds + n;

    while (figures_of(r).rounds < until) {
        fixture_pause_ms(ll_renew_due(r));
        assert_int_equal(ll_renew_now(r), LL_OK);
    }
    return figures_of(r);
}

static void give_back(const struct told *told)
{
    for (size_t i = 0; i < LOCKS; i++)
        assert_int_equal(ll_release(locks[i]), LL_OK);
    assert_int_equal(told->times, 0);
    free_many(locks, LOCKS);
}

/* Lets client c hold and renew the locks, and counts the round trips of ROUNDS rounds,
 * as the proxy has seen them: one each, and a check of the connection each second. */
static void see_trips(struct ll_client *c, struct proxy *proxies, size_t n)
{
    struct told told = {0};
    RENEWER *r = open_stepped(c, &told);
    struct ll_renew_figures from, to;
    unsigned trips, before;
    int64_t began_ms;

    hold_many(c, r, locks, LOCKS, LEASE_MS);
    for (size_t i = 0; i < n; i++)
        proxy_delay(&proxies[i], DELAY_MS);
    from = make_rounds(r, 2);  /* they have come into step */
    fixture_pause_ms(LATE_MS); /* a node that was slower has answered as well */
    before = proxy_count(&proxies[0], PROXY_TRIPS);
    began_ms = ll_now_ms();
    to = make_rounds(r, ROUNDS);
    trips = (unsigned)(to.round_trips - from.round_trips);
    assert_int_equal(to.renewals - from.renewals, ROUNDS * LOCKS);
    assert_in_range(trips, ROUNDS, ROUNDS + 1 + (ll_now_ms() - began_ms) / 1000);
    LOCK_AWAIT(proxy_count(&proxies[0], PROXY_TRIPS) - before >= trips);
    assert_int_equal(proxy_count(&proxies[0], PROXY_TRIPS) - before, trips);
    assert_true(to.slowest_us >= DELAY_MS * 1000);
    give_back(&told);
}

LOCK_CASE(on_one_server_a_hundred_locks_are_renewed_in_one_round_trip)
{
    PROXY proxy = proxy_before(lock_server.url);
    CLIENT *c = lock_client(proxy.url, 0);

    see_trips(c, &proxy, 1);
}

QUORUM_CASE(in_a_quorum_a_hundred_locks_are_renewed_in_one)
{
    see_trips(w->a, w->proxies, w->n);
}

/* ---- what happens beside it ---- */

QUORUM_CASE(quorum_that_forgot_its_scripts_is_renewed_in_the_same_round)
{
    struct told told = {0};
    RENEWER *r = open_stepped(w->b, &told);
    struct ll_renew_figures f;

    hold_many(w->b, r, locks, LOCKS, LEASE_MS);
    f = make_rounds(r, 2);
    for (size_t i = 0; i < w->n; i++)
        (void)quorum_ask(w, i, "SCRIPT FLUSH");
    assert_int_equal(make_rounds(r, 1).renewals, f.renewals + LOCKS);
    assert_true(figures_of(r).round_trips >= f.round_trips + 2); /* asked twice */
    give_back(&told);
}
