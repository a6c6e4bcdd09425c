/* Answers of Redis that get lost, commands that run late, answers that come late. */
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>

#include "common/lock/internal.h"
#include "tests/lib/lock_remote.h"
#include "tests/lib/lock_waiters.h"

/* ---- lost ---- */

static void acquire_reply_lost(void **state)
{
    struct lock_world *w = *state;
    struct lock_remote r = lock_remote_open(0, false);
    int64_t from = ll_now_ms(), left_ms;

    proxy_cut_after(&r.proxy, "EVALSHA", 7, 1);
    assert_int_equal(ll_try(r.l, "user:1", 60000), LL_OK);
    assert_in_range(ll_now_ms() - from, 0, 2000); /* not the lease */
    assert_int_equal(proxy_count(&r.proxy, PROXY_CUTS_AFTER), 1);
    assert_int_equal(lock_raw_integer(w, "HINCRBY lock:!fence n 0"), 1);
    assert_int_equal(ll_token(r.l), (INT64_C(1) << 40) + 1);
    assert_int_equal(ll_verify(r.l, &left_ms), LL_OK);
    lock_remote_close(&r);
}

static void release_reply_lost(void **state)
{
    struct lock_world *w = *state;
    struct lock_remote r = lock_remote_open(0, false);

    assert_int_equal(ll_try(r.l, "user:1", 60000), LL_OK);
    proxy_cut_after(&r.proxy, "EVALSHA", 7, 1);
    assert_int_equal(ll_release(r.l), LL_OK); /* asks again by itself */
    assert_int_equal(proxy_count(&r.proxy, PROXY_CUTS_AFTER), 1);
    assert_int_equal(lock_raw_integer(w, "EXISTS lock:user:1"), 0);
    assert_int_equal(ll_release(r.l), LL_OK);
    lock_remote_close(&r);
}

/* The caller asks again: what a try without an answer deleted was ours until then. */
static void release_reply_lost_twice(void **state)
{
    struct lock_world *w = *state;
    struct lock_remote r = lock_remote_open(0, false);

    assert_int_equal(ll_try(r.l, "user:1", 60000), LL_OK);
    proxy_cut_after(&r.proxy, "EVALSHA", 7, 2);
    assert_int_equal(ll_release(r.l), LL_E_UNCERTAIN);
    assert_int_equal(proxy_count(&r.proxy, PROXY_CUTS_AFTER), 2);
    assert_int_equal(lock_raw_integer(w, "EXISTS lock:user:1"), 0);
    assert_int_equal(ll_release(r.l), LL_OK);
    assert_int_equal(ll_release(r.l), LL_OK);
    lock_remote_close(&r);
}

/* The first thousand keys are gone when the release of the others fails. */
static void lose_second_chunk(struct lock_world *w, bool plain)
{
    enum { KEYS = LL_KEYS_MAX + 10 };

    static struct ll_key keys[KEYS];
    static char names[KEYS][16];
    struct lock_remote r = lock_remote_open(0, plain);

    for (size_t i = 0; i < KEYS; i++)
        keys[i] = (struct ll_key){
            names[i], (size_t)snprintf(names[i], sizeof names[i], "k:%04zu", i)};
    assert_int_equal(ll_acquire(r.l, keys, KEYS, LL_ALL, 60000), LL_OK);
    proxy_cut_before(&r.proxy, "lock:k:1005", 11, 9);
    assert_true(ll_release(r.l) < 0);
    assert_true(proxy_count(&r.proxy, PROXY_CUTS_BEFORE) >= 2);
    assert_int_equal(lock_raw_integer(w, "DBSIZE"), 10 + 1);
    proxy_pass(&r.proxy);
    assert_int_equal(ll_release(r.l), LL_OK);
    assert_int_equal(lock_raw_integer(w, "DBSIZE"), 1);
    lock_remote_close(&r);
}

static void release_reply_lost_in_the_second_chunk(void **state)
{
    lose_second_chunk(*state, false);
    lose_second_chunk(*state, true);
}

static void answer_lost_twice_is_uncertain_and_given_back(void **state)
{
    struct lock_world *w = *state;
    struct lock_remote r = lock_remote_open(0, false);

    proxy_cut_after(&r.proxy, "EVALSHA", 7, 2);
    assert_int_equal(ll_try(r.l, "user:1", 60000), LL_E_UNCERTAIN);
    assert_int_equal(proxy_count(&r.proxy, PROXY_CUTS_AFTER), 2);
    assert_false(ll_valid(r.l, 0));
    assert_int_equal(lock_raw_integer(w, "EXISTS lock:user:1"), 0);
    lock_remote_close(&r);
}

/* ---- commands that run late ---- */

/* Both tries of the acquire come to the server two seconds late; the rollback, over
 * another connection, long before them. */
