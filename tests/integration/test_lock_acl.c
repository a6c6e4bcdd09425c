/* The users of config/redis-acl.example: enough for the lock library, and nothing more.
 */
#include "tests/lib/ha_world.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { SERVERS = 3, MAX_LEASE_MS = 9000 };

static struct fixture_redis servers[SERVERS];
static int ports[SERVERS];

static int start_servers(void **state)
{
    const char *source = getenv("LEDGERLOCK_TEST_SOURCE");
    char file[512], text[8];

    (void)state;
    (void)snprintf(file, sizeof file, "%s/config/redis-acl.example", source);
    for (size_t i = 0; i < SERVERS; i++) {
        ports[i] = ha_free_port();
        (void)snprintf(text, sizeof text, "%d", ports[i]);
        fixture_redis_start(&servers[i], "--port", text, "--include", file, NULL);
    }
    return 0;
}

static int stop_servers(void **state)
{
    (void)state;
    for (size_t i = 0; i < SERVERS; i++)
        fixture_redis_close(&servers[i]);
    return 0;
}

static int flush(void **state)
{
    (void)state;
    for (size_t i = 0; i < SERVERS; i++) {
        redisContext *raw = lock_raw_connection(servers[i].url);

        freeReplyObject(redisCommand(raw, "FLUSHALL"));
        redisFree(raw);
    }
    return 0;
}

/* A client of the first n servers, database 1. */
static struct ll_client *client_of(size_t n, const char *user, bool no_scripts)
{
    struct ll_options o = {
        .size = sizeof o, .no_scripts = no_scripts, .max_lease_ms = MAX_LEASE_MS};
    struct ll_client *c;
    char url[256];
    int at = 0;

    for (size_t i = 0; i < n; i++)
        at += snprintf(url + at, sizeof url - (size_t)at, "%sredis://%s@127.0.0.1:%d/1",
                       i > 0 ? "," : "", user, ports[i]);
    o.url = url;
    assert_int_equal(ll_open(&c, &o, NULL, 0), LL_OK);
    return c;
}

static struct ll_client *client_as(const char *user)
{
    return client_of(1, user, false);
}

static void check(struct ll_client *c, int code, int wanted)
{
    if (code != wanted)
        fail_msg("%s: %s", ll_strerror(code), ll_error(c));
}

/* Every beat of a worker, with two clients so that one waits for the other. */
static void use_everything(struct ll_client *a, struct ll_client *b)
{
    const struct ll_key keys[] = {{"user:1", 6}, {"user:2", 6}};
    struct ll_lock *la = ll_new(a);
    struct ll_lock *lb = ll_new(b);
    int64_t number;

    check(a, ll_acquire(la, keys, 1, LL_ALL, 5000), LL_OK);
    check(b, ll_acquire(lb, keys, 2, LL_ANY, 5000), LL_PARTIAL);
    check(b, ll_release(lb), LL_OK);
    check(b, ll_acquire_wait(lb, keys, 2, LL_ALL, 5000, 300), LL_TIMEOUT);
    check(a, ll_extend(la, 9000), LL_OK);
    check(a, ll_verify(la, &number), LL_OK);
    check(a, ll_release(la), LL_OK);
    check(b, ll_acquire_wait(lb, keys, 2, LL_ALL, 5000, 300), LL_OK);
    check(b, ll_release(lb), LL_OK);
    ll_free(la);
    ll_free(lb);
}

static void use_epoch(struct ll_client *c)
{
    int64_t current;

    check(c, ll_install_epoch(c, 1, &current), LL_OK);
    check(c, ll_check_epoch(c, &current), LL_OK);
}

static void renew_one(struct ll_client *c)
{
    struct ll_renew_options o = {.size = sizeof o, .interval_ms = 50};
    struct ll_lock *l = ll_new(c);
    struct ll_renewer *r;

    assert_int_equal(ll_renewer_open(&r, c, &o), LL_OK);
    check(c, ll_try(l, "user:3", 400), LL_OK);
    assert_int_equal(ll_renew(r, l, 0, 0), LL_OK);
    fixture_pause_ms(800);
    assert_true(ll_valid(l, 0));
    check(c, ll_release(l), LL_OK);
    ll_renewer_close(r);
    ll_free(l);
}

