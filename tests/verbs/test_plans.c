/* The plans of the hot path over 100,000 subscriptions and as many orders: by index
 * or by place, whatever the planner believes. Each statement is prepared as a worker
 * prepares it, with a generic plan, first while the tables are empty, and run: the
 * plans inside the functions are those that auto_explain tells. */
#include "sql_gen.h"
#include "tests/lib/one_database.h"
#include "tests/lib/session.h"

static char super[FIXTURE_URL];
static PGconn *worker; /* with the settings of a worker's session */
static PGconn *plain;  /* with those that a statement outside a transaction has behind a
                          pooler, but the generic plan, so that it can be seen */

#define DUE "1, NULL, 500, '-infinity', 0"
#define ITEMS "'{1,2}', NULL"
#define KEYS "1, '{1,2}'"
#define PARKED "'{1,2}', 1, 'w', 'why'"
#define CHARGES "1, 'w', NULL, '{1,2}', '{\"(0,1)\",\"(0,2)\"}', '{1,1}', 1000"

enum { PULL = 1, CLAIM = 2, APPLY = 4, FILLED = 8, EMPTY = 16 };

/* clang-format off */
/* Each plan has these parts and not those; no plan reads a table from end to end, but for paused_jobs. Once
 * they were analyzed, the partitions of months without rows are read by no index. */
static const struct {
    const struct sql_text *sql;
    int kind;
    const char *args; /* as EXECUTE takes them */
    const char *has[6], *lacks[3];
} hot[] = {
    {SQL_BILLING_PULL_DUE, PULL, DUE, {"Index Scan using subscriptions_due", "Limit", "One-Time Filter"}, {"Bitmap", "Sort"}},
    {SQL_ORDERS_PULL_PENDING, PULL, "0, NULL, 500, '-infinity', 0", {"Index Scan using orders_pending", "order_lines_pkey", "Index Cond: ((placed_at <= ", "ROW(placed_at, order_id) > ", "One-Time Filter"}, {"Bitmap Index Scan on orders"}},
    {SQL_ORDERS_PROBE_PENDING, PULL, "NULL", {"using orders_pending on orders", "Index Cond: (placed_at <= "}, {"Bitmap"}},
    {SQL_BILLING_PULL_ITEMS, PULL, ITEMS, {"subscriptions_pkey", "Function Scan"}, {NULL}},
    {SQL_ORDERS_PULL_ITEMS, PULL, ITEMS, {"orders_pkey", "order_lines_pkey"}, {NULL}},
    {SQL_POOL_CLAIM_USERS, CLAIM, KEYS, {"users_pkey", "LockRows"}, {NULL}},
    {SQL_POOL_CLAIM_STOCK, CLAIM, KEYS, {"stock_pkey", "LockRows"}, {NULL}},
    {SQL_POOL_REFUSED_USERS, CLAIM, KEYS, {"users_pkey", "Nested Loop"}, {NULL}},
    {SQL_POOL_REFUSED_STOCK, CLAIM, KEYS, {"stock_pkey", "Nested Loop"}, {NULL}},
    {SQL_BILLING_COUNT_EFFECTS, EMPTY, KEYS, {"one_charge_per_period", "Aggregate"}, {NULL}},
    {SQL_ORDERS_COUNT_EFFECTS, CLAIM, KEYS, {"orders_pkey", "Aggregate"}, {NULL}},
    {SQL_POOL_PARK_ROWS, CLAIM, "'billing', " PARKED, {"subscriptions_pkey", "Update"}, {NULL}},
    {SQL_POOL_PARK_ROWS, CLAIM, "'orders', " PARKED, {"orders_pkey", "Update"}, {NULL}},
    {SQL_BILLING_APPLY_CHARGES, APPLY, CHARGES,
     {"Tid Scan on subscriptions", "Tid Scan on users", "WindowAgg"}, {"subscriptions_pkey", "charges_"}},
    {SQL_ORDERS_APPLY_ORDERS, APPLY, "1, 'w', NULL, '{1,2}'", {"orders_pkey", "stock_pkey"}, {NULL}},
    {SQL_ORDERS_APPLY_ORDERS, FILLED, "1, 'w', NULL, '{1,2}'", {"Tid Scan on orders", "Tid Scan on stock"}, {NULL}},
};

