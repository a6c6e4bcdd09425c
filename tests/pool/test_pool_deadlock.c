/* pool: eight workers and four clients over shuffled, overlapping rows: PostgreSQL
 * finds no deadlock, with the Redis locks and without. */
#include <libpq-fe.h>

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
        "INSERT INTO users (user_id, currency) SELECT n, 'USD' FROM"
        " generate_series(1, %d) AS n; SELECT deposit(n, 'USD', 1000000, '1') FROM"
        " generate_series(1, %d) AS n; INSERT INTO subscriptions (user_id, plan,"
        " amount_minor, currency, anchor_at, unit, next_due_at) SELECT n, 'p', 100,"
        " 'USD', at, 'week', at FROM generate_series(1, %d) AS n, (VALUES"
        " ('2024-01-01Z'::timestamptz)) AS t (at)",
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
static void place_orders(int client)
{
    char url[FIXTURE_URL], sql[512], salt[32];
    PGconn *conn;

    fixture_url_as(&world.f, "ledgerlock_owner", url, sizeof url);
    conn = PQconnectdb(url);
    for (int i = 0; i < PLACED; i++) {
        PGresult *res;

        (void)snprintf(salt, sizeof salt, "'%d:%d'", client, i);
        (void)snprintf(sql, sizeof sql,
                       "BEGIN; SELECT ledgerlock.place_order(%d, 'c%d:%d', " LINES
                       ", '2024-01-02Z'); SELECT pg_sleep(0.005); COMMIT",
                       1 + (client * 37 + i) % USERS, client, i, salt);
        res = PQexec(conn, sql);
        if (PQresultStatus(res) != PGRES_COMMAND_OK) {
            (void)fprintf(stderr, "%s", PQerrorMessage(conn));
            _exit(1);
        }
        PQclear(res);
    }
    _exit(0);
}

/* Four workers of each job until nothing is due, beside the clients; then what came
 * later. */
static void work_beside_clients(const char *mode)
{
    pid_t clients[CLIENTS];

    (void)fflush(NULL);
    for (int i = 0; i < CLIENTS; i++) {
        clients[i] = fork();
        if (clients[i] == 0)
            place_orders(i);
    }
    for (int pass = 0; pass < 2; pass++) {
        world_runs(0, "run -w 4 --once --now %s --lock-mode %s", now, mode);
        for (int i = 0; pass == 0 && i < CLIENTS; i++)
            assert_int_equal(fixture_reap(clients[i], 90), 0);
    }
}

static void assert_all_done_without_a_deadlock(void)
{
    int64_t busy =
        pool_counter(&world.f, "busy") + pool_counter(&world.f, "row_locked");

    print_message("%" PRId64 " rows or keys met busy\n", busy);
    assert_true(busy >= 100); /* they did overlap */
    assert_int_equal(super_ask("SELECT deadlocks FROM pg_stat_database WHERE datname ="
                               " current_database()"),
                     0);
    assert_int_equal(pool_counter(&world.f, "conflicts"), 0);
    world_is(ORDERS + CLIENTS * PLACED,
             "SELECT count(*) FROM orders WHERE state = 'fulfilled'");
    world_is(3 * USERS, "SELECT count(*) FROM charges");
    world_audit(now, NULL);
}

/* Guarantee: Four workers of each job without Redis locks and four clients over the
 * same rows meet no deadlock in PostgreSQL. */
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
