/* client functions: as a role with the rights of shop, cashier, warehouse and support
 * calls them, again and wrongly. */
#include "tests/lib/client.h"
#include "tests/lib/runs.h"

static void prepare(void)
{
    client_open();
    world_do(
        "INSERT INTO users (user_id, currency) VALUES (1, 'USD'), (2, 'USD'), (3, 'EUR');"
        "INSERT INTO stock (sku_id, sku, initial_qty, on_hand, unit_price_minor, currency)"
        " VALUES (65, 'A', 10, 10, 250, 'USD'), (70, 'B', 5, 5, 100, 'USD'),"
        " (71, 'DEAR', 1, 1, 9223372036854775807, 'BHD'),"
        " (72, 'MANY', 9223372036854775807, 9223372036854775807, 1, 'USD');"
        "INSERT INTO users (user_id, currency) VALUES (4, 'BHD')");
    world_subscription(1, 1, 100, "2024-01-31Z");
    world_do(
        "UPDATE subscriptions SET next_period_no = 1, next_due_at = '2024-02-29Z'");
}

WORLD(.role = "ledgerlock_owner", .also = prepare);

/* The client is answered this number; false is 0. */
static void answers(int64_t n, const char *sql)
{
    int64_t found = ask(sql);

    if (found != n)
        fail_msg("%" PRId64 " and not %" PRId64 ": %s", found, n, sql);
}

#define PLACE(user, key, lines) "SELECT place_order(" user ", " key ", '" lines "')"
#define LINE(sku, qty) "{\"sku\": \"" sku "\", \"qty\": " qty "}"

/* ---- place_order ---- */

/* Guarantee: An order placed twice under one key is one order. */
CASE(order_with_same_key_and_lines_is_the_same_order)
{
    int64_t id = ask(PLACE("1", "'k'", "[" LINE("A", "2") "]"));

    answers(id, PLACE("1", "'k'", "[{\"qty\": 2,  \"sku\": \"A\"}]"));
    world_expect("1 500",
                 "SELECT format('%s %s', count(*), min(total_minor)) FROM orders");
    world_expect("2", "SELECT sum(qty) FROM order_lines");
}

/* Guarantee: An order placed twice with its lines in another order is one order. */
CASE(order_with_its_lines_in_another_order_is_the_same_order)
{
    int64_t id = ask(PLACE("1", "'k'", "[" LINE("A", "2") "," LINE("B", "3") "]"));

    answers(id, PLACE("1", "'k'", "[" LINE("B", "3") "," LINE("A", "2") "]"));
    answers(id, PLACE("1", "'k'",
                      "[" LINE("A", "1") "," LINE("B", "3") "," LINE("A", "1") "]"));
    refused("LL001", PLACE("1", "'k'", "[" LINE("B", "2") "," LINE("A", "3") "]"));
}

/* The price changes between the insert of the order and that of its lines. */
/* Guarantee: The total of an order is that of its lines, whatever price changes while
 * it is placed. */
CASE(order_reads_each_price_once)
{
    world_do("CREATE FUNCTION public.reprice() RETURNS trigger LANGUAGE plpgsql AS $$"
             " BEGIN UPDATE ledgerlock.stock SET unit_price_minor = 7; RETURN NEW;"
             " END $$; CREATE TRIGGER reprice BEFORE INSERT ON orders FOR EACH ROW"
             " EXECUTE FUNCTION public.reprice()");
    (void)ask(PLACE("1", "'k'", "[" LINE("A", "2") "]"));
    world_expect("500 500", "SELECT concat_ws(' ', total_minor, (SELECT sum(qty *"
                            " unit_price_minor) FROM order_lines)) FROM orders");
    world_do("DROP FUNCTION public.reprice CASCADE");
}

/* Guarantee: An order placed under a used key with other lines is refused. */
CASE(order_with_same_key_and_other_lines_is_refused)
{
    (void)ask(PLACE("1", "'k'", "[" LINE("A", "2") "]"));
    refused("LL001", PLACE("1", "'k'", "[" LINE("A", "3") "]"));
    world_expect("2", "SELECT sum(qty) FROM order_lines");
}