static void acquire_late_execution(void **state)
{
    struct lock_world *w = *state;
    struct lock_remote r = lock_remote_open(300, false);
    long long before = waiters_calls(w, "evalsha");

    proxy_late(&r.proxy, "lock:!fence", 11, 2, 2000);
    assert_int_equal(ll_try(r.l, "user:1", 60000), LL_E_UNCERTAIN);
    assert_int_equal(proxy_count(&r.proxy, PROXY_LATE), 0);
    assert_int_equal(waiters_calls(w, "evalsha") - before, 1); /* the rollback */
    assert_true(proxy_wait(&r.proxy, PROXY_LATE, 2, 10));
    for (int i = 0; i < 100 && waiters_calls(w, "evalsha") - before < 3; i++)
        fixture_pause_ms(10);
    assert_int_equal(waiters_calls(w, "evalsha") - before, 3); /* they did run */
    assert_int_equal(lock_raw_integer(w, "EXISTS lock:user:1"), 0);
    assert_int_equal(lock_raw_integer(w, "HINCRBY lock:!fence n 0"), 0);
    assert_int_equal(ll_try(w->lb, "user:1", 60000), LL_OK);
    lock_remote_close(&r);
}

/* A stopped server: no answer is uncertain, not busy; what was sent runs late and is
 * refused, so no orphan is left. */
static void acquire_late_execution_on_a_frozen_server(void **state)
{
    struct fixture_redis own = {0};
    struct lock_world w = {0};

    (void)state;
    fixture_redis_start(&own, NULL);
    w.a = lock_client(own.url, 200);
    w.la = ll_new(w.a);
    lock_install_epoch(w.a, 1);
    assert_int_equal(kill(own.pid, SIGSTOP), 0);
    assert_int_equal(ll_try(w.la, "user:1", 60000), LL_E_UNCERTAIN);
    fixture_pause_ms(400);
    assert_int_equal(kill(own.pid, SIGCONT), 0);
    w.raw = lock_raw_connection(own.url);
    assert_int_equal(lock_raw_integer(&w, "EXISTS lock:user:1"), 0);
    assert_int_equal(ll_try(w.la, "user:1", 60000), LL_OK);
    redisFree(w.raw);
    ll_free(w.la);
    ll_close(w.a);
    fixture_redis_close(&own);
}

/* ---- answers that come late ---- */

/* The next answer of the server is late, those behind it are not. */
struct late {
    pthread_t thread;
    struct proxy *proxy;
    unsigned before;
};

static void *let_one_be_late(void *arg)
{
    struct late *late = arg;

    (void)proxy_wait(late->proxy, PROXY_DELAYED, late->before + 1, 10);
    proxy_delay(late->proxy, 0);
    return NULL;
}

static void begin_late(struct late *late, struct proxy *p)
{
    late->proxy = p;
    late->before = proxy_count(p, PROXY_DELAYED);
    proxy_delay(p, 300); /* the client waits 200 */
    assert_int_equal(pthread_create(&late->thread, NULL, let_one_be_late, late), 0);
}

static void end_late(struct late *late)
{
    (void)pthread_join(late->thread, NULL);
    assert_true(proxy_count(late->proxy, PROXY_DELAYED) > late->before);
}

/* "held" is busy and "free:N" is not, the lock is whole, the epoch is 1: an answer that
 * is taken for the next one is seen. */
static void mix_up(struct lock_world *w, bool plain)
{
    struct lock_remote r = lock_remote_open(200, plain);
    int64_t number;

    assert_int_equal(ll_try(w->lb, "held", 60000), LL_OK);
    for (int i = 0; i < 3; i++) {
        struct late late;
        char name[24];

        (void)snprintf(name, sizeof name, "free:%d", i);
        begin_late(&late, &r.proxy);
        assert_int_equal(ll_try(r.l, "held", 5000), LL_BUSY);
        assert_int_equal(ll_try(r.l, name, 5000), LL_OK);
        end_late(&late);
        begin_late(&late, &r.proxy);
        assert_int_equal(ll_verify(r.l, &number), LL_OK);
        assert_int_equal(ll_check_epoch(r.c, &number), LL_OK);
        assert_int_equal(number, 1);
        end_late(&late);
        fixture_pause_ms(i * 150); /* the late answer has come, or has not */
        assert_int_equal(ll_release(r.l), LL_OK);
    }
    assert_int_equal(lock_raw_integer(w, "DBSIZE"), 2); /* "held" and the record */
    assert_int_equal(ll_release(w->lb), LL_OK);
    lock_remote_close(&r);
}

static void stale_reply_never_matched(void **state)
{
    mix_up(*state, false);
}

static void stale_reply_never_matched_without_scripts(void **state)
{
    mix_up(*state, true);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        LOCK_TEST(acquire_reply_lost),
        LOCK_TEST(release_reply_lost),
        LOCK_TEST(release_reply_lost_twice),
        LOCK_TEST(release_reply_lost_in_the_second_chunk),
        LOCK_TEST(answer_lost_twice_is_uncertain_and_given_back),
        LOCK_TEST(acquire_late_execution),
        LOCK_TEST(stale_reply_never_matched),
        LOCK_TEST(stale_reply_never_matched_without_scripts),
        cmocka_unit_test(acquire_late_execution_on_a_frozen_server),
    };

    fixture_need_servers();
    return cmocka_run_group_tests(tests, lock_start_server, lock_stop_server);
}
