/* The lock library when Redis loses its data, freezes, is a replica, evicts, is full,
 * or loses answers. */
#include "tests/lib/lock_world.h"

#include <signal.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "tests/lib/proxy.h"

/* ---- epoch ---- */

static void flushed_redis_grants_nothing_until_a_higher_epoch_is_installed(void **state)
{
    struct lock_world *w = *state;
    int64_t before, current;

    assert_int_equal(ll_try(w->la, "user:1", 5000), LL_OK);
    before = ll_token(w->la);
    lock_raw_do(w, "FLUSHALL");
    assert_int_equal(ll_try(w->lb, "user:1", 5000), LL_E_EPOCH);
    assert_int_equal(ll_check_epoch(w->b, &current), LL_E_EPOCH);
    assert_int_equal(current, 0);
    lock_install_epoch(w->b, 2);
    assert_int_equal(ll_try(w->lb, "user:1", 5000), LL_OK);
    assert_true(ll_token(w->lb) > before);
    assert_int_equal(ll_release(w->la), LL_NOT_OWNER);
}

static void lower_epoch_never_replaces_a_higher_one(void **state)
{
    struct lock_world *w = *state;
    int64_t current;

    lock_install_epoch(w->a, 7);
    assert_int_equal(ll_install_epoch(w->b, 5, &current), LL_OK);
    assert_int_equal(current, 7);
    lock_raw_do(w, "HSET lock:!fence ident other");
    assert_int_equal(ll_install_epoch(w->b, 6, &current), LL_E_EPOCH);
    assert_int_equal(current, 7);
    assert_int_equal(ll_install_epoch(w->b, 8, &current), LL_OK);
    assert_int_equal(ll_install_epoch(w->b, LL_EPOCH_MAX + 1, &current), LL_E_INVAL);
}

static void restart_from_an_old_snapshot_asks_for_a_new_epoch(void **state)
{
    struct fixture_redis own = {0};
    struct ll_client *c;
    struct ll_lock *l;
    int64_t before;

    (void)state;
    fixture_redis_start(&own, "--save", "3600 1", NULL);
    c = lock_client(own.url, 0);
    l = ll_new(c);
    lock_install_epoch(c, 1);
    assert_int_equal(ll_try(l, "user:1", 60000), LL_OK);
    fixture_redis_stop(&own); /* saves: the record is in the dump */
    fixture_redis_start(&own, "--save", "3600 1", NULL);
    before = ll_token(l);
    ll_abandon(l);
    assert_int_equal(ll_try(l, "user:2", 60000), LL_E_EPOCH);
    lock_install_epoch(c, 2);
    assert_int_equal(ll_try(l, "user:2", 60000), LL_OK);
    assert_true(ll_token(l) > before);
    ll_abandon(l);
    assert_int_equal(ll_try(l, "user:1", 60000),
                     LL_BUSY); /* the old key came back too */
    ll_free(l);
    ll_close(c);
    fixture_redis_close(&own);
}

/* ---- trouble ---- */

static void script_flush_is_not_seen_by_the_caller(void **state)
{
    struct lock_world *w = *state;

    assert_int_equal(ll_try(w->la, "user:1", 5000), LL_OK);
    lock_raw_do(w, "SCRIPT FLUSH");
    assert_int_equal(ll_release(w->la), LL_OK);
    lock_raw_do(w, "SCRIPT FLUSH");
    assert_int_equal(ll_try(w->la, "user:1", 5000), LL_OK);
}

static void server_that_is_not_there_is_unavailable_not_busy(void **state)
{
    struct ll_client *c = lock_client("unix:///nowhere/redis.sock", 0);
    struct ll_lock *l = ll_new(c);

    (void)state;
    assert_int_equal(ll_try(l, "user:1", 5000), LL_E_UNAVAILABLE);
    assert_non_null(strstr(ll_error(c), "/nowhere/redis.sock"));
    ll_free(l);
    ll_close(c);
}

