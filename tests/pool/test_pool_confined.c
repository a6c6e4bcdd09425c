/* pool: it works with no right in Redis but those of config/redis-acl.example: one
 * user, one prefix, the default user off; and over TLS, with a private authority. */
#include <hiredis/hiredis.h>

#include "common/lock/lock.h"
#include "tests/lib/secrets.h"
#include "tests/lib/steps.h"
#include "tests/lib/tls_world.h"

enum { SERVERS = 3 };

static struct fixture_redis servers[SERVERS];
static const struct pool_work small = {20, 3, 20, 15};

/* The example as an administrator puts it into use: another password, no default. */
static void write_acl(char path[96])
{
    char command[512];

    fixture_file(path, 96, "", 0600);
    (void)snprintf(command, sizeof command,
                   "sed 's/>change-me/>%s/; s/^# user default off/user default off/' "
                   "%s/config/redis-acl.example > %s",
                   SECRET_OF_REDIS, getenv("LL_TEST_SOURCE"), path);
    assert_int_equal(system(command), 0);
}

static void open_world(void)
{
    char path[96];

    write_acl(path);
    fixture_env("LEDGERLOCK_REDIS_PASSWORD_FILE", secrets_of_redis());
    fixture_env("LEDGERLOCK_LOCKS_PREFIX", "lock:");
    fixture_env("LEDGERLOCK_REDIS_MAX_LEASE_MS", "2000");
    for (size_t i = 0; i < SERVERS; i++)
        fixture_redis_start(&servers[i], "--include", path, NULL);
    (void)unlink(path);
}

static void close_world(void)
{
    for (size_t i = 0; i < SERVERS; i++)
        fixture_redis_close(&servers[i]);
}

WORLD(.lease_ms = 2000,
      .poll_ms = 50,
      .work = &small,
      .also = open_world,
      .undo = close_world);

/* The program comes in as `user` on the first n servers. */
static void come_in(const char *user, size_t n)
{
    char *at = world.f.redis_url, *end = at + sizeof world.f.redis_url;

    for (size_t i = 0; i < n; i++)
        at += snprintf(at, (size_t)(end - at), "%sunix://%s@%.99s", i > 0 ? "," : "",
                       user, servers[i].url + strlen("unix://"));
}

/* Guarantee: The whole pool works as the one user of `config/redis-acl.example`, with
 * the default user off: on one server, and on a quorum. */
CASE(pool_works_as_the_one_user_of_one_server)
{
    come_in("ledgerlock", 1);
    world_runs(0, "run -w 2 --once --now %s", pool_work_now());
    pool_work_assert_exact();
    assert_int_equal(pool_incidents("uncertain", ""), 0);
    assert_true(pool_counter("granted") > 0);
}

CASE(pool_works_as_the_one_user_of_a_quorum)
{
    come_in("ledgerlock-quorum", SERVERS);
    world_runs(0, "run -w 2 --once --now %s", pool_work_now());
    pool_work_assert_exact();
    assert_true(pool_counter("granted") > 0);
}

CASE(prefix_of_another_pool_is_refused_at_start)
{
    come_in("ledgerlock", 1);
    fixture_env("LEDGERLOCK_LOCKS_PREFIX", "other:");
    world_says(5, "NOPERM", "run --once");
}

CASE(default_user_is_off)
{
    (void)snprintf(world.f.redis_url, sizeof world.f.redis_url, "%s", servers[0].url);
    world_runs(5, "run --once");
}

/* ---- inside scripts ---- */

static const struct {
    const char *name, *script, *keys, *key;
} scripts[] = {
    {"a_key_that_is_named", "return redis.call('GET', KEYS[1])", "1", "other"},
    {"a_key_that_is_not_named", "return redis.call('GET', 'other')", "0", ""},
    {"a_key_to_write", "return redis.call('SET', 'other', 1)", "0", ""},
    {"a_copy_to_elsewhere", "return redis.call('COPY', 'lock:a', 'other')", "0", ""},
    {"a_command", "return redis.call('FLUSHALL')", "0", ""},
    {"a_list_of_keys", "return redis.call('KEYS', '*')", "0", ""},
};

/* Redis 7.0, 7.2 and later. */
static bool is_about_rights(const char *error)
{
    return strstr(error, "NOPERM") != NULL || strstr(error, "ACL failure") != NULL ||
           strstr(error, "user executing the script can't") != NULL;
}

/* Guarantee: The user of Redis can leave its prefix and its commands not even from
 * inside a script. */
CASE_ROWS(script_is_refused, scripts)
{
    redisContext *c = redisConnectUnix(servers[0].url + strlen("unix://"));
    redisReply *reply = redisCommand(c, "AUTH ledgerlock %s", SECRET_OF_REDIS);

    assert_int_equal(reply->type, REDIS_REPLY_STATUS);
    freeReplyObject(reply);
    reply = redisCommand(c, "EVAL %s %s %s", row->script, row->keys, row->key);
    if (reply->type != REDIS_REPLY_ERROR || !is_about_rights(reply->str))
        fail_msg("%s: answered %d %s", row->script, reply->type, reply->str);
    freeReplyObject(reply);
    reply = redisCommand(c, "EVAL %s 1 lock:a", "return redis.call('GET', KEYS[1])");
    assert_int_equal(reply->type, REDIS_REPLY_NIL);
    freeReplyObject(reply);
    redisFree(c);
}

/* ---- over TLS ---- */

static const char *lacks(void)
{
    struct rlock_options o = {.size = sizeof o, .url = "rediss://localhost"};
    struct rlock_client *c;
    bool has_tls = rlock_open(&c, &o, NULL, 0) == RLOCK_OK;

    rlock_close(c);
    if (!has_tls)
        return "this build has no TLS; it says so";
    return tls_is_possible() ? NULL : "redis-server or openssl cannot do TLS";
}

WORLD_OPEN(open_plain, .work = &small)

static const struct test_group tls = {.missing = lacks,
                                      .start = tls_start_server,
                                      .stop = tls_stop_server,
                                      .open = open_plain,
                                      .close = world_close};

/* The program trusts that file of tls_folder. */
static void lead_to(const char *host, const char *trusted)
{
    char path[96];

    (void)snprintf(path, sizeof path, "%s/%s", tls_folder, trusted);
    fixture_env("LEDGERLOCK_REDIS_TLS_CA", path);
    (void)snprintf(world.f.redis_url, sizeof world.f.redis_url, "rediss://%s:%d", host,
                   tls_port);
}

/* Guarantee: A pool works over `rediss://` with a private authority, and refuses a
 * server that another authority signed. */
CASE(pool_works_over_tls, .group = &tls)
{
    lead_to("localhost", "ca.crt");
    world_runs(0, "run -w 2 --once --now %s", pool_work_now());
    pool_work_assert_exact();
    assert_true(pool_counter("granted") > 0);
}

CASE(authority_of_others_is_refused, .group = &tls)
{
    lead_to("localhost", "other.crt");
    world_says(5, "certificate", "run --once");
}

CASE(file_of_the_authority_that_is_missing_is_refused, .group = &tls)
{
    lead_to("localhost", "no.crt");
    world_says(5, "no.crt", "run --once");
}