/* clang-format on */

static char plans[1 << 17]; /* of the last statement and of those inside it */

static void keep_notice(void *arg, const char *message)
{
    (void)arg;
    (void)strncat(plans, message, sizeof plans - strlen(plans) - 1);
}

static PGconn *open_session(const char *url, const char *settings)
{
    PGconn *conn = PQconnectdb(url);

    session_do(
        conn,
        "SET search_path TO ledgerlock, pg_temp; SET jit TO off; SET plan_cache_mode TO force_generic_plan;"
        "LOAD 'auto_explain'; SET auto_explain.log_min_duration TO 0;"
        "SET auto_explain.log_nested_statements TO on;"
        "SET auto_explain.log_level TO notice");
    (void)PQsetNoticeProcessor(conn, keep_notice, NULL);
    session_do(conn, settings);
    for (size_t i = 0; i < sizeof hot / sizeof hot[0]; i++) {
        const struct sql_text *sql = hot[i].sql;

        PQclear(PQprepare(conn, sql->stem, (const char *)sql->text, 0, NULL));
    }
    return conn;
}

/* The plans with which the session runs a statement; `args` as EXECUTE takes them. */
static const char *plan_of(PGconn *conn, const struct sql_text *sql, const char *args)
{
    char query[512];

    (void)snprintf(query, sizeof query, "EXECUTE %s(%s)", sql->stem, args);
    session_do(conn, "BEGIN");
    plans[0] = '\0';
    session_do(conn, query);
    session_do(conn, "ROLLBACK");
    return plans;
}

/* But for the jobs that are paused, of which there are hardly ever any. */
static bool reads_from_end_to_end(const char *plan)
{
    static const char scan[] = "Seq Scan on ", few[] = "paused_jobs ";

    for (const char *p = plan; (p = strstr(p, scan)) != NULL;) {
        p += sizeof scan - 1;
        if (strncmp(p, few, sizeof few - 1) != 0)
            return true;
    }
    return false;
}

static void assert_plans(PGconn *conn, int kinds)
{
    for (size_t i = 0; i < sizeof hot / sizeof hot[0]; i++) {
        const char *plan;
        bool is_right;

        if ((hot[i].kind & kinds) == 0)
            continue;
        plan = plan_of(conn, hot[i].sql, hot[i].args);
        is_right = !reads_from_end_to_end(plan);
        for (size_t k = 0; k < 6 && hot[i].has[k] != NULL; k++)
            is_right = is_right && strstr(plan, hot[i].has[k]) != NULL;
        for (size_t k = 0; k < 2 && hot[i].lacks[k] != NULL; k++)
            is_right = is_right && strstr(plan, hot[i].lacks[k]) == NULL;
        if (!is_right) {
            (void)fputs(plan, stderr); /* whole: a failure's own words are cut */
            fail_msg("%s has another plan than wanted", hot[i].sql->stem);
        }
    }
}

CASE(worker_plans_made_over_empty_tables_use_the_indexes)
{
    assert_plans(worker, PULL | CLAIM | APPLY | EMPTY);
}

