/* The lock library against real redis-server processes of the test's own. */
#include "tests/lib/fixture.h"

#include <hiredis/hiredis.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "common/lock/lock.h"
#include "lua_gen.h"
#include "tests/lib/proxy.h"

/* One Redis for the whole file, flushed before every test; a fresh one where a test
 * asks. */
static struct fixture_redis server;

struct world {
    struct ll_client *a, *b;
    struct ll_lock *la, *lb;
    redisContext *raw;
};

static struct ll_client *client(const char *url, uint32_t reply_ms)
{
    struct ll_options o = {.size = sizeof o, .url = url, .reply_ms = reply_ms};
    struct ll_client *c;
    char why[160] = "";

    if (ll_open(&c, &o, why, sizeof why) != LL_OK)
        fail_msg("ll_open: %s", why);
    return c;
}

static void install_epoch(struct ll_client *c, int64_t epoch)
{
    int64_t current;

    assert_int_equal(ll_install_epoch(c, epoch, &current), LL_OK);
}

static redisContext *raw_connection(const char *url)
{
    redisContext *raw = redisConnectUnix(url + strlen("unix://"));

    assert_non_null(raw);
    assert_int_equal(raw->err, 0);
    return raw;
}

static void raw_do(struct world *w, const char *command)
{
    freeReplyObject(redisCommand(w->raw, command));
}

static long long raw_integer(struct world *w, const char *command)
{
    redisReply *reply = redisCommand(w->raw, command);
    long long v = reply->integer;

    freeReplyObject(reply);
    return v;
}

static int open_world(void **state)
{
    struct world *w = calloc(1, sizeof *w);

    w->raw = raw_connection(server.url);
    raw_do(w, "FLUSHALL");
    w->a = client(server.url, 0);
    w->b = client(server.url, 0);
    w->la = ll_new(w->a);
    w->lb = ll_new(w->b);
    install_epoch(w->a, 1);
    *state = w;
    return 0;
}

static int close_world(void **state)
{
    struct world *w = *state;

    ll_free(w->la);
    ll_free(w->lb);
    ll_close(w->a);
    ll_close(w->b);
    redisFree(w->raw);
    free(w);
    return 0;
}

static void sleep_ms(long ms)
{
    struct timespec ts = {ms / 1000, ms % 1000 * 1000000};

    (void)nanosleep(&ts, NULL);
}

static void keys_of(struct ll_key *keys, char names[][16], size_t from, size_t n)
{
    for (size_t i = 0; i < n; i++) {
        keys[i].name = names[i];
        keys[i].len = (size_t)snprintf(names[i], 16, "k:%zu", from + i);
    }
}

/* ---- one key ---- */

static void try_free_key_is_granted_and_always_has_a_ttl(void **state)
{
    struct world *w = *state;
    long long ttl;

    assert_int_equal(ll_try(w->la, "user:1", 5000), LL_OK);
    ttl = raw_integer(w, "PTTL lock:user:1");
    assert_in_range(ttl, 4000, 5000);
    assert_true(ll_valid(w->la, 0));
    assert_false(ll_valid(w->la, 5000));
}

static void try_held_key_is_busy_and_tells_the_time_left(void **state)
{
    struct world *w = *state;

    assert_int_equal(ll_try(w->la, "user:1", 5000), LL_OK);
    assert_int_equal(ll_try(w->lb, "user:1", 5000), LL_BUSY);
    assert_in_range(ll_key_busy_ms(w->lb, 0), 4000, 5000);
    assert_int_equal(ll_token(w->lb), 0);
    assert_int_equal(ll_release(w->la), LL_OK);
    assert_int_equal(ll_try(w->lb, "user:1", 5000), LL_OK);
}

static void token_of_every_tenure_is_higher_than_all_before(void **state)
{
    struct world *w = *state;
    int64_t last = 0;

    for (int i = 0; i < 50; i++) {
        struct ll_lock *l = i % 2 == 0 ? w->la : w->lb;

        assert_int_equal(ll_try(l, "user:1", 5000), LL_OK);
        assert_true(ll_token(l) > last);
        last = ll_token(l);
        assert_int_equal(ll_release(l), LL_OK);
    }
    assert_true(last > INT64_C(1) << 40);
}