/* A stopped server: no answer is uncertain, not busy; what was sent runs late and is
 * refused, so no orphan is left. */
static void frozen_server_is_uncertain_and_leaves_no_orphan(void **state)
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

static void replica_is_readonly_not_busy(void **state)
{
    struct fixture_redis own = {0};
    struct lock_world w = {0};

    (void)state;
    fixture_redis_start(&own, NULL);
    w.a = lock_client(own.url, 0);
    w.la = ll_new(w.a);
    lock_install_epoch(w.a, 1);
    w.raw = lock_raw_connection(own.url);
    lock_raw_do(&w, "REPLICAOF 127.0.0.1 1");
    assert_int_equal(ll_try(w.la, "user:1", 5000), LL_E_READONLY);
    assert_int_equal(ll_connect(w.a),
                     LL_E_READONLY); /* and a fresh connection sees it too */
    lock_raw_do(&w, "REPLICAOF NO ONE");
    assert_int_equal(ll_try(w.la, "user:1", 5000),
                     LL_E_EPOCH); /* promoted: another history */
    redisFree(w.raw);
    ll_free(w.la);
    ll_close(w.a);
    fixture_redis_close(&own);
}

static void evicting_server_is_refused(void **state)
{
    struct fixture_redis own = {0};
    struct ll_client *c;

    (void)state;
    fixture_redis_start(&own, "--maxmemory-policy", "allkeys-lru", NULL);
    c = lock_client(own.url, 0);
    assert_int_equal(ll_connect(c), LL_E_EVICTING);
    assert_non_null(strstr(ll_error(c), "noeviction"));
    ll_close(c);
    fixture_redis_close(&own);
}

static void full_server_says_out_of_memory_not_busy(void **state)
{
    struct fixture_redis own = {0};
    struct ll_client *c;
    struct ll_lock *l;

    (void)state;
    fixture_redis_start(&own, "--maxmemory", "1mb", "--maxmemory-policy", "noeviction",
                        NULL);
    c = lock_client(own.url, 0);
    l = ll_new(c);
    assert_int_equal(ll_try(l, "user:1", 5000), LL_E_EPOCH);
    {
        struct lock_world w = {.raw = lock_raw_connection(own.url)};

        lock_raw_do(&w, "CONFIG SET maxmemory 1");
        redisFree(w.raw);
    }
    {
        int64_t current;

        assert_int_equal(ll_install_epoch(c, 1, &current), LL_E_OOM);
    }
    ll_free(l);
    ll_close(c);
    fixture_redis_close(&own);
}

static void wrong_password_is_its_own_answer(void **state)
{
    struct fixture_redis own = {0};
    struct ll_options o = {.size = sizeof o, .password = "wrong"};
    struct ll_client *c;

    (void)state;
    fixture_redis_start(&own, "--requirepass", "right", NULL);
    o.url = own.url;
    assert_int_equal(ll_open(&c, &o, NULL, 0), LL_OK);
    assert_int_equal(ll_connect(c), LL_E_AUTH);
    ll_close(c);
    o.password = "right";
    assert_int_equal(ll_open(&c, &o, NULL, 0), LL_OK);
    assert_int_equal(ll_connect(c), LL_OK);
    ll_close(c);
    fixture_redis_close(&own);
}

static void lost_answer_of_acquire_is_asked_for_again(void **state)
{
    struct lock_world *w = *state;
    struct proxy p = {0};
    struct ll_client *c;
    struct ll_lock *l;

    proxy_open_redis(&p, lock_server.url);
    c = lock_client(p.url, 0);
    l = ll_new(c);
    assert_int_equal(ll_connect(c), LL_OK);
    proxy_cut_after(&p, "EVALSHA", 7, 1);
    assert_int_equal(ll_try(l, "user:1", 5000), LL_OK);
    assert_int_equal(proxy_count(&p, PROXY_CUTS_AFTER), 1);
    assert_int_equal(lock_raw_integer(w, "HINCRBY lock:!fence n 0"), 1);
    proxy_cut_after(&p, "EVALSHA", 7, 1);
    assert_int_equal(ll_release(l),
                     LL_OK); /* deleted by the first try: still ours until then */
    assert_int_equal(proxy_count(&p, PROXY_CUTS_AFTER), 2);
    assert_int_equal(lock_raw_integer(w, "EXISTS lock:user:1"), 0);
    ll_free(l);
    ll_close(c);
    proxy_close(&p);
}

