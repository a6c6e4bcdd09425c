/* orders: all or nothing, decided as if served one after the other. */
#include <inttypes.h>
#include <libpq-fe.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "tests/lib/order_model.h"
#include "tests/lib/world.h"

static const char now[] = "2024-01-02T00:00:00Z";

/* Two users, three articles of one bucket. */
static int open_shop(void **state)
{
    world_open(state);
    world_user(1, 10000);
    world_user(2, 1000);
    world_sku(64, "A", 5, 100);
    world_sku(128, "B", 5, 10);
    world_sku(192, "C", 0, 1);
    return 0;
}

/* "fulfilled, rejected out_of_stock {A,B}": every order in the order it was placed. */
static const char outcomes[] =
    "SELECT string_agg(concat_ws(' ', state, reason, skus::text), ', ' ORDER BY "
    "order_id) FROM orders";

static const char left[] =
    "SELECT (SELECT string_agg(sku || on_hand, ' ' ORDER BY sku) FROM stock) || ' ' || "
    "(SELECT string_agg(balance_minor::text, ' ' ORDER BY user_id) FROM users)";

/* ---- one order ----------------------------------------------------------- */

static void order_that_fits_moves_every_line_and_is_paid(void **state)
{
    (void)state;
    (void)world_order(1, "k", "[{\"sku\":\"A\",\"qty\":2},{\"sku\":\"B\",\"qty\":5}]");
    world_run(now);
    world_expect("fulfilled", outcomes);
    world_expect("A3 B0 C0 9750 1000", left);
    world_expect("A 2 B 5", "SELECT string_agg(sku || ' ' || -qty, ' ' ORDER BY sku) "
                            "FROM stock_movements JOIN stock USING (sku_id)");
    world_audit(now, NULL);
}

static void order_with_one_line_short_moves_nothing(void **state)
{
    (void)state;
    (void)world_order(1, "k", "[{\"sku\":\"A\",\"qty\":2},{\"sku\":\"B\",\"qty\":6}]");
    world_run(now);
    world_expect("rejected out_of_stock {B}", outcomes);
    world_expect("A5 B5 C0 10000 1000", left);
    assert_int_equal(world_ask("SELECT count(*) FROM stock_movements"), 0);
    assert_int_equal(world_ask("SELECT count(*) FROM transfers WHERE kind = 'payment'"),
                     0);
    world_audit(now, NULL);
}

static void order_with_one_sku_at_two_prices_is_summed(void **state)
{
    (void)state;
    (void)world_order(1, "k", "[{\"sku\":\"A\",\"qty\":3}]");
    world_do("INSERT INTO order_lines (order_id, sku_id, unit_price_minor, qty) SELECT "
             "order_id, 64, 90, 3 FROM orders; UPDATE orders SET total_minor = 570");
    world_run(now);
    world_expect("rejected out_of_stock {A}", outcomes);
    (void)world_text("SELECT receive_stock('A', 1, 1)");
    world_do("UPDATE orders SET state = 'pending', reason = NULL, skus = NULL");
    world_run(now);
    world_expect("fulfilled", outcomes);
    world_expect("A0 B5 C0 9430 1000", left);
    assert_int_equal(world_ask("SELECT count(*) FROM stock_movements WHERE kind = "
                               "'sale' AND qty = -6"),
                     1);
}

static void order_short_of_several_names_all_of_them_sorted(void **state)
{
    (void)state;
    (void)world_order(1, "k",
                      "[{\"sku\":\"C\",\"qty\":1},{\"sku\":\"B\",\"qty\":1},"
                      "{\"sku\":\"A\",\"qty\":6}]");
    world_run(now);
    world_expect("rejected out_of_stock {A,C}", outcomes);
    world_expect("A5 B5 C0 10000 1000", left);
}

