/* pool: eight workers and four clients over shuffled, overlapping rows: PostgreSQL
 * finds no deadlock, with the Redis locks and without. */
#include <inttypes.h>
#include <libpq-fe.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "tests/lib/pool_world.h"

enum { USERS = 300, SKUS = 40, ORDERS = 1200, CLIENTS = 4, PLACED = 150 };

static struct fixture f;
static const char now[] = "2024-01-20T00:00:00Z";

/* Orders of eight SKUs each, in any order, so that every batch overlaps with others. */
#define LINES                                                                          \
    "(SELECT jsonb_agg(jsonb_build_object('sku', sku, 'qty', 1) ORDER BY random())"    \
    " FROM (SELECT sku FROM ledgerlock.stock ORDER BY hashtext(sku || %s) LIMIT 8) AS" \
    " s)"

static void put_work(void)
{
    char sql[2048];

    (void)snprintf(
        sql, sizeof sql,
        "SET search_path = ledgerlock; INSERT INTO users (user_id, currency) SELECT n,"
        " 'USD' FROM generate_series(1, %d) AS n; SELECT deposit(n, 1, 1000000) FROM"
        " generate_series(1, %d) AS n; INSERT INTO subscriptions (user_id, plan,"
        " amount_minor, currency, anchor_at, unit, next_due_at) SELECT n, 'p', 100,"
        " 'USD', at, 'week', at FROM generate_series(1, %d) AS n, (VALUES"
        " ('2024-01-01Z'::timestamptz)) AS t (at); INSERT INTO stock (sku, initial_qty,"
        " on_hand, unit_price_minor, currency) SELECT 'S' || n, 100000, 100000, 5, 'USD'"
        " FROM generate_series(1, %d) AS n; SELECT place_order(1 + n %% %d, 'k' || n,"
        " " LINES ", '2024-01-01Z') FROM generate_series(1, %d) AS n; ANALYZE",
        USERS, USERS, USERS, SKUS, USERS, "n", ORDERS);
    fixture_exec(f.url, sql);
}

static int open_world(void **state)
{
    (void)state;
    fixture_open_migrated(&f);
    put_work();
    fixture_become(&f, "ledgerlock_worker");
    fixture_env("LEDGERLOCK_POOL_POLL_MS", "10");
    fixture_env("LEDGERLOCK_POOL_BATCH", "20");
    return 0;
}

static int close_world(void **state)
{
    (void)state;
    fixture_close(&f);
    return 0;
}

/* A client that places orders, each with its row locks held for a moment. */
static void place_orders(int client)
{
    char url[FIXTURE_URL], sql[512], salt[32];
    PGconn *conn;

    fixture_url_as(&f, "ledgerlock_owner", url, sizeof url);
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

/* Eight workers until nothing is due, beside the clients; then what came later. */
static void work_beside_clients(const char *mode)
{
    static struct fixture_output o;
    pid_t clients[CLIENTS];

    (void)fflush(NULL);
    for (int i = 0; i < CLIENTS; i++) {
        clients[i] = fork();
        if (clients[i] == 0)
            place_orders(i);
    }
    for (int pass = 0; pass < 2; pass++) {
        if (fixture_run(&f, &o, "run", "-w", "8", "--once", "--now", now, "--lock-mode",
                        mode, NULL) != 0)
            fail_msg("%s", o.err);
        for (int i = 0; pass == 0 && i < CLIENTS; i++)
            assert_int_equal(fixture_reap(clients[i], 60), 0);
    }
}

static int64_t ask(const char *sql)
{
    char url[FIXTURE_URL];

    fixture_url_as(&f, "postgres", url, sizeof url);
    return fixture_query_int8(url, sql);
}

static void assert_all_done_without_a_deadlock(void)
{
    static struct fixture_output o;
    int64_t busy = pool_counter(&f, "busy");

    print_message("%" PRId64 " rows or keys met busy\n", busy);
    assert_true(busy >= 100); /* they did overlap */
    assert_int_equal(ask("SELECT deadlocks FROM pg_stat_database WHERE datname ="
                         " current_database()"),
                     0);
    assert_int_equal(pool_counter(&f, "conflicts"), 0);
    assert_int_equal(ask("SELECT count(*) FROM ledgerlock.orders WHERE state ="
                         " 'fulfilled'"),
                     ORDERS + CLIENTS * PLACED);
    assert_int_equal(ask("SELECT count(*) FROM ledgerlock.charges"), 3 * USERS);
    fixture_become(&f, "ledgerlock_owner");
    if (fixture_run(&f, &o, "audit", "--now", now, "--lag", "0s", NULL) != 0)
        fail_msg("%s%s", o.out, o.err);
}

static void batch_deadlock_free_in_postgres_with_the_rows_alone(void **state)
{
    (void)state;
    work_beside_clients("database-only");
    assert_all_done_without_a_deadlock();
}

static void batch_deadlock_free_in_postgres_with_the_locks(void **state)
{
    (void)state;
    work_beside_clients("redis");
    assert_all_done_without_a_deadlock();
}

#define DEADLOCK_TEST(name)                                                            \
    cmocka_unit_test_setup_teardown(name, open_world, close_world)

int main(void)
{
    const struct CMUnitTest tests[] = {
        DEADLOCK_TEST(batch_deadlock_free_in_postgres_with_the_rows_alone),
        DEADLOCK_TEST(batch_deadlock_free_in_postgres_with_the_locks),
    };

    fixture_need_servers();
    return cmocka_run_group_tests(tests, NULL, NULL);
}
