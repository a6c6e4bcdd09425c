/* The lock library behind Sentinels: it finds the primary and follows a failover. */
#include "tests/lib/ha_world.h"

#include <stdio.h>
#include <string.h>
#include <time.h>

#include "tests/lib/proxy.h"

/* A primary with one replica, and a Sentinel that watches them. */
struct sentinel_world {
    struct ha_server primary, replica;
    struct ha_sentinel sentinel;
    struct ll_client *c;
    struct ll_lock *l;
};

static struct ll_client *client_of(const char *sentinels, uint32_t connect_ms)
{
    struct ll_options o = {.size = sizeof o, .connect_ms = connect_ms};
    struct ll_client *c;
    char url[256], why[160] = "";

    (void)snprintf(url, sizeof url, "redis+sentinel://%s/" HA_NAME, sentinels);
    o.url = url;
    if (ll_open(&c, &o, why, sizeof why) != LL_OK)
        fail_msg("%s: %s", url, why);
    return c;
}

static int64_t now_ms(void)
{
    struct timespec ts;

    (void)clock_gettime(CLOCK_MONOTONIC, &ts);
    return (int64_t)ts.tv_sec * 1000 + ts.tv_nsec / 1000000;
}

static int open_world(void **state)
{
    static struct sentinel_world w;
    char sentinels[64];

    memset(&w, 0, sizeof w);
    ha_start(&w.primary, 0);
    ha_start(&w.replica, w.primary.port);
    ha_wait_linked(&w.replica);
    ha_sentinel_start(&w.sentinel, w.primary.port, 1);
    (void)snprintf(sentinels, sizeof sentinels, "127.0.0.1:%d", w.sentinel.port);
    w.c = client_of(sentinels, 0);
    w.l = ll_new(w.c);
    *state = &w;
    return 0;
}

static int close_world(void **state)
{
    struct sentinel_world *w = *state;

    ll_free(w->l);
    ll_close(w->c);
    ha_sentinel_close(&w->sentinel);
    ha_close(&w->replica);
    ha_close(&w->primary);
    return 0;
}

#define SENTINEL_TEST(test)                                                            \
    cmocka_unit_test_setup_teardown(test, open_world, close_world)

/* Tries until the server that took over asks for an epoch. */
static int try_until_promoted(struct ll_lock *l, const char *name)
{
    int code = LL_OK;

    for (int i = 0; i < 300; i++) {
        code = ll_try(l, name, 60000);
        if (code != LL_E_UNAVAILABLE && code != LL_E_UNCERTAIN && code != LL_E_READONLY)
            return code;
        fixture_pause_ms(50);
    }
    return code;
}

static void primary_is_found_through_the_sentinel(void **state)
{
    struct sentinel_world *w = *state;

    lock_install_epoch(w->c, 1);
    assert_int_equal(ll_try(w->l, "user:1", 5000), LL_OK);
    assert_int_equal(ha_integer(&w->primary, "EXISTS lock:user:1"), 1);
    assert_int_equal(ll_release(w->l), LL_OK);
    assert_int_equal(ha_integer(&w->primary, "EXISTS lock:user:1"), 0);
}

static void client_follows_a_failover_by_itself(void **state)
{
    struct sentinel_world *w = *state;
    int64_t before, current;

    lock_install_epoch(w->c, 1);
    assert_int_equal(ll_try(w->l, "user:1", 60000), LL_OK);
    before = ll_token(w->l);
    ha_wait_integer(&w->replica, "EXISTS lock:user:1", 1);
    ha_kill(&w->primary);
    ll_abandon(w->l);
    assert_int_equal(try_until_promoted(w->l, "user:2"), LL_E_EPOCH);
    assert_int_equal(ll_check_epoch(w->c, &current), LL_E_EPOCH);
    assert_int_equal(current, 1); /* the record came over, made by another server */
    lock_install_epoch(w->c, 2);
    assert_int_equal(ll_try(w->l, "user:1", 60000), LL_BUSY); /* the lock came over */
    assert_int_equal(ll_try(w->l, "user:2", 60000), LL_OK);
    assert_true(ll_token(w->l) > before);
    assert_int_equal(ha_integer(&w->replica, "EXISTS lock:user:2"), 1);
}