static void release_any_number_of_times_gives_the_same_answer(void **state)
{
    struct world *w = *state;

    assert_int_equal(ll_try(w->la, "user:1", 5000), LL_OK);
    for (int i = 0; i < 3; i++)
        assert_int_equal(ll_release(w->la), LL_OK);
    assert_int_equal(raw_integer(w, "EXISTS lock:user:1"), 0);
    assert_false(ll_valid(w->la, 0));
}

static void release_after_expiry_reports_gone(void **state)
{
    struct world *w = *state;

    assert_int_equal(ll_try(w->la, "user:1", 30), LL_OK);
    sleep_ms(60);
    assert_false(ll_valid(w->la, 0));
    assert_int_equal(ll_release(w->la), LL_GONE);
    assert_int_equal(ll_release(w->la), LL_GONE);
}

static void release_after_takeover_reports_not_owner_and_releases_nothing(void **state)
{
    struct world *w = *state;

    assert_int_equal(ll_try(w->la, "user:1", 30), LL_OK);
    sleep_ms(60);
    assert_int_equal(ll_try(w->lb, "user:1", 5000), LL_OK);
    assert_int_equal(ll_release(w->la), LL_NOT_OWNER);
    assert_int_equal(raw_integer(w, "EXISTS lock:user:1"), 1);
    assert_int_equal(ll_release(w->lb), LL_OK);
}

static void zero_lease_and_reserved_name_are_refused(void **state)
{
    struct world *w = *state;

    assert_int_equal(ll_try(w->la, "user:1", 0), LL_E_INVAL);
    assert_int_equal(ll_try(w->la, "!fence", 1000), LL_E_INVAL);
    assert_int_equal(ll_try(w->la, "", 1000), LL_E_INVAL);
}

/* ---- other clients ---- */

static void plain_set_nx_px_excludes_and_is_excluded(void **state)
{
    struct world *w = *state;
    redisReply *reply;

    raw_do(w, "SET lock:user:1 somebody NX PX 5000");
    assert_int_equal(ll_try(w->la, "user:1", 5000), LL_BUSY);
    assert_int_equal(ll_try(w->la, "user:2", 5000), LL_OK);
    reply = redisCommand(w->raw, "SET lock:user:2 somebody NX PX 5000");
    assert_int_equal(reply->type, REDIS_REPLY_NIL);
    freeReplyObject(reply);
}

static void key_of_another_type_is_busy_and_left_alone(void **state)
{
    struct world *w = *state;

    raw_do(w, "HSET lock:user:1 owner somebody");
    assert_int_equal(ll_try(w->la, "user:1", 5000), LL_BUSY);
    assert_int_equal(ll_key_busy_ms(w->la, 0), -1);
    assert_int_equal(raw_integer(w, "HLEN lock:user:1"), 1);
}

/* ---- batches ---- */

static void any_takes_the_free_keys_and_names_the_busy_ones(void **state)
{
    struct world *w = *state;
    struct ll_key keys[300];
    char names[300][16];

    keys_of(keys, names, 0, 40);
    assert_int_equal(ll_acquire(w->lb, keys, 40, LL_ANY, 5000), LL_OK);
    keys_of(keys, names, 0, 300);
    assert_int_equal(ll_acquire(w->la, keys, 300, LL_ANY, 5000), LL_PARTIAL);
    assert_int_equal(ll_granted(w->la), 260);
    for (size_t i = 0; i < 300; i++)
        assert_int_equal(ll_key_code(w->la, i), i < 40 ? LL_BUSY : LL_OK);
    assert_int_equal(ll_release(w->la), LL_OK);
    assert_int_equal(raw_integer(w, "DBSIZE"), 41); /* 40 of b and the record */
}

static void any_with_every_key_busy_is_busy_and_mints_no_token(void **state)
{
    struct world *w = *state;
    struct ll_key keys[10];
    char names[10][16];
    long long before;

    keys_of(keys, names, 0, 10);
    assert_int_equal(ll_acquire(w->lb, keys, 10, LL_ANY, 5000), LL_OK);
    before = raw_integer(w, "HINCRBY lock:!fence n 0");
    assert_int_equal(ll_acquire(w->la, keys, 10, LL_ANY, 5000), LL_BUSY);
    assert_int_equal(raw_integer(w, "HINCRBY lock:!fence n 0"), before);
}

