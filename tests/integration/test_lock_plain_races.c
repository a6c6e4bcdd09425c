/* The lock library without scripts when answers are lost and when others come between
 * a look and the change that follows it. */
#define _DEFAULT_SOURCE /* MAP_ANONYMOUS */
#include "tests/lib/lock_remote.h"

#include <pthread.h>
#include <stdio.h>
#include <sys/mman.h>
#include <unistd.h>

static const struct ll_key abc[] = {{"a", 1}, {"b", 1}, {"c", 1}};

/* ---- lost answers and takeovers ---- */

static void plain_acquire_reply_lost(void **state)
{
    struct lock_world *w = *state;
    struct lock_remote r = lock_remote_open(0, true);

    proxy_cut_after(&r.proxy, "EXEC", 4, 1);
    assert_int_equal(ll_acquire(r.l, abc, 3, LL_ALL, 5000), LL_OK);
    assert_int_equal(proxy_count(&r.proxy, PROXY_CUTS_AFTER), 1);
    assert_int_equal(lock_raw_integer(w, "HINCRBY lock:!fence n 0"), 1);
    assert_int_equal(ll_granted(r.l), 3);
    assert_int_equal(ll_token(r.l), (INT64_C(1) << 40) + 1);
    assert_true(ll_valid(r.l, 0));
    lock_remote_close(&r);
}

static void plain_release_reply_lost(void **state)
{
    struct lock_world *w = *state;
    struct lock_remote r = lock_remote_open(0, true);

    assert_int_equal(ll_try(r.l, "user:1", 5000), LL_OK);
    proxy_cut_after(&r.proxy, "EXEC", 4, 1);
    assert_int_equal(ll_release(r.l), LL_OK);
    assert_int_equal(proxy_count(&r.proxy, PROXY_CUTS_AFTER), 1);
    assert_int_equal(lock_raw_integer(w, "EXISTS lock:user:1"), 0);
    lock_remote_close(&r);
}

static void plain_answer_lost_twice_is_uncertain_and_given_back(void **state)
{
    struct lock_world *w = *state;
    struct lock_remote r = lock_remote_open(0, true);

    proxy_cut_after(&r.proxy, "HMGET", 5, 1); /* reading again is no doubt */
    assert_int_equal(ll_try(r.l, "user:1", 5000), LL_OK);
    assert_int_equal(ll_release(r.l), LL_OK);
    proxy_cut_after(&r.proxy, "HINCRBY", 7, 2); /* one tenure, and a second look */
    assert_int_equal(ll_try(r.l, "user:1", 60000), LL_OK);
    assert_int_equal(ll_release(r.l), LL_OK);
    proxy_cut_before(&r.proxy, "HINCRBY", 7, 2);
    assert_int_equal(ll_try(r.l, "user:1", 60000), LL_E_UNCERTAIN);
    assert_int_equal(lock_raw_integer(w, "EXISTS lock:user:1"), 0);
    lock_remote_close(&r);
}

/* Does something to the server while the answer to MGET is on its way. */
struct meddler {
    pthread_t thread;
    const char *command;
    unsigned after_ms;
};

static void *meddle(void *arg)
{
    struct meddler *m = arg;
    redisContext *raw = lock_raw_connection(lock_server.url);

    fixture_pause_ms(m->after_ms);
    freeReplyObject(redisCommand(raw, m->command));
    redisFree(raw);
    return NULL;
}

/* The check says "ours", then the key is somebody else's: article 5's flaw. */
static void takeover_between_check_and_delete_is_impossible(void **state)
{
    struct lock_world *w = *state;
    struct lock_remote r = lock_remote_open(2000, true);
    struct meddler m = {.command = "SET lock:user:1 thief PX 60000", .after_ms = 100};

    assert_int_equal(ll_try(r.l, "user:1", 60000), LL_OK);
    proxy_delay(&r.proxy, 200);
    assert_int_equal(pthread_create(&m.thread, NULL, meddle, &m), 0);
    assert_int_equal(ll_release(r.l), LL_NOT_OWNER);
    (void)pthread_join(m.thread, NULL);
    assert_true(proxy_count(&r.proxy, PROXY_DELAYED) >= 3);
    assert_int_equal(lock_raw_integer(w, "EXISTS lock:user:1"), 1);
    lock_remote_close(&r);
}

