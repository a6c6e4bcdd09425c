/* shop: rows by generate_series, a client by libpq. */
#include "tests/lib/shop.h"

#include "tests/lib/meet.h"
#include "tests/lib/session.h"
#include "tests/lib/steps.h"

static PGconn *client;

void shop_open(void)
{
    world_open();
    fixture_env("LEDGERLOCK_POOL_BATCH", "50");
    fixture_env("LEDGERLOCK_LOCKS_LEASE_MS", "2000"); /* a batch of 200 ms is whole */
    world_do(
        "INSERT INTO users (user_id, balance_minor, currency)"
        " SELECT g, 100000, 'USD' FROM generate_series(1, %d) AS g;"
        " SELECT make_months('2023-01-01Z', '2023-01-01Z');"
        " INSERT INTO wallet_entries (user_id, kind, idempotency_key, amount_minor, at) SELECT g, 'deposit',"
        " '', 100000, '2023-01-01Z' FROM generate_series(1, %d) AS g",
        SHOP_USERS, SHOP_USERS);
    world_do(INTO_SUBSCRIPTIONS
             "SELECT g, g, 'p', 100, 'USD', '2024-01-01Z',"
             " 'month', '2024-01-01Z' FROM generate_series(1, %d) AS g; " INTO_STOCK
             "SELECT %d + 64 * g, 's' || g, 100000, 100000, 10, 'USD' FROM"
             " generate_series(0, 3) AS g",
             SHOP_USERS, SHOP_SKU);
    world_do("SELECT place_order(g, 'k', format('[{\"sku\": \"s%%s\", \"qty\": 1}]',"
             " 1 + g %% 3)::jsonb, '2024-01-01Z') FROM generate_series(1, %d) AS g;"
             " ANALYZE",
             SHOP_USERS);
}

void shop_close(void)
{
    shop_let_go();
    world_close();
}

void shop_subscribe(int64_t user, int n, int64_t amount_minor)
{
    world_do(INTO_SUBSCRIPTIONS "SELECT 100000 + g, %" PRId64 ", 'x' || g, %" PRId64
                                ", 'USD', " SHOP_FIRST ", 'month', " SHOP_FIRST " FROM"
                                " generate_series(1, %d) AS g; ANALYZE subscriptions",
             user, amount_minor, n);
}

void shop_order(int64_t user, int64_t sku, int n)
{
    world_do(INTO_ORDERS
             "SELECT 100000 + g, %" PRId64 ", 'x' || g, '', 10, 'USD', " SHOP_FIRST
             " FROM generate_series(1, %d) AS g; INSERT INTO order_lines"
             " SELECT 100000 + g, %" PRId64 ", 10, 1 FROM generate_series(1, %d) AS"
             " g; ANALYZE orders, order_lines",
             user, n, sku, n);
}

void shop_plant(const struct shop_trouble *t, int times)
{
    if (t->subscriptions > 0)
        shop_subscribe(SHOP_TROUBLE, t->subscriptions * times, 1);
    if (t->orders > 0)
        shop_order(SHOP_TROUBLE, SHOP_SKU, t->orders * times);
    if (t->periods > 0) {
        world_deposit(SHOP_TROUBLE, 1, (int64_t)100 * t->periods * times);
        world_do("UPDATE subscriptions SET unit = 'day', anchor_at = anchor_at -"
                 " interval '1 day' * %d, next_due_at = anchor_at - interval '1 day' *"
                 " %d WHERE subscription_id = %d",
                 t->periods * times - 1, t->periods * times - 1, SHOP_TROUBLE);
    }
    if (t->sql != NULL)
        world_do("%s", t->sql);
    if (t->gone != NULL)
        super_do("SET session_replication_role = replica; DELETE FROM ledgerlock.%s",
                 t->gone);
    if (t->key != NULL)
        (void)shop_key("SET", t->key, t->value);
    if (t->hold != NULL)
        shop_hold(t->hold);
}

void shop_forget(void)
{
    (void)shop_key("DEL", "user:7", "");
    (void)shop_key("DEL", "sku:4", "");
}

void shop_hold(const char *sql)
{
    shop_let_go();
    client = session_open(world.owner);
    session_do(client, "BEGIN");
    session_do(client, sql);
}

void shop_let_go(void)
{
    PQfinish(client);
    client = NULL;
}

const char *shop_key(const char *verb, const char *key, const char *rest)
{
    static char reply[64];
    char command[256];

    (void)snprintf(command, sizeof command, "%s %s%s %s", verb, world.f.prefix, key,
                   rest);
    pool_redis(world.f.redis_url, reply, sizeof reply, command);
    return reply;
}

int shop_run_with(const char *workers)
{
    return fixture_run(&world.f, &said, "run", "--once", "-w", workers, "--now",
                       SHOP_NOW, NULL);
}

int shop_run_any(void)
{
    fixture_env("LEDGERLOCK_POOL_ORDERS_ORDER", "any");
    meet_begin();
    return shop_run_with("4");
}

int shop_run_met(void)
{
    int code = shop_run_any();

    meet_assert_both();
    return code;
}

int shop_run(void)
{
    return shop_run_with("2");
}

unsigned shop_log_count(const char *part)
{
    unsigned n = 0;

    for (const char *p = said.err; (p = strstr(p, part)) != NULL; p++)
        n++;
    return n;
}

void shop_assert_others_done(void)
{
    int64_t charges =
        world_ask("SELECT count(DISTINCT subscription_id) FROM charges WHERE"
                  " subscription_id <= %d AND subscription_id <> %d",
                  SHOP_USERS, SHOP_TROUBLE);
    int64_t orders =
        world_ask("SELECT count(*) FROM orders WHERE order_id <= %d AND order_id <> %d"
                  " AND decided_at IS NOT NULL",
                  SHOP_USERS, SHOP_TROUBLE);

    if (charges != SHOP_USERS - 1 || orders != SHOP_USERS - 1)
        promise_broken("%" PRId64 " subscriptions and %" PRId64 " orders of %d others"
                       " were worked: exit %d, %s%s",
                       charges, orders, SHOP_USERS - 1, said.code, said.out, said.err);
}