static void
order_above_the_wallet_is_rejected_and_one_that_empties_it_is_not(void **state)
{
    (void)state;
    world_do("UPDATE stock SET on_hand = 100, initial_qty = 100 WHERE sku = 'B'");
    (void)world_order(2, "k1",
                      "[{\"sku\":\"B\",\"qty\":100},{\"sku\":\"A\",\"qty\":1}]");
    (void)world_order(2, "k2", "[{\"sku\":\"B\",\"qty\":100}]");
    world_run(now);
    world_expect("rejected insufficient_funds, fulfilled", outcomes);
    world_expect("A5 B0 C0 10000 0", left);
    world_audit(now, NULL);
}

static void order_that_is_free_is_fulfilled_without_a_transfer(void **state)
{
    (void)state;
    world_user(3, 0);
    world_sku(256, "F", 2, 0);
    (void)world_order(3, "k", "[{\"sku\":\"F\",\"qty\":2}]");
    world_run(now);
    world_expect("fulfilled", outcomes);
    world_expect("A5 B5 C0 F0 10000 1000 0", left);
    assert_int_equal(world_ask("SELECT count(*) FROM transfers WHERE kind = 'payment'"),
                     0);
    world_audit(now, NULL);
}

static void order_placed_later_than_now_waits(void **state)
{
    (void)state;
    (void)world_order(1, "k", "[{\"sku\":\"A\",\"qty\":1}]");
    world_run("2023-12-31T23:59:59Z");
    world_expect("pending", outcomes);
    world_run("2024-01-01T00:00:00Z");
    world_expect("fulfilled", outcomes);
}

static void order_whose_sum_overflows_is_set_aside_and_the_rest_flows(void **state)
{
    (void)state;
    (void)world_order(1, "k1", "[{\"sku\":\"B\",\"qty\":1}]");
    (void)world_order(1, "k2", "[{\"sku\":\"B\",\"qty\":1}]");
    world_do("UPDATE order_lines SET qty = 9223372036854775807 WHERE order_id = 1");
    world_do("INSERT INTO order_lines SELECT 1, 128, 11, 9223372036854775807");
    world_run(now);
    world_expect("parked, fulfilled", outcomes);
    world_expect("A5 B4 C0 9990 1000", left);
}

/* ---- several in one batch ------------------------------------------------ */

static void orders_of_one_user_end_where_the_wallet_ends(void **state)
{
    static const char *const skus[] = {"A", "A", "A", "B", "A"};

    (void)state;
    world_do("UPDATE stock SET unit_price_minor = 400 WHERE sku = 'A'");
    for (size_t i = 0; i < 5; i++) {
        char key[8], lines[64];

        (void)snprintf(key, sizeof key, "k%zu", i);
        (void)snprintf(lines, sizeof lines, "[{\"sku\":\"%s\",\"qty\":1}]", skus[i]);
        (void)world_order(2, key, lines);
    }
    world_run(now);
    world_expect("fulfilled, fulfilled, rejected insufficient_funds, fulfilled, "
                 "rejected insufficient_funds",
                 outcomes);
    world_expect("A3 B4 C0 10000 190", left);
}

static void orders_of_one_sku_end_where_the_stock_ends(void **state)
{
    static const int qty[] = {3, 3, 1, 2, 1};

    (void)state;
    for (size_t i = 0; i < 5; i++) {
        char key[8], lines[64];

        (void)snprintf(key, sizeof key, "k%zu", i);
        (void)snprintf(lines, sizeof lines, "[{\"sku\":\"A\",\"qty\":%d}]", qty[i]);
        (void)world_order((int64_t)(i % 2) + 1, key, lines);
    }
    world_run(now);
    world_expect("fulfilled, rejected out_of_stock {A}, fulfilled, rejected "
                 "out_of_stock {A}, fulfilled",
                 outcomes);
    world_expect("A0 B5 C0 9500 1000", left);
}

