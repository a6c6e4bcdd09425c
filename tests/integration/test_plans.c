/* The plans of the hot path over a million subscriptions and a million orders: by index
 * or by place, whatever the planner believes. Each statement is prepared as a worker
 * prepares it, with a generic plan, first while the tables are empty. */
#include <libpq-fe.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "sql_gen.h"
#include "tests/lib/fixture.h"

static struct fixture f;
static PGconn *worker; /* with the settings of a worker's session */
static PGconn *plain;  /* with those that a statement outside a transaction has behind a
                          pooler, but the generic plan, so that it can be seen */

static const enum sql_id hot[] = {
    SQL_BILLING_DUE_BUCKETS,  SQL_BILLING_PULL_DUE,    SQL_BILLING_APPLY_CHARGES,
    SQL_BILLING_SETTLE_BATCH, SQL_ORDERS_DUE_BUCKETS,  SQL_ORDERS_PULL_PENDING,
    SQL_ORDERS_APPLY_ORDERS,  SQL_ORDERS_SETTLE_BATCH, SQL_POOL_CLAIM_USERS,
    SQL_POOL_CLAIM_STOCK,
};

static void exec(PGconn *conn, const char *sql)
{
    PGresult *res = PQexec(conn, sql);

    if (PQresultStatus(res) != PGRES_COMMAND_OK &&
        PQresultStatus(res) != PGRES_TUPLES_OK)
        fail_msg("%s", PQerrorMessage(conn));
    PQclear(res);
}

static PGconn *open_session(const char *url, const char *settings)
{
    PGconn *conn = PQconnectdb(url);

    assert_int_equal(PQstatus(conn), CONNECTION_OK);
    exec(conn, "SET jit TO off");
    exec(conn, settings);
    for (size_t i = 0; i < sizeof hot / sizeof hot[0]; i++) {
        const struct sql_text *sql = &sql_texts[hot[i]];

        PQclear(PQprepare(conn, sql->stem, (const char *)sql->text, 0, NULL));
    }
    return conn;
}

/* The plan that the session has for a statement; `args` as EXECUTE takes them. */
static char *plan_of(PGconn *conn, enum sql_id id, const char *args)
{
    char sql[512];
    PGresult *res;
    char *text = calloc(1, 65536);

    (void)snprintf(sql, sizeof sql, "EXPLAIN (COSTS OFF) EXECUTE %s(%s)",
                   sql_texts[id].stem, args);
    res = PQexec(conn, sql);
    if (PQresultStatus(res) != PGRES_TUPLES_OK)
        fail_msg("%s: %s", sql, PQerrorMessage(conn));
    for (int row = 0; row < PQntuples(res); row++) {
        (void)strncat(text, PQgetvalue(res, row, 0), 65536 - strlen(text) - 2);
        (void)strcat(text, "\n");
    }
    PQclear(res);
    return text;
}

/* Some table is read from end to end; not counting the one of suspects, which is empty
 * or nearly so. */
static bool reads_a_whole_table(const char *plan)
{
    static const char scan[] = "Seq Scan on ";
    const char *at = plan;

    while ((at = strstr(at, scan)) != NULL) {
        at += strlen(scan);
        if (strncmp(at, "quarantine", 10) != 0)
            return true;
    }
    return false;
}

/* The plan has every part and reads no table from end to end. */
static void assert_plan(
    PGconn *conn, enum sql_id id, const char *args, const char *a, const char *b)
{
    char *plan = plan_of(conn, id, args);

    if (reads_a_whole_table(plan) || strstr(plan, a) == NULL || strstr(plan, b) == NULL)
        fail_msg("%s: wanted \"%s\" and \"%s\", and no sequential scan:\n%s",
                 sql_texts[id].stem, a, b, plan);
    free(plan);
}

/* No part of the plan is this. */
static void
assert_plan_lacks(PGconn *conn, enum sql_id id, const char *args, const char *part)
{
    char *plan = plan_of(conn, id, args);

    if (strstr(plan, part) != NULL)
        fail_msg("%s: \"%s\" is not wanted:\n%s", sql_texts[id].stem, part, plan);
    free(plan);
}

