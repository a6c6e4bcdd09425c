/* Renewal when answers are lost, Redis is away, the keys are taken or deleted, and when
 * a release comes in between; and how many locks one round trip renews. */
#include <time.h>

#include "tests/lib/play_inside.h"

/* ---- a release in between ---- */

/* The rounds of renew_vs_release_race; LL_TEST_ROUNDS asks for another number.
 */
enum { RACE_ROUNDS = 2000, LOCKS = 100 };

static struct rlock *locks[LOCKS];

static void spin_us(int us)
{
    struct timespec from, now;

    (void)clock_gettime(CLOCK_MONOTONIC, &from);
    do
        (void)clock_gettime(CLOCK_MONOTONIC, &now);
    while ((now.tv_sec - from.tv_sec) * 1000000 + (now.tv_nsec - from.tv_nsec) / 1000 <
           us);
}

/* Puts the very key back that was released, mark and all, so that a renewal that comes
 * after the release would lengthen it and be seen. */
static void put_back(struct quorum_world *w, const struct rlock *l, int ttl_ms)
{
    redisReply *reply = redisCommand(w->raw[0], "SET %srace %s%lld PX %d", w->prefix,
                                     l->mark, (long long)l->token, ttl_ms);

    assert_string_equal(reply->str, "OK");
    freeReplyObject(reply);
}

/* The answer to PTTL, and DEL; both in one round trip. */
static long long end_of_race(struct quorum_world *w)
{
    redisContext *raw = w->raw[0];
    redisReply *ttl = NULL, *del = NULL;
    long long ms;

    assert_int_equal(redisAppendCommand(raw, "PTTL %srace", w->prefix), REDIS_OK);
    assert_int_equal(redisAppendCommand(raw, "DEL %srace", w->prefix), REDIS_OK);
    assert_int_equal(redisGetReply(raw, (void **)&ttl), REDIS_OK);
    assert_int_equal(redisGetReply(raw, (void **)&del), REDIS_OK);
    assert_int_equal(del->integer, 1);
    ms = ttl->integer;
    freeReplyObject(ttl);
    freeReplyObject(del);
    return ms;
}

/* Every other release comes when the renewal is due, after a millisecond, and later
 * where the renewer seldom gets a processor: until there was a race often enough. */
/* Guarantee: No key is lengthened after its release came back. */
PLAY_CASE(play_on_one, renew_vs_release_race)
{
    const char *wanted = getenv("LL_TEST_ROUNDS");
    int rounds = wanted != NULL ? atoi(wanted) : RACE_ROUNDS;
    struct told told = {0};
    RENEWER *r = open_renewer(play_client("a"), &told, 1);
    struct rlock *l = play_lock("a");

    for (int i = 0; i < rounds || figures_of(r).renewals <= (uint64_t)rounds / 5; i++) {
        assert_true(i < 5 * rounds);
        assert_int_equal(rlock_try(l, "race", 60000), RLOCK_OK);
        assert_int_equal(rlock_renew(r, l, 0, 0), RLOCK_OK);
        spin_us(i % 2 == 0 ? 1000 * (1 + i / rounds) + i % 211 : i % 97);
        assert_int_equal(rlock_release(l), RLOCK_OK);
        put_back(w, l, 20000);
        spin_us(i % 50);
        promise_true(end_of_race(w) <= 20000);
    }
    assert_int_equal(told.times, 0);
}

static long long scripts_called(struct quorum_world *w)
{
    return lock_info(w->raw[0], "commandstats", "cmdstat_evalsha:calls=");
}

/* A release waits for the end of a renewal on its way, which the server gets to see
 * later and refuses. false: the renewal had ended before. */
static bool overtake_a_renewal(struct quorum_world *w, uint32_t reply_ms)
{
    struct proxy *proxy = &w->proxies[0];
    unsigned held = proxy_count(proxy, PROXY_HELD);
    struct rlock_renewer *r;
    bool is_on_its_way;
    long long calls;

    PLAY_OPEN("p", .url = w->url, .prefix = w->prefix, .reply_ms = reply_ms);
    play("p take race; p extend");
    proxy_hold(proxy, "EVALSHA", 7, 1);
    play("p renew 200");
    assert_true(proxy_wait(proxy, PROXY_HELD, held + 1, LOCK_SOON_MS / 1000));
    r = play_actor_of("p")->r;
    is_on_its_way = figures_of(r).rounds == 0;
    play("p release");
    promise_true(figures_of(r).rounds > 0);
    put_back(w, play_lock("p"), LOCK_SOON_MS);
    calls = scripts_called(w);
    proxy_let_go(proxy); /* here it comes */
    LOCK_AWAIT(scripts_called(w) > calls);
    promise_true(end_of_race(w) <= LOCK_SOON_MS);
    play("promise p losses: 0");
    return is_on_its_way;
}

PLAY_CASE(play_on_one, release_waits_for_a_renewal_on_its_way_which_does_nothing_late)
{
    uint32_t reply_ms = 3000;

    for (; !overtake_a_renewal(w, reply_ms); reply_ms *= 2)
        assert_true(reply_ms < 3000 << 4);
}

/* The holder has released; the renewal of his lock goes on. */
static bool is_forgotten(struct rlock_renewer *r)
{
    bool is;

    (void)pthread_mutex_lock(&r->mutex);
    is = r->stage == RLOCK_CALLING && r->parts[0].l->renewal.renewer == NULL;
    (void)pthread_mutex_unlock(&r->mutex);
    return is;
}

