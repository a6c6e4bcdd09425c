/* liveness: one row that cannot be had, or that is much work, holds up no other row of
 * its job; run --once ends, and names what it left and why. How fast the others are
 * worked meanwhile: test_liveness_rate. */
#include "tests/lib/shop.h"
#include "tests/lib/steps.h"

/* A trouble, and what run --once makes of it. */
struct outcome {
    const char *name;
    struct shop_trouble trouble;
    const char *workers; /* of each job; NULL: two */
    int code;
    const char *billing, *orders; /* what it prints of each job */
};

#define MUCH .subscriptions = 1000, .orders = 200
#define BILLED "200 charged, 0 declined, 0 planned, 0 cancelled, 0 parked, nothing left"
#define SERVED "200 fulfilled, 0 rejected, 0 planned, 0 parked, "
#define ENDS(code_, billing_, orders_)                                                 \
    .code = (code_), .billing = (billing_), .orders = (orders_)
#define LEFT_7(why)                                                                    \
    ENDS(                                                                              \
        7,                                                                             \
        "199 charged, 0 declined, 0 planned, 0 cancelled, 0 parked, left: user:7" why, \
        "199 fulfilled, 0 rejected, 0 planned, 0 parked, left: user:7" why)
#define LEFT_SKU(why) ENDS(7, BILLED, SERVED "left: sku:4" why)
#define BY_ROW " (its row is locked by another session)"
#define BY_KEY " (its lock is held in Redis)"
#define NO_TTL " (its lock has no time to live: ledgerlock locks release)"

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

static void assert_flowed(const struct outcome *of, bool either_reason)
{
    char line[512];

    (void)snprintf(line, sizeof line, "billing: %s; orders: %s\n", of->billing,
                   of->orders);
    if (either_reason) {
        forget_keys(said.out);
        forget_keys(line);
    }
    assert_string_equal(said.out, line);
    assert_int_equal(said.code, of->code);
    shop_assert_others_done();
    shop_forget();
}

static const struct outcome outcomes[] = {
    {"while_a_client_holds_the_users_row", {SHOP_USER_ROW}, LEFT_7("")},
    {"while_a_client_holds_the_row_of_a_user_who_has_much_to_do",
     {MUCH, SHOP_USER_ROW},
     LEFT_7("")},
    {"while_somebody_holds_the_users_key",
     {SHOP_USER_KEY("other PX 600000")},
     LEFT_7(BY_KEY)},
    {"while_somebody_holds_the_key_of_a_user_who_has_much_to_do",
     {MUCH, SHOP_USER_KEY("other PX 600000")},
     LEFT_7(BY_KEY)},
    {"while_the_users_key_has_no_end", {SHOP_USER_KEY("left")}, LEFT_7(NO_TTL)},
    {"while_a_client_holds_the_row_of_a_sku_that_many_want",
     {.orders = 200, SHOP_SKU_ROW},
     .workers = "1",
     LEFT_SKU(BY_ROW)},
    {"while_somebody_holds_the_key_of_a_sku_that_many_want",
     {.orders = 200, SHOP_SKU_KEY},
     LEFT_SKU(BY_KEY)},
    {"beside_an_absent_user",
     {.subscriptions = 100, .orders = 100, SHOP_NO_USER},
     ENDS(8,
          "199 charged, 0 declined, 0 planned, 0 cancelled, 101 parked, nothing left",
          "199 fulfilled, 0 rejected, 0 planned, 101 parked, nothing left")},
    {"beside_an_absent_sku",
     {.orders = 100, SHOP_NO_SKU},
     ENDS(8, BILLED, "200 fulfilled, 0 rejected, 0 planned, 100 parked, nothing left")},
    {"beside_nothing_else", {.name = NULL}, ENDS(0, BILLED, SERVED "nothing left")},
    {"beside_orders_of_the_future",
     {.orders = 200, SHOP_FUTURE},
     ENDS(0, BILLED, SERVED "nothing left")},
    {"beside_a_user_who_cannot_pay_200_subscriptions_and_100_orders",
     {.subscriptions = 200, .orders = 100, SHOP_NO_MONEY},
     ENDS(0,
          "199 charged, 201 declined, 0 planned, 0 cancelled, 0 parked, nothing left",
          "199 fulfilled, 101 rejected, 0 planned, 0 parked, nothing left")},
    {"beside_a_subscription_30_periods_behind",
     {.periods = 30},
     ENDS(0,
          "229 charged, 0 declined, 0 planned, 0 cancelled, 0 parked, nothing left",
          SERVED "nothing left")},
};

/* Guarantee: A user or SKU whose row a client holds, or whose key somebody holds in
 * Redis, keeps its own rows waiting and no others, however many they are; `run --once`
 * names it and ends with exit code 7. A row whose user or SKU does not exist is parked,
 * and holds up no other. Orders of the future, a user who cannot pay what he has, or a
 * subscription that is many periods behind hold up no other. */
CASE_ROWS(others_flow, outcomes)
{
    shop_plant(&row->trouble, 1);
    (void)shop_run_with(row->workers != NULL ? row->workers : "2");
    assert_flowed(row, row->workers == NULL && row->trouble.hold != NULL);
}

/* Guarantee: Four workers that serve orders in any order, and meet where no key is
 * held, pass over all of these as one worker does. */
CASE_ROWS(others_flow_among_four_workers, outcomes, .every = 3)
{
    shop_plant(&row->trouble, 1);
    (void)(row->trouble.key != NULL ? shop_run_any() : shop_run_met());
    assert_flowed(row, row->trouble.hold != NULL);
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
        "INSERT INTO users (user_id, balance_minor, currency) SELECT 32768 * (1 + g /"
        " 32) + g %% 32, 0, 'USD' FROM generate_series(1, 2016) AS g; " INTO_SUBSCRIPTIONS
        "SELECT user_id, user_id, 'p', 1, 'USD', " SHOP_FIRST ","
        " 'month', " SHOP_FIRST " FROM users WHERE user_id > 32767; " INTO_ORDERS
        "SELECT user_id, user_id, 'x', '', 10, 'USD', " SHOP_FIRST " FROM users"
        " WHERE user_id > 32767; INSERT INTO order_lines SELECT user_id, %d, 10, 1"
        " FROM users WHERE user_id > 32767; ANALYZE",
        SHOP_SKU);
    on_each_key("'SET'," KEY_I ",'other','PX',600000");
    fixture_env("LEDGERLOCK_LOCKS_LEASE_MS", "5000"); /* all are passed over in three */
    assert_int_equal(shop_run(), 7);
    fixture_assert_contains(said.out, "its lock is held in Redis");
    shop_assert_others_done();
    on_each_key("'DEL'," KEY_I);
}
