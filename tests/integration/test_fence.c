/* fence: what happens when a lock did not do what a lock should. */
#include <inttypes.h>
#include <libpq-fe.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "tests/lib/hand.h"
#include "tests/lib/world.h"

static const char now[] = "2024-01-05T00:00:00Z";

#define EPOCH INT64_C(1099511627776)

static int64_t incidents(const char *kind)
{
    return world_ask("SELECT count(*) FROM lock_incidents WHERE kind = '%s'", kind);
}

static const char done[] =
    "SELECT concat_ws(' ', (SELECT count(*) FROM charges WHERE state = 'captured'), "
    "(SELECT count(*) FROM orders WHERE state = 'fulfilled'), (SELECT "
    "sum(balance_minor) FROM users), (SELECT sum(on_hand) FROM stock))";

/* ---- the fence ----------------------------------------------------------- */

/* A database that a pool has worked before: the token record of its prefix is there. */
static void settle_in(void)
{
    world_user(9, 10);
    world_subscription(9, 9, 10, "2023-11-30Z");
    world_run("2023-12-01T00:00:00Z");
    assert_int_equal(incidents("epoch_bump"), 1);
    assert_int_equal(world_ask("SELECT epoch FROM lock_epoch"), 2);
}

static void fence_above_every_token_raises_the_epoch_and_the_work_is_done(void **state)
{
    (void)state;
    settle_in();
    world_do("UPDATE users SET fence = 7 * %" PRId64 " + 5 WHERE user_id = 128", EPOCH);
    world_run(now);
    world_expect("6 5 4450 95", done);
    assert_int_equal(incidents("fenced"), 1);
    assert_int_equal(incidents("epoch_bump"), 2);
    assert_int_equal(world_ask("SELECT epoch FROM lock_epoch"), 8);
    world_expect("user:128 claim 2",
                 "SELECT concat_ws(' ', resource, phase, token / 1099511627776) FROM "
                 "lock_incidents WHERE kind = 'fenced'");
    assert_true(world_ask("SELECT fence > 8 * %" PRId64 " FROM users WHERE user_id = "
                          "128",
                          EPOCH));
    world_audit(now, NULL);
}

static void fence_of_stock_above_every_token_is_healed_too(void **state)
{
    (void)state;
    settle_in();
    world_do("UPDATE stock SET fence = 7 * %" PRId64, EPOCH);
    world_run(now);
    world_expect("6 5 4450 95", done);
    world_expect("sku:64", "SELECT resource FROM lock_incidents WHERE kind = 'fenced'");
    assert_int_equal(incidents("epoch_bump"), 2);
    world_audit(now, NULL);
}

/* As after the restore of a backup, or with a Redis that served another database. */
static void redis_ahead_of_this_database_raises_the_epoch_above_it(void **state)
{
    (void)state;
    settle_in();
    world_do("UPDATE lock_epoch SET epoch = 1");
    world_run(now);
    world_expect("6 5 4450 95", done);
    assert_int_equal(world_ask("SELECT epoch FROM lock_epoch"), 3);
    fixture_assert_contains(world_text("SELECT detail FROM lock_incidents WHERE detail"
                                       " LIKE 'epoch 3:%%'"),
                            "Redis was ahead of this database");
    world_audit(now, NULL);
}

/* ---- apply, called by hand ----------------------------------------------- */

static void apply_with_a_token_older_than_the_fence_writes_nothing(void **state)
{
    struct metrics counted = {{0}}, nothing = {{0}};
    char before[1024];
    struct hand h;

    (void)state;
    hand_open(&h, 10000);
    world_do("UPDATE users SET fence = 100");
    (void)snprintf(before, sizeof before, "%s", world_totals());
    assert_int_equal(hand_apply(&h, &job_billing, 99, now, &counted), 0);
    assert_int_equal(hand_apply(&h, &job_orders, 99, now, &counted), 0);
    assert_memory_equal(&counted, &nothing, sizeof counted);
    assert_string_equal(world_totals(), before);
    assert_int_equal(hand_apply(&h, &job_billing, 100, now, &counted), 0);
    assert_int_equal(hand_apply(&h, &job_orders, 100, now, &counted), 0);
    world_expect("5 5 4450 95", done);
    connect_close(&h.w);
}

static void apply_leaves_only_the_fenced_user_out(void **state)
{
    struct metrics counted = {{0}};
    struct hand h;

    (void)state;
    hand_open(&h, 10000);
    world_do("UPDATE users SET fence = 100 WHERE user_id = 128");
    assert_int_equal(hand_apply(&h, &job_billing, 99, now, &counted), 0);
    assert_int_equal(hand_apply(&h, &job_orders, 99, now, &counted), 0);
    assert_int_equal(counted.value[METRIC_charged], 4);
    assert_int_equal(counted.value[METRIC_fulfilled], 4);
    world_expect("100 1000", "SELECT fence || ' ' || balance_minor FROM users WHERE "
                             "user_id = 128");
    world_expect("99 890", "SELECT fence || ' ' || balance_minor FROM users WHERE "
                           "user_id = 64");
    connect_close(&h.w);
}

