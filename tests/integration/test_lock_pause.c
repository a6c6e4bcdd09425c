/* A Redis under CLIENT PAUSE answers nobody for longer than a client waits: that is
 * uncertain, never busy, and nothing is granted when the pause is over. */
#include "tests/lib/lock_world.h"

#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "tests/lib/lock_waiters.h"
#include "tests/lib/proxy.h"

enum { REPLY_MS = 100, PAUSE_MS = 1500, LEASE_MS = 60000 };

static struct ll_client *impatient_client(const char *url, bool plain)
{
    struct ll_options o = {.size = sizeof o,
                           .url = url,
                           .connect_ms = REPLY_MS,
                           .reply_ms = REPLY_MS,
                           .no_scripts = plain};
    struct ll_client *c;

    assert_int_equal(ll_open(&c, &o, NULL, 0), LL_OK);
    assert_int_equal(ll_connect(c), LL_OK);
    return c;
}

static int64_t now_ms(void)
{
    return waiters_now_us() / 1000;
}

/* Returns when it began. */
static int64_t pause_server(struct lock_world *w, const char *mode)
{
    char command[64];

    (void)snprintf(command, sizeof command, "CLIENT PAUSE %d %s", PAUSE_MS, mode);
    lock_raw_do(w, command);
    return now_ms();
}

/* Returns when it is over; it must have lasted. */
static void wait_for_the_end(struct lock_world *w, int64_t began_ms)
{
    lock_raw_do(w, "SET probe 1");
    assert_in_range(now_ms() - began_ms, PAUSE_MS - 50, 2 * PAUSE_MS);
}

static void
try_under_a_pause(struct lock_world *w, struct ll_client *c, const char *mode, int code)
{
    struct ll_lock *l = ll_new(c);
    int64_t began_ms = pause_server(w, mode);

    assert_int_equal(ll_try(l, "k", LEASE_MS), code);
    assert_false(ll_valid(l, 0));
    assert_true(now_ms() - began_ms < PAUSE_MS - REPLY_MS); /* it did not sit it out */
    assert_true(ll_try(l, "k", LEASE_MS) < 0);              /* nor busy the next time */
    wait_for_the_end(w, began_ms);
    fixture_pause_ms(2 * REPLY_MS);
    assert_int_equal(lock_raw_integer(w, "EXISTS lock:k"), 0);
    assert_int_equal(ll_try(l, "k", LEASE_MS), LL_OK);
    assert_int_equal(ll_release(l), LL_OK);
    ll_free(l);
    ll_close(c);
}

static void client_pause_is_uncertain_and_leaves_nothing(void **state)
{
    struct ll_client *c = impatient_client(lock_server.url, false);

    try_under_a_pause(*state, c, "ALL", LL_E_UNCERTAIN);
}

static void client_pause_of_writes_is_uncertain_and_leaves_nothing(void **state)
{
    struct ll_client *c = impatient_client(lock_server.url, false);

    try_under_a_pause(*state, c, "WRITE", LL_E_UNCERTAIN);
}

/* Without scripts it looks before it takes: what was not answered had taken nothing. */
static void client_pause_without_scripts_is_unavailable_and_leaves_nothing(void **state)
{
    struct ll_client *c = impatient_client(lock_server.url, true);

    try_under_a_pause(*state, c, "ALL", LL_E_UNAVAILABLE);
}

/* ---- the command is run after all ---- */

struct attempt {
    pthread_t thread;
    struct ll_lock *lock;
    int code;
};

static void *try_in_thread(void *arg)
{
    struct attempt *a = arg;

    a->code = ll_try(a->lock, "k", LEASE_MS);
    return NULL;
}

static long long
info_number(struct lock_world *w, const char *section, const char *name)
{
    redisReply *reply = redisCommand(w->raw, "INFO %s", section);
    const char *at = strstr(reply->str, name);
    long long n = at == NULL ? 0 : strtoll(at + strlen(name), NULL, 10);

    freeReplyObject(reply);
    return n;
}

/* A proxy keeps the connection that the client gave up, so the server, which has the
 * command already, runs it when the pause is over. */
static void client_pause_command_that_runs_late_grants_nothing(void **state)
{
    struct lock_world *w = *state;
    struct proxy p = {0};
    struct attempt a = {0};
    struct ll_client *c;
    long long calls;
    int64_t began_ms;

    proxy_open_redis(&p, lock_server.url);
    c = impatient_client(p.url, false);
    a.lock = ll_new(c);
    calls = info_number(w, "commandstats", "cmdstat_evalsha:calls=");
    began_ms = pause_server(w, "WRITE");
    assert_int_equal(pthread_create(&a.thread, NULL, try_in_thread, &a), 0);
    while (info_number(w, "clients", "blocked_clients:") == 0 &&
           now_ms() - began_ms < PAUSE_MS)
        ;
    proxy_swallow(&p, true);
    assert_int_equal(pthread_join(a.thread, NULL), 0);
    assert_int_equal(a.code, LL_E_UNCERTAIN);
    wait_for_the_end(w, began_ms);
    assert_int_equal(info_number(w, "commandstats", "cmdstat_evalsha:calls="),
                     calls + 1); /* it did run */
    assert_int_equal(lock_raw_integer(w, "EXISTS lock:k"), 0);
    assert_int_equal(ll_try(w->lb, "k", LEASE_MS), LL_OK);
    ll_free(a.lock);
    ll_close(c);
    proxy_close(&p);
}

/* ---- holders ---- */

static void client_pause_shorter_than_the_answer_time_is_not_seen(void **state)
{
    struct lock_world *w = *state;

    assert_int_equal(ll_connect(w->a), LL_OK);
    lock_raw_do(w, "CLIENT PAUSE 300 ALL");
    assert_int_equal(ll_try(w->la, "k", LEASE_MS), LL_OK);
    lock_raw_do(w, "CLIENT PAUSE 300 ALL");
    assert_int_equal(ll_release(w->la), LL_OK);
}

static void client_pause_beyond_the_lease_ends_the_tenure(void **state)
{
    struct lock_world *w = *state;
    int64_t before;

    assert_int_equal(ll_try(w->la, "k", PAUSE_MS / 3), LL_OK);
    before = ll_token(w->la);
    wait_for_the_end(w, pause_server(w, "ALL"));
    assert_false(ll_valid(w->la, 0));
    assert_int_equal(ll_try(w->lb, "k", LEASE_MS), LL_OK);
    assert_true(ll_token(w->lb) > before);
    assert_int_equal(ll_release(w->la), LL_NOT_OWNER);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        LOCK_TEST(client_pause_is_uncertain_and_leaves_nothing),
        LOCK_TEST(client_pause_of_writes_is_uncertain_and_leaves_nothing),
        LOCK_TEST(client_pause_without_scripts_is_unavailable_and_leaves_nothing),
        LOCK_TEST(client_pause_command_that_runs_late_grants_nothing),
        LOCK_TEST(client_pause_shorter_than_the_answer_time_is_not_seen),
        LOCK_TEST(client_pause_beyond_the_lease_ends_the_tenure),
    };

    fixture_need_servers();
    return cmocka_run_group_tests(tests, lock_start_server, lock_stop_server);
}