/* The answer "gone" is on its way back when the holder releases by himself. */
PLAY_CASE(play_on_one, loss_that_a_release_comes_before_is_not_told)
{
    struct rlock_renewer *r;

    play("p limits 20000; p take k; p extend; del k; proxy swallow_after EVALSHA; "
         "p renew 200; await proxy swallowed: 1; p begin_release");
    r = play_actor_of("p")->r;
    LOCK_AWAIT(is_forgotten(r));
    play("proxy pass; p end: gone");
    LOCK_AWAIT(figures_of(r).rounds == 1);
    play("rest 100; promise p losses: 0");
}

/* ---- Redis is away ---- */

static const struct {
    const char *name, *trouble;
} passing[] = {{"cut_before", "proxy cut_before EVALSHA; await proxy cuts_before: 1"},
               {"cut_after", "proxy cut_after EVALSHA; await proxy cuts: 1"},
               {"refused", "proxy refuse; await proxy refused: 2-99999; proxy welcome"},
               {"mute", "proxy swallow; await proxy swallowed: 1; "
                        "await p failed: 1-99; proxy let"}};

/* Each trouble lasts until a renewal has failed, which is due every 100 ms and has 40
 * seconds from the last one: nothing here hangs on the moment. The client has a
 * connection and the renewer another; a third is made where one has failed. */
/* Guarantee: A renewal that fails is repeated in time; the lock is kept and nobody
 * is told. */
CASE_ROWS_IN(play_on_one, struct quorum_world, renew_transient_error, passing)
{
    play("p limits 3000; p take k 40000; p renew 100; p renewed 2; "
         "proxy connections: 2");
    play(row->trouble);
    play("p renewed 2; proxy connections: 3-99; promise p valid 20000; "
         "ttl k: 20000-40000; p losses: 0; p release");
}

/* Two seconds before they end, nobody answers any more. "round" wants them told in
 * time. */
#define LOST_THROUGH(trouble)                                                           \
    "p stepped; p take k; p2 take j 59500; p renew; p2 renew; time 20000; p round: 0; " \
    "ttl k: 45000-60000; " trouble                                                      \
    "; time 57000; await p round: 2; p loss: unavailable|uncertain; p invalid; "        \
    "p2 invalid; time 4000; keys: 0; proxy pass; p release: gone; p2 release: gone; "   \
    "p take again; p renew; time 20000; p round: 2; ttl again: 45000-60000; p valid; "  \
    "p release; p losses: 2"

/* Guarantee: A lock that cannot be renewed is told before its deadline, once. */
PLAY_ONE(renew_persistent_error, LOST_THROUGH("proxy refuse"));
PLAY_ONE(renew_persistent_silence, LOST_THROUGH("proxy swallow"));

/* ---- the keys are not ours any more ---- */

/* Guarantee: FLUSHALL is told once for every lock that is renewed. */
PLAY_CASE(play_on_one, flushall_while_held_is_told_once_for_every_lock)
{
    enum { MANY = 20, SHORT_MS = 300 };

    struct told told = {0};
    RENEWER *r = open_renewer(play_client("a"), &told, SHORT_MS);

    hold_many(play_client("a"), r, locks, MANY, PLAY_LEASE_MS);
    await_renewals(r, MANY);
    play("redis FLUSHALL");
    LOCK_AWAIT(told.times >= MANY);
    assert_true(told.least_left_ms > PLAY_LEASE_MS / 4); /* when the next was due */
    fixture_pause_ms(2 * SHORT_MS);
    promise_int_equal(told.times, MANY);
    play("promise redis DBSIZE: 0");
    free_many(locks, MANY);
}

/* ---- round trips ---- */

/* A hundred held locks are renewed in one, on one server and over a quorum; counted by
 * a proxy, not by the library. */
enum { LEASE_MS = 20000, INTERVAL_MS = 300, ROUNDS = 6 };

enum { DELAY_MS = 5 };

/* A node that is slower than a majority still owes its answer: it is waited for. */
static void await_answers(const struct rlock_renewer *r)
{
    for (size_t i = 0; i < r->client->node_ct; i++) {
        const struct rlock_node *node = &r->client->nodes[i];
        struct pollfd p = {.fd = node->conn->fd, .events = POLLIN};

        LOCK_AWAIT(rlock_node_is_ready(node) || poll(&p, 1, 0) > 0);
    }
}

/* n rounds, each when it is due. */
static struct figures make_rounds(struct rlock_renewer *r, unsigned n)
{
    uint64_t until = figures_of(r).rounds + n;

    while (figures_of(r).rounds < until) {
        fixture_pause_ms(renew_due(r));
        assert_int_equal(renew_now(r), RLOCK_OK);
        await_answers(r);
    }
    return figures_of(r);
}

static bool is_connected(const struct rlock_client *c)
{
    size_t n = 0;

    for (size_t i = 0; i < c->node_ct; i++)
        n += c->nodes[i].state == RLOCK_UP ? 1 : 0;
    return n == c->node_ct;
}

static void give_back(const struct told *told)
{
    for (size_t i = 0; i < LOCKS; i++)
        assert_int_equal(rlock_release(locks[i]), RLOCK_OK);
    assert_int_equal(told->times, 0);
    free_many(locks, LOCKS);
}

/* Lets client c hold and renew the locks: the round trips of ROUNDS rounds, as each
 * proxy has seen them, are one each. */
static void see_trips(struct rlock_client *c, struct proxy *proxies, size_t n)
{
    struct told told = {0};
    RENEWER *r = open_stepped(c, &told, INTERVAL_MS);
    struct figures from, to;
    unsigned before[RLOCK_NODES_MAX];

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
