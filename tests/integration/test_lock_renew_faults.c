/* Renewal when answers are lost, Redis is away, the keys are taken or deleted, and when
 * a release comes in between. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "tests/lib/proxy.h"
#include "tests/lib/renew_world.h"

enum { LEASE_MS = 600 };

/* ---- a release in between ---- */

/* The turns of renew_vs_release_race. 100,000 take more than a minute; this many about
 * nine seconds. LEDGERLOCK_TEST_TURNS asks for another number. */
enum { RACE_TURNS = 12000 };

static int race_turns(void)
{
    const char *text = getenv("LEDGERLOCK_TEST_TURNS");

    return text != NULL ? atoi(text) : RACE_TURNS;
}

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

static void renew_vs_release_race(void **state)
{
    struct lock_world *w = *state;
    struct told told = {0};
    struct ll_renewer *r = open_renewer(w->a, &told, 1);
    int turns = race_turns();

    for (int i = 0; i < turns; i++) {
        assert_int_equal(ll_try(w->la, "race", 60000), LL_OK);
        assert_int_equal(ll_renew(r, w->la, 0, 0), LL_OK);
        spin_us(i % 4 == 0 ? 1200 : i % 97); /* 1 ms: the renewal is due */
        assert_int_equal(ll_release(w->la), LL_OK);
        put_back(w->raw, w->la, 20000);
        spin_us(i % 50);
        assert_in_range(lock_raw_integer(w, "PTTL lock:race"), 1, 20000);
        assert_int_equal(lock_raw_integer(w, "DEL lock:race"), 1);
    }
    printf("%d releases, %llu renewals\n", turns,
           (unsigned long long)figures_of(r).renewals);
    assert_true(figures_of(r).renewals > (uint64_t)turns / 10); /* there was a race */
    assert_int_equal(read_losses(r, 0) + told.times, 0);
    ll_renewer_close(r);
}

/* The renewal is on its way and nobody answers: release waits for its end, and what the
 * server gets to see later it refuses. */
static void release_waits_for_a_renewal_on_its_way_which_does_nothing_late(void **state)
{
    struct lock_world *w = *state;
    struct told told = {0};
    struct proxy p = {0};
    struct ll_renewer *r;
    struct ll_client *c;
    int64_t from;

    proxy_open_redis(&p, lock_server.url);
    c = lock_client(p.url, 300);
    r = open_renewer(c, &told, 200);
    assert_int_equal(ll_try(w->la, "race", 5000), LL_OK); /* not through the proxy */
    assert_int_equal(ll_renew(r, w->la, 0, 0), LL_OK);
    fixture_pause_ms(300); /* connected, and renewed once */
    assert_int_equal(figures_of(r).renewals, 1);
    proxy_swallow(&p, true);
    assert_true(proxy_wait(&p, PROXY_SWALLOWED, 1, 5));
    from = ll_now_ms();
    assert_int_equal(ll_release(w->la), LL_OK);
    assert_in_range(ll_now_ms() - from, 50, 600);
    put_back(w->raw, w->la, 1000);
    proxy_pass(&p); /* here it comes */
    fixture_pause_ms(100);
    assert_in_range(lock_raw_integer(w, "PTTL lock:race"), 1, 1000);
    assert_int_equal(told.times, 0);
    ll_renewer_close(r);
    ll_close(c);
    proxy_close(&p);
}

/* The answer "gone" is on its way back when the holder releases by himself. */
static void loss_that_a_release_comes_before_is_not_told(void **state)
{
    struct lock_world *w = *state;
    struct told told = {0};
    struct proxy p = {0};
    struct ll_renewer *r;
    struct ll_client *c;

    proxy_open_redis(&p, lock_server.url);
    c = lock_client(p.url, 0);
    r = open_renewer(c, &told, 200);
    assert_int_equal(ll_try(w->la, "user:1", 5000), LL_OK);
    assert_int_equal(ll_renew(r, w->la, 0, 0), LL_OK);
    fixture_pause_ms(300);
    assert_int_equal(figures_of(r).renewals, 1);
    lock_raw_do(w, "DEL lock:user:1");
    proxy_delay(&p, 300);
    assert_true(proxy_wait(&p, PROXY_DELAYED, 1, 5));
    assert_int_equal(ll_release(w->la), LL_GONE);
    assert_int_equal(figures_of(r).rounds, 2); /* it had waited for the answer */
    assert_int_equal(read_losses(r, 100) + told.times, 0);
    ll_renewer_close(r);
    ll_close(c);
    proxy_close(&p);
}

/* ---- Redis is away ---- */

static unsigned faults(const struct proxy *p)
{
    unsigned n = 0;

    for (int i = PROXY_CUTS_BEFORE; i <= PROXY_REFUSED; i++)
        n += proxy_count(p, (enum proxy_count)i);
    return n;
}

