/* No code path of the library makes a lock key without an end: every command that the
 * servers run is watched while the library does all that it can, in every mode. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "tests/lib/ha_world.h"
#include "tests/lib/lock_remote.h"
#include "tests/lib/lock_waiters.h"
#include "tests/lib/lock_watch.h"
#include "tests/lib/quorum_world.h"

enum { LEASE_MS = 5000, MANY = LL_KEYS_MAX + 200 };

static const struct ll_key abc[] = {{"a", 1}, {"b", 1}, {"c", 1}};

/* ---- what the library can do ---- */

static void use_one(struct ll_lock *l, struct ll_lock *m)
{
    int64_t left_ms;

    assert_int_equal(ll_try(l, "a", LEASE_MS), LL_OK);
    assert_int_equal(ll_try(m, "a", LEASE_MS), LL_BUSY);
    assert_int_equal(ll_acquire_wait(m, abc, 1, LL_ALL, LEASE_MS, 150), LL_TIMEOUT);
    assert_int_equal(ll_extend(l, 2 * LEASE_MS), LL_OK);
    assert_int_equal(ll_verify(l, &left_ms), LL_OK);
    assert_int_equal(ll_release(l), LL_OK);
    assert_int_equal(ll_release(l), LL_OK);
    assert_int_equal(ll_try(l, "short", 100), LL_OK);
    fixture_pause_ms(120);
    assert_int_equal(ll_extend(l, LEASE_MS), LL_LOST);
    assert_int_equal(ll_release(l), LL_GONE);
    ll_set_reentrant(l, true);
    ll_set_tolerance(l, 100);
    assert_int_equal(ll_try(l, "again", LEASE_MS), LL_OK);
    assert_int_equal(ll_try(l, "again", LEASE_MS), LL_OK);
    assert_int_equal(ll_release(l), LL_OK);
    assert_int_equal(ll_release(l), LL_OK);
    ll_set_reentrant(l, false);
}

static void use_many(struct ll_lock *l, struct ll_lock *m)
{
    static struct ll_key keys[MANY];
    static char names[MANY][16];

    for (size_t i = 0; i < MANY; i++)
        keys[i] = (struct ll_key){
            names[i], (size_t)snprintf(names[i], sizeof names[i], "k:%zu", i)};
    assert_int_equal(ll_try(m, "b", LEASE_MS), LL_OK);
    assert_int_equal(ll_acquire(l, abc, 3, LL_ALL, LEASE_MS), LL_BUSY);
    assert_int_equal(ll_acquire(l, abc, 3, LL_ANY, LEASE_MS), LL_PARTIAL);
    assert_int_equal(ll_release_some(l, (size_t[]){0}, 1), LL_OK);
    assert_int_equal(ll_release(l), LL_OK);
    assert_int_equal(ll_release(m), LL_OK);
    assert_int_equal(ll_acquire(l, keys, MANY, LL_ALL, LEASE_MS), LL_OK);
    assert_int_equal(ll_extend(l, 2 * LEASE_MS), LL_OK);
    assert_int_equal(ll_acquire(m, keys, MANY, LL_ANY, LEASE_MS), LL_BUSY);
    assert_int_equal(ll_release(l), LL_OK);
}

static void use_renewal(struct ll_client *c, struct ll_lock *l)
{
    struct ll_renew_options o = {.size = sizeof o, .interval_ms = 20};
    struct ll_renew_figures f;
    struct ll_renewer *r;

    assert_int_equal(ll_renewer_open(&r, c, &o), LL_OK);
    assert_int_equal(ll_acquire(l, abc, 3, LL_ALL, LEASE_MS), LL_OK);
    assert_int_equal(ll_renew(r, l, 0, 0), LL_OK);
    fixture_pause_ms(200);
    ll_renewer_figures(r, &f);
    assert_true(f.renewals > 1);
    assert_int_equal(ll_release(l), LL_OK);
    ll_renewer_close(r);
}

/* Leaves two keys held, so that there is something to look at in the end. */
static void use_all(struct ll_client *c)
{
    struct ll_lock *l = ll_new(c);
    struct ll_lock *m = ll_new(c);

    use_one(l, m);
    use_many(l, m);
    use_renewal(c, l);
    assert_int_equal(ll_try(l, "left", LEASE_MS), LL_OK);
    assert_int_equal(ll_try(m, "left:too", LEASE_MS), LL_OK);
    ll_free(l);
    ll_free(m);
}

/* ---- in every mode ---- */

static void ttl_always_set(void **state)
{
    struct lock_world *w = *state;
    struct lock_watch watch;
    struct waiter *waiters;

    lock_watch_start(&watch, lock_server.url, "lock:");
    use_all(w->a);
    assert_int_equal(ll_force_release(w->a, "left"), LL_OK);
    waiters = waiters_start(
        8, (struct waiter){.turns = 5, .wait_ms = 10000, .hold_us = 2000});
    waiters_join(waiters, 8);
    free(waiters);
    assert_true(waiters_calls(w, "lpush") > 0); /* wake-ups were pushed */
    lock_watch_stop(&watch, MANY + 50);
}

