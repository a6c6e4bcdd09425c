/* hand: the steps of a batch, one by one. */
#include "tests/lib/hand.h"

#include "tests/lib/pool_world.h"
#include "tests/lib/secrets.h"
#include "worker/batch/batch.h"

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

void hand_pull(struct hand *h)
{
    h->pulled.n = 5;
    for (size_t i = 0; i < h->pulled.n; i++) {
        unsigned block, offset;

        h->pulled.items[i] = (int64_t)i + 1;
        h->pulled.owners[i] = 64 * h->pulled.items[i];
        assert_int_equal(sscanf(world_text("SELECT ctid FROM subscriptions WHERE "
                                           "subscription_id = %zu",
                                           i + 1),
                                "(%u,%u)", &block, &offset),
                         2);
        h->pulled.places[i] = (struct pg_tid){block, (uint16_t)offset};
    }
}

static void take(struct hand *h, const struct pg_result *res)
{
    const struct pg_array users = pg_get_int8s(res, 0, 1);
    struct job_rows *to = &h->claimed;

    for (to->n = 0; to->n < users.n; to->n++) {
        size_t from = (size_t)(pg_int8_at(&users, to->n) / 64 - 1);

        to->items[to->n] = h->pulled.items[from];
        to->places[to->n] = h->pulled.places[from];
        to->owners[to->n] = h->pulled.owners[from];
    }
}

int hand_claim(struct hand *h, int64_t token)
{
    const struct pg_param params[] = {pg_int8(token),
                                      pg_int8_array(h->pulled.owners, h->pulled.n)};
    struct pg_result *res;
    struct err e = {0};

    h->claimed.n = 0;
    if (pg_begin(h->s.pg, &e) != 0 ||
        pg_exec(h->s.pg, SQL_POOL_CLAIM_USERS, params, 2, &res, &e) != 0) {
        pg_rollback(h->s.pg);
        return (int)e.code;
    }
    take(h, res);
    pg_result_free(res);
    return 0;
}

int hand_effects(struct hand *h,
                 const struct job_type *job,
                 int64_t token,
                 const char *now,
                 struct job_result *done)
{
    struct err e = {0};

    h->s.job = job;
    h->s.now = now;
    h->s.attempt.token = token;
    h->s.attempt.rows = h->claimed;
    h->s.attempt.done = *done;
    if (batch_apply(&h->s, &e) == 0 && pg_commit(h->s.pg, &e) == 0) {
        *done = h->s.attempt.done;
        return 0;
    }
    pg_rollback(h->s.pg);
    return (int)e.code;
}

int hand_apply(struct hand *h,
               const struct job_type *job,
               int64_t token,
               const char *now,
               struct job_result *done)
{
    int code;

    hand_pull(h);
    code = hand_claim(h, token);
    return code != 0 ? code : hand_effects(h, job, token, now, done);
}