static void wait_for_faults(const struct proxy *p, unsigned wanted)
{
    for (int i = 0; i < 1000 && faults(p) < wanted; i++)
        fixture_pause_ms(2);
    assert_true(faults(p) >= wanted);
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

/* Waits until a renewal has gone well that began after now. */
static void see_renewed(const struct ll_renewer *r)
{
    uint64_t wanted = figures_of(r).renewals + 2;

    for (int i = 0; i < 1000 && figures_of(r).renewals < wanted; i++)
        fixture_pause_ms(2);
    assert_true(figures_of(r).renewals >= wanted);
}

/* Each trouble lasts until it has hit a renewal, which is due every 300 ms and has 2.5
 * seconds from the last one: nothing here hangs on the moment. */
static void renew_transient_error(void **state)
{
    static const struct {
        void (*trouble)(struct proxy *p, bool on);
        unsigned faults;  /* refused: the old connection, then a new one */
        unsigned more_ms; /* mute: longer than the 300 ms that an answer may take */
    } table[] = {{cut_before, 1, 0},
                 {cut_after, 1, 0},
                 {proxy_refuse, 2, 100},
                 {proxy_swallow, 1, 400}};
    struct lock_world *w = *state;
    struct told told = {0};
    struct proxy p = {0};
    struct ll_client *c;
    struct ll_renewer *r;

    proxy_open_redis(&p, lock_server.url);
    c = lock_client(p.url, 300);
    r = open_renewer(c, &told, 300);
    assert_int_equal(ll_try(w->la, "user:1", 3000), LL_OK);
    assert_int_equal(ll_renew(r, w->la, 0, 60000), LL_OK);
    see_renewed(r);
    for (size_t i = 0; i < sizeof table / sizeof table[0]; i++) {
        unsigned before = faults(&p);
        unsigned connections = proxy_count(&p, PROXY_CONNECTIONS);

        table[i].trouble(&p, true);
        wait_for_faults(&p, before + table[i].faults);
        fixture_pause_ms(table[i].more_ms);
        table[i].trouble(&p, false);
        see_renewed(r);
        assert_true(proxy_count(&p, PROXY_CONNECTIONS) > connections); /* it failed */
        assert_true(ll_valid(w->la, 1000));
        assert_in_range(lock_raw_integer(w, "PTTL lock:user:1"), 1000, 3000);
    }
    assert_int_equal(read_losses(r, 0) + told.times, 0);
    assert_int_equal(ll_release(w->la), LL_OK);
    ll_renewer_close(r);
    ll_close(c);
    proxy_close(&p);
}

static void persistent(struct lock_world *w, void (*trouble)(struct proxy *, bool))
{
    struct told told = {0};
    struct proxy p = {0};
    struct ll_lock *locks[5];
    struct ll_renewer *r;
    struct ll_client *c;
    int lost = 0;

    proxy_open_redis(&p, lock_server.url);
    c = lock_client(p.url, 0);
    r = open_renewer(c, &told, 0);
    hold_many(w->a, r, locks, 5, LEASE_MS);
    fixture_pause_ms(LEASE_MS);
    assert_int_equal(told.times, 0);
    trouble(&p, true);
    for (int n = 1; n > 0; lost += n)
        n = read_losses(r, LEASE_MS + 200);
    assert_int_equal(lost, 5);
    assert_int_equal(told.times, 5);
    assert_true(told.code == LL_E_UNAVAILABLE || told.code == LL_E_UNCERTAIN);
    assert_true(told.least_left_ms > 0); /* before the local deadline */
    assert_true(faults(&p) > 0);
    for (int i = 0; i < 5; i++) {
        assert_false(ll_valid(locks[i], 0));
        assert_int_equal(ll_release(locks[i]), LL_GONE);
    }
    trouble(&p, false);
    assert_int_equal(ll_try(w->la, "again", LEASE_MS), LL_OK); /* it works again */
    assert_int_equal(ll_renew(r, w->la, 0, 0), LL_OK);
    fixture_pause_ms(2 * LEASE_MS);
    assert_true(ll_valid(w->la, 0));
    assert_int_equal(ll_release(w->la), LL_OK);
    assert_int_equal(told.times, 5);
    free_many(locks, 5);
    ll_renewer_close(r);
    ll_close(c);
    proxy_close(&p);
}

static void renew_persistent_error(void **state)
{
    persistent(*state, proxy_refuse);
    persistent(*state, proxy_swallow);
}

static void script_flush_midway_is_mended_within_the_round(void **state)
{
    struct lock_world *w = *state;
    struct told told = {0};
    struct ll_renewer *r = open_renewer(w->a, &told, 100);

    assert_int_equal(ll_try(w->la, "user:1", LEASE_MS), LL_OK);
    assert_int_equal(ll_renew(r, w->la, 0, 0), LL_OK);
    fixture_pause_ms(150);
    assert_int_equal(figures_of(r).round_trips, figures_of(r).rounds);
    lock_raw_do(w, "SCRIPT FLUSH");
    fixture_pause_ms(150);
    assert_int_equal(figures_of(r).round_trips, figures_of(r).rounds + 2);
    assert_int_equal(figures_of(r).renewals, figures_of(r).rounds);
    assert_int_equal(told.times, 0);
    ll_renewer_close(r);
}

/* ---- the keys are not ours any more ---- */

static void key_deleted_by_operator_is_told_once(void **state)
{
    struct lock_world *w = *state;
    struct told told = {0};
    struct ll_renewer *r = open_renewer(w->a, &told, 0);

    renew_two(w, r, LEASE_MS);
    lock_raw_do(w, "DEL lock:user:1");
    assert_int_equal(read_losses(r, LEASE_MS), 1);
    assert_int_equal(told.times, 1);
    assert_int_equal(told.code, LL_LOST);
    assert_ptr_equal(told.last, w->la);
    assert_false(ll_valid(w->la, 0));
    assert_int_equal(ll_renew(r, w->la, 0, 0), LL_LOST);
    fixture_pause_ms(2 * LEASE_MS);
    assert_int_equal(read_losses(r, 0) + told.times, 1);
    assert_int_equal(lock_raw_integer(w, "EXISTS lock:user:1"), 0);
    assert_true(ll_valid(w->lb, 0)); /* the other one goes on */
    assert_int_equal(ll_release(w->la), LL_GONE);
    assert_int_equal(ll_try(w->la, "user:1", LEASE_MS), LL_OK); /* another tenure */
    assert_int_equal(ll_renew(r, w->la, 0, 0), LL_OK);
    lock_raw_do(w, "DEL lock:user:1");
    assert_int_equal(read_losses(r, LEASE_MS), 1);
    assert_int_equal(told.times, 2);
    ll_renewer_close(r);
}

static void flushall_while_held_is_told_for_every_lock_within_one_period(void **state)
{
    struct lock_world *w = *state;
    struct told told = {0};
    struct ll_renewer *r = open_renewer(w->a, &told, 0);
    struct ll_lock *locks[20];

    hold_many(w->a, r, locks, 20, LEASE_MS);
    fixture_pause_ms(LEASE_MS);
    lock_raw_do(w, "FLUSHALL");
    fixture_pause_ms(LEASE_MS / 3 + 100);
    assert_int_equal(read_losses(r, 0), 20);
    fixture_pause_ms(LEASE_MS);
    assert_int_equal(read_losses(r, 0), 0);
    assert_int_equal(told.times, 20);
    assert_int_equal(lock_raw_integer(w, "DBSIZE"), 0);
    free_many(locks, 20);
    ll_renewer_close(r);
}

static void key_of_another_holder_is_never_lengthened(void **state)
{
    struct lock_world *w = *state;
    struct told told = {0};
    struct ll_renewer *r = open_renewer(w->a, &told, 0);

    assert_int_equal(ll_try(w->la, "user:1", LEASE_MS), LL_OK);
    assert_int_equal(ll_renew(r, w->la, 0, 0), LL_OK);
    lock_raw_do(w, "SET lock:user:1 somebody PX 400");
    assert_int_equal(read_losses(r, LEASE_MS), 1);
    assert_int_equal(told.code, LL_LOST);
    assert_in_range(lock_raw_integer(w, "PTTL lock:user:1"), 1, 400);
    assert_int_equal(ll_release(w->la), LL_NOT_OWNER);
    fixture_pause_ms(420);
    assert_int_equal(lock_raw_integer(w, "EXISTS lock:user:1"), 0);
    ll_renewer_close(r);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        LOCK_TEST(renew_vs_release_race),
        LOCK_TEST(release_waits_for_a_renewal_on_its_way_which_does_nothing_late),
        LOCK_TEST(loss_that_a_release_comes_before_is_not_told),
        LOCK_TEST(renew_transient_error),
        LOCK_TEST(renew_persistent_error),
        LOCK_TEST(script_flush_midway_is_mended_within_the_round),
        LOCK_TEST(key_deleted_by_operator_is_told_once),
        LOCK_TEST(flushall_while_held_is_told_for_every_lock_within_one_period),
        LOCK_TEST(key_of_another_holder_is_never_lengthened),
    };

    fixture_need_servers();
    return cmocka_run_group_tests(tests, lock_start_server, lock_stop_server);
}