/* The first that is free is set, the others are copies of it. */
static void ttl_always_set_however_a_key_of_a_batch_is_taken(void **state)
{
    struct lock_world *w = *state;
    struct ll_key keys[40];
    char names[40][16];
    long long copied = waiters_calls(w, "copy");

    for (size_t i = 0; i < 40; i++)
        keys[i] = (struct ll_key){
            names[i], (size_t)snprintf(names[i], sizeof names[i], "k:%zu", i)};
    freeReplyObject(redisCommand(w->raw, "SET lock:k:0 theirs"));
    freeReplyObject(redisCommand(w->raw, "SET lock:k:20 theirs PX 9000"));
    assert_int_equal(ll_acquire(w->la, keys, 40, LL_ANY, LEASE_MS), LL_PARTIAL);
    assert_int_equal(waiters_calls(w, "copy") - copied, 38);
    assert_int_equal(ll_granted(w->la), 38);
    for (int i = 1; i < 40; i++)
        assert_in_range(lock_raw_integer(w, "PTTL lock:k:%d", i), i == 20 ? 8000 : 4000,
                        i == 20 ? 9000 : LEASE_MS);
    assert_int_equal(lock_raw_integer(w, "PTTL lock:k:0"), -1); /* as it was */
}

static void ttl_always_set_without_scripts(void **state)
{
    struct ll_client *c = lock_plain_client(lock_server.url, 0);
    struct lock_watch watch;

    (void)state;
    lock_watch_start(&watch, lock_server.url, "lock:");
    use_all(c);
    lock_watch_stop(&watch, MANY + 10);
    ll_close(c);
}

static void ttl_always_set_with_replicas(void **state)
{
    struct ha_server primary = {0}, replica = {0};
    struct ll_options o = {.size = sizeof o, .url = primary.url, .replicas = 1};
    struct lock_watch watch;
    struct ll_client *c;

    (void)state;
    ha_start(&primary, 0);
    ha_start(&replica, primary.port);
    ha_wait_replicas(&primary, 1);
    assert_int_equal(ll_open(&c, &o, NULL, 0), LL_OK);
    lock_install_epoch(c, 1);
    lock_watch_start(&watch, primary.redis.url, "lock:");
    use_all(c);
    assert_true(ha_integer(&replica, "PTTL lock:left") > 0);
    lock_watch_stop(&watch, MANY + 10);
    ll_close(c);
    ha_close(&replica);
    ha_close(&primary);
}

static void ttl_always_set_over_a_quorum(void **state)
{
    struct lock_watch watches[3];
    struct quorum_world w;

    (void)state;
    quorum_open(&w, 3, true);
    (void)quorum_plant_skew(&w); /* the others have to be told the token */
    for (size_t i = 0; i < 3; i++)
        lock_watch_start(&watches[i], w.servers[i].url, w.prefix);
    use_all(w.b);
    for (size_t i = 0; i < 3; i++)
        lock_watch_stop(&watches[i], MANY + 10);
    quorum_close(&w);
}

/* Every other answer gets lost: what is repeated and what is given back. */
static void lose_answers(bool plain, const char *bytes)
{
    struct lock_remote r = lock_remote_open(0, plain);
    struct lock_watch watch;
    int code;

    lock_watch_start(&watch, lock_server.url, "lock:");
    for (unsigned times = 1; times <= 2; times++) {
        proxy_cut_after(&r.proxy, bytes, strlen(bytes), times);
        code = ll_acquire(r.l, abc, 3, LL_ALL, LEASE_MS);
        assert_true(code == LL_OK || code == LL_E_UNCERTAIN);
        proxy_cut_before(&r.proxy, bytes, strlen(bytes), 1);
        (void)ll_extend(r.l, LEASE_MS);
        proxy_cut_after(&r.proxy, bytes, strlen(bytes), 1);
        (void)ll_release(r.l);
    }
    assert_true(proxy_count(&r.proxy, PROXY_CUTS_AFTER) >= 3);
    assert_true(proxy_count(&r.proxy, PROXY_CUTS_BEFORE) >= 1);
    lock_watch_stop(&watch, 6);
    lock_remote_close(&r);
}

static void ttl_always_set_when_answers_are_lost(void **state)
{
    (void)state;
    lose_answers(false, "EVALSHA");
    lose_answers(true, "EXEC");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        LOCK_TEST(ttl_always_set),
        LOCK_TEST(ttl_always_set_however_a_key_of_a_batch_is_taken),
        LOCK_TEST(ttl_always_set_without_scripts),
        LOCK_TEST(ttl_always_set_when_answers_are_lost),
        cmocka_unit_test(ttl_always_set_with_replicas),
        cmocka_unit_test(ttl_always_set_over_a_quorum),
    };

    fixture_need_servers();
    return cmocka_run_group_tests(tests, lock_start_server, lock_stop_server);
}
