/* hand: the steps of a batch, one by one. */
#include "tests/lib/hand.h"

#include "tests/lib/pool_world.h"
#include "tests/lib/secrets.h"

void hand_world(void)
{
    world_open();
    world_do("SELECT make_months('2024-01-01Z', '2024-01-01Z')");
    world_do(
        INTO_USERS
        "SELECT 64 * n, 'USD' FROM generate_series(1, 5) AS n; SELECT"
        " deposit(64 * n, 'USD', 1000, '1') FROM generate_series(1, 5) AS n; " INTO_SUBSCRIPTIONS
        "SELECT n, 64 * n, 'p', 100, 'USD', at, 'month', at FROM"
        " generate_series(1, 5) AS n, (VALUES ('2024-01-01Z'::timestamptz)) AS t (at)");
    world_sku(64, "A", 100, 10);
    world_do("SELECT place_order(64 * n, 'k', '[{\"sku\":\"A\",\"qty\":1}]', "
             "'2024-01-01Z') FROM generate_series(1, 5) AS n");
}

const char hand_done[] =
    "SELECT concat_ws(' ', (SELECT count(*) FROM charges WHERE state = 'captured'), "
    "(SELECT count(*) FROM orders WHERE state = 'fulfilled'), (SELECT "
    "sum(balance_minor) FROM users), (SELECT sum(on_hand) FROM stock))";

void hand_settle_in(void)
{
    world_user(9, 10);
    world_subscription(9, 9, 10, "2023-11-30Z");
    world_run("2023-12-01T00:00:00Z");
    assert_int_equal(
        world_ask("SELECT count(*) FROM lock_incidents WHERE kind = 'fenced'"), 0);
}

void hand_open(struct hand *h, int64_t lease_ms)
{
    struct err e = {0};

    memset(h, 0, sizeof *h);
    config_defaults(&h->config);
    (void)snprintf(h->config.postgres_url, CONFIG_TEXT, "%s", world.f.url);
    (void)snprintf(h->config.redis_url, CONFIG_TEXT, "%s", world.f.redis_url);
    (void)snprintf(h->config.lock_prefix, CONFIG_TEXT, "%s", world.f.prefix);
    h->config.lease_ms = lease_ms;
    if (pool_redis_secret() != NULL) /* a Redis of the test's own */
        (void)snprintf(h->config.redis_password_file, CONFIG_TEXT, "%s",
                       secrets_of_redis());
    assert_int_equal(config_check(&h->config, &e), 0);
    h->s.config = &h->config;
    h->s.counters = &h->counters;
    h->s.measures = &h->measures;
    h->s.inflight = &h->inflight;
    h->s.deaths = &h->deaths;
    h->s.commits = &h->commits;
    h->s.job = &job_billing;
    (void)snprintf(h->s.name, sizeof h->s.name, "by-hand");
    if (session_connect(&h->s, &e) != 0 || session_open_locks(&h->s, &e) != 0)
        fail_msg("%s", e.msg);
}

void hand_close(struct hand *h)
{
    free(h->s.batch);
    h->s.batch = NULL;
    session_close(&h->s);
}