static void answer_lost_twice_is_uncertain_and_given_back(void **state)
{
    struct lock_world *w = *state;
    struct proxy p = {0};
    struct ll_client *c;
    struct ll_lock *l;

    proxy_open_redis(&p, lock_server.url);
    c = lock_client(p.url, 0);
    l = ll_new(c);
    assert_int_equal(ll_connect(c), LL_OK);
    proxy_cut_after(&p, "EVALSHA", 7, 2);
    assert_int_equal(ll_try(l, "user:1", 60000), LL_E_UNCERTAIN);
    assert_int_equal(proxy_count(&p, PROXY_CUTS_AFTER), 2);
    assert_false(ll_valid(l, 0));
    assert_int_equal(lock_raw_integer(w, "EXISTS lock:user:1"), 0);
    ll_free(l);
    ll_close(c);
    proxy_close(&p);
}

static void child_of_a_holder_gets_its_own_answer(void **state)
{
    struct lock_world *w = *state;
    int status;
    pid_t pid;

    assert_int_equal(ll_try(w->la, "user:1", 5000), LL_OK);
    pid = fork();
    if (pid == 0)
        _exit(ll_release(w->la) == LL_E_FORKED &&
                      ll_try(w->la, "x", 1000) == LL_E_FORKED
                  ? 0
                  : 1);
    assert_int_equal(waitpid(pid, &status, 0), pid);
    assert_int_equal(status, 0);
    assert_int_equal(lock_raw_integer(w, "EXISTS lock:user:1"), 1);
    assert_int_equal(ll_release(w->la), LL_OK);
}

static void bad_urls_are_refused_with_a_reason(void **state)
{
    static const char *const urls[] = {
        "http://x",     "redis://h:0x",  "unix://relative",   "redis://h:99999",
        "redis://[::1", "unix:///s?x=1", "redis://h/notanum", "redis://h?a=b"};

    (void)state;
    for (size_t i = 0; i < sizeof urls / sizeof urls[0]; i++) {
        struct ll_options o = {.size = sizeof o, .url = urls[i]};
        struct ll_client *c;
        char why[160] = "";

        assert_int_equal(ll_open(&c, &o, why, sizeof why), LL_E_INVAL);
        assert_null(c);
        assert_true(why[0] != '\0');
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        LOCK_TEST(flushed_redis_grants_nothing_until_a_higher_epoch_is_installed),
        LOCK_TEST(lower_epoch_never_replaces_a_higher_one),
        LOCK_TEST(script_flush_is_not_seen_by_the_caller),
        LOCK_TEST(lost_answer_of_acquire_is_asked_for_again),
        LOCK_TEST(answer_lost_twice_is_uncertain_and_given_back),
        LOCK_TEST(child_of_a_holder_gets_its_own_answer),
        cmocka_unit_test(restart_from_an_old_snapshot_asks_for_a_new_epoch),
        cmocka_unit_test(server_that_is_not_there_is_unavailable_not_busy),
        cmocka_unit_test(frozen_server_is_uncertain_and_leaves_no_orphan),
        cmocka_unit_test(replica_is_readonly_not_busy),
        cmocka_unit_test(evicting_server_is_refused),
        cmocka_unit_test(full_server_says_out_of_memory_not_busy),
        cmocka_unit_test(wrong_password_is_its_own_answer),
        cmocka_unit_test(bad_urls_are_refused_with_a_reason),
    };

    fixture_need_servers();
    return cmocka_run_group_tests(tests, lock_start_server, lock_stop_server);
}