static void all_with_one_key_busy_takes_none(void **state)
{
    struct world *w = *state;
    struct ll_key keys[300];
    char names[300][16];

    assert_int_equal(ll_try(w->lb, "k:299", 5000), LL_OK);
    keys_of(keys, names, 0, 300);
    assert_int_equal(ll_acquire(w->la, keys, 300, LL_ALL, 5000), LL_BUSY);
    assert_int_equal(ll_granted(w->la), 0);
    assert_int_equal(raw_integer(w, "DBSIZE"), 2);
    raw_do(w, "DEL lock:k:299");
    raw_do(w, "RPUSH lock:k:150 x"); /* reads as nothing, still is not ours */
    assert_int_equal(ll_acquire(w->la, keys, 300, LL_ALL, 5000), LL_BUSY);
    assert_int_equal(raw_integer(w, "DBSIZE"), 2);
}

static void thousand_keys_are_one_call_and_more_are_refused(void **state)
{
    struct world *w = *state;
    static struct ll_key keys[LL_KEYS_MAX + 1];
    static char names[LL_KEYS_MAX + 1][16];

    keys_of(keys, names, 0, LL_KEYS_MAX + 1);
    assert_int_equal(ll_acquire(w->la, keys, LL_KEYS_MAX, LL_ALL, 5000), LL_OK);
    assert_int_equal(raw_integer(w, "DBSIZE"), LL_KEYS_MAX + 1);
    assert_int_equal(ll_release(w->la), LL_OK);
    assert_int_equal(ll_acquire(w->la, keys, LL_KEYS_MAX + 1, LL_ALL, 5000),
                     LL_E_INVAL);
}

/* The scripts themselves: what a repeated command gets. */
static void same_nonce_again_gets_the_same_grant(void **state)
{
    struct world *w = *state;
    char ident[100];
    redisReply *reply = redisCommand(w->raw, "HGET lock:!fence ident");
    char token[2][32];

    (void)snprintf(ident, sizeof ident, "%s", reply->str);
    freeReplyObject(reply);
    for (int i = 0; i < 2; i++) {
        reply = redisCommand(
            w->raw,
            "EVAL %s 3 lock:!fence lock:a lock:b nonce1 5000 %s 9999999999999 any",
            (const char *)lua_texts[LUA_ACQUIRE].text, ident);
        assert_int_equal(reply->type, REDIS_REPLY_ARRAY);
        assert_string_equal(reply->element[0]->str, "ok");
        (void)snprintf(token[i], sizeof token[i], "%s", reply->element[1]->str);
        freeReplyObject(reply);
    }
    assert_string_equal(token[0], token[1]);
    assert_int_equal(raw_integer(w, "HINCRBY lock:!fence n 0"), 1);
}

static void command_that_runs_too_late_grants_nothing(void **state)
{
    struct world *w = *state;
    redisReply *reply =
        redisCommand(w->raw, "EVAL %s 2 lock:!fence lock:a nonce1 5000 x 1000 any",
                     (const char *)lua_texts[LUA_ACQUIRE].text);

    assert_string_equal(reply->element[0]->str, "late");
    freeReplyObject(reply);
    assert_int_equal(raw_integer(w, "EXISTS lock:a"), 0);
}

/* ---- epoch ---- */

static void flushed_redis_grants_nothing_until_a_higher_epoch_is_installed(void **state)
{
    struct world *w = *state;
    int64_t before, current;

    assert_int_equal(ll_try(w->la, "user:1", 5000), LL_OK);
    before = ll_token(w->la);
    raw_do(w, "FLUSHALL");
    assert_int_equal(ll_try(w->lb, "user:1", 5000), LL_E_EPOCH);
    assert_int_equal(ll_check_epoch(w->b, &current), LL_E_EPOCH);
    assert_int_equal(current, 0);
    install_epoch(w->b, 2);
    assert_int_equal(ll_try(w->lb, "user:1", 5000), LL_OK);
    assert_true(ll_token(w->lb) > before);
    assert_int_equal(ll_release(w->la), LL_NOT_OWNER);
}

