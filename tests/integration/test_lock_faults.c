/* The lock library when Redis is not there, is a replica, is full, refuses the user or
 * forgets the scripts. */
#include "tests/lib/liar.h"
#include "tests/lib/lock_world.h"

#include <pthread.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

/* ---- epoch ---- */

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

/* ---- scripts ---- */

static void script_flush_midway(void **state)
{
    struct lock_world *w = *state;
    const struct ll_key keys[] = {{"user:1", 6}, {"user:2", 6}};
    int64_t number;

    assert_int_equal(ll_connect(w->a), LL_OK);
#define FLUSH_BEFORE(call, code)                                                       \
    lock_raw_do(w, "SCRIPT FLUSH");                                                    \
    assert_int_equal(call, code)
    FLUSH_BEFORE(ll_check_epoch(w->a, &number), LL_OK);
    FLUSH_BEFORE(ll_try(w->la, "user:1", 5000), LL_OK);
    FLUSH_BEFORE(ll_extend(w->la, 6000), LL_OK);
    FLUSH_BEFORE(ll_verify(w->la, &number), LL_OK);
    FLUSH_BEFORE(ll_acquire(w->lb, keys, 2, LL_ALL, 5000), LL_BUSY);
    FLUSH_BEFORE(ll_acquire(w->lb, keys, 2, LL_ANY, 5000), LL_PARTIAL);
    FLUSH_BEFORE(ll_release_some(w->lb, (size_t[]){1}, 1), LL_OK);
    FLUSH_BEFORE(ll_acquire_wait(w->lb, keys, 1, LL_ALL, 5000, 300), LL_TIMEOUT);
    FLUSH_BEFORE(ll_release(w->la), LL_OK);
    FLUSH_BEFORE(ll_install_epoch(w->a, 2, &number), LL_OK);
#undef FLUSH_BEFORE
}

static void *flush_all_the_time(void *arg)
{
    redisContext *raw = lock_raw_connection(lock_server.url);
    atomic_bool *stop = arg;

    while (!atomic_load(stop))
        freeReplyObject(redisCommand(raw, "SCRIPT FLUSH"));
    redisFree(raw);
    return NULL;
}

/* Calls of EVALSHA that failed, as the server counts them. */
static int scripts_missed(struct lock_world *w)
{
    redisReply *info = redisCommand(w->raw, "INFO commandstats");
    const char *at = strstr(info->str, "cmdstat_evalsha:");
    int n;

    assert_non_null(at);
    n = atoi(strstr(at, "failed_calls=") + strlen("failed_calls="));
    freeReplyObject(info);
    return n;
}

/* Also between the loading of a script and its call, and inside the renewer's pipe. */
static void script_flush_midway_at_any_moment(void **state)
{
    struct lock_world *w = *state;
    atomic_bool stop = false;
    pthread_t flusher;

    assert_int_equal(ll_connect(w->a), LL_OK);
    lock_raw_do(w, "CONFIG RESETSTAT");
    assert_int_equal(pthread_create(&flusher, NULL, flush_all_the_time, &stop), 0);
    for (int i = 0; i < 100 || scripts_missed(w) <= 100; i++) {
        assert_true(i < 20000); /* the flusher did not get its turns */
        assert_int_equal(ll_try(w->la, "user:1", 5000), LL_OK);
        assert_int_equal(ll_extend(w->la, 6000), LL_OK);
        assert_int_equal(ll_release(w->la), LL_OK);
    }
    atomic_store(&stop, true);
    (void)pthread_join(flusher, NULL);
}

/* ---- trouble ---- */

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

/* It says so at once, not when two keys are asked for. */
static void server_older_than_the_scripts_is_refused_with_its_version(void **state)
{
    static const char *const versions[] = {"6.0.16", "5.0.14", "6.2.0", "10.1.0",
                                           "unstable"};
    struct liar liar = {0};

    (void)state;
    for (size_t i = 0; i < sizeof versions / sizeof versions[0]; i++) {
        struct ll_client *c;
        struct ll_lock *l;

        liar_open(&liar, versions[i]);
        c = lock_client(liar.url, 10000);
        l = ll_new(c);
        assert_int_equal(ll_try(l, "a", 10000), i < 2 ? LL_E_VERSION : LL_OK);
        if (i < 2)
            assert_non_null(strstr(ll_error(c), versions[i]));
        ll_free(l);
        ll_close(c);
        liar_close(&liar);
    }
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
        LOCK_TEST(lower_epoch_never_replaces_a_higher_one),
        LOCK_TEST(script_flush_midway),
        LOCK_TEST(script_flush_midway_at_any_moment),
        LOCK_TEST(child_of_a_holder_gets_its_own_answer),
        cmocka_unit_test(server_that_is_not_there_is_unavailable_not_busy),
        cmocka_unit_test(replica_is_readonly_not_busy),
        cmocka_unit_test(full_server_says_out_of_memory_not_busy),
        cmocka_unit_test(wrong_password_is_its_own_answer),
        LOCK_TEST(server_older_than_the_scripts_is_refused_with_its_version),
        cmocka_unit_test(bad_urls_are_refused_with_a_reason),
    };

    fixture_need_servers();
    return cmocka_run_group_tests(tests, lock_start_server, lock_stop_server);
}
