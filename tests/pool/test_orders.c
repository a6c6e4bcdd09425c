/* orders: the pool parks orders that it cannot serve, and two sessions place one. The
 * rules of orders are told in tests/sql. */

#include "tests/lib/session.h"
#include "tests/lib/world.h"

static const char now[] = "2024-01-02T00:00:00Z";

/* Two users, three articles. */
static void open_shop(void)
{
    world_open();
    world_user(1, 10000);
    world_user(2, 1000);
    world_sku(64, "A", 5, 100);
    world_sku(128, "B", 5, 10);
    world_sku(192, "C", 0, 1);
}

GROUP(.open = open_shop, .end = world_end, .close = world_close);

/* "fulfilled, rejected out_of_stock {A,B}": every order in the order it was placed. */
static const char outcomes[] =
    "SELECT string_agg(concat_ws(' ', state, reason, skus::text), ', ' ORDER BY "
    "order_id) FROM orders";

/* Stock, wallets, and all that was moved and paid. */
static const char left[] =
    "SELECT concat_ws(' ', (SELECT string_agg(sku || on_hand, ' ' ORDER BY sku) FROM"
    " stock), (SELECT string_agg(balance_minor::text, ' ' ORDER BY user_id) FROM users),"
    " (SELECT string_agg(sku || qty, ' ' ORDER BY source, sku) FROM stock_ledger JOIN"
    " stock USING (sku_id) WHERE kind = 'sale'), 'paid', (SELECT count(*) FROM ledger"
    " WHERE kind = 'payment'))";

/* ---- orders by hand ---- */

/* "1 A2 B5; 2 A1": user 1 orders two pieces of A and five of B, then user 2 one of A.
 */
static void place(const char *text)
{
    for (unsigned ct = 0; text != NULL; ct++) {
        int user, used, at = 0;
        unsigned qty;
        char key[16], lines[128], sku[2];

        assert_int_equal(sscanf(text, "%d%n", &user, &used), 1);
        for (text += used; sscanf(text, " %1[A-Z]%u%n", sku, &qty, &used) == 2;
             text += used)
            at += sprintf(lines + at, "%c{\"sku\":\"%s\",\"qty\":%u}",
                          at == 0 ? '[' : ',', sku, qty);
        (void)strcpy(lines + at, "]");
        (void)sprintf(key, "k%u", ct);
        (void)world_order(user, key, lines);
        text = text[0] == ';' ? text + 1 : NULL;
    }
}

CASE(order_whose_sum_overflows_is_parked_and_the_rest_flows)
{
    place("1 B1; 1 B1");
    world_do("UPDATE order_lines SET qty = 9223372036854775807 WHERE order_id = 1;"
             " INSERT INTO order_lines SELECT 1, 128, 11, 9223372036854775807");
    world_run_and_park(now);
    world_expect("parked, fulfilled", outcomes);
    world_expect("A5 B4 C0 9990 1000 B-1 paid 1", left);
}

/* ---- many orders ---- */

/* Guarantee: An order with more keys than a batch can lock is parked, and the rest
 * flows. */
CASE(order_with_too_many_keys_is_parked_and_the_rest_flows)
{
    world_do(INTO_STOCK "SELECT 1000 + n, 'N' || n, 9, 9, 1, 'USD' FROM"
                        " generate_series(1, 1000) AS n");
    place("1 A1");
    world_do("SELECT place_order(1, 'k2', jsonb_build_array(jsonb_build_object('sku', "
             "'A', 'qty', 1)) || jsonb_agg(jsonb_build_object('sku', 'N' || n, 'qty', "
             "1)), '2024-01-01Z') FROM generate_series(1, 998) AS n");
    /* place_order takes no more; by hand */
    world_do("INSERT INTO order_lines SELECT 2, 1999, 1, 1");
    world_do("UPDATE orders SET total_minor = total_minor + 1 WHERE order_id = 2");
    (void)world_order(1, "k3", "[{\"sku\":\"A\",\"qty\":1}]");
    /* one key less: a user and 999 articles fit */
    world_do(
        "SELECT place_order(1, 'k4', jsonb_agg(jsonb_build_object('sku', 'N' || n, "
        "'qty', 1)), '2024-01-01Z') FROM generate_series(1, 999) AS n");
    world_run_and_park(now);
    world_expect("fulfilled, parked, fulfilled, fulfilled", outcomes);
    world_expect("parked order:2 it needs more keys than one lock call takes",
                 "SELECT concat_ws(' ', kind, resource, detail) FROM lock_incidents "
                 "WHERE kind = 'parked'");
    world_audit(now, "nothing_parked");
}

/* ---- place_order, twice at once ---- */

static int64_t answer(PGresult *res)
{
    int64_t value;

    if (PQresultStatus(res) != PGRES_TUPLES_OK)
        fail_msg("%s", PQresultErrorMessage(res));
    value = strtoll(session_text(res, 0, 0), NULL, 10);
    PQclear(res);
    return value;
}

static const struct {
    const char *name, *first_ends;
    bool is_same;
} twice[] = {{"of_one_key_are_one_order", "COMMIT", true},
             {"are_one_order_if_the_first_is_rolled_back", "ROLLBACK", false}};

/* The second waits until the first has ended. */
/* Guarantee: An order that two sessions place at once under one key is one order. */
CASE_ROWS(orders_of_two_sessions_at_once, twice)
{
    static const char sql[] =
        "SELECT ledgerlock.place_order(1, 'k', '[{\"sku\":\"A\",\"qty\":1}]', "
        "'2024-01-01Z')";
    PGconn *a = PQconnectdb(world.owner), *b = PQconnectdb(world.owner);
    int64_t first;

    PQclear(PQexec(a, "BEGIN"));
    first = answer(PQexec(a, sql));
    assert_true(PQsendQuery(b, sql));
    world_wait_blocked();
    PQclear(PQexec(a, row->first_ends));
    assert_int_equal(answer(PQgetResult(b)) == first, row->is_same);
    PQfinish(a);
    PQfinish(b);
    assert_int_equal(world_ask("SELECT count(*) FROM order_lines"), 1);
    world_run(now);
    world_expect("fulfilled", outcomes);
    world_expect("A4 B5 C0 9900 1000 A-1 paid 1", left);
}