static void lower_epoch_never_replaces_a_higher_one(void **state)
{
    struct world *w = *state;
    int64_t current;

    install_epoch(w->a, 7);
    assert_int_equal(ll_install_epoch(w->b, 5, &current), LL_OK);
    assert_int_equal(current, 7);
    raw_do(w, "HSET lock:!fence ident other");
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
    c = client(own.url, 0);
    l = ll_new(c);
    install_epoch(c, 1);
    assert_int_equal(ll_try(l, "user:1", 60000), LL_OK);
    fixture_redis_stop(&own); /* saves: the record is in the dump */
    fixture_redis_start(&own, "--save", "3600 1", NULL);
    before = ll_token(l);
    assert_int_equal(ll_try(l, "user:2", 60000), LL_E_EPOCH);
    install_epoch(c, 2);
    assert_int_equal(ll_try(l, "user:2", 60000), LL_OK);
    assert_true(ll_token(l) > before);
    assert_int_equal(ll_try(l, "user:1", 60000),
                     LL_BUSY); /* the old key came back too */
    ll_free(l);
    ll_close(c);
    fixture_redis_close(&own);
}

/* ---- trouble ---- */

static void script_flush_is_not_seen_by_the_caller(void **state)
{
    struct world *w = *state;

    assert_int_equal(ll_try(w->la, "user:1", 5000), LL_OK);
    raw_do(w, "SCRIPT FLUSH");
    assert_int_equal(ll_release(w->la), LL_OK);
    raw_do(w, "SCRIPT FLUSH");
    assert_int_equal(ll_try(w->la, "user:1", 5000), LL_OK);
}

static void server_that_is_not_there_is_unavailable_not_busy(void **state)
{
    struct ll_client *c = client("unix:///nowhere/redis.sock", 0);
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
    struct world w = {0};

    (void)state;
    fixture_redis_start(&own, NULL);
    w.a = client(own.url, 200);
    w.la = ll_new(w.a);
    install_epoch(w.a, 1);
    assert_int_equal(kill(own.pid, SIGSTOP), 0);
    assert_int_equal(ll_try(w.la, "user:1", 60000), LL_E_UNCERTAIN);
    sleep_ms(400);
    assert_int_equal(kill(own.pid, SIGCONT), 0);
    w.raw = raw_connection(own.url);
    assert_int_equal(raw_integer(&w, "EXISTS lock:user:1"), 0);
    assert_int_equal(ll_try(w.la, "user:1", 60000), LL_OK);
    redisFree(w.raw);
    ll_free(w.la);
    ll_close(w.a);
    fixture_redis_close(&own);
}

