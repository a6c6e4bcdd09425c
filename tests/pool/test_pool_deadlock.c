/* pool: eight workers and four clients over shuffled, overlapping rows: PostgreSQL
 * finds no deadlock, with the Redis locks and without. */
#include "tests/lib/session.h"
#include "tests/lib/steps.h"

enum { USERS = 300, SKUS = 40, ORDERS = 1200, CLIENTS = 4, PLACED = 150 };

static const char now[] = "2024-01-20T00:00:00Z";

/* Orders of eight SKUs each, in any order, so that every batch overlaps with others. */
#define LINES                                                                          \
    "(SELECT jsonb_agg(jsonb_build_object('sku', sku, 'qty', 1) ORDER BY random())"    \
    " FROM (SELECT sku FROM ledgerlock.stock ORDER BY hashtext(sku || %s) LIMIT 8) AS" \
    " s)"

static void prepare(void)
{
    world_do(
        INTO_USERS
        "SELECT n, 'USD' FROM generate_series(1, %d) AS n; SELECT"
        " deposit(n, 'USD', 1000000, '1') FROM generate_series(1, %d) AS n; " INTO_ANY_SUBSCRIPTIONS
        "SELECT n, 'p', 100, 'USD', at, 'week', at FROM"
        " generate_series(1, %d) AS n, (VALUES ('2024-01-01Z'::timestamptz)) AS t"
        " (at)",
        USERS, USERS, USERS);
    world_do("INSERT INTO stock (sku, initial_qty, on_hand, unit_price_minor, currency)"
             " SELECT 'S' || n, 100000, 100000, 5, 'USD' FROM generate_series(1, %d) AS"
             " n; SELECT place_order(1 + n %% %d, 'k' || n, " LINES ", '2024-01-01Z')"
             " FROM generate_series(1, %d) AS n; ANALYZE",
             SKUS, USERS, "n", ORDERS);
}

/* The lease is so long that no statement is ever too slow. */
WORLD(.any = true, .lease_ms = 120000, .poll_ms = 10, .batch = 20, .also = prepare);

/* A client that places orders, each with its row locks held for a moment. */
static PGconn *place_orders(int client)
{
    PGconn *conn = session_open(world.owner);
    char sql[640];

    (void)snprintf(sql, sizeof sql,
                   "DO $$ BEGIN FOR i IN 0..%d LOOP PERFORM ledgerlock.place_order(1 +"
                   " (%d * 37 + i) %% %d, 'c%d:' || i, " LINES ", '2024-01-02Z');"
                   " PERFORM pg_sleep(0.005); COMMIT; END LOOP; END $$",
                   PLACED - 1, client, USERS, client, "('c' || i)");
    assert_int_equal(PQsendQuery(conn, sql), 1);
    return conn;
}

/* Four workers of each job until nothing is due, beside the clients; then what came
 * later. */
static void work_beside_clients(const char *mode)
{
    PGconn *clients[CLIENTS];

    for (int i = 0; i < CLIENTS; i++)
        clients[i] = place_orders(i);
    world_runs(0, "run -w 4 --once --now %s --lock-mode %s", now, mode);
    for (int i = 0; i < CLIENTS; i++) {
        PGresult *res = PQgetResult(clients[i]);

        if (PQresultStatus(res) != PGRES_COMMAND_OK)
            fail_msg("%s", PQresultErrorMessage(res));
        PQclear(res);
        PQfinish(clients[i]);
    }
    world_runs(0, "run -w 4 --once --now %s --lock-mode %s", now, mode);
}

/* In any order: 900 charges of 100, 1,800 orders of eight pieces for 5 each. */
#define TOTALS                                                                         \
    "900/90000/900/0 900/0/active 3000/300162000 14400/-14400 299838000 3985600 1800/0/0"

static void assert_all_done_without_a_deadlock(void)
{
    int64_t busy = pool_counter("busy") + pool_counter("row_locked");

    print_message("%" PRId64 " rows or keys met busy\n", busy);
    assert_true(busy >= 100); /* they did overlap */
    assert_int_equal(super_ask("SELECT deadlocks FROM pg_stat_database WHERE datname ="
                               " current_database()"),
                     0);
    assert_int_equal(pool_counter("conflicts"), 0);
    promise_string_equal(world_totals(), TOTALS);
    world_audit(now, NULL);
}

/* Guarantee: Four workers of each job without Redis locks and four clients over the
 * same rows meet no deadlock in PostgreSQL, and have the totals of a pool with them. */
CASE(batch_deadlock_free_in_postgres_with_the_rows_alone)
{
    work_beside_clients("database-only");
    assert_all_done_without_a_deadlock();
}

/* Guarantee: Eight workers and four clients over the same rows meet no deadlock in
 * PostgreSQL. */
CASE(batch_deadlock_free_in_postgres_with_the_locks)
{
    work_beside_clients("redis");
    assert_all_done_without_a_deadlock();
}