/* Decided, but not all written: an order is never paid whose stock did not move. */
static void apply_of_orders_on_fenced_stock_is_a_bug_and_is_rolled_back(void **state)
{
    struct metrics counted = {{0}};
    char before[1024];
    struct hand h;

    (void)state;
    hand_open(&h, 10000);
    world_do("UPDATE stock SET fence = 100");
    (void)snprintf(before, sizeof before, "%s", world_totals());
    assert_int_equal(hand_apply(&h, &job_orders, 99, now, &counted), ERR_BUG);
    assert_string_equal(world_totals(), before);
    assert_int_equal(counted.value[METRIC_fulfilled], 0);
    connect_close(&h.w);
}

static void apply_twice_with_one_token_writes_once(void **state)
{
    struct metrics counted = {{0}};
    char once[1024];
    struct hand h;

    (void)state;
    hand_open(&h, 10000);
    assert_int_equal(hand_apply(&h, &job_billing, 5, now, &counted), 0);
    assert_int_equal(hand_apply(&h, &job_orders, 5, now, &counted), 0);
    (void)snprintf(once, sizeof once, "%s", world_totals());
    assert_int_equal(hand_apply(&h, &job_billing, 5, now, &counted), 0);
    assert_int_equal(hand_apply(&h, &job_orders, 5, now, &counted), 0);
    assert_string_equal(world_totals(), once);
    assert_int_equal(counted.value[METRIC_charged], 5);
    assert_int_equal(counted.value[METRIC_fulfilled], 5);
    connect_close(&h.w);
}

static void apply_reads_again_what_is_due(void **state)
{
    struct metrics counted = {{0}}, nothing = {{0}};
    struct hand h;

    (void)state;
    hand_open(&h, 10000);
    assert_int_equal(hand_apply(&h, &job_billing, 5, "2023-12-31T23:59:59Z", &counted),
                     0);
    world_do("UPDATE subscriptions SET state = 'unpaid'; UPDATE orders SET state = "
             "'parked'");
    assert_int_equal(hand_apply(&h, &job_billing, 5, now, &counted), 0);
    assert_int_equal(hand_apply(&h, &job_orders, 5, now, &counted), 0);
    assert_memory_equal(&counted, &nothing, sizeof counted);
    world_expect("0 0 5000 100", done);
    connect_close(&h.w);
}

/* A row that another session holds is busy: the rest flows, nobody waits inside a
 * transaction, and the wallet is looked at when the row is free. */
static void row_held_by_another_session_is_left_and_worked_when_it_is_free(void **state)
{
    PGconn *other = PQconnectdb(world.owner);
    struct fixture_child pool;

    (void)state;
    PQclear(PQexec(other, "BEGIN"));
    PQclear(PQexec(other, "UPDATE ledgerlock.users SET balance_minor = 50 WHERE "
                          "user_id = 64"));
    fixture_spawn(&world.f, &pool, "run", "-w", "1", "--once", "--now", now, NULL);
    world_wait("SELECT count(*) = 4 FROM ledgerlock.charges");
    world_wait("SELECT bool_and(state = 'fulfilled') FROM ledgerlock.orders WHERE "
               "user_id <> 64");
    PQclear(PQexec(other, "COMMIT"));
    PQfinish(other);
    assert_int_equal(fixture_wait(&pool, 30, NULL), 0);
    world_expect("past_due active active active active",
                 "SELECT string_agg(state, ' ' ORDER BY subscription_id) FROM "
                 "subscriptions");
}

/* place_order holds key shares of its user and its SKUs until its client commits. */
static void client_idle_after_place_order_holds_nobody_back(void **state)
{
    PGconn *other = PQconnectdb(world.owner);
    PGresult *res;

    (void)state;
    PQclear(PQexec(other, "BEGIN"));
    res = PQexec(other,
                 "SELECT ledgerlock.place_order(64, 'idle', (SELECT jsonb_agg("
                 "jsonb_build_object('sku', sku, 'qty', 1)) FROM ledgerlock.stock), "
                 "'2024-01-01Z')");
    assert_int_equal(PQresultStatus(res), PGRES_TUPLES_OK);
    PQclear(res);
    world_run(now);
    world_expect("5 5 4450 95", done);
    PQfinish(other);
}

/* ---- broken invariants --------------------------------------------------- */