static void replica_is_readonly_not_busy(void **state)
{
    struct fixture_redis own = {0};
    struct world w = {0};

    (void)state;
    fixture_redis_start(&own, NULL);
    w.a = client(own.url, 0);
    w.la = ll_new(w.a);
    install_epoch(w.a, 1);
    w.raw = raw_connection(own.url);
    raw_do(&w, "REPLICAOF 127.0.0.1 1");
    assert_int_equal(ll_try(w.la, "user:1", 5000), LL_E_READONLY);
    assert_int_equal(ll_connect(w.a),
                     LL_E_READONLY); /* and a fresh connection sees it too */
    raw_do(&w, "REPLICAOF NO ONE");
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
    c = client(own.url, 0);
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
    c = client(own.url, 0);
    l = ll_new(c);
    assert_int_equal(ll_try(l, "user:1", 5000), LL_E_EPOCH);
    {
        struct world w = {.raw = raw_connection(own.url)};

        raw_do(&w, "CONFIG SET maxmemory 1");
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
    struct world *w = *state;
    struct proxy p = {0};
    struct ll_client *c;
    struct ll_lock *l;

    proxy_open_redis(&p, server.url);
    c = client(p.url, 0);
    l = ll_new(c);
    assert_int_equal(ll_connect(c), LL_OK);
    proxy_cut_after(&p, "EVALSHA", 7, 1);
    assert_int_equal(ll_try(l, "user:1", 5000), LL_OK);
    assert_int_equal(proxy_count(&p, PROXY_CUTS_AFTER), 1);
    assert_int_equal(raw_integer(w, "HINCRBY lock:!fence n 0"), 1);
    proxy_cut_after(&p, "EVALSHA", 7, 1);
    assert_int_equal(ll_release(l),
                     LL_OK); /* deleted by the first try: still ours until then */
    assert_int_equal(proxy_count(&p, PROXY_CUTS_AFTER), 2);
    assert_int_equal(raw_integer(w, "EXISTS lock:user:1"), 0);
    ll_free(l);
    ll_close(c);
    proxy_close(&p);
}

static void answer_lost_twice_is_uncertain_and_release_cleans_up(void **state)
{
    struct world *w = *state;
    struct proxy p = {0};
    struct ll_client *c;
    struct ll_lock *l;

    proxy_open_redis(&p, server.url);
    c = client(p.url, 0);
    l = ll_new(c);
    assert_int_equal(ll_connect(c), LL_OK);
    proxy_cut_after(&p, "EVALSHA", 7, 2);
    assert_int_equal(ll_try(l, "user:1", 60000), LL_E_UNCERTAIN);
    assert_int_equal(raw_integer(w, "EXISTS lock:user:1"), 1);
    assert_int_equal(ll_release(l), LL_OK);
    assert_int_equal(raw_integer(w, "EXISTS lock:user:1"), 0);
    ll_free(l);
    ll_close(c);
    proxy_close(&p);
}

static void child_of_a_holder_gets_its_own_answer(void **state)
{
    struct world *w = *state;
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
    assert_int_equal(raw_integer(w, "EXISTS lock:user:1"), 1);
    assert_int_equal(ll_release(w->la), LL_OK);
}

static void bad_urls_are_refused_with_a_reason(void **state)
{
    static const char *const urls[] = {
        "http://x",          "redis://h:0x",  "unix://relative",
        "redis://h:99999",   "redis://[::1",  "unix:///s?x=1",
        "redis://h/notanum", "redis://h?a=b", "rediss://h"};

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

static int start_server(void **state)
{
    (void)state;
    fixture_redis_start(&server, NULL);
    return 0;
}

static int stop_server(void **state)
{
    (void)state;
    fixture_redis_close(&server);
    return 0;
}

#define WORLD(test) cmocka_unit_test_setup_teardown(test, open_world, close_world)

int main(void)
{
    const struct CMUnitTest tests[] = {
        WORLD(try_free_key_is_granted_and_always_has_a_ttl),
        WORLD(try_held_key_is_busy_and_tells_the_time_left),
        WORLD(token_of_every_tenure_is_higher_than_all_before),
        WORLD(release_any_number_of_times_gives_the_same_answer),
        WORLD(release_after_expiry_reports_gone),
        WORLD(release_after_takeover_reports_not_owner_and_releases_nothing),
        WORLD(zero_lease_and_reserved_name_are_refused),
        WORLD(plain_set_nx_px_excludes_and_is_excluded),
        WORLD(key_of_another_type_is_busy_and_left_alone),
        WORLD(any_takes_the_free_keys_and_names_the_busy_ones),
        WORLD(any_with_every_key_busy_is_busy_and_mints_no_token),
        WORLD(all_with_one_key_busy_takes_none),
        WORLD(thousand_keys_are_one_call_and_more_are_refused),
        WORLD(same_nonce_again_gets_the_same_grant),
        WORLD(command_that_runs_too_late_grants_nothing),
        WORLD(flushed_redis_grants_nothing_until_a_higher_epoch_is_installed),
        WORLD(lower_epoch_never_replaces_a_higher_one),
        WORLD(script_flush_is_not_seen_by_the_caller),
        WORLD(lost_answer_of_acquire_is_asked_for_again),
        WORLD(answer_lost_twice_is_uncertain_and_release_cleans_up),
        WORLD(child_of_a_holder_gets_its_own_answer),
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
    return cmocka_run_group_tests(tests, start_server, stop_server);
}
