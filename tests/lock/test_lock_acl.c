/* The users of config/redis-acl.example: enough for the lock library, and nothing more.
 */
#include "tests/lib/play_inside.h"

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

/* The users may have keys of this prefix alone. */
static void open_case(void)
{
    static struct quorum_world w;

    for (size_t i = 0; i < SERVERS; i++) {
        CONTEXT *raw = lock_raw_connection(servers[i].url);

        freeReplyObject(redisCommand(raw, "FLUSHALL"));
    }
    play_begin(&w);
    (void)strcpy(w.prefix, "lock:");
}

GROUP(.start = start_servers,
      .stop = stop_servers,
      .open = open_case,
      .close = play_end_calls);

/* The steps call a client so from here on. */
static void open_at(const char *who, const char *url, const char *prefix)
{
    PLAY_OPEN(who, .url = url, .prefix = prefix, .connect_ms = LOCK_SOON_MS,
              .reply_ms = LOCK_SOON_MS, .max_lease_ms = MAX_LEASE_MS);
}

/* A client of the first n servers, database 1. */
static void open_as(const char *who, size_t n, const char *user)
{
    char url[256];
    int at = 0;

    for (size_t i = 0; i < n; i++)
        at += snprintf(url + at, sizeof url - (size_t)at, "%sredis://%s@127.0.0.1:%d/1",
                       i > 0 ? "," : "", user, ports[i]);
    open_at(who, url, NULL);
}

/* Every beat of a worker, with two clients so that one waits for the other. */
#define EVERYTHING                                                                     \
    "a try x 9000; b any x,y 9000: partial; b release; "                               \
    "b wait x,y 300 all 9000: timeout; a extend 9000; a verify; a release; "           \
    "b wait x,y 30000 all 9000; b release; a try z 4000; a renew 50; rest 4500; "      \
    "a valid; a release"

CASE(worker_can_do_all_that_the_library_does)
{
    open_as("a", 1, "ledgerlock:change-me");
    open_as("b", 1, "ledgerlock:change-me");
    play(EVERYTHING);
}

/* Once they are up for longer than a lease. */
CASE(worker_of_a_quorum_can_do_all_that_the_library_does)
{
    open_as("a", SERVERS, "ledgerlock-quorum:change-me");
    open_as("b", SERVERS, "ledgerlock-quorum:change-me");
    play("await a try first 1000; a release; " EVERYTHING);
}

static void check_one(const struct rlock_held *held, void *arg)
{
    (void)arg;
    assert_string_equal(held->name, "user:9");
    assert_true(held->token > 0 && held->left_ms > 0);
}

CASE(operator_can_list_and_release)
{
    open_as("a", 1, "ledgerlock:change-me");
    open_as("b", 1, "ledgerlock-operator:change-me");
    play("a try user:9 5000; b list: 1");
    assert_int_equal(rlock_list(play_client("b"), check_one, NULL), RLOCK_OK);
    play("b force user:9; a release: gone; a try user:9 5000");
}

CASE(prefix_of_others_is_refused_as_a_right_not_as_busy)
{
    char url[128];

    (void)snprintf(url, sizeof url, "redis://ledgerlock:change-me@127.0.0.1:%d",
                   ports[0]);
    open_at("a", url, "other:");
    play("a connect: auth; a try x 5000: auth");
}

static const struct {
    const char *name, *before, *user; /* in the URL: socket or port follow */
    bool is_socket, is_refused;
} users[] = {{"that_is_unknown", "redis://", "nobody:change-me", false, true},
             {"with_a_wrong_password", "redis://", "ledgerlock:wrong", false, true},
             {"of_a_socket", "unix://", "ledgerlock:change%2dme", true, false},
             {"of_a_socket_that_is_unknown", "unix://", "nobody:x", true, true}};

CASE_ROWS(user, users)
{
    char url[2048], port[32];

    (void)snprintf(port, sizeof port, "127.0.0.1:%d", ports[0]);
    (void)snprintf(url, sizeof url, "%s%s@%s", row->before, row->user,
                   row->is_socket ? servers[0].url + strlen("unix://") : port);
    open_at("a", url, NULL);
    play(row->is_refused ? "a connect: auth" : "a connect");
    assert_null(strstr(rlock_error(play_client("a")), "change-me"));
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