/* 64 small worlds with a seed each, one to a bucket, in one run. */
static void assert_like_sequential(const char *batch, uint32_t seed)
{
    fixture_env("LEDGERLOCK_POOL_BATCH", batch);
    for (uint32_t bucket = 0; bucket < 64; bucket++)
        order_model_plant(bucket, seed + bucket);
    order_model_start();
    world_run(now);
    for (uint32_t bucket = 0; bucket < 64; bucket++)
        order_model_compare(bucket, seed + bucket);
    world_audit(now, NULL);
}

static void orders_in_one_batch_are_decided_as_if_one_by_one(void **state)
{
    (void)state;
    assert_like_sequential("500", 1000);
}

static void orders_in_batches_of_three_are_decided_as_if_one_by_one(void **state)
{
    (void)state;
    assert_like_sequential("3", 2000);
}

static void orders_in_batches_of_one_are_decided_as_if_one_by_one(void **state)
{
    (void)state;
    assert_like_sequential("1", 3000);
}

static void orders_in_batches_of_eleven_are_decided_as_if_one_by_one(void **state)
{
    (void)state;
    assert_like_sequential("11", 4000);
}

static void order_with_too_many_keys_is_parked_and_the_rest_flows(void **state)
{
    (void)state;
    world_do("INSERT INTO stock (sku_id, sku, initial_qty, on_hand, unit_price_minor, "
             "currency) SELECT 1000 + n, 'N' || n, 9, 9, 1, 'USD' FROM "
             "generate_series(1, 1000) AS n");
    (void)world_order(1, "k1", "[{\"sku\":\"A\",\"qty\":1}]");
    /* sold with A, so that all three stand in one bucket */
    world_do("SELECT place_order(1, 'k2', jsonb_build_array(jsonb_build_object('sku', "
             "'A', 'qty', 1)) || jsonb_agg(jsonb_build_object('sku', 'N' || n, 'qty', "
             "1)), '2024-01-01Z') FROM generate_series(1, 998) AS n");
    /* the door takes no more; by hand */
    world_do("INSERT INTO order_lines SELECT 2, 1999, 1, 1");
    world_do("UPDATE orders SET total_minor = total_minor + 1 WHERE order_id = 2");
    (void)world_order(1, "k3", "[{\"sku\":\"A\",\"qty\":1}]");
    /* one key less: a user and 999 articles fit */
    world_do(
        "SELECT place_order(1, 'k4', jsonb_agg(jsonb_build_object('sku', 'N' || n, "
        "'qty', 1)), '2024-01-01Z') FROM generate_series(1, 999) AS n");
    world_run(now);
    world_expect("fulfilled, parked, fulfilled, fulfilled", outcomes);
    world_expect("parked order:2 it needs more keys than one lock call takes",
                 "SELECT concat_ws(' ', kind, resource, detail) FROM lock_incidents "
                 "WHERE kind = 'parked'");
    world_audit(now, "nothing_parked");
}

static void sku_wanted_by_ten_times_more_sells_every_unit_once(void **state)
{
    (void)state;
    world_sku(320, "HOT", 30, 7);
    world_do(
        "INSERT INTO users (user_id, currency) SELECT 100 + n, 'USD' FROM "
        "generate_series(1, 300) AS n; SELECT deposit(100 + n, 1, 7), "
        "place_order(100 + n, 'k', '[{\"sku\":\"HOT\",\"qty\":1}]', '2024-01-01Z') "
        "FROM generate_series(1, 300) AS n");
    world_run_pool("4", now);
    world_expect(
        "30 270 30 -30 210",
        "SELECT concat_ws(' ', count(*) FILTER (WHERE state = 'fulfilled'), "
        "count(*) FILTER (WHERE state = 'rejected' AND skus = '{HOT}'), "
        "(SELECT count(*) FROM stock_movements), (SELECT sum(qty) FROM "
        "stock_movements), (SELECT sum(amount_minor) FROM transfers WHERE kind "
        "= 'payment')) FROM orders");
    world_audit(now, NULL);
}

