/* Renewal under pressure: more is due than a slow server does at once, a lock that is
 * about to be lost, an on_lost that takes its time. None of them costs another lock. */
#include "tests/lib/play_inside.h"

/* ---- more is due than a slow server does at once ---- */

enum { LOCKS = 20, SEEN_TWICE = 2, LEASE_MS = 20000, SLOW_MS = 130 };

/* A lock, and how often it was seen to be renewed: its time left grew. */
static struct watched {
    struct rlock *l;
    int64_t left_ms;
    int times;
} all[LOCKS];

static void watch(struct watched *one)
{
    int64_t left_ms = rlock_left_ms(one->l);

    one->times += left_ms > one->left_ms ? 1 : 0;
    one->left_ms = left_ms;
}

/* The keys of lock i, as many as a call may have. */
static void hold_thousand(struct watched *one, size_t i)
{
    static char names[RLOCK_KEYS_MAX][16];
    static struct rlock_key keys[RLOCK_KEYS_MAX];

    for (size_t k = 0; k < RLOCK_KEYS_MAX; k++) {
        int len = snprintf(names[k], sizeof names[k], "%zu:%zu", i, k);

        keys[k] = (struct rlock_key){names[k], (size_t)len};
    }
    *one = (struct watched){.l = rlock_new(play_client("p"))};
    assert_int_equal(rlock_acquire(one->l, keys, RLOCK_KEYS_MAX, RLOCK_ALL, LEASE_MS),
                     RLOCK_OK);
}

static bool are_all_renewed(int times)
{
    bool are = true;

    for (size_t i = 0; i < LOCKS; i++) {
        watch(&all[i]);
        are = are && all[i].times >= times;
    }
    return are;
}

/* A call for each lock, one after the other: all are due again before the first has
 * been renewed a second time, and none needs to wait longer than 20 calls take. */
/* Guarantee: The most urgent locks are renewed first, so none is lost that could be
 * renewed in time, though more are due than one call renews. */
PLAY_CASE(play_on_one, most_urgent_lock_is_renewed_first)
{
    struct play_actor *p = play_actor_of("p");

    play("p take first; p renew 500"); /* every half a second where there is time */
    for (size_t i = 0; i < LOCKS; i++)
        hold_thousand(&all[i], i);
    proxy_delay(&w->proxies[0], SLOW_MS);
    for (size_t i = 0; i < LOCKS; i++) {
        all[i].left_ms = rlock_left_ms(all[i].l);
        assert_int_equal(rlock_renew(p->r, all[i].l, 0, 10 * LOCK_SOON_MS), RLOCK_OK);
    }
    LOCK_AWAIT(are_all_renewed(SEEN_TWICE) || p->told.times > 0);
    play("promise p losses: 0; p close_renewer");
    for (size_t i = 0; i < LOCKS; i++)
        rlock_free(all[i].l);
}

/* ---- a lock that is about to be lost ---- */

/* The renewer has its connection; a is no longer renewed, and has four seconds until it
 * counts as lost; b is due, and the answer takes longer than half of what a has left.
 */
static const struct {
    const char *name, *steps, *then;
} dying[] = {
    {"whose_renewal_has_stopped",
     "p take a; p2 take b 45000; p renew 0 0 15000; p2 renew; time 20000; p round: 0; "
     "time 15000; p round: 0; time 20000",
     "p valid; ttl a: 1-10000; "}};

/* Guarantee: A lock that is about to be lost shortens no call for the others. */
CASE_ROWS_IN(play_on_one, struct quorum_world, no_call_fails_for_a_lock, dying)
{
    struct proxy *proxy = &w->proxies[0];
    unsigned connections;

    play("p stepped");
    play(row->steps);
    connections = proxy_count(proxy, PROXY_CONNECTIONS);
    proxy_delay(proxy, 2500);
    promise_int_equal(renew_now(play_actor_of("p")->r), RLOCK_OK);
    play("p losses: 0; p2 valid 30000; ttl b: 30000-45000; proxy delay 0");
    play(row->then);
    assert_int_equal(proxy_count(proxy, PROXY_CONNECTIONS), connections);
}

/* ---- an on_lost that takes its time ---- */

static struct {
    atomic_int told;
    atomic_bool may_end, has_waited_in_vain;
} slow;

static void take_time(struct rlock *l, int code, void *arg)
{
    (void)l;
    (void)code;
    (void)arg;
    slow.told++;
    for (int left = LOCK_SOON_MS / 2; !slow.may_end && left > 0; left--)
        fixture_pause_ms(1);
    slow.has_waited_in_vain = slow.has_waited_in_vain || !slow.may_end;
}

/* Guarantee: An on_lost that takes its time delays no renewal of another lock. */
PLAY_CASE(play_on_one, on_lost_that_blocks_delays_no_renewal)
{
    struct rlock_renew_options o = {
        .size = sizeof o, .interval_ms = 300, .on_lost = take_time};
    struct watched other = {.l = play_lock("a2")};
    struct rlock_renewer **r = &play_actor_of("a")->r;

    memset(&slow, 0, sizeof slow);
    assert_int_equal(rlock_renewer_open(r, play_client("a"), &o), RLOCK_OK);
    play("a take k 20000; a2 take j 20000");
    assert_int_equal(rlock_renew(*r, play_lock("a"), 0, 600000), RLOCK_OK);
    assert_int_equal(rlock_renew(*r, other.l, 0, 600000), RLOCK_OK);
    play("del k");
    LOCK_AWAIT(slow.told == 1);
    other.left_ms = rlock_left_ms(other.l); /* the round of the loss may renew it */
    LOCK_AWAIT((watch(&other), other.times >= 3) || slow.has_waited_in_vain);
    promise_false(slow.has_waited_in_vain);
    slow.may_end = true;
    rlock_renew_stop(*r, other.l);
    play("promise a2 valid");
    assert_int_equal(slow.told, 1);
}