CASE(order_with_key_of_another_user_is_another_order)
{
    int64_t id = ask(PLACE("1", "'k'", "[" LINE("A", "2") "]"));

    assert_int_not_equal(ask(PLACE("2", "'k'", "[" LINE("B", "1") "]")), id);
    world_expect("2", "SELECT count(*) FROM orders");
}

CASE(order_of_unknown_skus_is_rejected_naming_them)
{
    (void)ask(PLACE("1", "'k'",
                    "[" LINE("Z", "1") "," LINE("A", "1") "," LINE("Y", "1") "]"));
    world_expect("rejected unknown_sku {Y,Z}",
                 "SELECT format('%s %s %s', state, reason, skus) FROM orders");
}

/* Guarantee: An order of an unknown SKU is rejected now, also if it was to be served
 * later: nothing is decided in the future. */
CASE(order_of_an_unknown_sku_is_never_decided_in_the_future)
{
    (void)ask("SELECT ledgerlock.place_order(1, 'k',"
              " '[{\"sku\": \"Z\", \"qty\": 1}]',"
              " now() + interval '20 hours')");
    world_expect("t", "SELECT placed_at <= now() AND decided_at <= now() FROM orders");
}

CASE(order_with_sku_twice_has_its_quantities_summed)
{
    (void)ask(PLACE("1", "'k'",
                    "[" LINE("A", "2") "," LINE("B", "1") "," LINE("A", "3") "]"));
    world_expect(
        "65x5 70x1",
        "SELECT string_agg(sku_id || 'x' || qty, ' ' ORDER BY sku_id) FROM order_lines");
    world_expect("1350", "SELECT total_minor FROM orders");
}

CASE(order_that_is_malformed_is_refused)
{
    static const char *const wrong[] = {
        PLACE("1", "'k'", "[]"),
        PLACE("1", "'k'", "{}"),
        PLACE("1", "'k'", "[1]"),
        PLACE("1", "''", "[" LINE("A", "2") "]"),
        PLACE("1", "NULL", "[" LINE("A", "1") "]"),
        PLACE("1", "'k'", "[" LINE("A", "0") "]"),
        PLACE("1", "'k'", "[" LINE("A", "1.5") "]"),
        PLACE("1", "'k'", "[" LINE("A", "-1") "]"),
        PLACE("1", "'k'", "[{\"sku\": 7, \"qty\": 1}]"),
        PLACE("1", "'k'", "[{\"sku\": \"A\"}]"),
        PLACE("9", "'k'", "[" LINE("A", "1") "]"),
        PLACE("3", "'k'", "[" LINE("A", "1") "]"),
        PLACE("4", "'k'", "[" LINE("DEAR", "2") "]"),
        "SELECT place_order(1, 'k', NULL)",
        ("SELECT place_order(1, 'big', (SELECT jsonb_agg(jsonb_build_object('sku', 'N' || n, 'qty', 1))"
         " FROM generate_series(1, 1000) AS n))")};

    for (size_t i = 0; i < sizeof wrong / sizeof wrong[0]; i++)
        refused("LL002", wrong[i]);
    world_expect("0", "SELECT count(*) FROM orders");
}

CASE(order_placed_moves_neither_stock_nor_money)
{
    (void)ask(PLACE("1", "'k'", "[" LINE("A", "2") "]"));
    world_expect("10", "SELECT on_hand FROM stock WHERE sku = 'A'");
    world_expect("0", "SELECT count(*) FROM transfers");
}

#define STATUS(user)                                                                   \
    "FROM order_status(" user ", "                                                     \
    "place_order(1, 'status', '[" LINE("nowhere", "1") "]'))"

CASE(order_status_tells_its_own_user_only)
{
    answers(1, "SELECT 1 + 0 * place_order(1, 'status', '[" LINE("nowhere", "1") "]')");
    answers(1, "SELECT state = 'rejected' AND reason = 'unknown_sku' " STATUS("1"));
    answers(0, "SELECT count(*) " STATUS("2"));
}

/* ---- money and stock ---- */

/* Guarantee: A deposit made twice under one key counts once; with another amount it is
 * refused. */
