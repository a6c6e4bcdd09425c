/* liveness rate: beside rows that cannot be had, or that are much work, the others keep
 * at least half the rate that they have alone, which is measured in the same program.
 *
 * The rate is counted: rows of others for each batch that wrote anything, so that it is
 * the same on a slow machine. A pull that finds nothing to be had writes nothing; what
 * such pulls and the pauses behind them cost is time, which is compared only at full
 * size (LL_TEST_SCALE=10, in scripts/test --only slow). */
#include "tests/lib/shop.h"
#include "tests/lib/steps.h"

/* Others have users, subscriptions, orders and SKUs of their own, spread over all
 * shards; one of each has the trouble. All times the scale. */
enum { OTHERS = 2000, BATCH = 50, FIRST_ID = 1000000, USER_STEP = 32, TRIES = 5 };

struct rate {
    int64_t batches, ms; /* until all others were worked */
};

static const char *const jobs[] = {"billing", "orders"};
static struct rate alone[2];
static const struct shop_trouble nothing = {.name = "nothing"};

/* The first half of the users subscribes, the second one orders: the jobs do not meet.
 */
static void put_others(int n)
{
    world_do("INSERT INTO users (user_id, balance_minor, currency) SELECT %d + %d * g,"
             " 100, 'USD' FROM generate_series(1, %d) AS g; INSERT INTO stock (sku_id,"
             " sku, initial_qty, on_hand, unit_price_minor, currency) SELECT %d + g,"
             " 'o' || g, 10, 10, 1, 'USD' FROM generate_series(1, %d) AS g",
             FIRST_ID, USER_STEP, 2 * n, FIRST_ID, n);
    world_do("INSERT INTO subscriptions (subscription_id, user_id, plan, amount_minor,"
             " currency, anchor_at, unit, next_due_at) SELECT %d + g, %d + %d * g, 'p',"
             " 1, 'USD', '2024-01-01Z', 'month', '2024-01-01Z' FROM"
             " generate_series(1, %d) AS g",
             FIRST_ID, FIRST_ID, USER_STEP, n);
    world_do("INSERT INTO orders (order_id, user_id, idempotency_key, request_hash,"
             " total_minor, currency, placed_at) SELECT %d + g, %d + %d * (%d + g),"
             " 'x', '', 1, 'USD', '2024-01-01Z' FROM generate_series(1, %d) AS g;"
             " INSERT INTO order_lines SELECT %d + g, %d + g, 1, 1 FROM"
             " generate_series(1, %d) AS g; ANALYZE",
             FIRST_ID, FIRST_ID, USER_STEP, n, n, FIRST_ID, FIRST_ID, n);
}

static int64_t others_left(size_t job)
{
    return job == 0
               ? world_ask("SELECT count(*) FROM subscriptions WHERE subscription_id >"
                           " %d AND next_period_no = 0",
                           FIRST_ID)
               : world_ask("SELECT count(*) FROM orders WHERE order_id > %d AND state"
                           " = 'pending'",
                           FIRST_ID);
}

static int64_t batches_until_done(size_t job)
{
    const char *id = job == 0 ? "subscription_id" : "order_id";
    const char *worked = job == 0 ? "charges" : "orders";

    return world_ask("SELECT count(DISTINCT fence) FROM %s WHERE fence <= (SELECT"
                     " max(fence) FROM %s WHERE %s > %d)",
                     worked, worked, id, FIRST_ID);
}

static void wait_for_others(struct rate found[2])
{
    int64_t begun_ms = fixture_now_ms();

    found[0].ms = found[1].ms = 0;
    while (found[0].ms == 0 || found[1].ms == 0) {
        int64_t ms = fixture_now_ms() - begun_ms;

        if (ms > POOL_WAIT_MS)
            promise_broken("%" PRId64 " subscriptions and %" PRId64
                           " orders of others are never worked",
                           others_left(0), others_left(1));
        for (size_t job = 0; job < 2; job++) {
            if (found[job].ms == 0 && others_left(job) == 0)
                found[job].ms = ms;
        }
        fixture_pause_ms(10);
    }
}