static void worker_can_do_all_that_the_library_does(void **state)
{
    struct ll_client *a = client_as("ledgerlock:change-me");
    struct ll_client *b = client_as("ledgerlock:change-me");

    (void)state;
    use_epoch(a);
    use_everything(a, b);
    renew_one(a);
    ll_close(a);
    ll_close(b);
}

static void worker_without_scripts_can_do_all_that_the_library_does(void **state)
{
    struct ll_client *a = client_of(1, "ledgerlock-plain:change-me", true);
    struct ll_client *b = client_of(1, "ledgerlock-plain:change-me", true);

    (void)state;
    use_epoch(a);
    use_everything(a, b);
    ll_close(a);
    ll_close(b);
}

static void worker_of_a_quorum_can_do_all_that_the_library_does(void **state)
{
    struct ll_client *a = client_of(SERVERS, "ledgerlock-quorum:change-me", false);
    struct ll_client *b = client_of(SERVERS, "ledgerlock-quorum:change-me", false);
    int64_t wait_ms;

    (void)state;
    while (ll_seed(a, 0, &wait_ms) == LL_E_AMNESIA)
        fixture_pause_ms(200);
    check(a, ll_seed(a, 0, &wait_ms), LL_OK);
    use_everything(a, b);
    renew_one(a);
    ll_close(a);
    ll_close(b);
}

static void count_one(const struct ll_held *held, void *arg)
{
    assert_string_equal(held->name, "user:9");
    assert_true(held->token > 0 && held->left_ms > 0);
    ++*(int *)arg;
}

static void operator_can_list_and_release(void **state)
{
    struct ll_client *worker = client_as("ledgerlock:change-me");
    struct ll_client *boss = client_as("ledgerlock-operator:change-me");
    struct ll_lock *l = ll_new(worker);
    int64_t current;
    int n = 0;

    (void)state;
    check(worker, ll_install_epoch(worker, 1, &current), LL_OK);
    check(worker, ll_try(l, "user:9", 5000), LL_OK);
    check(boss, ll_list(boss, count_one, &n), LL_OK);
    assert_int_equal(n, 1);
    check(boss, ll_force_release(boss, "user:9"), LL_OK);
    check(worker, ll_release(l), LL_GONE);
    check(worker, ll_try(l, "user:9", 5000), LL_OK);
    ll_free(l);
    ll_close(worker);
    ll_close(boss);
}

static void prefix_of_others_is_refused_as_a_right_not_as_busy(void **state)
{
    struct ll_options o = {.size = sizeof o, .prefix = "other:"};
    struct ll_client *c;
    char url[128];
    int64_t current;

    (void)state;
    (void)snprintf(url, sizeof url, "redis://ledgerlock:change-me@127.0.0.1:%d",
                   ports[0]);
    o.url = url;
    assert_int_equal(ll_open(&c, &o, NULL, 0), LL_OK);
    assert_int_equal(ll_install_epoch(c, 1, &current), LL_E_AUTH);
    ll_close(c);
}

static void key_is_given_back_where_the_next_is_refused(void **state)
{
    redisContext *raw = lock_raw_connection(servers[0].url);
    const struct ll_key keys[] = {{"user:1", 6}, {"user:2", 6}};
    struct ll_client *c;
    struct ll_lock *l;
    redisReply *left;

    (void)state;
    freeReplyObject(
        redisCommand(raw, "ACL SETUSER endless reset on >change-me ~* +@all -copy"));
    c = client_as("endless:change-me");
    l = ll_new(c);
    use_epoch(c);
    assert_int_equal(ll_acquire(l, keys, 2, LL_ANY, 5000), LL_E_AUTH);
    freeReplyObject(redisCommand(raw, "SELECT 1"));
    left = redisCommand(raw, "KEYS *");
    assert_int_equal(left->elements, 1); /* the record */
    freeReplyObject(left);
    ll_free(l);
    ll_close(c);
    redisFree(raw);
}

