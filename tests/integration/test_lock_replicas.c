/* The lock library on a primary with replicas: WAIT, promotion of a replica that lags,
 * demotion. */
#include "tests/lib/ha_world.h"

#include <signal.h>
#include <stdio.h>
#include <string.h>

#include "tests/lib/proxy.h"

/* A primary and two replicas; the first replicates through a link that can be cut. */
struct replica_world {
    struct ha_server primary, cut, near;
    struct proxy link;
};

static int open_world(void **state)
{
    static struct replica_world w;
    char address[32];

    memset(&w, 0, sizeof w);
    ha_start(&w.primary, 0);
    (void)snprintf(address, sizeof address, "127.0.0.1:%d", w.primary.port);
    proxy_open(&w.link, address, NULL);
    ha_start(&w.cut, w.link.port);
    ha_start(&w.near, w.primary.port);
    ha_wait_replicas(&w.primary, 2);
    *state = &w;
    return 0;
}

static int close_world(void **state)
{
    struct replica_world *w = *state;

    ha_close(&w->near);
    ha_close(&w->cut);
    proxy_close(&w->link);
    ha_close(&w->primary);
    return 0;
}

#define REPLICA_TEST(test)                                                             \
    cmocka_unit_test_setup_teardown(test, open_world, close_world)

static struct ll_client *client_with(const struct ha_server *s, uint32_t replicas)
{
    struct ll_options o = {.size = sizeof o, .url = s->url, .replicas = replicas};
    struct ll_client *c;

    assert_int_equal(ll_open(&c, &o, NULL, 0), LL_OK);
    return c;
}

/* ---- WAIT ---- */

static void wait_one_of_two_replicas(void **state)
{
    struct replica_world *w = *state;
    struct ll_client *two = client_with(&w->primary, 2);
    struct ll_client *one = client_with(&w->primary, 1);
    struct ll_lock *l = ll_new(two);
    struct ll_lock *m = ll_new(one);

    lock_install_epoch(two, 1);
    assert_int_equal(ll_try(l, "user:1", 60000), LL_OK); /* both answer */
    assert_int_equal(ha_integer(&w->cut, "EXISTS lock:user:1"), 1);
    assert_int_equal(ll_release(l), LL_OK);
    assert_int_equal(kill(w->near.redis.pid, SIGSTOP), 0);
    assert_int_equal(ll_try(l, "user:1", 60000), LL_E_NOT_REPLICATED);
    assert_false(ll_valid(l, 0));
    assert_int_equal(ll_granted(l), 0);
    assert_int_equal(ha_integer(&w->primary, "EXISTS lock:user:1"), 0);
    assert_int_equal(ll_try(m, "user:1", 60000), LL_OK);
    assert_int_equal(ha_integer(&w->cut, "EXISTS lock:user:1"), 1);
    assert_int_equal(kill(w->near.redis.pid, SIGCONT), 0);
    assert_int_equal(ll_release(m), LL_OK);
    assert_int_equal(ll_try(l, "user:1", 60000), LL_OK);
    ll_free(l);
    ll_free(m);
    ll_close(two);
    ll_close(one);
}

static void busy_key_costs_no_wait_for_replicas(void **state)
{
    struct replica_world *w = *state;
    struct ll_client *c = client_with(&w->primary, 3); /* more than there are */
    struct ll_client *other = client_with(&w->primary, 0);
    struct ll_lock *l = ll_new(c);
    struct ll_lock *m = ll_new(other);

    lock_install_epoch(c, 1);
    assert_int_equal(ll_try(m, "user:1", 60000), LL_OK);
    assert_int_equal(ll_try(l, "user:1", 60000), LL_BUSY);
    assert_int_equal(ll_try(l, "user:2", 60000), LL_E_NOT_REPLICATED);
    ll_free(l);
    ll_free(m);
    ll_close(c);
    ll_close(other);
}

/* ---- promotion ---- */

/* Two primaries: both grant, the tokens tell who came later. */
static void failover_without_key(void **state)
{
    struct replica_world *w = *state;
    struct ll_client *a = client_with(&w->primary, 0);
    struct ll_client *b = client_with(&w->cut, 0);
    struct ll_lock *la = ll_new(a);
    struct ll_lock *lb = ll_new(b);

    lock_install_epoch(a, 1);
    ha_wait_integer(&w->cut, "EXISTS lock:!fence", 1);
    proxy_swallow(&w->link, true);
    assert_int_equal(ll_try(la, "user:1", 60000), LL_OK);
    assert_int_equal(ll_try(lb, "user:1", 60000), LL_E_READONLY);
    ha_do(&w->cut, "REPLICAOF NO ONE");
    assert_int_equal(ll_try(lb, "user:1", 60000), LL_E_EPOCH);
    lock_install_epoch(b, 2);
    assert_int_equal(ll_try(lb, "user:1", 60000), LL_OK);
    assert_true(ll_token(lb) > ll_token(la));
    assert_true(ll_valid(la, 0)); /* it cannot know: that is what the token is for */
    ll_free(la);
    ll_free(lb);
    ll_close(a);
    ll_close(b);
}