static void takeover_between_check_and_extend_is_impossible(void **state)
{
    struct lock_world *w = *state;
    struct lock_remote r = lock_remote_open(2000, true);
    struct meddler m = {.command = "SET lock:user:1 thief PX 1000", .after_ms = 100};

    assert_int_equal(ll_try(r.l, "user:1", 5000), LL_OK);
    proxy_delay(&r.proxy, 200);
    assert_int_equal(pthread_create(&m.thread, NULL, meddle, &m), 0);
    assert_int_equal(ll_extend(r.l, 60000), LL_LOST);
    (void)pthread_join(m.thread, NULL);
    assert_true(lock_raw_integer(w, "PTTL lock:user:1") <= 1000);
    lock_remote_close(&r);
}

/* While the first one looks, another tenure gets the next token: the first one's must
 * be minted anew, above it. */
static void token_minted_between_look_and_take_is_never_undercut(void **state)
{
    struct lock_world *w = *state;
    struct lock_remote r = lock_remote_open(2000, true);
    struct meddler m = {.command = "HINCRBY lock:!fence n 10", .after_ms = 100};

    proxy_delay(&r.proxy, 200);
    assert_int_equal(pthread_create(&m.thread, NULL, meddle, &m), 0);
    assert_int_equal(ll_try(r.l, "user:1", 60000), LL_OK);
    (void)pthread_join(m.thread, NULL);
    assert_int_equal(ll_token(r.l), (INT64_C(1) << 40) + 11);
    assert_int_equal(lock_raw_integer(w, "HINCRBY lock:!fence n 0"), 11);
    lock_remote_close(&r);
}

/* ---- many ---- */

/* What the processes share: the last token that anybody had while holding the key. */
struct shared {
    int64_t last;
    int inside;
    int wrong;
    int turns;
};

static int take_turns(struct shared *s, int turns)
{
    struct ll_client *c = lock_plain_client(lock_server.url, 5000);
    struct ll_lock *l = ll_new(c);
    struct ll_key key = {"one", 3};
    int code = LL_OK;

    for (int i = 0; i < turns && code == LL_OK; i++) {
        code = ll_acquire_wait(l, &key, 1, LL_ALL, 20000, 20000);
        if (code != LL_OK)
            break;
        if (s->inside++ != 0 || ll_token(l) <= s->last)
            s->wrong++;
        s->last = ll_token(l);
        s->turns++;
        s->inside--;
        code = ll_release(l);
    }
    if (code != LL_OK)
        (void)fprintf(stderr, "%s\n", ll_error(c));
    ll_free(l);
    ll_close(c);
    return code == LL_OK ? 0 : 1;
}

static void token_order_holds_under_8_processes(void **state)
{
    struct shared *s = mmap(NULL, sizeof *s, PROT_READ | PROT_WRITE,
                            MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    pid_t pids[8];

    (void)state;
    (void)fflush(NULL);
    for (int i = 0; i < 8; i++) {
        pids[i] = fork();
        if (pids[i] == 0)
            _exit(take_turns(s, 50));
    }
    for (int i = 0; i < 8; i++)
        assert_int_equal(fixture_reap(pids[i], 60), 0);
    assert_int_equal(s->turns, 8 * 50);
    assert_int_equal(s->wrong, 0);
    (void)munmap(s, sizeof *s);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        PLAIN_TEST(plain_acquire_reply_lost),
        PLAIN_TEST(plain_release_reply_lost),
        PLAIN_TEST(plain_answer_lost_twice_is_uncertain_and_given_back),
        PLAIN_TEST(takeover_between_check_and_delete_is_impossible),
        PLAIN_TEST(takeover_between_check_and_extend_is_impossible),
        PLAIN_TEST(token_minted_between_look_and_take_is_never_undercut),
        PLAIN_TEST(token_order_holds_under_8_processes),
    };

    fixture_need_servers();
    return cmocka_run_group_tests(tests, lock_start_plain_server, lock_stop_server);
}