static void wrong_user_and_wrong_password_are_their_own_answer(void **state)
{
    static const char *const users[] = {"nobody:change-me", "ledgerlock:wrong"};

    (void)state;
    for (size_t i = 0; i < sizeof users / sizeof users[0]; i++) {
        struct ll_client *c = client_as(users[i]);

        assert_int_equal(ll_connect(c), LL_E_AUTH);
        assert_null(strstr(ll_error(c), "change-me"));
        ll_close(c);
    }
}

static void user_of_a_unix_socket(void **state)
{
    struct ll_options o = {.size = sizeof o};
    struct ll_client *c;
    char url[2048];

    (void)state;
    (void)snprintf(url, sizeof url, "unix://ledgerlock:change%%2dme@%s",
                   servers[0].url + strlen("unix://"));
    o.url = url;
    assert_int_equal(ll_open(&c, &o, NULL, 0), LL_OK);
    use_epoch(c);
    ll_close(c);
    (void)snprintf(url, sizeof url, "unix://nobody:x@%s",
                   servers[0].url + strlen("unix://"));
    assert_int_equal(ll_open(&c, &o, NULL, 0), LL_OK);
    assert_int_equal(ll_connect(c), LL_E_AUTH);
    ll_close(c);
}

static void expect_refused(redisContext *raw, const char *command)
{
    redisReply *reply = redisCommand(raw, command);

    assert_non_null(reply);
    if (reply->type != REDIS_REPLY_ERROR || strncmp(reply->str, "NOPERM", 6) != 0)
        fail_msg("%s is not refused", command);
    freeReplyObject(reply);
}

static void everything_else_is_refused(void **state)
{
    static const char *const users[] = {"ledgerlock", "ledgerlock-quorum",
                                        "ledgerlock-plain", "ledgerlock-operator"};
    static const char *const commands[] = {"FLUSHALL",
                                           "FLUSHDB",
                                           "KEYS *",
                                           "CONFIG GET *",
                                           "CONFIG SET maxmemory 1",
                                           "MONITOR",
                                           "CLIENT LIST",
                                           "ACL LIST",
                                           "SCRIPT FLUSH",
                                           "SHUTDOWN",
                                           "REPLICAOF NO ONE",
                                           "SUBSCRIBE x",
                                           "PUBLISH x y",
                                           "DEL other",
                                           "PTTL other",
                                           "GET other"};

    (void)state;
    for (size_t u = 0; u < sizeof users / sizeof users[0]; u++) {
        redisContext *raw = lock_raw_connection(servers[0].url);
        redisReply *reply = redisCommand(raw, "AUTH %s change-me", users[u]);

        assert_int_equal(reply->type, REDIS_REPLY_STATUS);
        freeReplyObject(reply);
        for (size_t i = 0; i < sizeof commands / sizeof commands[0]; i++)
            expect_refused(raw, commands[i]);
        redisFree(raw);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup(worker_can_do_all_that_the_library_does, flush),
        cmocka_unit_test_setup(worker_without_scripts_can_do_all_that_the_library_does,
                               flush),
        cmocka_unit_test_setup(worker_of_a_quorum_can_do_all_that_the_library_does,
                               flush),
        cmocka_unit_test_setup(operator_can_list_and_release, flush),
        cmocka_unit_test_setup(prefix_of_others_is_refused_as_a_right_not_as_busy,
                               flush),
        cmocka_unit_test_setup(key_is_given_back_where_the_next_is_refused, flush),
        cmocka_unit_test_setup(wrong_user_and_wrong_password_are_their_own_answer,
                               flush),
        cmocka_unit_test_setup(user_of_a_unix_socket, flush),
        cmocka_unit_test_setup(everything_else_is_refused, flush),
    };

    fixture_need_servers();
    return cmocka_run_group_tests(tests, start_servers, stop_servers);
}