static void assert_pulls(PGconn *conn)
{
    assert_plan(conn, SQL_BILLING_PULL_DUE, "'{1,2}', NULL, 500",
                "Index Scan using subscriptions_due", "Limit");
    assert_plan_lacks(conn, SQL_BILLING_PULL_DUE, "'{1,2}', NULL, 500", "Bitmap");
    assert_plan(conn, SQL_BILLING_DUE_BUCKETS, "NULL, 60000", "using subscriptions_due",
                "Limit");
    assert_plan(conn, SQL_ORDERS_PULL_PENDING, "1, NULL, 500",
                "Index Scan using orders_pending", "order_lines_pkey");
    assert_plan(conn, SQL_ORDERS_DUE_BUCKETS, "NULL, 60000", "using orders_pending",
                "Limit");
}

static void assert_claims(PGconn *conn)
{
    assert_plan(conn, SQL_POOL_CLAIM_USERS, "1, '{1,2}'", "users_pkey", "LockRows");
    assert_plan(conn, SQL_POOL_CLAIM_STOCK, "1, '{1,2}'", "stock_pkey", "LockRows");
    assert_plan(conn, SQL_BILLING_SETTLE_BATCH, "1, '{1,2}'", "one_charge_per_period",
                "Aggregate");
    assert_plan(conn, SQL_ORDERS_SETTLE_BATCH, "1, '{1,2}'", "orders_pkey",
                "Aggregate");
}

static void assert_applies(PGconn *conn)
{
    const char *charges = "1, 'w', NULL, '{86400}', '{1,2}', '{\"(0,1)\",\"(0,2)\"}', "
                          "'{1,1}', '{\"(0,1)\",\"(0,1)\"}', '{9,9}'";
    const char *orders = "1, NULL, '{1,2}'";

    assert_plan(conn, SQL_BILLING_APPLY_CHARGES, charges, "Tid Scan on subscriptions",
                "Tid Scan on users");
    assert_plan(conn, SQL_BILLING_APPLY_CHARGES, charges, "one_charge_per_period",
                "WindowAgg");
    assert_plan(conn, SQL_BILLING_APPLY_CHARGES, charges, "Tid Scan on charges c",
                "Index Cond: ((subscription_id = d.subscription_id)");
    assert_plan_lacks(conn, SQL_BILLING_APPLY_CHARGES, charges, "_pkey");
    assert_plan(conn, SQL_ORDERS_APPLY_ORDERS, orders, "orders_pkey", "stock_pkey");
}

static void assert_orders_by_place(PGconn *conn)
{
    assert_plan(conn, SQL_ORDERS_APPLY_ORDERS, "1, NULL, '{1,2}'", "Tid Scan on orders",
                "Tid Scan on stock");
}

static void worker_plans_made_over_empty_tables_use_the_indexes(void **state)
{
    (void)state;
    assert_pulls(worker);
    assert_claims(worker);
    assert_applies(worker);
}

static void fill(void)
{
    char url[FIXTURE_URL];

    fixture_url_as(&f, "postgres", url, sizeof url);
    fixture_exec(
        url,
        "SET session_replication_role TO replica; SET search_path TO ledgerlock;"
        "INSERT INTO users (user_id, currency, balance_minor) SELECT g, 'USD', 100000 "
        "FROM generate_series(1, 100000) AS g;"
        "INSERT INTO subscriptions (user_id, plan, amount_minor, currency, anchor_at, "
        "unit, next_due_at) SELECT 1 + g % 100000, 'p', 100, 'USD', at, 'month', at "
        "FROM generate_series(1, 1000000) AS g, LATERAL (SELECT timestamptz "
        "'2026-01-01' + g * interval '1 minute' AS at) AS t;"
        "INSERT INTO charges SELECT subscription_id, 0, user_id, anchor_at, anchor_at "
        "+ interval '31 days', 100, 'captured', 1, 0, '', anchor_at FROM subscriptions "
        "WHERE subscription_id % 10 = 0;"
        "INSERT INTO stock (sku_id, sku, initial_qty, on_hand, unit_price_minor, "
        "currency) SELECT g, g::text, 9, 9, 5, 'USD' FROM generate_series(1, 10000) AS "
        "g;"
        "INSERT INTO orders (order_id, user_id, idempotency_key, request_hash, "
        "total_minor, currency, bucket, placed_at) SELECT g, 1 + g % 100000, g::text, "
        "'', 5, 'USD', g % 64, now() FROM generate_series(1, 1000000) AS g;"
        "INSERT INTO order_lines SELECT g, 1 + g % 10000, 5, 1 FROM "
        "generate_series(1, 1000000) AS g; ANALYZE");
}