static void charge_that_is_there_already_parks_only_its_subscription(void **state)
{
    (void)state;
    world_do(
        "INSERT INTO charges VALUES (3, 0, 192, '2024-01-01Z', '2024-02-01Z', 100, "
        "'captured', 1, 0, 'planted', '2024-01-01Z')");
    world_run(now);
    world_expect("active active parked active active",
                 "SELECT string_agg(state, ' ' ORDER BY subscription_id) FROM "
                 "subscriptions");
    world_expect("5 5 4550 95", done);
    world_expect("subscription:3 apply", "SELECT resource || ' ' || phase FROM "
                                         "lock_incidents WHERE kind = 'parked'");
    fixture_assert_contains(
        world_text("SELECT detail FROM lock_incidents WHERE kind = 'parked'"),
        "one_charge_per_period");
    world_do("DELETE FROM charges WHERE worker = 'planted'");
    world_audit(now, "nothing_parked");
}

static void movement_that_is_there_already_parks_only_its_order(void **state)
{
    (void)state;
    world_do("INSERT INTO stock_movements (sku_id, kind, source, qty, fence, moved_at) "
             "VALUES (64, 'sale', 2, -1, 0, '2024-01-01Z')");
    world_run(now);
    world_expect("fulfilled parked fulfilled fulfilled fulfilled",
                 "SELECT string_agg(state, ' ' ORDER BY order_id) FROM orders");
    world_expect("5 4 4460 96", done);
    assert_int_equal(incidents("parked"), 1);
    fixture_assert_contains(
        world_text("SELECT detail FROM lock_incidents WHERE kind = 'parked'"),
        "one_movement_per_source");
    world_do("DELETE FROM stock_movements WHERE source = 2");
    world_audit(now, "nothing_parked");
}

static void parked_subscription_that_is_mended_is_resumed_and_charged(void **state)
{
    (void)state;
    world_do(
        "INSERT INTO charges VALUES (3, 0, 192, '2024-01-01Z', '2024-02-01Z', 100, "
        "'captured', 1, 0, 'planted', '2024-01-01Z')");
    world_run(now);
    world_do("DELETE FROM charges WHERE worker = 'planted'");
    assert_true(world_ask("SELECT resume_subscription(3)"));
    world_run(now);
    world_expect("5 5 4450 95", done);
    world_audit(now, NULL);
}

/* ---- a worker that stops in the middle ----------------------------------- */

static void worker_idle_in_transaction_ends_before_its_lease(void **state)
{
    struct err e = {0};
    struct hand h;
    int64_t users[] = {64}, epoch;
    char gone[80];
    struct pg_param claim[] = {pg_int8(0), pg_int8_array(users, 1)};

    (void)state;
    settle_in();
    hand_open(&h, 4000);
    assert_int_equal(ll_install_epoch(h.w.locks, 1, &epoch), LL_OK);
    assert_int_equal(ll_try(h.w.lock, "user:64", 4000), LL_OK);
    claim[0] = pg_int8(ll_token(h.w.lock));
    assert_int_equal(pg_begin(h.w.pg, &e), 0);
    assert_int_equal(pg_exec(h.w.pg, SQL_POOL_CLAIM_USERS, claim, 2, NULL, &e), 0);
    (void)snprintf(gone, sizeof gone,
                   "SELECT count(*) = 0 FROM pg_stat_activity WHERE pid = %d",
                   pg_backend_pid(h.w.pg));
    world_wait(gone);
    assert_true(ll_valid(h.w.lock, 0));
    assert_int_not_equal(pg_commit(h.w.pg, &e), 0);
    world_run(now);
    world_expect("6 5 4450 95", done);
    assert_int_equal(incidents("fenced"), 0);
    connect_close(&h.w);
}

/* ---- without Redis ------------------------------------------------------- */

static void open_without_redis(void)
{
    fixture_env("LEDGERLOCK_LOCKS_MODE", "database-only");
    fixture_env("LEDGERLOCK_REDIS_URL", "unix:///nowhere/redis.sock");
}

static void database_only_works_without_redis_and_says_so(void **state)
{
    (void)state;
    open_without_redis();
    world_run(now);
    fixture_assert_contains(world.o.err, "no Redis lock is held");
    world_expect("5 5 4450 95", done);
    world_audit(now, NULL);
}

static void database_only_heals_a_fence_above_its_epoch(void **state)
{
    (void)state;
    settle_in();
    fixture_env("LEDGERLOCK_LOCKS_MODE", "database-only");
    world_do("UPDATE users SET fence = 7 * %" PRId64 " WHERE user_id = 128", EPOCH);
    world_run(now);
    world_expect("6 5 4450 95", done);
    assert_int_equal(incidents("epoch_bump"), 2);
    fixture_env("LEDGERLOCK_LOCKS_MODE", NULL);
    world_audit(now, NULL);
}