/* The record came over, but with a counter that has not seen the last tokens. */
static void failover_counter_behind(void **state)
{
    struct replica_world *w = *state;
    struct ll_client *a = client_with(&w->primary, 0);
    struct ll_client *b = client_with(&w->cut, 0);
    struct ll_lock *la = ll_new(a);
    struct ll_lock *lb = ll_new(b);
    int64_t current;

    lock_install_epoch(a, 1);
    assert_int_equal(ll_try(la, "user:0", 60000), LL_OK);
    ha_wait_integer(&w->cut, "EXISTS lock:user:0", 1);
    assert_int_equal(ll_release(la), LL_OK);
    proxy_swallow(&w->link, true);
    for (int i = 0; i < 20; i++) {
        assert_int_equal(ll_try(la, "user:1", 60000), LL_OK);
        assert_int_equal(ll_release(la), LL_OK);
    }
    assert_int_equal(ll_try(la, "user:1", 60000), LL_OK);
    ha_do(&w->cut, "REPLICAOF NO ONE");
    assert_int_equal(ll_try(lb, "user:1", 60000), LL_E_EPOCH);
    assert_int_equal(ll_check_epoch(b, &current), LL_E_EPOCH);
    assert_int_equal(current, 1);
    lock_install_epoch(b, current + 1);
    assert_int_equal(ll_try(lb, "user:1", 60000), LL_OK);
    assert_true(ll_token(lb) > ll_token(la));
    ll_free(la);
    ll_free(lb);
    ll_close(a);
    ll_close(b);
}

/* ---- demotion ---- */

/* The near replica becomes the primary of its primary. */
static void swap_roles(struct replica_world *w)
{
    char command[64];

    ha_wait_integer(&w->near, "EXISTS lock:user:1", 1);
    ha_do(&w->near, "REPLICAOF NO ONE");
    (void)snprintf(command, sizeof command, "REPLICAOF 127.0.0.1 %d", w->near.port);
    ha_do(&w->primary, command);
}

/* What the old primary says of a key is old news, so it must not say busy either. */
static void see_demotion(struct replica_world *w, bool no_scripts)
{
    struct ll_options o = {
        .size = sizeof o, .url = w->primary.url, .no_scripts = no_scripts};
    struct ll_client *a = client_with(&w->primary, 0);
    struct ll_client *b;
    struct ll_lock *la = ll_new(a);
    struct ll_lock *lb;

    assert_int_equal(ll_open(&b, &o, NULL, 0), LL_OK);
    lb = ll_new(b);
    lock_install_epoch(a, 1);
    assert_int_equal(ll_try(la, "user:1", 60000), LL_OK);
    assert_int_equal(ll_try(lb, "user:1", 60000), LL_BUSY);
    swap_roles(w);
    assert_int_equal(ll_try(lb, "user:1", 60000), LL_E_READONLY);
    assert_int_equal(ll_try(lb, "user:2", 60000), LL_E_READONLY); /* connected anew */
    assert_int_equal(ll_release(la), LL_E_READONLY);
    ha_wait_linked(&w->primary);
    assert_int_equal(ll_try(lb, "user:1", 60000), LL_E_READONLY);
    ll_free(la);
    ll_free(lb);
    ll_close(a);
    ll_close(b);
}

static void readonly_after_demotion(void **state)
{
    see_demotion(*state, false);
}

static void readonly_after_demotion_without_scripts(void **state)
{
    see_demotion(*state, true);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        REPLICA_TEST(wait_one_of_two_replicas),
        REPLICA_TEST(busy_key_costs_no_wait_for_replicas),
        REPLICA_TEST(failover_without_key),
        REPLICA_TEST(failover_counter_behind),
        REPLICA_TEST(readonly_after_demotion),
        REPLICA_TEST(readonly_after_demotion_without_scripts),
    };

    fixture_need_servers();
    return cmocka_run_group_tests(tests, NULL, NULL);
}
