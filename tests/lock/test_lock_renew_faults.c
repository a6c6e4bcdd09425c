/* Renewal when answers are lost, Redis is away, the keys are taken or deleted, and when
 * a release comes in between. */
#include <time.h>

#include "tests/lib/renew_world.h"

enum { LEASE_MS = 4000, INTERVAL_MS = 300 };

/* ---- a release in between ---- */

/* The rounds of renew_vs_release_race; LEDGERLOCK_TEST_ROUNDS asks for another number.
 */
enum { RACE_ROUNDS = 6000 };

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

/* Every other release comes when the renewal is due, after a millisecond; until there
 * was a race, where the renewer seldom gets a processor. */
/* Guarantee: No key is lengthened after its release came back. */
LOCK_CASE(renew_vs_release_race)
{
    const char *wanted = getenv("LEDGERLOCK_TEST_ROUNDS");
    int rounds = wanted != NULL ? atoi(wanted) : RACE_ROUNDS;
    struct told told = {0};
    RENEWER *r = open_renewer(w->a, &told, 1);

    for (int i = 0; i < rounds || figures_of(r).renewals <= (uint64_t)rounds / 5; i++) {
        assert_int_equal(ll_try(w->la, "race", 60000), LL_OK);
        assert_int_equal(ll_renew(r, w->la, 0, 0), LL_OK);
        spin_us(i % 2 == 0 ? 1000 + i % 211 : i % 97);
        assert_int_equal(ll_release(w->la), LL_OK);
        put_back(w->raw, w->la, 20000);
        spin_us(i % 50);
        assert_in_range(end_of_race(w->raw), 1, 20000);
    }
    assert_int_equal(read_losses(r, 0) + told.times, 0);
}

/* The renewal is on its way and nobody answers: release waits for its end, and what the
 * server gets to see later it refuses. */
LOCK_CASE(release_waits_for_a_renewal_on_its_way_which_does_nothing_late)
{
    SPLIT s;
    int64_t from;

    split_open(&s, 2000, 200);
    assert_int_equal(ll_try(s.l, "race", 60000), LL_OK);
    assert_int_equal(ll_renew(s.r, s.l, 0, 0), LL_OK);
    await_renewals(s.r, 1);
    proxy_swallow(&s.proxy, true);
    assert_true(proxy_wait(&s.proxy, PROXY_SWALLOWED, 1, LOCK_SOON_MS / 1000));
    from = ll_now_ms();
    assert_int_equal(ll_release(s.l), LL_OK);
    assert_in_range(ll_now_ms() - from, 200, LOCK_SOON_MS);
    put_back(w->raw, s.l, LOCK_SOON_MS);
    proxy_pass(&s.proxy); /* here it comes */
    fixture_pause_ms(500);
    assert_in_range(lock_raw_integer(w, "PTTL lock:race"), 1, LOCK_SOON_MS);
    assert_int_equal(s.told.times, 0);
}

/* The answer "gone" is on its way back when the holder releases by himself. */
LOCK_CASE(loss_that_a_release_comes_before_is_not_told)
{
    SPLIT s;

    split_open(&s, 10000, 2000);
    assert_int_equal(ll_try(s.l, "user:1", 60000), LL_OK);
    assert_int_equal(ll_renew(s.r, s.l, 0, 0), LL_OK);
    await_renewals(s.r, 1); /* the next one is two seconds away */
    lock_raw_do(w, "DEL lock:user:1");
    proxy_delay(&s.proxy, 2000);
    assert_true(proxy_wait(&s.proxy, PROXY_DELAYED, 1, LOCK_SOON_MS / 1000));
    assert_int_equal(ll_release(s.l), LL_GONE);
    assert_int_equal(figures_of(s.r).rounds, 2); /* it had waited for the answer */
    assert_int_equal(read_losses(s.r, 100) + s.told.times, 0);
}

/* ---- Redis is away ---- */

static unsigned faults(const struct proxy *p)
{
    unsigned n = 0;

    for (int i = PROXY_CUTS_BEFORE; i <= PROXY_REFUSED; i++)
        n += proxy_count(p, (enum proxy_count)i);
    return n;
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
    unsigned faults;  /* refused: the old connection, then a new one */
    unsigned more_ms; /* mute: longer than the second that an answer may take */
} passing[] = {{"cut_before", cut_before, 1, 0},
               {"cut_after", cut_after, 1, 0},
               {"refused", proxy_refuse, 2, 100},
               {"mute", proxy_swallow, 1, 1200}};

