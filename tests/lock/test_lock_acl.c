/* The users of config/redis-acl.example: enough for the lock library, and nothing more.
 */
#include "tests/lib/ha_world.h"

enum { SERVERS = 3, MAX_LEASE_MS = 9000 };

static struct fixture_redis servers[SERVERS];
static int ports[SERVERS];

static void start_servers(void)
{
    const char *source = getenv("LL_TEST_SOURCE");
    char file[512], text[8];

    (void)snprintf(file, sizeof file, "%s/config/redis-acl.example", source);
    for (size_t i = 0; i < SERVERS; i++) {
        ports[i] = fixture_free_port();
        (void)snprintf(text, sizeof text, "%d", ports[i]);
        fixture_redis_start(&servers[i], "--port", text, "--include", file, NULL);
    }
}

static void stop_servers(void)
{
    for (size_t i = 0; i < SERVERS; i++)
        fixture_redis_close(&servers[i]);
}

static void flush(void)
{
    for (size_t i = 0; i < SERVERS; i++) {
        CONTEXT *raw = lock_raw_connection(servers[i].url);

        freeReplyObject(redisCommand(raw, "FLUSHALL"));
    }
}

GROUP(.start = start_servers, .stop = stop_servers, .open = flush);

static struct ll_client *client_at(const char *url, const char *prefix)
{
    return lock_open(&(struct ll_options){.size = sizeof(struct ll_options),
                                          .url = url,
                                          .prefix = prefix,
                                          .connect_ms = LOCK_SOON_MS,
                                          .reply_ms = LOCK_SOON_MS,
                                          .max_lease_ms = MAX_LEASE_MS});
}

/* A client of the first n servers, database 1. */
static struct ll_client *client_of(size_t n, const char *user)
{
    char url[256];
    int at = 0;

    for (size_t i = 0; i < n; i++)
        at += snprintf(url + at, sizeof url - (size_t)at, "%sredis://%s@127.0.0.1:%d/1",
                       i > 0 ? "," : "", user, ports[i]);
    return client_at(url, NULL);
}

static struct ll_client *client_as(const char *user)
{
    return client_of(1, user);
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
    LOCK *la = ll_new(a);
    LOCK *lb = ll_new(b);
    int64_t number;

    check(a, ll_acquire(la, keys, 1, LL_ALL, MAX_LEASE_MS), LL_OK);
    check(b, ll_acquire(lb, keys, 2, LL_ANY, MAX_LEASE_MS), LL_PARTIAL);
    check(b, ll_release(lb), LL_OK);
    check(b, lock_wait_in_vain(lb, keys, 2, MAX_LEASE_MS, 300), LL_TIMEOUT);
    check(a, ll_extend(la, MAX_LEASE_MS), LL_OK);
    check(a, ll_verify(la, &number), LL_OK);
    check(a, ll_release(la), LL_OK);
    check(b, ll_acquire_wait(lb, keys, 2, LL_ALL, MAX_LEASE_MS, LOCK_SOON_MS, -1),
          LL_OK);
    check(b, ll_release(lb), LL_OK);
}

static void renew_one(struct ll_client *c)
{
    struct ll_renew_options o = {.size = sizeof o, .interval_ms = 50};
    LOCK *l = ll_new(c);
    RENEWER *r;

    assert_int_equal(ll_renewer_open(&r, c, &o), LL_OK);
    check(c, ll_try(l, "user:3", 4000), LL_OK);
    assert_int_equal(ll_renew(r, l, 0, 0), LL_OK);
    fixture_pause_ms(4500);
    assert_true(ll_valid(l, 0));
    check(c, ll_release(l), LL_OK);
}

CASE(worker_can_do_all_that_the_library_does)
{
    CLIENT *a = client_as("ledgerlock:change-me");
    CLIENT *b = client_as("ledgerlock:change-me");

    use_everything(a, b);
    renew_one(a);
}

CASE(worker_of_a_quorum_can_do_all_that_the_library_does)
{
    CLIENT *a = client_of(SERVERS, "ledgerlock-quorum:change-me");
    CLIENT *b = client_of(SERVERS, "ledgerlock-quorum:change-me");
    LOCK *l = ll_new(a);

    /* Until they are up for longer than a lease. */
    LOCK_AWAIT(ll_try(l, "first", 1000) == LL_OK);
    check(a, ll_release(l), LL_OK);
    use_everything(a, b);
    renew_one(a);
}