/* A lease so long that no batch is cut for the time that it takes. */
static void work(const struct shop_trouble *t, struct rate found[2])
{
    char batch[16];

    shop_open();
    (void)snprintf(batch, sizeof batch, "%d", BATCH * fixture_scale());
    fixture_env("LEDGERLOCK_POOL_BATCH", batch);
    fixture_env("LEDGERLOCK_LOCKS_LEASE_MS", "60000");
    fixture_env("LEDGERLOCK_BILLING_CATCH_UP_MAX", "1000000"); /* else it is parked */
    put_others(OTHERS * fixture_scale());
    shop_plant(t, fixture_scale());
    pool_start("run -w 2 --now %s", SHOP_NOW);
    wait_for_others(found);
    world_kill(&world.pool);
    for (size_t job = 0; job < 2; job++)
        found[job].batches = batches_until_done(job);
    if (t->gone == NULL)
        promise_int_equal(world_parked(), 0);
    if (t->periods > 0)
        assert_true(world_ask("SELECT count(*) FROM charges WHERE subscription_id = %d",
                              SHOP_TROUBLE) > 1);
    shop_forget();
    shop_close();
}

/* Every other row for at most twice the batches. */
static void assert_half_of_the_rate(const struct rate found[2])
{
    for (size_t job = 0; job < 2; job++) {
        print_message("%s: %" PRId64 " batches, %" PRId64 " ms; alone %" PRId64
                      ", %" PRId64 "\n",
                      jobs[job], found[job].batches, found[job].ms, alone[job].batches,
                      alone[job].ms);
        if (found[job].batches > 2 * alone[job].batches)
            promise_broken("%s: the others took %" PRId64 " batches, alone %" PRId64,
                           jobs[job], found[job].batches, alone[job].batches);
    }
}

/* The machine may do something else meanwhile: then both are measured again. */
static void assert_half_of_the_speed(const struct shop_trouble *t, struct rate found[2])
{
    for (int i = 1; found[0].ms > 2 * alone[0].ms || found[1].ms > 2 * alone[1].ms;
         i++) {
        if (i == TRIES)
            fail_msg("billing took %" PRId64 " ms, alone %" PRId64 "; orders %" PRId64
                     ", alone %" PRId64,
                     found[0].ms, alone[0].ms, found[1].ms, alone[1].ms);
        work(&nothing, alone);
        work(t, found);
        assert_half_of_the_rate(found);
    }
}

static void measure_alone(void)
{
    work(&nothing, alone);
}

GROUP(.start = measure_alone);

#define MUCH .subscriptions = 100, .orders = 100
#define USER_KEY SHOP_USER_KEY("other PX 600000")

/* All numbers times the scale. */
static const struct shop_trouble troubles[] = {
    {"a_client_holds_a_users_row", SHOP_USER_ROW},
    {"somebody_holds_a_users_key", USER_KEY},
    {"a_client_holds_the_row_of_a_user_with_1000_due_rows", MUCH, SHOP_USER_ROW},
    {"somebody_holds_the_key_of_a_user_with_1000_due_rows", MUCH, USER_KEY},
    {"a_client_holds_the_row_of_a_sku_that_1000_orders_want", .orders = 100,
     SHOP_SKU_ROW},
    {"somebody_holds_the_key_of_a_sku_that_1000_orders_want", .orders = 100,
     SHOP_SKU_KEY},
    {"1000_rows_have_no_user", MUCH, SHOP_NO_USER},
    {"1000_orders_have_no_sku", .orders = 100, SHOP_NO_SKU},
    {"a_user_cannot_pay_10000_subscriptions_and_orders", .subscriptions = 1000,
     .orders = 1000, SHOP_NO_MONEY},
    {"300000_orders_are_of_the_future", .orders = 30000, SHOP_FUTURE},
    {"a_subscription_is_10000_periods_behind", .periods = 1000},
};

/* Guarantee: While a client or a key in Redis holds a user or SKU, or a user, a SKU or
 * the money for thousands of rows is missing, or 300,000 orders are of the future, or a
 * subscription is 10,000 periods behind, the others keep at least half of their
 * undisturbed rate. */
CASE_ROWS(others_keep_half_of_their_rate_while, troubles)
{
    struct rate found[2];

    work(row, found);
    assert_half_of_the_rate(found);
    if (fixture_scale() > 1)
        assert_half_of_the_speed(row, found);
}