/* Each trouble lasts until it has hit a renewal, which is due every 100 ms and has ten
 * seconds from the last one: nothing here hangs on the moment. */
/* Guarantee: A renewal that fails is repeated in time; the lock is kept and nobody
 * is told. */
CASE_ROWS_IN(lock_group, struct lock_world, renew_transient_error, passing)
{
    SPLIT s;
    unsigned before;

    split_open(&s, 1000, 100);
    assert_int_equal(ll_try(s.l, "user:1", 12000), LL_OK);
    assert_int_equal(ll_renew(s.r, s.l, 0, 60000), LL_OK);
    await_renewals(s.r, 2); /* the second began after now */
    before = proxy_count(&s.proxy, PROXY_CONNECTIONS);
    row->trouble(&s.proxy, true);
    LOCK_AWAIT(faults(&s.proxy) >= row->faults);
    fixture_pause_ms(row->more_ms);
    row->trouble(&s.proxy, false);
    await_renewals(s.r, 2);
    assert_true(proxy_count(&s.proxy, PROXY_CONNECTIONS) > before); /* it failed */
    assert_true(ll_valid(s.l, 4000));
    assert_in_range(lock_raw_integer(w, "PTTL lock:user:1"), 4000, 12000);
    assert_int_equal(read_losses(s.r, 0) + s.told.times, 0);
    assert_int_equal(ll_release(s.l), LL_OK);
}

/* Reads the descriptor until it has told of n losses. */
static void await_losses(const struct ll_renewer *r, int n)
{
    int lost = 0;

    for (int more = 1; more > 0 && lost < n; lost += more)
        more = read_losses(r, LOCK_SOON_MS);
    assert_int_equal(lost, n);
}

enum { MANY = 5 };

static void persistent(struct lock_world *w, void (*trouble)(struct proxy *, bool))
{
    struct ll_lock *locks[MANY];
    SPLIT s;

    split_open(&s, 0, INTERVAL_MS);
    hold_many(s.c, s.r, locks, MANY, LEASE_MS);
    await_renewals(s.r, MANY);
    assert_int_equal(s.told.times, 0);
    trouble(&s.proxy, true);
    await_losses(s.r, MANY);
    LOCK_AWAIT(lock_raw_integer(w, "DBSIZE") == 1); /* the leases are over */
    assert_int_equal(read_losses(s.r, INTERVAL_MS), 0);
    assert_int_equal(s.told.times, MANY);
    assert_true(s.told.code == LL_E_UNAVAILABLE || s.told.code == LL_E_UNCERTAIN);
    assert_true(s.told.least_left_ms > 0); /* before the local deadline */
    assert_true(faults(&s.proxy) > 0);
    for (int i = 0; i < MANY; i++) {
        assert_false(ll_valid(locks[i], 0));
        assert_int_equal(ll_release(locks[i]), LL_GONE);
    }
    trouble(&s.proxy, false);
    assert_int_equal(ll_try(s.l, "again", LEASE_MS), LL_OK); /* it works again */
    assert_int_equal(ll_renew(s.r, s.l, 0, 0), LL_OK);
    await_renewals(s.r, 2);
    assert_true(ll_valid(s.l, 0));
    assert_int_equal(ll_release(s.l), LL_OK);
    assert_int_equal(s.told.times, MANY);
    free_many(locks, MANY);
}

/* Guarantee: A lock that cannot be renewed is told before its deadline, once. */
LOCK_CASE(renew_persistent_error)
{
    persistent(w, proxy_refuse);
    lock_raw_do(w, "FLUSHALL");
    persistent(w, proxy_swallow);
}

/* ---- the keys are not ours any more ---- */

/* Guarantee: FLUSHALL is told once for every lock that is renewed. */
LOCK_CASE(flushall_while_held_is_told_once_for_every_lock)
{
    enum { LOCKS = 20 };

    struct told told = {0};
    RENEWER *r = open_renewer(w->a, &told, INTERVAL_MS);
    struct ll_lock *locks[LOCKS];

    hold_many(w->a, r, locks, LOCKS, LEASE_MS);
    await_renewals(r, LOCKS);
    lock_raw_do(w, "FLUSHALL");
    await_losses(r, LOCKS);
    assert_true(told.least_left_ms > LEASE_MS / 4); /* when the next was due */
    fixture_pause_ms(LEASE_MS);
    assert_int_equal(read_losses(r, 0), 0);
    assert_int_equal(told.times, LOCKS);
    assert_int_equal(lock_raw_integer(w, "DBSIZE"), 0);
    free_many(locks, LOCKS);
}
