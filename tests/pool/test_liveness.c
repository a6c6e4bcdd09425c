/* liveness: one row that cannot be had, or that is much work, holds up no other row of
 * its job; run --once ends, and names what it left and why. How fast the others are
 * worked meanwhile: test_liveness_rate. */
#include "tests/lib/shop.h"
#include "tests/lib/steps.h"

/* A trouble that concerns user SHOP_TROUBLE or SKU SHOP_SKU, and nobody else. */
struct trouble {
    const char *name;
    int subscriptions, orders; /* more of them, due first */
    const char *sql;           /* as the owner */
    const char *gone;          /* the rows that are deleted past the foreign keys */
    const char *hold;          /* by a client, in a transaction that stays open */
    const char *key, *value;   /* set in Redis by somebody */
    const char *workers;       /* of each job; NULL: two */
    int code;                  /* of run --once */
    const char *billing, *orders_done; /* what it prints of each job */
};

#define USER_ROW .hold = "SELECT FROM users WHERE user_id = 7 FOR UPDATE"
#define SKU_ROW .hold = "SELECT FROM stock WHERE sku_id = 4 FOR UPDATE"
#define USER_KEY(text) .key = "user:7", .value = text
#define SKU_KEY .key = "sku:4", .value = "other PX 600000"
#define MUCH .subscriptions = 1000, .orders = 200
#define BILLED "200 charged, 0 declined, 0 cancelled, 0 parked, nothing left"
#define SERVED "200 fulfilled, 0 rejected, 0 parked, "
#define ENDS(code_, billing_, orders_)                                                 \
    .code = (code_), .billing = (billing_), .orders_done = (orders_)
#define LEFT_7(why)                                                                    \
    ENDS(7, "199 charged, 0 declined, 0 cancelled, 0 parked, left: user:7" why,        \
         "199 fulfilled, 0 rejected, 0 parked, left: user:7" why)
#define LEFT_SKU(why) ENDS(7, BILLED, SERVED "left: sku:4" why)
#define BY_ROW " (its row is locked by another session)"
#define BY_KEY " (its lock is held in Redis)"
#define NO_TTL " (its lock has no time to live: ledgerlock locks release)"

