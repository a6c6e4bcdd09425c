/* hand: the steps of a turn without the turn. */
#include "tests/lib/hand.h"

#include <stdio.h>
#include <string.h>

int hand_world(void **state)
{
    world_open(state);
    world_do("INSERT INTO users (user_id, currency) SELECT 64 * n, 'USD' FROM "
             "generate_series(1, 5) AS n; SELECT deposit(64 * n, 1, 1000) FROM "
             "generate_series(1, 5) AS n; INSERT INTO subscriptions (subscription_id, "
             "user_id, plan, amount_minor, currency, anchor_at, unit, next_due_at) "
             "SELECT n, 64 * n, 'p', 100, 'USD', at, 'month', at FROM "
             "generate_series(1, 5) AS n, (VALUES ('2024-01-01Z'::timestamptz)) AS t "
             "(at)");
    world_sku(64, "A", 100, 10);
    world_do("SELECT place_order(64 * n, 'k', '[{\"sku\":\"A\",\"qty\":1}]', "
             "'2024-01-01Z') FROM generate_series(1, 5) AS n");
    return 0;
}

void hand_open(struct hand *h, int64_t lease_ms)
{
    struct err e = {0};

    memset(h, 0, sizeof *h);
    config_defaults(&h->config);
    (void)snprintf(h->config.postgres_url, CONFIG_TEXT, "%.255s", world.f.url);
    (void)snprintf(h->config.redis_url, CONFIG_TEXT, "%.255s", world.f.redis_url);
    (void)snprintf(h->config.lock_prefix, CONFIG_TEXT, "%s", world.f.prefix);
    h->config.lease_ms = lease_ms;
    assert_int_equal(config_check(&h->config, &e), 0);
    h->w.config = &h->config;
    h->w.slot = &h->slot;
    h->w.jobs = 3;
    (void)snprintf(h->w.name, sizeof h->w.name, "by-hand");
    if (connect_postgres(&h->w, &e) != 0 || connect_locks(&h->w, &e) != 0)
        fail_msg("%s", e.msg);
}

void hand_pull(struct hand *h)
{
    h->pulled.n = 5;
    for (size_t i = 0; i < h->pulled.n; i++) {
        unsigned block, offset;

        h->pulled.items[i] = (int64_t)i + 1;
        h->pulled.users[i] = 64 * h->pulled.items[i];
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
    const struct pg_array places = pg_get_tids(res, 0, 2);
    const struct pg_array balances = pg_get_int8s(res, 0, 3);
    struct job_rows *to = &h->claimed;

    for (to->n = 0; to->n < users.n; to->n++) {
        size_t from = (size_t)(pg_int8_at(&users, to->n) / 64 - 1);

        to->items[to->n] = h->pulled.items[from];
        to->places[to->n] = h->pulled.places[from];
        to->users[to->n] = h->pulled.users[from];
        to->wallets[to->n] = pg_tid_at(&places, to->n);
        to->balances[to->n] = pg_int8_at(&balances, to->n);
    }
}

int hand_claim(struct hand *h, int64_t token)
{
    const struct pg_param params[] = {pg_int8(token),
                                      pg_int8_array(h->pulled.users, h->pulled.n)};
    struct pg_result *res;
    struct err e = {0};

    h->claimed.n = 0;
    if (pg_begin(h->w.pg, &e) != 0 ||
        pg_exec(h->w.pg, SQL_POOL_CLAIM_USERS, params, 2, &res, &e) != 0) {
        pg_rollback(h->w.pg);
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
                 struct metrics *counted)
{
    const struct job_batch b = {
        .pg = h->w.pg,
        .token = token,
        .worker = h->w.name,
        .now = now,
        .rows = &h->claimed,
        .retry_s = h->config.retry_s,
        .retry_ct = h->config.retry_ct,
    };
    struct err e = {0};

    if (job->apply(&b, counted, &e) == 0 && pg_commit(h->w.pg, &e) == 0)
        return 0;
    pg_rollback(h->w.pg);
    return (int)e.code;
}

int hand_apply(struct hand *h,
               const struct job_type *job,
               int64_t token,
               const char *now,
               struct metrics *counted)
{
    int code;

    hand_pull(h);
    code = hand_claim(h, token);
    return code != 0 ? code : hand_effects(h, job, token, now, counted);
}