/* The first Sentinel takes connections and answers nothing. */
static void deaf_first_sentinel_costs_its_share_and_is_not_asked_again(void **state)
{
    struct sentinel_world *w = *state;
    struct proxy deaf = {0};
    struct ll_client *c;
    char text[96];
    int64_t start;

    (void)snprintf(text, sizeof text, "127.0.0.1:%d", w->sentinel.port);
    proxy_open(&deaf, text, NULL);
    proxy_swallow(&deaf, true);
    (void)snprintf(text, sizeof text, "127.0.0.1:%d,127.0.0.1:%d", deaf.port,
                   w->sentinel.port);
    c = client_of(text, 1200);
    start = now_ms();
    assert_int_equal(ll_connect(c), LL_OK);
    assert_in_range(now_ms() - start, 380, 900); /* a third of 1200 */
    ll_disconnect(c);
    start = now_ms();
    assert_int_equal(ll_connect(c), LL_OK);
    assert_in_range(now_ms() - start, 0, 350);
    ll_close(c);
    proxy_close(&deaf);
}

static void sentinel_that_names_a_dead_server_is_asked_last_next_time(void **state)
{
    struct sentinel_world *w = *state;
    struct ha_sentinel stale = {0};
    struct ll_client *c;
    char text[96];

    ha_sentinel_start(&stale, ha_free_port(), 0); /* cut off: knows of no failover */
    (void)snprintf(text, sizeof text, "127.0.0.1:%d,127.0.0.1:%d", stale.port,
                   w->sentinel.port);
    c = client_of(text, 0);
    assert_int_equal(ll_connect(c), LL_E_UNAVAILABLE);
    assert_int_equal(ll_connect(c), LL_OK);
    ll_disconnect(c);
    assert_int_equal(ll_connect(c), LL_OK);
    ll_close(c);
    ha_sentinel_close(&stale);
}

static void all_sentinels_dead_is_unavailable(void **state)
{
    struct ll_client *c;
    struct ll_lock *l;
    char text[96];
    int64_t start = now_ms();

    (void)state;
    (void)snprintf(text, sizeof text, "127.0.0.1:%d,127.0.0.1:%d", ha_free_port(),
                   ha_free_port());
    c = client_of(text, 0);
    l = ll_new(c);
    assert_int_equal(ll_try(l, "user:1", 5000), LL_E_UNAVAILABLE);
    assert_non_null(strstr(ll_error(c), "no Sentinel"));
    assert_in_range(now_ms() - start, 0, 1000);
    ll_free(l);
    ll_close(c);
}

static void name_that_no_sentinel_knows_is_unavailable_and_named(void **state)
{
    struct sentinel_world *w = *state;
    struct ll_options o = {.size = sizeof o};
    struct ll_client *c;
    char url[96];

    (void)snprintf(url, sizeof url, "redis+sentinel://127.0.0.1:%d/other",
                   w->sentinel.port);
    o.url = url;
    assert_int_equal(ll_open(&c, &o, NULL, 0), LL_OK);
    assert_int_equal(ll_connect(c), LL_E_UNAVAILABLE);
    assert_non_null(strstr(ll_error(c), "other"));
    ll_close(c);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        SENTINEL_TEST(primary_is_found_through_the_sentinel),
        SENTINEL_TEST(client_follows_a_failover_by_itself),
        SENTINEL_TEST(deaf_first_sentinel_costs_its_share_and_is_not_asked_again),
        SENTINEL_TEST(sentinel_that_names_a_dead_server_is_asked_last_next_time),
        SENTINEL_TEST(name_that_no_sentinel_knows_is_unavailable_and_named),
        cmocka_unit_test(all_sentinels_dead_is_unavailable),
    };

    fixture_need_servers();
    return cmocka_run_group_tests(tests, NULL, NULL);
}
