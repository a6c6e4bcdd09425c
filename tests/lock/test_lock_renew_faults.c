/* Renewal when answers are lost, Redis is away, the keys are taken or deleted, and when
 * a release comes in between. */
#include <time.h>

#include "tests/lib/lock_waiters.h"
#include "tests/lib/play.h"
#include "tests/lib/renew_world.h"

/* ---- a release in between ---- */

/* The rounds of renew_vs_release_race; LL_TEST_ROUNDS asks for another number.
 */
enum { RACE_ROUNDS = 2000 };

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
static void put_back(redisContext *raw, const struct ll_lock *l, int ttl_ms)
{
    redisReply *reply = redisCommand(raw, "SET lock:race %s%lld PX %d", l->mark,
                                     (long long)l->token, ttl_ms);

    assert_string_equal(reply->str, "OK");
    freeReplyObject(reply);
}

/* The answer to PTTL, and DEL; both in one round trip. */
static long long end_of_race(redisContext *raw)
{
    redisReply *ttl = NULL, *del = NULL;
    long long ms;

    assert_int_equal(redisAppendCommand(raw, "PTTL lock:race"), REDIS_OK);
    assert_int_equal(redisAppendCommand(raw, "DEL lock:race"), REDIS_OK);
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
LOCK_CASE(renew_vs_release_race)
{
    const char *wanted = getenv("LL_TEST_ROUNDS");
    int rounds = wanted != NULL ? atoi(wanted) : RACE_ROUNDS;
    struct told told = {0};
    RENEWER *r = open_renewer(w->a, &told, 1);

    for (int i = 0; i < rounds || figures_of(r).renewals <= (uint64_t)rounds / 5; i++) {
        assert_true(i < 5 * rounds);
        assert_int_equal(ll_try(w->la, "race", 60000), LL_OK);
        assert_int_equal(ll_renew(r, w->la, 0, 0), LL_OK);
        spin_us(i % 2 == 0 ? 1000 * (1 + i / rounds) + i % 211 : i % 97);
        assert_int_equal(ll_release(w->la), LL_OK);
        put_back(w->raw, w->la, 20000);
        spin_us(i % 50);
        promise_true(end_of_race(w->raw) <= 20000);
    }
    assert_int_equal(told.times, 0);
}

/* The server knows the script of the first renewal. */
static void take_with_script(struct ll_lock *l, const char *name)
{
    assert_int_equal(ll_try(l, name, 60000), LL_OK);
    assert_int_equal(ll_extend(l, 60000), LL_OK);
}

/* A release waits for the end of a renewal on its way, which the server gets to see
 * later and refuses. false: the renewal had ended before. */
static bool overtake_a_renewal(struct lock_world *w, uint32_t reply_ms)
{
    bool is_on_its_way;
    long long calls;
    SPLIT s;

    split_open(&s, reply_ms, 200);
    proxy_hold(&s.proxy, "EVALSHA", 7, 1);
    take_with_script(s.l, "race");
    assert_int_equal(ll_renew(s.r, s.l, 0, 0), LL_OK);
    assert_true(proxy_wait(&s.proxy, PROXY_HELD, 1, LOCK_SOON_MS / 1000));
    is_on_its_way = figures_of(s.r).rounds == 0;
    assert_int_equal(ll_release(s.l), LL_OK);
    promise_true(figures_of(s.r).rounds > 0);
    put_back(w->raw, s.l, LOCK_SOON_MS);
    calls = waiters_calls(w, "evalsha");
    proxy_let_go(&s.proxy); /* here it comes */
    LOCK_AWAIT(waiters_calls(w, "evalsha") > calls);
    promise_true(end_of_race(w->raw) <= LOCK_SOON_MS);
    promise_int_equal(s.told.times, 0);
    return is_on_its_way;
}

LOCK_CASE(release_waits_for_a_renewal_on_its_way_which_does_nothing_late)
{
    uint32_t reply_ms = 3000;

    for (; !overtake_a_renewal(w, reply_ms); reply_ms *= 2)
        assert_true(reply_ms < 3000 << 4);
}

/* A release in a thread of its own. */
struct releasing {
    struct ll_lock *l;
    int code;
    atomic_bool is_over;
};

static void *release_in_thread(void *releasing)
{
    struct releasing *r = releasing;

    r->code = ll_release(r->l);
    r->is_over = true;
    return NULL;
}

/* The holder has released; the renewal of his lock goes on. */
static bool is_forgotten(struct ll_renewer *r)
{
    bool is;

    (void)pthread_mutex_lock(&r->mutex);
    is = r->part_ct > 0 && r->first == NULL;
    (void)pthread_mutex_unlock(&r->mutex);
    return is;
}

/* The answer "gone" is on its way back when the holder releases by himself. */
LOCK_CASE(loss_that_a_release_comes_before_is_not_told)
{
    struct releasing release = {0};
    pthread_t thread;
    SPLIT s;

    split_open(&s, 20000, 200);
    take_with_script(s.l, "user:1");
    lock_raw_do(w, "DEL lock:user:1");
    proxy_swallow_after(&s.proxy, "EVALSHA", 7);
    assert_int_equal(ll_renew(s.r, s.l, 0, 0), LL_OK);
    assert_true(proxy_wait(&s.proxy, PROXY_SWALLOWED, 1, LOCK_SOON_MS / 1000));
    release.l = s.l;
    assert_int_equal(pthread_create(&thread, NULL, release_in_thread, &release), 0);
    LOCK_AWAIT(is_forgotten(s.r) || release.is_over);
    proxy_pass(&s.proxy);
    assert_int_equal(pthread_join(thread, NULL), 0);
    LOCK_AWAIT(figures_of(s.r).rounds == 1);
    assert_int_equal(release.code, LL_GONE);
    fixture_pause_ms(100);
    promise_int_equal(s.told.times, 0);
}

/* ---- Redis is away ---- */

/* A renewal has met a fault, has failed, has led to a new connection. */
static uint64_t signs_of_failure(const struct split *s, unsigned connections)
{
    struct figures f = figures_of(s->r);
    uint64_t n = f.rounds - f.renewals;

    for (int i = PROXY_CUTS_BEFORE; i <= PROXY_REFUSED; i++)
        n += i != PROXY_TRIPS ? proxy_count(&s->proxy, (enum proxy_count)i) : 0;
    return n + proxy_count(&s->proxy, PROXY_CONNECTIONS) - connections;
}

static void cut_before(struct proxy *p, bool on)
{
    if (on)
        proxy_cut_before(p, "EVALSHA", 7, 1);
}

static void cut_after(struct proxy *p, bool on)
{
    if (on)
        proxy_cut_after(p, "EVALSHA", 7, 1);
}

static const struct {
    const char *name;
    void (*trouble)(struct proxy *p, bool on);
} passing[] = {{"cut_before", cut_before},
               {"cut_after", cut_after},
               {"refused", proxy_refuse},
               {"mute", proxy_swallow}};

/* Each trouble lasts until a renewal has failed, which is due every 100 ms and has 40
 * seconds from the last one: nothing here hangs on the moment. Two signs: a cut or a
 * silence and what followed, or the old connection and the next one refused. */
/* Guarantee: A renewal that fails is repeated in time; the lock is kept and nobody
 * is told. */
CASE_ROWS_IN(lock_group, struct lock_world, renew_transient_error, passing)
{
    SPLIT s;
    unsigned before;

    split_open(&s, 3000, 100);
    assert_int_equal(ll_try(s.l, "user:1", 40000), LL_OK);
    assert_int_equal(ll_renew(s.r, s.l, 0, 0), LL_OK);
    await_renewals(s.r, 2); /* the second began after now */
    before = proxy_count(&s.proxy, PROXY_CONNECTIONS);
    row->trouble(&s.proxy, true);
    LOCK_AWAIT(signs_of_failure(&s, before) >= 2);
    row->trouble(&s.proxy, false);
    await_renewals(s.r, 2);
    assert_true(proxy_count(&s.proxy, PROXY_CONNECTIONS) > before); /* it failed */
    promise_true(ll_valid(s.l, 20000));
    assert_in_range(lock_raw_integer(w, "PTTL lock:user:1"), 20000, 40000);
    assert_int_equal(s.told.times, 0);
    assert_int_equal(ll_release(s.l), LL_OK);
}

/* Two seconds before they end, nobody answers any more. "round" wants them told in
 * time. */
#define LOST_THROUGH(trouble)                                                          \
    "p stepped; p take k; p2 take j; p renew; p2 renew; time 20000; p round: 0; "      \
    "ttl k: 45000-60000; " trouble                                                     \
    "; time 57000; await p round: 2; p loss: unavailable|uncertain; p invalid; "       \
    "p2 invalid; time 4000; keys: 0; proxy pass; p release: gone; p2 release: gone; "  \
    "p take again; p renew; time 20000; p round: 2; ttl again: 45000-60000; p valid; " \
    "p release; p losses: 2"

/* Guarantee: A lock that cannot be renewed is told before its deadline, once. */
PLAY_ONE(renew_persistent_error, LOST_THROUGH("proxy refuse"));
PLAY_ONE(renew_persistent_silence, LOST_THROUGH("proxy swallow"));

/* ---- the keys are not ours any more ---- */

/* Guarantee: FLUSHALL is told once for every lock that is renewed. */
LOCK_CASE(flushall_while_held_is_told_once_for_every_lock)
{
    enum { LOCKS = 20, LEASE_MS = 60000, INTERVAL_MS = 300 };

    struct told told = {0};
    RENEWER *r = open_renewer(w->a, &told, INTERVAL_MS);
    struct ll_lock *locks[LOCKS];

    hold_many(w->a, r, locks, LOCKS, LEASE_MS);
    await_renewals(r, LOCKS);
    lock_raw_do(w, "FLUSHALL");
    LOCK_AWAIT(told.times >= LOCKS);
    assert_true(told.least_left_ms > LEASE_MS / 4); /* when the next was due */
    fixture_pause_ms(2 * INTERVAL_MS);
    promise_int_equal(told.times, LOCKS);
    promise_int_equal(lock_raw_integer(w, "DBSIZE"), 0);
    free_many(locks, LOCKS);
}