CASE(deposit_with_same_key_counts_once)
{
    answers(100, "SELECT deposit(1, 'USD', 100, 'a')");
    answers(100, "SELECT deposit(1, 'USD', 100, 'a')");
    answers(150, "SELECT deposit(1, 'USD', 50, 'b')");
    answers(30, "SELECT deposit(2, 'USD', 30, 'a')");
    refused("LL001", "SELECT deposit(1, 'USD', 101, 'a')");
    world_expect("3", "SELECT count(*) FROM transfers");
}

/* Guarantee: No key of a client's deposit is that of the opening deposit of an import.
 */
CASE(deposit_is_never_taken_for_the_opening_deposit)
{
    world_do(
        "INSERT INTO transfers VALUES ('deposit', 1, 0, 1, now(), 'cash', 'wallet', 100,"
        " 'USD', now()); UPDATE users SET balance_minor = 100 WHERE user_id = 1");
    answers(200, "SELECT deposit(1, 'USD', 100, '0')");
    world_expect("0 1",
                 "SELECT string_agg(leg::text, ' ' ORDER BY leg) FROM transfers");
}

static const struct {
    const char *name, *sql;
} wrong_deposits[] = {
    {"of_nothing", "SELECT deposit(1, 'USD', 0, 'k')"},
    {"of_less", "SELECT deposit(1, 'USD', -5, 'k')"},
    {"of_nobody", "SELECT deposit(9, 'USD', 5, 'k')"},
    {"in_another_currency", "SELECT deposit(1, 'EUR', 5, 'k')"},
    {"in_no_currency", "SELECT deposit(1, NULL, 5, 'k')"},
    {"without_a_key", "SELECT deposit(1, 'USD', 5, NULL)"},
    {"with_an_empty_key", "SELECT deposit(1, 'USD', 5, '')"},
    {"with_a_key_too_long", "SELECT deposit(1, 'USD', 5, repeat('k', 256))"},
    {"beyond_64_bits",
     "SELECT deposit(2, 'USD', 9223372036854775807, 'k'), deposit(2, 'USD', 1, 'l')"},
};

/* Guarantee: A deposit in another currency than the wallet's is refused. */
CASE_ROWS(deposit_is_refused, wrong_deposits)
{
    refused("LL002", row->sql);
    world_expect("0", "SELECT sum(balance_minor) FROM users");
}

/* Guarantee: A delivery made twice under one number arrives once. */
CASE(delivery_with_same_number_arrives_once)
{
    answers(15, "SELECT receive_stock('A', '1', 5)");
    answers(15, "SELECT receive_stock('A', '1', 5)");
    answers(10, "SELECT receive_stock('B', '1', 5)");
    refused("LL001", "SELECT receive_stock('A', '1', 6)");
    refused("LL002", "SELECT receive_stock('A', '2', 0)");
    refused("LL002", "SELECT receive_stock('Z', '1', 5)");
    refused("LL002", "SELECT receive_stock('A', NULL, 5)");
    refused("LL002", "SELECT receive_stock('MANY', '1', 1)");
    world_expect("A B", "SELECT string_agg(sku, ' ' ORDER BY sku) FROM stock WHERE"
                        " on_hand - initial_qty = 5");
}

CASE(currency_is_three_capital_letters_wherever_it_is_kept)
{
    static const char *const wrong[] = {"usd", "US", "USDT", "U$D", ""};
    char sql[200], code[6];

    for (size_t i = 0; i < 2 * sizeof wrong / sizeof wrong[0]; i++) {
        (void)snprintf(
            sql, sizeof sql,
            "SET ledgerlock.repair = on; UPDATE ledgerlock.%s SET currency = '%s'",
            i % 2 == 0 ? "users" : "stock", wrong[i / 2]);
        assert_string_equal(fixture_sqlstate(world.f.url, sql, code), "23514");
    }
}

/* ---- subscriptions ---- */

/* A period that begins at the very instant of the call has begun: it is charged. */
/* Guarantee: A subscription that is cancelled at the very start of a period is
 * charged for that period and no other. */
CASE(cancel_at_the_start_of_a_period_ends_after_it)
{
    assert_true(world_ask(
        "SELECT cancel_subscription(1, 1, p_at => '2024-02-29Z') = '2024-03-31Z'"));
}