/* ---- the door, twice at once --------------------------------------------- */

static const char same_order[] =
    "SELECT ledgerlock.place_order(1, 'k', '[{\"sku\":\"A\",\"qty\":1}]', "
    "'2024-01-01Z')";

static PGconn *session(void)
{
    PGconn *conn = PQconnectdb(world.owner);

    assert_int_equal(PQstatus(conn), CONNECTION_OK);
    return conn;
}

static int64_t answer(PGconn *conn)
{
    PGresult *res = PQgetResult(conn);
    int64_t value;

    if (PQresultStatus(res) != PGRES_TUPLES_OK)
        fail_msg("%s", PQresultErrorMessage(res));
    value = strtoll(PQgetvalue(res, 0, 0), NULL, 10);
    PQclear(res);
    return value;
}

static void command(PGconn *conn, const char *sql)
{
    PGresult *res = PQexec(conn, sql);

    assert_int_equal(PQresultStatus(res), PGRES_COMMAND_OK);
    PQclear(res);
}

/* Two sessions place the same order; the second waits until the first has `ended`. */
static void place_twice(const char *ended, int64_t *first, int64_t *second)
{
    PGconn *a = session(), *b = session();

    command(a, "BEGIN");
    assert_true(PQsendQuery(a, same_order));
    *first = answer(a);
    assert_null(PQgetResult(a));
    assert_true(PQsendQuery(b, same_order));
    world_wait(world_blocked);
    command(a, ended);
    *second = answer(b);
    PQfinish(a);
    PQfinish(b);
}

static void place_order_from_two_sessions_at_once_gives_one_order(void **state)
{
    int64_t first, second;

    (void)state;
    place_twice("COMMIT", &first, &second);
    assert_int_equal(first, second);
    assert_int_equal(world_ask("SELECT count(*) FROM order_lines"), 1);
    world_run(now);
    world_expect("fulfilled", outcomes);
    world_expect("A4 B5 C0 9900 1000", left);
}

static void place_order_beside_one_that_is_rolled_back_is_kept(void **state)
{
    int64_t first, second;

    (void)state;
    place_twice("ROLLBACK", &first, &second);
    assert_int_not_equal(first, second);
    world_run(now);
    world_expect("fulfilled", outcomes);
    world_expect("A4 B5 C0 9900 1000", left);
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, open_shop, world_close)
#define EMPTY(name) cmocka_unit_test_setup_teardown(name, world_open, world_close)

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(order_that_fits_moves_every_line_and_is_paid),
        TEST(order_with_one_line_short_moves_nothing),
        TEST(order_with_one_sku_at_two_prices_is_summed),
        TEST(order_short_of_several_names_all_of_them_sorted),
        TEST(order_above_the_wallet_is_rejected_and_one_that_empties_it_is_not),
        TEST(order_that_is_free_is_fulfilled_without_a_transfer),
        TEST(order_placed_later_than_now_waits),
        TEST(order_whose_sum_overflows_is_set_aside_and_the_rest_flows),
        TEST(orders_of_one_user_end_where_the_wallet_ends),
        TEST(orders_of_one_sku_end_where_the_stock_ends),
        EMPTY(orders_in_one_batch_are_decided_as_if_one_by_one),
        EMPTY(orders_in_batches_of_three_are_decided_as_if_one_by_one),
        EMPTY(orders_in_batches_of_one_are_decided_as_if_one_by_one),
        EMPTY(orders_in_batches_of_eleven_are_decided_as_if_one_by_one),
        TEST(order_with_too_many_keys_is_parked_and_the_rest_flows),
        TEST(sku_wanted_by_ten_times_more_sells_every_unit_once),
        TEST(place_order_from_two_sessions_at_once_gives_one_order),
        TEST(place_order_beside_one_that_is_rolled_back_is_kept),
    };

    fixture_need_servers();
    return cmocka_run_group_tests(tests, NULL, NULL);
}
