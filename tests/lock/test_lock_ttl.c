/* No code path of the library makes a lock key without an end: every command that the
 * servers run is watched while the library does all that it can, in every mode. */
#include "tests/lib/ha_world.h"
#include "tests/lib/lock_waiters.h"
#include "tests/lib/lock_watch.h"
#include "tests/lib/quorum_world.h"
#include "tests/lib/renew_world.h"

enum { LEASE_MS = 5000, MANY = LL_KEYS_MAX };

static const struct ll_key abc[] = {{"a", 1}, {"b", 1}, {"c", 1}};

/* ---- what the library can do ---- */

static void use_one(struct ll_lock *l, struct ll_lock *m)
{
    int64_t left_ms;

    assert_int_equal(ll_try(l, "a", LEASE_MS), LL_OK);
    assert_int_equal(ll_try(m, "a", LEASE_MS), LL_BUSY);
    assert_int_equal(lock_wait_in_vain(m, abc, 1, LEASE_MS, 150), LL_TIMEOUT);
    assert_int_equal(ll_extend(l, 2 * LEASE_MS), LL_OK);
    assert_int_equal(ll_verify(l, &left_ms), LL_OK);
    assert_int_equal(ll_release(l), LL_OK);
    assert_int_equal(ll_release(l), LL_OK);
    assert_int_equal(ll_try(l, "short", 300), LL_OK);
    fixture_pause_ms(350);
    assert_int_equal(ll_extend(l, LEASE_MS), LL_LOST);
    assert_int_equal(ll_release(l), LL_GONE);
}

static void use_many(struct ll_lock *l, struct ll_lock *m)
{
    const struct ll_key *keys = lock_keys(MANY, 1);

    assert_int_equal(ll_try(m, "b", LEASE_MS), LL_OK);
    assert_int_equal(ll_acquire(l, abc, 3, LL_ALL, LEASE_MS), LL_BUSY);
    assert_int_equal(ll_acquire(l, abc, 3, LL_ANY, LEASE_MS), LL_PARTIAL);
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
    RENEWER *r;

    assert_int_equal(ll_renewer_open(&r, c, &o), LL_OK);
    assert_int_equal(ll_acquire(l, abc, 3, LL_ALL, LEASE_MS), LL_OK);
    assert_int_equal(ll_renew(r, l, 0, 0), LL_OK);
    await_renewals(r, 2);
    assert_int_equal(ll_release(l), LL_OK);
}

/* Leaves two keys held, so that there is something to look at in the end. */
static void use_all(struct ll_client *c)
{
    LOCK *l = ll_new(c);
    LOCK *m = ll_new(c);

    use_one(l, m);
    use_many(l, m);
    use_renewal(c, l);
    assert_int_equal(ll_try(l, "left", LEASE_MS), LL_OK);
    assert_int_equal(ll_try(m, "left:too", LEASE_MS), LL_OK);
}

/* ---- in every mode ---- */

/* Guarantee: Nothing that the library runs leaves a lock key without an end. */
LOCK_CASE(ttl_always_set)
{
    struct lock_watch watch;
    struct waiter *waiters;

    lock_watch_start(&watch, lock_server.url, "lock:");
    use_all(w->a);
    assert_int_equal(lock_force(w->a, "left"), LL_OK);
    waiters = waiters_start(
        8, (struct waiter){.rounds = 5, .wait_ms = 10000, .hold_us = 2000});
    waiters_join(waiters, 8);
    free(waiters);
    assert_true(waiters_calls(w, "lpush") > 0); /* wake-ups were pushed */
    lock_watch_stop(&watch, MANY + 50);
}

/* The first that is free is set, the others are copies of it. */
LOCK_CASE(ttl_always_set_however_a_key_of_a_batch_is_taken)
{
    long long copied = waiters_calls(w, "copy");

    lock_raw_do(w, "SET lock:k:0 theirs");
    lock_raw_do(w, "SET lock:k:20 theirs PX 9000");
    assert_int_equal(ll_acquire(w->la, lock_keys(40, 1), 40, LL_ANY, LEASE_MS),
                     LL_PARTIAL);
    assert_int_equal(waiters_calls(w, "copy") - copied, 38);
    assert_int_equal(ll_granted(w->la), 38);
    for (int i = 1; i < 40; i++)
        assert_in_range(lock_raw_integer(w, "PTTL lock:k:%d", i), i == 20 ? 8000 : 4000,
                        i == 20 ? 9000 : LEASE_MS);
    assert_int_equal(lock_raw_integer(w, "PTTL lock:k:0"), -1); /* as it was */
}

/* Guarantee: No lock key is without an end when replicas are waited for. */
LOCK_CASE(ttl_always_set_with_replicas)
{
    SERVER primary = {0}, replica = {0};
    struct lock_watch watch;
    CLIENT *c;

    ha_start(&primary, 0);
    ha_start(&replica, primary.port);
    ha_wait_replicas(&primary, 1);
    c = LOCK_OPEN(.url = primary.url, .replicas = 1, .reply_ms = LOCK_SOON_MS);
    lock_watch_start(&watch, primary.redis.url, "lock:");
    use_all(c);
    assert_true(ha_integer(&replica, "PTTL lock:left") > 0);
    lock_watch_stop(&watch, MANY + 10);
}

/* Guarantee: No lock key is without an end on a quorum. */
CASE(ttl_always_set_over_a_quorum)
{
    struct lock_watch watches[3];
    QUORUM w;

    quorum_open(&w, 3, QUORUM_MAX_LEASE_MS);
    quorum_set_last(&w, 0, quorum_ahead_us()); /* the others have to be told */
    for (size_t i = 0; i < 3; i++)
        lock_watch_start(&watches[i], w.servers[i].url, w.prefix);
    use_all(w.b);
    for (size_t i = 0; i < 3; i++)
        lock_watch_stop(&watches[i], MANY + 10);
}

/* Every other answer gets lost: what is repeated and what is given back. */
/* Guarantee: No lock key is without an end when answers are lost. */
LOCK_CASE(ttl_always_set_when_answers_are_lost)
{
    static const char bytes[] = "EVALSHA";
    REMOTE r = lock_remote_open(0);
    struct lock_watch watch;
    int code;

    lock_watch_start(&watch, lock_server.url, "lock:");
    for (unsigned times = 1; times <= 4; times++) {
        proxy_cut_after(&r.proxy, bytes, strlen(bytes), times);
        code = ll_acquire(r.l, abc, 3, LL_ALL, LEASE_MS);
        assert_true(code == LL_OK || code == LL_E_UNCERTAIN);
        proxy_cut_before(&r.proxy, bytes, strlen(bytes), 1);
        assert_int_equal(ll_extend(r.l, LEASE_MS), code == LL_OK ? LL_OK : LL_E_INVAL);
        proxy_cut_after(&r.proxy, bytes, strlen(bytes), 1);
        assert_int_equal(ll_release(r.l), code == LL_OK ? LL_OK : LL_GONE);
        proxy_pass(&r.proxy);
    }
    assert_true(proxy_count(&r.proxy, PROXY_CUTS_AFTER) >= 10);
    assert_true(proxy_count(&r.proxy, PROXY_CUTS_BEFORE) >= 1);
    lock_watch_stop(&watch, 6);
}