static void plans_over_a_million_rows_use_the_indexes(void **state)
{
    (void)state;
    fill();
    assert_int_equal(
        fixture_query_int8(f.url, "SELECT count(*) FROM ledgerlock.orders"), 1000000);
    assert_pulls(worker);
    assert_claims(worker);
    assert_applies(worker);
    assert_orders_by_place(worker);
    assert_pulls(plain);
    assert_claims(plain);
}

/* Everybody buys what a few sell: the other buckets are empty, and the statistics say
 * that a bucket tells nothing. */
static void plans_over_orders_of_one_bucket_use_the_indexes(void **state)
{
    char url[FIXTURE_URL];

    (void)state;
    fixture_url_as(&f, "postgres", url, sizeof url);
    fixture_exec(
        url, "SET session_replication_role TO replica; SET search_path TO ledgerlock;"
             "TRUNCATE orders, order_lines;"
             "INSERT INTO orders (order_id, user_id, idempotency_key, request_hash, "
             "total_minor, currency, bucket, placed_at) SELECT g, g, g::text, '', 5, "
             "'USD', 7, now() FROM generate_series(1, 20000) AS g;"
             "INSERT INTO order_lines SELECT g, 7, 5, 1 FROM generate_series(1, 20000) "
             "AS g; ANALYZE");
    assert_pulls(worker);
    assert_pulls(plain);
}

/* A plan for any arguments, kept: it is not made anew for the arrays of each call. */
static void pull_keeps_its_plan(void **state)
{
    PGresult *res;

    (void)state;
    exec(plain, "SET plan_cache_mode TO auto");
    for (int i = 0; i < 8; i++)
        exec(plain, "EXECUTE billing_pull_due('{1}', NULL, 500)");
    res = PQexec(plain, "SELECT generic_plans FROM pg_prepared_statements WHERE name = "
                        "'billing_pull_due'");
    assert_int_equal(PQntuples(res), 1);
    assert_true(atoi(PQgetvalue(res, 0, 0)) >= 3); /* the first five are not */
    PQclear(res);
}

static int open_all(void **state)
{
    char url[FIXTURE_URL];

    (void)state;
    fixture_open_migrated(&f);
    fixture_url_as(&f, "postgres", url, sizeof url);
    fixture_exec(url, "VACUUM ledgerlock.charges"); /* now known to be empty */
    worker = open_session(f.url, "SET enable_seqscan TO off;"
                                 "SET enable_indexonlyscan TO off;"
                                 "SET plan_cache_mode TO force_generic_plan");
    plain = open_session(f.url, "SET plan_cache_mode TO force_generic_plan");
    return 0;
}

static int close_all(void **state)
{
    (void)state;
    PQfinish(worker);
    PQfinish(plain);
    fixture_close(&f);
    return 0;
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(worker_plans_made_over_empty_tables_use_the_indexes),
        cmocka_unit_test(plans_over_a_million_rows_use_the_indexes),
        cmocka_unit_test(pull_keeps_its_plan),
        cmocka_unit_test(plans_over_orders_of_one_bucket_use_the_indexes),
    };

    fixture_need_servers();
    return cmocka_run_group_tests(tests, open_all, close_all);
}