static void count_one(const struct ll_held *held, void *arg)
{
    assert_string_equal(held->name, "user:9");
    assert_true(held->token > 0 && held->left_ms > 0);
    ++*(int *)arg;
}

CASE(operator_can_list_and_release)
{
    CLIENT *worker = client_as("ledgerlock:change-me");
    CLIENT *boss = client_as("ledgerlock-operator:change-me");
    LOCK *l = ll_new(worker);
    int n = 0;

    check(worker, ll_try(l, "user:9", 5000), LL_OK);
    check(boss, ll_list(boss, count_one, &n), LL_OK);
    assert_int_equal(n, 1);
    check(boss, lock_force(boss, "user:9"), LL_OK);
    check(worker, ll_release(l), LL_GONE);
    check(worker, ll_try(l, "user:9", 5000), LL_OK);
}

CASE(prefix_of_others_is_refused_as_a_right_not_as_busy)
{
    char url[128];
    CLIENT *c;
    LOCK *l;

    (void)snprintf(url, sizeof url, "redis://ledgerlock:change-me@127.0.0.1:%d",
                   ports[0]);
    c = client_at(url, "other:");
    l = ll_new(c);
    assert_int_equal(ll_connect(c), LL_E_AUTH);
    assert_int_equal(ll_try(l, "user:1", 5000), LL_E_AUTH);
}

CASE(key_is_given_back_where_the_next_is_refused)
{
    CONTEXT *raw = lock_raw_connection(servers[0].url);
    const struct ll_key keys[] = {{"user:1", 6}, {"user:2", 6}};
    CLIENT *c;
    LOCK *l;
    redisReply *left;

    freeReplyObject(
        redisCommand(raw, "ACL SETUSER forbidden reset on >change-me ~* +@all -copy"));
    c = client_as("forbidden:change-me");
    l = ll_new(c);
    assert_int_equal(ll_acquire(l, keys, 2, LL_ANY, 5000), LL_E_AUTH);
    freeReplyObject(redisCommand(raw, "SELECT 1"));
    left = redisCommand(raw, "KEYS *");
    assert_int_equal(left->elements, 0);
    freeReplyObject(left);
}

static const struct {
    const char *name, *before, *user; /* in the URL: socket or port follow */
    bool is_socket;
    int code;
} users[] = {
    {"that_is_unknown", "redis://", "nobody:change-me", false, LL_E_AUTH},
    {"with_a_wrong_password", "redis://", "ledgerlock:wrong", false, LL_E_AUTH},
    {"of_a_socket", "unix://", "ledgerlock:change%2dme", true, LL_OK},
    {"of_a_socket_that_is_unknown", "unix://", "nobody:x", true, LL_E_AUTH}};

CASE_ROWS(user, users)
{
    char url[2048], port[32];
    CLIENT *c;

    (void)snprintf(port, sizeof port, "127.0.0.1:%d", ports[0]);
    (void)snprintf(url, sizeof url, "%s%s@%s", row->before, row->user,
                   row->is_socket ? servers[0].url + strlen("unix://") : port);
    c = client_at(url, NULL);
    check(c, ll_connect(c), row->code);
    assert_null(strstr(ll_error(c), "change-me"));
}

/* clang-format off */
static const char *const forbidden[] = {
    "FLUSHALL", "FLUSHDB", "KEYS *", "CONFIG GET *", "CONFIG SET maxmemory 1",
    "MONITOR", "CLIENT LIST", "ACL LIST", "SCRIPT FLUSH", "SHUTDOWN",
    "REPLICAOF NO ONE", "SUBSCRIBE x", "PUBLISH x y", "DEL other", "PTTL other",
    "GET other"};

/* clang-format on */

static const struct {
    const char *name;
} limited[] = {{"ledgerlock"}, {"ledgerlock-quorum"}, {"ledgerlock-operator"}};

CASE_ROWS(everything_else_is_refused_to, limited)
{
    CONTEXT *raw = lock_raw_connection(servers[0].url);
    redisReply *reply = redisCommand(raw, "AUTH %s change-me", row->name);

    assert_int_equal(reply->type, REDIS_REPLY_STATUS);
    freeReplyObject(reply);
    for (size_t i = 0; i < sizeof forbidden / sizeof forbidden[0]; i++) {
        reply = redisCommand(raw, forbidden[i]);
        assert_non_null(reply);
        if (reply->type != REDIS_REPLY_ERROR || strncmp(reply->str, "NOPERM", 6) != 0)
            fail_msg("%s is not refused", forbidden[i]);
        freeReplyObject(reply);
    }
}
