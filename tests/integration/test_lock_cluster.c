/* A node of a Redis Cluster: the keys of one tenure would lie on several servers, so it
 * is refused in words before anything is written. */
#include "tests/lib/ha_world.h"

#include <stdio.h>
#include <string.h>

/* One node that has all slots: every single key could be written. */
static void start_cluster(struct fixture_redis *own)
{
    struct lock_world w = {0};
    char port[8], bus[8];

    (void)snprintf(port, sizeof port, "%d", ha_free_port());
    (void)snprintf(bus, sizeof bus, "%d", ha_free_port());
    fixture_redis_start(own, "--port", port, "--bind", "127.0.0.1", "--cluster-enabled",
                        "yes", "--cluster-port", bus, NULL);
    w.raw = lock_raw_connection(own->url);
    lock_raw_do(&w, "CLUSTER ADDSLOTSRANGE 0 16383");
    for (int i = 0; i < 200; i++) { /* until it takes writes */
        redisReply *reply = redisCommand(w.raw, "SET ready 1");
        bool is_ready = reply->type == REDIS_REPLY_STATUS;

        freeReplyObject(reply);
        if (is_ready)
            break;
        fixture_pause_ms(50);
    }
    assert_int_equal(lock_raw_integer(&w, "DEL ready"), 1);
    redisFree(w.raw);
}

static void assert_refused(const struct ll_options *o)
{
    const struct ll_key keys[] = {{"user:1", 6}, {"sku:2", 5}};
    struct ll_client *c;
    struct ll_lock *l;
    int64_t current;

    assert_int_equal(ll_open(&c, o, NULL, 0), LL_OK);
    l = ll_new(c);
    assert_int_equal(ll_connect(c), LL_E_CLUSTER);
    assert_non_null(strstr(ll_error(c), "cluster mode"));
    assert_int_equal(ll_install_epoch(c, 1, &current), LL_E_CLUSTER);
    assert_int_equal(ll_acquire(l, keys, 2, LL_ALL, 5000), LL_E_CLUSTER);
    assert_int_equal(ll_acquire(l, keys, 2, LL_ANY, 5000), LL_E_CLUSTER);
    assert_int_equal(ll_try(l, "user:1", 5000), LL_E_CLUSTER);
    assert_int_equal(ll_force_release(c, "user:1"), LL_E_CLUSTER);
    assert_int_equal(ll_granted(l), 0);
    ll_free(l);
    ll_close(c);
}

static void cluster_crossslot(void **state)
{
    struct ll_options o = {.size = sizeof o};
    struct fixture_redis own = {0};
    struct lock_world w = {0};
    char other_db[FIXTURE_URL + 8];

    (void)state;
    start_cluster(&own);
    o.url = own.url;
    assert_refused(&o);
    o.no_scripts = true;
    assert_refused(&o);
    (void)snprintf(other_db, sizeof other_db, "%s?db=1", own.url);
    o.url = other_db;
    assert_refused(&o);
    w.raw = lock_raw_connection(own.url);
    assert_int_equal(lock_raw_integer(&w, "DBSIZE"), 0);
    redisFree(w.raw);
    fixture_redis_close(&own);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(cluster_crossslot),
    };

    fixture_need_servers();
    return cmocka_run_group_tests(tests, NULL, NULL);
}