static void plant(const struct trouble *t)
{
    if (t->subscriptions > 0)
        shop_subscribe(SHOP_TROUBLE, t->subscriptions, 1);
    if (t->orders > 0)
        shop_order(SHOP_TROUBLE, SHOP_SKU, t->orders);
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

GROUP(.open = shop_open, .close = shop_close);

/* A worker that finds the row of user 7 locked has the keys of his order meanwhile, and
 * another names those: the key of the user or that of SKU 132. */
static void forget_keys(char *out)
{
    static const char *const others[] = {BY_KEY, BY_ROW, ", sku:132"};

    for (size_t i = 0; i < 3; i++) {
        for (char *p; (p = strstr(out, others[i])) != NULL;)
            memmove(p, p + strlen(others[i]), strlen(p + strlen(others[i])) + 1);
    }
}

static void assert_flowed(const struct trouble *t, bool either_reason)
{
    char line[512];

    (void)snprintf(line, sizeof line, "billing: %s; orders: %s\n", t->billing,
                   t->orders_done);
    if (either_reason) {
        forget_keys(world.o.out);
        forget_keys(line);
    }
    assert_string_equal(world.o.out, line);
    assert_int_equal(world.o.code, t->code);
    shop_assert_others_done();
    (void)shop_key("DEL", "user:7", "");
    (void)shop_key("DEL", "sku:4", "");
}

static void assert_others_flow(const struct trouble *t)
{
    plant(t);
    (void)shop_run_with(t->workers != NULL ? t->workers : "2");
    assert_flowed(t, t->workers == NULL && t->hold != NULL);
}

/* The same while four workers of each job meet. */
static void assert_others_flow_among_four(const struct trouble *t)
{
    plant(t);
    (void)shop_run_met();
    assert_flowed(t, t->hold != NULL);
}

static const struct trouble held[] = {
    {"a_client_holds_the_users_row", USER_ROW, LEFT_7("")},
    {"a_client_holds_the_row_of_a_user_who_has_much_to_do", MUCH, USER_ROW, LEFT_7("")},
    {"somebody_holds_the_users_key", USER_KEY("other PX 600000"), LEFT_7(BY_KEY)},
    {"somebody_holds_the_key_of_a_user_who_has_much_to_do", MUCH,
     USER_KEY("other PX 600000"), LEFT_7(BY_KEY)},
    {"the_users_key_has_no_end", USER_KEY("left"), LEFT_7(NO_TTL)},
    {"a_client_holds_the_row_of_a_sku_that_many_want", .orders = 200, SKU_ROW,
     .workers = "1", LEFT_SKU(BY_ROW)},
    {"somebody_holds_the_key_of_a_sku_that_many_want", .orders = 200, SKU_KEY,
     LEFT_SKU(BY_KEY)},
};

/* Guarantee: A user or SKU whose row a client holds, or whose key somebody holds in
 * Redis, keeps its own rows waiting and no others, however many they are; `run --once`
 * names it and ends with exit code 7. */
CASE_ROWS(others_flow_while, held)
{
    assert_others_flow(row);
}

/* Guarantee: Four workers that serve orders in any order pass over a user or SKU that
 * is held as one worker does. */
CASE_ROWS(others_flow_among_four_workers_while, held)
{
    assert_others_flow_among_four(row);
}

static const struct trouble absent[] = {
    {"user", .subscriptions = 100, .orders = 100, .gone = "users WHERE user_id = 7",
     ENDS(8,
          "199 charged, 0 declined, 0 cancelled, 101 parked, nothing left",
          "199 fulfilled, 0 rejected, 101 parked, nothing left")},
    {"sku", .orders = 100, .gone = "stock WHERE sku_id = 4",
     ENDS(8, BILLED, "200 fulfilled, 0 rejected, 100 parked, nothing left")},
};

/* Guarantee: A row whose user or SKU does not exist is parked, and holds up no other.
 */
CASE_ROWS(others_flow_beside_an_absent, absent)
{
    assert_others_flow(row);
}

CASE_ROWS(others_flow_among_four_workers_beside_an_absent, absent)
{
    assert_others_flow_among_four(row);
}

static const struct trouble much[] = {
    {"nothing_else", ENDS(0, BILLED, SERVED "nothing left")},
    {"orders_of_the_future", .orders = 200,
     .sql = "UPDATE orders SET placed_at = '2024-01-02Z' WHERE order_id > 100000",
     ENDS(0, BILLED, SERVED "nothing left")},
    {"a_user_who_cannot_pay_200_subscriptions_and_100_orders", .subscriptions = 200,
     .orders = 100, .sql = "UPDATE users SET balance_minor = 0 WHERE user_id = 7",
     ENDS(0,
          "199 charged, 201 declined, 0 cancelled, 0 parked, nothing left",
          "199 fulfilled, 101 rejected, 0 parked, nothing left")},
    {"a_subscription_30_periods_behind",
     .sql = "UPDATE subscriptions SET anchor_at = timestamptz '2024-01-01Z' - interval"
            " '29 days', next_due_at = timestamptz '2024-01-01Z' - interval '29 days'"
            ", unit = 'day' WHERE subscription_id = 7",
     ENDS(0,
          "229 charged, 0 declined, 0 cancelled, 0 parked, nothing left",
          SERVED "nothing left")},
};

/* Guarantee: Orders of the future, a user who cannot pay what he has, or a subscription
 * that is many periods behind hold up no other. */
CASE_ROWS(others_flow_beside, much)
{
    assert_others_flow(row);
}

CASE_ROWS(others_flow_among_four_workers_beside, much)
{
    assert_others_flow_among_four(row);
}

/* All of one shard, due before the others, and more than a worker remembers. */
static void on_each_key(const char *call)
{
    (void)redis_do("EVAL for\ti=1,2016\tdo\tredis.call(%s)\tend 0 %suser:", call,
                   world.f.prefix);
}

#define KEY_I "ARGV[1]..(32768*(1+math.floor(i/32))+i%32)"

/* Guarantee: Rows of thousands of users whose keys are held hold up no other row. */
CASE(others_flow_while_the_keys_of_2016_users_are_held)
{
    world_do(
        "INSERT INTO users (user_id, balance_minor, currency) SELECT 32768 * (1 + g"
        " / 32) + g %% 32, 0, 'USD' FROM generate_series(1, 2016) AS g; INSERT INTO"
        " subscriptions (subscription_id, user_id, plan, amount_minor, currency,"
        " anchor_at, unit, next_due_at) SELECT user_id, user_id, 'p', 1,"
        " 'USD', " SHOP_FIRST ", 'month', " SHOP_FIRST " FROM users WHERE user_id"
        " > 32767; INSERT INTO orders (order_id, user_id, idempotency_key,"
        " request_hash, total_minor, currency, placed_at) SELECT user_id, user_id,"
        " 'x', '', 10, 'USD', " SHOP_FIRST " FROM users WHERE user_id > 32767;"
        " INSERT INTO order_lines SELECT user_id, %d, 10, 1 FROM users WHERE"
        " user_id > 32767; ANALYZE",
        SHOP_SKU);
    on_each_key("'SET'," KEY_I ",'other','PX',600000");
    fixture_env("LEDGERLOCK_LOCKS_LEASE_MS", "5000"); /* all are passed over in three */
    assert_int_equal(shop_run(), 7);
    fixture_assert_contains(world.o.out, "its lock is held in Redis");
    shop_assert_others_done();
    on_each_key("'DEL'," KEY_I);
}
