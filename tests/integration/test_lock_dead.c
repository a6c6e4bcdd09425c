/* A dead holder's keys, freed by somebody who knows its nonce. */
#include "tests/lib/lock_world.h"

#include <string.h>

#include "tests/lib/proxy.h"
#include "tests/lib/quorum_world.h"

static const struct ll_key abc[] = {{"a", 1}, {"b", 1}, {"c", 1}};

static void free_by_nonce(struct lock_world *w, struct ll_client *other)
{
    char nonce[LL_NONCE_SIZE] = "";
    size_t freed;

    ll_set_nonce_copy(w->la, nonce);
    assert_int_equal(ll_acquire(w->la, abc, 2, LL_ALL, 60000), LL_OK);
    assert_int_equal(ll_try(w->lb, "c", 60000), LL_OK);
    assert_int_equal(strlen(nonce), LL_NONCE_SIZE - 1);
    assert_int_equal(ll_release_dead(other, nonce, abc, 3, &freed), LL_OK);
    assert_int_equal(freed, 2);
    assert_int_equal(lock_raw_integer(w, "EXISTS lock:a lock:b"), 0);
    assert_int_equal(lock_raw_integer(w, "EXISTS lock:c"), 1); /* that is b's */
    assert_int_equal(ll_release_dead(other, nonce, abc, 3, &freed), LL_OK);
    assert_int_equal(freed, 0);
    ll_set_nonce_copy(w->la, NULL);
}

static void dead_holder_is_freed_of_its_keys_and_nobody_else(void **state)
{
    struct lock_world *w = *state;

    free_by_nonce(w, w->b);
}

static void dead_holder_is_freed_without_scripts_too(void **state)
{
    struct ll_client *plain = lock_plain_client(lock_server.url, 0);

    free_by_nonce(*state, plain);
    ll_close(plain);
}

static void nonce_is_there_before_anything_was_sent(void **state)
{
    struct ll_client *c = lock_client("unix:///nowhere/redis.sock", 0);
    struct ll_lock *l = ll_new(c);
    char first[LL_NONCE_SIZE] = "", second[LL_NONCE_SIZE] = "";

    (void)state;
    ll_set_nonce_copy(l, first);
    assert_int_equal(ll_try(l, "a", 1000), LL_E_UNAVAILABLE);
    ll_set_nonce_copy(l, second);
    assert_int_equal(ll_try(l, "a", 1000), LL_E_UNAVAILABLE);
    assert_int_equal(strlen(first), LL_NONCE_SIZE - 1);
    assert_string_not_equal(first, second);
    ll_free(l);
    ll_close(c);
}

static void half_a_nonce_is_refused_and_frees_nothing(void **state)
{
    static const char *const wrong[] = {"", "0123", "0123456789abcdef0123456789abcdeX",
                                        "0123456789abcdef0123456789abcdef0"};
    struct lock_world *w = *state;
    size_t freed = 9;

    lock_raw_do(w, "SET lock:a |5");
    for (size_t i = 0; i < sizeof wrong / sizeof wrong[0]; i++)
        assert_int_equal(ll_release_dead(w->a, wrong[i], abc, 1, &freed), LL_E_INVAL);
    assert_int_equal(freed, 0);
    assert_int_equal(lock_raw_integer(w, "EXISTS lock:a"), 1);
}

static void dead_holder_is_freed_although_the_answer_was_lost(void **state)
{
    struct lock_world *w = *state;
    char nonce[LL_NONCE_SIZE];
    struct proxy p = {0};
    struct ll_client *c;
    size_t freed;

    ll_set_nonce_copy(w->la, nonce);
    assert_int_equal(ll_acquire(w->la, abc, 3, LL_ALL, 60000), LL_OK);
    proxy_open_redis(&p, lock_server.url);
    c = lock_client(p.url, 0);
    assert_int_equal(ll_connect(c), LL_OK);
    proxy_cut_after(&p, nonce, strlen(nonce), 1);
    assert_int_equal(ll_release_dead(c, nonce, abc, 3, &freed), LL_OK);
    assert_int_equal(proxy_count(&p, PROXY_CUTS_AFTER), 1);
    assert_int_equal(lock_raw_integer(w, "EXISTS lock:a lock:b lock:c"), 0);
    ll_close(c);
    proxy_close(&p);
}

static void dead_holder_is_freed_on_every_node_of_a_quorum(void **state)
{
    struct quorum_world *w = *state;
    char nonce[LL_NONCE_SIZE];
    size_t freed;

    ll_set_nonce_copy(w->la, nonce);
    assert_int_equal(ll_acquire(w->la, abc, 3, LL_ALL, 10000), LL_OK);
    assert_int_equal(quorum_copies(w, "b"), 3);
    assert_int_equal(ll_release_dead(w->b, nonce, abc, 3, &freed), LL_OK);
    assert_int_equal(freed, 3);
    assert_int_equal(
        quorum_copies(w, "a") + quorum_copies(w, "b") + quorum_copies(w, "c"), 0);
}

int main(void)
{
    const struct CMUnitTest one_server[] = {
        LOCK_TEST(dead_holder_is_freed_of_its_keys_and_nobody_else),
        LOCK_TEST(dead_holder_is_freed_without_scripts_too),
        LOCK_TEST(nonce_is_there_before_anything_was_sent),
        LOCK_TEST(half_a_nonce_is_refused_and_frees_nothing),
        LOCK_TEST(dead_holder_is_freed_although_the_answer_was_lost),
    };
    const struct CMUnitTest quorum[] = {
        QUORUM_TEST(dead_holder_is_freed_on_every_node_of_a_quorum),
    };

    fixture_need_servers();
    return cmocka_run_group_tests(one_server, lock_start_server, lock_stop_server) +
           cmocka_run_group_tests(quorum, quorum_start_servers, quorum_stop_servers);
}