static void fence_beyond_every_token_parks_its_rows_and_the_rest_flows(void **state)
{
    (void)state;
    settle_in();
    world_do("UPDATE users SET fence = 9000 * %" PRId64 " WHERE user_id = 128", EPOCH);
    world_run(now);
    assert_true(incidents("parked") >= 1);
    world_expect(
        "t",
        "SELECT bool_and(state = 'parked') FROM subscriptions WHERE user_id = 128");
    world_expect("0",
                 "SELECT count(*) FROM charges WHERE user_id = 128 AND period_no > 0");
    assert_true(world_ask("SELECT count(*) FROM charges WHERE user_id <> 128") > 0);
}

static void run_with_locks_after_database_only_heals_by_an_epoch(void **state)
{
    (void)state;
    settle_in();
    fixture_env("LEDGERLOCK_LOCKS_MODE", "database-only");
    world_run(now);
    world_expect("6 5 4450 95", done);
    fixture_env("LEDGERLOCK_LOCKS_MODE", NULL);
    world_run("2024-02-05T00:00:00Z");
    assert_int_equal(world_ask("SELECT count(*) FROM charges WHERE period_no = 1 AND "
                               "subscription_id <= 5"),
                     5);
    assert_int_equal(incidents("epoch_bump"), 2);
    assert_true(incidents("fenced") >= 1);
    world_audit("2024-02-05T00:00:00Z", NULL);
}

/* Wallets that last and orders of one unit: whoever is first, the totals are the same.
 */
static void plant_crowd(void)
{
    world_do(
        "INSERT INTO users (user_id, currency) SELECT n, 'USD' FROM "
        "generate_series(1, 400) AS n; SELECT deposit(n, 1, 100000) FROM "
        "generate_series(1, 400) AS n; INSERT INTO subscriptions (user_id, plan, "
        "amount_minor, currency, anchor_at, unit, next_due_at) SELECT n, 'p' || p, "
        "100 + p, 'USD', at, 'week', at FROM generate_series(1, 400) AS n, "
        "generate_series(1, 2) AS p, (VALUES ('2023-12-01Z'::timestamptz)) AS t "
        "(at); INSERT INTO stock (sku_id, sku, initial_qty, on_hand, "
        "unit_price_minor, currency) SELECT 64 * n, 'S' || n, 20 * n, 20 * n, n, "
        "'USD' FROM generate_series(1, 8) AS n; SELECT place_order(n, 'k' || k, "
        "jsonb_build_array(jsonb_build_object('sku', 'S' || 1 + (n * k) %% 8, "
        "'qty', 1)), '2024-01-01Z') FROM generate_series(1, 400) AS n, "
        "generate_series(1, 3) AS k");
}

static void
database_only_with_eight_workers_has_the_totals_of_a_run_with_locks(void **state)
{
    char with_locks[1024];

    plant_crowd();
    world_run_pool("4", now);
    (void)snprintf(with_locks, sizeof with_locks, "%s", world_totals());
    world_close(state);
    world_open(state);
    plant_crowd();
    open_without_redis();
    world_run_pool("8", now);
    assert_string_equal(world_totals(), with_locks);
    assert_int_equal(world_ask("SELECT count(*) FROM charges"), 800 * 6);
    assert_int_equal(incidents("parked"), 0);
    world_audit(now, NULL);
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, hand_world, world_close)
#define EMPTY(name) cmocka_unit_test_setup_teardown(name, world_open, world_close)

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(fence_above_every_token_raises_the_epoch_and_the_work_is_done),
        TEST(fence_of_stock_above_every_token_is_healed_too),
        TEST(redis_ahead_of_this_database_raises_the_epoch_above_it),
        TEST(apply_with_a_token_older_than_the_fence_writes_nothing),
        TEST(apply_leaves_only_the_fenced_user_out),
        TEST(apply_of_orders_on_fenced_stock_is_a_bug_and_is_rolled_back),
        TEST(apply_twice_with_one_token_writes_once),
        TEST(apply_reads_again_what_is_due),
        TEST(row_held_by_another_session_is_left_and_worked_when_it_is_free),
        TEST(client_idle_after_place_order_holds_nobody_back),
        TEST(charge_that_is_there_already_parks_only_its_subscription),
        TEST(movement_that_is_there_already_parks_only_its_order),
        TEST(parked_subscription_that_is_mended_is_resumed_and_charged),
        TEST(worker_idle_in_transaction_ends_before_its_lease),
        TEST(database_only_works_without_redis_and_says_so),
        TEST(database_only_heals_a_fence_above_its_epoch),
        TEST(fence_beyond_every_token_parks_its_rows_and_the_rest_flows),
        TEST(run_with_locks_after_database_only_heals_by_an_epoch),
        EMPTY(database_only_with_eight_workers_has_the_totals_of_a_run_with_locks),
    };

    fixture_need_servers();
    return cmocka_run_group_tests(tests, NULL, NULL);
}
