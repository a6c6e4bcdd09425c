/* The operator's view: what is held, and ending it by force. */
#include "tests/lib/lock_world.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "tests/lib/proxy.h"

/* The listing, one line a lock. */
struct listing {
    size_t n;
    char text[4096];
};

static void note(const struct ll_held *held, void *arg)
{
    struct listing *list = arg;
    size_t at = strlen(list->text);

    list->n++;
    if (at + 160 < sizeof list->text)
        (void)snprintf(list->text + at, sizeof list->text - at,
                       "%s=%s token=%s left=%s\n", held->name, held->holder,
                       held->token > 0 ? "yes" : "no",
                       held->left_ms < 0 ? "none" : "some");
}

static struct listing list_of(struct ll_client *c)
{
    struct listing list = {0};

    assert_int_equal(ll_list(c, note, &list), LL_OK);
    return list;
}

static void list_tells_holder_token_and_time_left(void **state)
{
    struct lock_world *w = *state;
    struct listing list;
    char value[80], line[160];
    redisReply *reply;

    assert_int_equal(ll_try(w->la, "user:1", 5000), LL_OK);
    reply = redisCommand(w->raw, "GET lock:user:1");
    (void)snprintf(value, sizeof value, "%s", reply->str);
    freeReplyObject(reply);
    *strchr(value, '|') = '\0';
    (void)snprintf(line, sizeof line, "user:1=%s token=yes left=some\n", value);
    list = list_of(w->b);
    assert_string_equal(list.text, line);
}

static void list_tells_foreign_locks_without_a_token(void **state)
{
    struct lock_world *w = *state;
    struct listing list;

    lock_raw_do(w, "SET lock:forever host-1:42");
    freeReplyObject(redisCommand(w->raw, "SET lock:odd %b PX 5000", "a\0b\033[2J", 7));
    freeReplyObject(redisCommand(w->raw, "SET lock:long %0100d PX 5000", 7));
    lock_raw_do(w, "HSET lock:hash owner somebody");
    lock_raw_do(w, "SET lock:near 0123456789abcdef0123456789abcdef|");
    list = list_of(w->a);
    assert_int_equal(list.n, 5);
    fixture_assert_contains(list.text, "forever=host-1:42 token=no left=none\n");
    fixture_assert_contains(list.text, "odd=a?b?[2J token=no left=some\n");
    fixture_assert_contains(list.text, "0... token=no left=some\n");
    fixture_assert_contains(list.text, "hash=(not a string) token=no left=none\n");
    fixture_assert_contains(list.text, "cdef| token=no left=none\n");
}

static void list_leaves_out_own_keys_and_other_prefixes(void **state)
{
    struct lock_world *w = *state;
    struct ll_key key = {"user:1", 6};

    lock_raw_do(w, "SET other:1 x");
    lock_raw_do(w, "SET lock x");
    assert_int_equal(ll_try(w->la, "user:1", 5000), LL_OK);
    assert_int_equal(ll_acquire_wait(w->lb, &key, 1, LL_ALL, 5000, 150), LL_TIMEOUT);
    assert_true(lock_raw_integer(w, "DBSIZE") > 4); /* the record and the marks */
    assert_int_equal(list_of(w->a).n, 1);
}

static void list_takes_a_prefix_literally(void **state)
{
    struct lock_world *w = *state;
    struct ll_options o = {
        .size = sizeof o, .url = lock_server.url, .prefix = "l*[o]c?k\\:"};
    struct ll_client *c;

    assert_int_equal(ll_open(&c, &o, NULL, 0), LL_OK);
    freeReplyObject(redisCommand(w->raw, "SET %s x PX 5000", "l*[o]c?k\\:mine"));
    lock_raw_do(w, "SET lXocYk:foreign x PX 5000");
    fixture_assert_contains(list_of(c).text, "mine=x");
    assert_int_equal(list_of(c).n, 1);
    ll_close(c);
}

static void list_of_thousands_is_complete(void **state)
{
    struct lock_world *w = *state;

    for (int i = 0; i < 3000; i++)
        freeReplyObject(redisCommand(w->raw, "SET lock:k:%d x PX 60000", i));
    assert_in_range(list_of(w->a).n, 3000, 3100);
}

static void force_release_frees_whoever_holds_it(void **state)
{
    struct lock_world *w = *state;

    assert_int_equal(ll_try(w->la, "user:1", 60000), LL_OK);
    assert_int_equal(ll_force_release(w->b, "user:1"), LL_OK);
    assert_int_equal(ll_force_release(w->b, "user:1"), LL_GONE);
    assert_int_equal(ll_try(w->lb, "user:1", 5000), LL_OK);
    assert_int_equal(ll_release(w->la), LL_NOT_OWNER);
    assert_int_equal(ll_force_release(w->b, "!fence"), LL_E_INVAL);
    assert_int_equal(ll_force_release(w->b, ""), LL_E_INVAL);
}

static void force_release_with_a_lost_answer_is_asked_again(void **state)
{
    struct lock_world *w = *state;
    struct proxy p = {0};
    struct ll_client *c;

    proxy_open_redis(&p, lock_server.url);
    c = lock_client(p.url, 0);
    assert_int_equal(ll_connect(c), LL_OK);
    assert_int_equal(ll_try(w->la, "user:1", 60000), LL_OK);
    proxy_cut_after(&p, "DEL", 3, 1);
    assert_int_equal(ll_force_release(c, "user:1"), LL_OK);
    assert_int_equal(proxy_count(&p, PROXY_CUTS_AFTER), 1);
    ll_close(c);
    proxy_close(&p);
}

static void list_of_a_server_that_is_not_there_is_unavailable(void **state)
{
    struct ll_client *c = lock_client("unix:///nowhere/redis.sock", 0);
    struct listing list = {0};

    (void)state;
    assert_int_equal(ll_list(c, note, &list), LL_E_UNAVAILABLE);
    assert_int_equal(ll_force_release(c, "x"), LL_E_UNAVAILABLE);
    ll_close(c);
}

static void list_of_a_quorum_is_refused(void **state)
{
    struct ll_client *c =
        lock_client("redis://127.0.0.1:1,redis://127.0.0.1:2,redis://127.0.0.1:3", 0);
    struct listing list = {0};

    (void)state;
    assert_int_equal(ll_list(c, note, &list), LL_E_INVAL);
    assert_int_equal(ll_force_release(c, "x"), LL_E_INVAL);
    fixture_assert_contains(ll_error(c), "quorum");
    ll_close(c);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        LOCK_TEST(list_tells_holder_token_and_time_left),
        LOCK_TEST(list_tells_foreign_locks_without_a_token),
        LOCK_TEST(list_leaves_out_own_keys_and_other_prefixes),
        LOCK_TEST(list_takes_a_prefix_literally),
        LOCK_TEST(list_of_thousands_is_complete),
        LOCK_TEST(force_release_frees_whoever_holds_it),
        LOCK_TEST(force_release_with_a_lost_answer_is_asked_again),
        LOCK_TEST(list_of_a_server_that_is_not_there_is_unavailable),
        LOCK_TEST(list_of_a_quorum_is_refused),
    };

    fixture_need_servers();
    return cmocka_run_group_tests(tests, lock_start_server, lock_stop_server);
}
