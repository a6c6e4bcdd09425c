/* corrections: withdrawals, write-offs and orders that are taken back while a pool
 * works the same users. The functions by themselves are told in tests/sql. */
#include "tests/lib/client.h"
#include "tests/lib/session.h"

enum { ORDERS = 400 };

/* User 1 pays 100 for a period of ten days that is running, and 210 for three units of
 * A; user 2 cannot pay 50. */
static void prepare(void)
{
    client_open();
    world_user(1, 1000);
    world_user(2, 10);
    world_sku(1, "A", 10, 70);
    world_do(
        "INSERT INTO subscriptions (subscription_id, user_id, plan, amount_minor,"
        " currency, anchor_at, unit, every, next_due_at) SELECT n, n, 'p', 150 - 50"
        " * n, 'USD', at, 'day', 10, at FROM generate_series(1, 2) AS n, CAST(now()"
        " - interval '49 hours' AS timestamptz) AS at");
    world_do("SELECT place_order(1, 'k', '[{\"sku\": \"A\", \"qty\": 3}]')");
    world_runs(0, "run --once");
}

WORLD(.role = "ledgerlock_owner", .also = prepare);

static void audit(void)
{
    world_runs(0, "audit --lag 0s");
}

/* The client says both again and again, each in a transaction; a refusal is none of his
 * business. */
static void
client_tries(const char *loop, const char *first, const char *second, const char *until)
{
    PGconn *conn = session_open(client);
    char sql[1024];

    (void)snprintf(sql, sizeof sql,
                   "DO $$ BEGIN %s BEGIN %s; EXCEPTION WHEN SQLSTATE 'LL003' THEN NULL;"
                   " END; COMMIT; BEGIN %s; EXCEPTION WHEN SQLSTATE 'LL003' THEN NULL;"
                   " END; COMMIT; %s; END LOOP; END $$",
                   loop, first, second, until);
    session_do(conn, sql);
    PQfinish(conn);
}

/* Guarantee: Withdrawals and write-offs while a pool charges the same users leave every
 * wallet what its entries say, and nobody is charged for a period that was given up.
 */
CASE(withdrawals_and_write_offs_meet_charges)
{
    int64_t given_up;

    world_do(
        "INSERT INTO users (user_id, currency) SELECT n, 'USD' FROM"
        " generate_series(10, 109) AS n; SELECT deposit(n, 'USD', 300, 'k') FROM"
        " generate_series(10, 109) AS n; INSERT INTO subscriptions"
        " (subscription_id, user_id, plan, amount_minor, currency, anchor_at, unit,"
        " next_due_at) SELECT n, n, 'd', 10, 'USD', now() - interval '25 days',"
        " 'day', now() - interval '25 days' FROM generate_series(10, 109) AS n");
    pool_start("run -w 2 --jobs billing --batch 4");
    world_wait("SELECT count(*) > 10 FROM ledgerlock.charges");
    client_tries("FOR i IN 0..3999 LOOP",
                 "PERFORM withdraw(109 - i % 100, 'USD', 40, 'asked for', i::text)",
                 "PERFORM write_off(user_id, subscription_id, next_period_no, 'gone',"
                 " i::text) FROM subscriptions WHERE subscription_id = 109 - i % 100",
                 "EXIT WHEN (SELECT count(*) >= 20 FROM events WHERE event ="
                 " 'written_off')");
    pool_stop();
    given_up = world_ask("SELECT count(*) FROM events WHERE event = 'written_off'");
    assert_true(given_up >= 20);
    assert_true(world_ask("SELECT count(*) FROM wallet_entries WHERE kind ="
                          " 'withdrawal'") > 100);
    world_is(given_up, "SELECT count(*) FROM charges WHERE state = 'written_off'");
    world_is(
        0,
        "SELECT count(*) FROM ledger JOIN events ON event = 'written_off' AND source ="
        " subscription_id AND leg = from_period AND kind = 'charge'");
    assert_int_equal(
        world_ask("SELECT (SELECT max(recorded_at) FROM batches) > (SELECT"
                  " min(recorded_at) FROM wallet_entries WHERE kind = 'withdrawal')"),
        1);
    world_runs(0, "run --once");
    audit();
}

/* Guarantee: An order that its user takes back while a pool serves is either cancelled,
 * with nothing moved, or fulfilled. */
CASE(orders_taken_back_while_a_pool_serves_are_one_or_the_other)
{
    int64_t cancelled;

    world_do(
        "SELECT receive_stock('A', '1', %d); INSERT INTO users (user_id, currency)"
        " SELECT 100 + n, 'USD' FROM generate_series(2, %d) AS n; SELECT deposit(100"
        " + n, 'USD', 100, 'k') FROM generate_series(2, %d) AS n; SELECT"
        " place_order(100 + n, 'k', '[{\"sku\": \"A\", \"qty\": 1}]') FROM"
        " generate_series(2, %d) AS n",
        ORDERS, ORDERS + 1, ORDERS + 1, ORDERS + 1);
    pool_start("run --once --jobs orders --batch 2");
    world_wait("SELECT count(*) > 5 FROM ledgerlock.orders WHERE state = 'fulfilled'");
    /* The pool begins with the first, and the client with the last. */
    client_tries("FOR i IN REVERSE 401..2 LOOP", "PERFORM cancel_order(100 + i, i)",
                 "NULL", "NULL");
    pool_assert_ends(&world.pool, 0);
    cancelled = world_ask("SELECT count(*) FROM orders WHERE state = 'cancelled'");
    assert_in_range(cancelled, 1, ORDERS - 1);
    world_is(ORDERS - cancelled, "SELECT count(*) FROM orders WHERE state ="
                                 " 'fulfilled' AND order_id > 1");
    world_is(ORDERS - cancelled, "SELECT count(*) FROM stock_ledger WHERE kind ="
                                 " 'sale' AND source > 1");
    audit();
}