static void fill(void)
{
    fixture_exec(
        super,
        "SET session_replication_role TO replica; SET search_path TO ledgerlock;"
        "INSERT INTO users (user_id, currency, balance_minor) SELECT g, 'USD', 100000 "
        "FROM generate_series(1, 20000) AS g;"
        "INSERT INTO subscriptions (user_id, plan, amount_minor, currency, anchor_at, "
        "unit, next_due_at) SELECT 1 + g % 20000, 'p', 100, 'USD', at, 'month', at "
        "FROM generate_series(1, 100000) AS g, LATERAL (SELECT timestamptz "
        "'2026-01-01' + g * interval '1 minute' AS at) AS t;"
        "SELECT make_months('2026-01-01Z', '2026-03-31Z');"
        "INSERT INTO charges SELECT subscription_id, 0, user_id, anchor_at, anchor_at "
        "+ interval '31 days', 100, 'captured', 1, 0, '', anchor_at FROM subscriptions "
        "WHERE subscription_id % 10 = 0;INSERT INTO stock (sku_id, sku, initial_qty, on_hand, unit_price_minor, "
        "currency) SELECT g, g::text, 9, 9, 5, 'USD' FROM generate_series(1, 10000) AS g;"
        "INSERT INTO orders (order_id, user_id, idempotency_key, request_hash, "
        "total_minor, currency, placed_at) SELECT g, 1 + g % 20000, g::text, "
        "'', 5, 'USD', now() FROM generate_series(1, 100000) AS g;"
        "INSERT INTO order_lines SELECT g, 1 + g % 10000, 5, 1 FROM generate_series(1, 100000) AS g;"
        "INSERT INTO payments (kind, source, leg, attempt_no, user_id, source_at, amount_minor, currency, customer, "
        "method, due_at, planned_fence, fence, worker, at) SELECT 'payment', order_id, 0, 1, user_id, placed_at, 5, "
        "'USD', 'c', 'm', now(), 1, 1, '', now() FROM orders WHERE order_id % 5 = 0; ANALYZE");
}

CASE(plans_over_many_rows_use_the_indexes)
{
    fill();
    holds(&f, 100000, "SELECT count(*) FROM orders");
    assert_plans(worker, PULL | CLAIM | APPLY | FILLED);
    assert_plans(plain, PULL | CLAIM);
}

/* A queue that is mostly of the future, or mostly decided.
 */
CASE(plans_over_orders_of_which_few_are_due_use_the_indexes)
{
    fixture_exec(
        super,
        "SET session_replication_role TO replica; SET search_path TO ledgerlock;"
        "UPDATE orders SET placed_at = now() + interval '9 days' WHERE order_id > 100; ANALYZE orders");
    assert_plans(worker, PULL);
    assert_plans(plain, PULL);
    fixture_exec(
        super,
        "SET session_replication_role TO replica; SET search_path TO ledgerlock;"
        "UPDATE orders SET state = 'fulfilled', fence = 1, decided_at = greatest(now(), placed_at) WHERE order_id > 100; ANALYZE orders");
    assert_plans(worker, PULL);
    assert_plans(plain, PULL);
}

/* A plan for any arguments, kept: it is not made anew for the arrays of each call. */
CASE(pull_keeps_its_plan)
{
    PGresult *res;

    session_do(plain, "SET plan_cache_mode TO auto");
    for (int i = 0; i < 8; i++)
        session_do(plain, "EXECUTE billing_pull_due(1, NULL, 500, '-infinity', 0)");
    res = session_ask(
        plain,
        "SELECT generic_plans FROM pg_prepared_statements WHERE name = 'billing_pull_due'");
    assert_int_equal(PQntuples(res), 1);
    assert_true(atoi(PQgetvalue(res, 0, 0)) >= 3); /* the first five are not */
    PQclear(res);
}

static void open_all(void)
{
    one_open();
    fixture_url_as(&f, "postgres", super, sizeof super);
    fixture_exec(super, "VACUUM ledgerlock.charges"); /* now known to be empty */
    worker = open_session(super,
                          "SET enable_seqscan TO off; SET enable_indexonlyscan TO off");
    plain = open_session(super, "RESET enable_seqscan");
}

static void close_all(void)
{
    PQfinish(worker);
    PQfinish(plain);
    one_close();
}

GROUP(.start = open_all, .stop = close_all);
