/* citus: cells that are schemas of a Citus cluster, by LL_TEST_CITUS_URL, a superuser's
 * at its coordinator. */
#include "tests/lib/hand.h"
#include "tests/lib/pool_world.h"
#include "tests/lib/runs.h"
#include "tests/lib/session.h"

#define SCHEMA "ledgerlock_test"

enum { CALL = 100 };

static struct fixture cluster; /* its url is of the coordinator */
static struct fixture_child pool;

static const char *coordinator(void)
{
    return getenv("LL_TEST_CITUS_URL");
}

static void drop_cells(void)
{
    fixture_exec(
        coordinator(),
        "DO $$ DECLARE s text; BEGIN FOR s IN SELECT nspname FROM pg_namespace "
        "WHERE nspname ~ '^" SCHEMA
        "_[0-9]+$' LOOP EXECUTE format('DROP SCHEMA %I CASCADE', s); END LOOP; "
        "END $$");
}

static void open_cluster(void)
{
    if (coordinator() == NULL) {
        (void)puts("skipped: no Citus: set LL_TEST_CITUS_URL to a coordinator with two "
                   "nodes");
        exit(77);
    }
    fixture_open(&cluster);
    (void)snprintf(cluster.url, sizeof cluster.url, "%s", coordinator());
    fixture_env("LEDGERLOCK_CELLS_CITUS", coordinator());
    fixture_env("LEDGERLOCK_POSTGRES_SCHEMA", SCHEMA);
    fixture_env("LEDGERLOCK_POSTGRES_DURABILITY", "any");
    drop_cells();
}

static void close_cluster(void)
{
    if (pool.pid != 0) {
        (void)kill(pool.pid, SIGKILL);
        (void)fixture_wait(&pool, 60, NULL);
        pool.pid = 0;
    }
    if (coordinator() != NULL)
        drop_cells();
}

GROUP(.open = open_cluster, .close = close_cluster);

static void end_pool(void)
{
    pool_end(&pool);
    pool.pid = 0;
}

/* ---- nodes ---- */

/* The node that has the cell, or one that has not, as HOST:PORT. */
static const char *node(int cell, bool is_home)
{
    static char name[2][280];
    char sql[900];

    (void)snprintf(
        sql, sizeof sql,
        "SELECT DISTINCT n.nodename || ':' || n.nodeport FROM pg_dist_node AS n JOIN "
        "(SELECT nodename, nodeport FROM citus_shards WHERE table_name = '" SCHEMA
        "_%d.users'::regclass) AS h ON (h.nodename, h.nodeport) %s (n.nodename, "
        "n.nodeport) WHERE n.shouldhaveshards AND n.noderole = 'primary' LIMIT 1",
        cell, is_home ? "=" : "<>");
    fixture_query_text(coordinator(), sql, name[is_home], sizeof name[0]);
    return name[is_home];
}

/* The database at the node of the cell, with the schema of the cell in search_path. */
static const char *at_home(int cell)
{
    static char url[1024];
    char host[280];

    (void)snprintf(host, sizeof host, "%s", node(cell, true));
    *strrchr(host, ':') = '\0';
    (void)snprintf(url, sizeof url,
                   "%s%shost=%s&port=%s&options=-csearch_path%%3D" SCHEMA "_%d",
                   coordinator(), strchr(coordinator(), '?') != NULL ? "&" : "?", host,
                   strrchr(node(cell, true), ':') + 1, cell);
    return url;
}

static int64_t ask(int cell, const char *sql)
{
    return fixture_query_int8(at_home(cell), sql);
}

static void await_all_worked(int cell)
{
    static const char left[] =
        "SELECT (SELECT count(*) FROM orders WHERE state = 'pending') + (SELECT count(*) "
        "FROM subscriptions WHERE next_due_at <= now() AND state IN ('active', "
        "'past_due'))";

    FIXTURE_AWAIT(ask(cell, left) == 0, "cell %d has %" PRId64 " rows due", cell,
                  ask(cell, left));
}

static void add(int cell)
{
    runs(&cluster, 0, "cells add %d", cell);
    runs(
        &cluster, 0,
        "seed --cells %d --seed %d --users 60 --subscriptions 150 --skus 12 --orders 80",
        cell, cell);
}

static void place_again(int cell)
{
    fixture_exec(
        at_home(cell),
        "SELECT place_order(user_id, 'again ' || gen_random_uuid(), '[{\"sku\": "
        "\"SKU-00012\", \"qty\": 1}]'), deposit(user_id, currency, 1, 'again ' "
        "|| gen_random_uuid()) FROM users");
}

/* A call that takes a pending order of cell 1 back. */
static void name_cancel(char call[CALL])
{
    fixture_query_text(
        at_home(1),
        "SELECT format('SELECT cancel_order(%s, %s)', user_id, order_id) "
        "FROM orders WHERE state = 'pending' LIMIT 1",
        call, CALL);
}

/* ---- cases ---- */

/* Guarantee: Cells of a Citus cluster are found in its catalogue, worked on their
 * nodes, and proven by one audit. */
CASE(cells_of_a_cluster_are_worked_and_proven)
{
    add(1);
    add(2);
    says(&cluster, 0, "cell 1: schema is up to date", "migrate");
    says(&cluster, 0, "nothing left", "run --once");
    says(&cluster, 0, "48 of 48 invariants hold", "audit --wait 0s");
    says(&cluster, 0, node(1, true), "cells");
    shows(node(2, true));
    for (int i = 1; i <= 2; i++) {
        assert_true(ask(i, "SELECT count(*) FROM charges") > 100);
        assert_int_equal(ask(i, "SELECT max(order_id) >> 40 FROM orders"), i);
        assert_int_equal(ask(i, "SELECT max(event_id) >> 40 FROM events"), i);
    }
}

/* Guarantee: A cell that moves to another node while a pool works it loses nothing and
 * does nothing twice, and the pool follows. */
CASE(cell_that_moves_while_it_is_worked_is_exact)
{
    add(1);
    starts(&cluster, &pool, "run -w 2");
    await_all_worked(1);
    for (int i = 0; i < 3; i++) {
        char there[280];

        (void)snprintf(there, sizeof there, "%s", node(1, false));
        place_again(1);
        says(&cluster, 0, "cell 1 is on", "cells move 1 %s%s", there,
             i == 1 ? " --online" : "");
        assert_string_equal(node(1, true), there);
        place_again(1);
        await_all_worked(1);
    }
    end_pool();
    assert_int_equal(
        ask(1, "SELECT count(*) FROM orders WHERE idempotency_key LIKE 'again %'"),
        360);
    assert_int_equal(
        ask(1,
            "SELECT count(*) FROM wallet_entries WHERE idempotency_key LIKE 'again %'"),
        360);
    says(&cluster, 0, "46 of 46 invariants hold", "audit --wait 0s");
}

/* Guarantee: A session that is left at the node from which the cell was moved decides
 * nothing and gives no number out. */
CASE(session_at_the_old_node_is_refused)
{
    PGconn *old;
    char cancel[CALL];

    add(1);
    name_cancel(cancel);
    old = session_open(at_home(1));
    session_do(old, "SET search_path = " SCHEMA "_1");
    session_do(old, "SELECT count(*) FROM users");
    runs(&cluster, 0, "cells move 1 %s", node(1, false));
    session_refused("25006", PQexec(old, cancel));
    session_refused("2200H",
                    PQexec(old, "INSERT INTO users (currency) VALUES ('USD')"));
    PQfinish(old);
    fixture_exec(at_home(1), "INSERT INTO users (currency) VALUES ('USD')");
    assert_int_equal(ask(1, "SELECT max(user_id) >> 40 FROM users"), 1);
}

/* Guarantee: Numbers of rows never go back, however often a cell moves, and by whom. */
CASE(numbers_go_on_behind_those_that_were_given)
{
    static const char one[] = "INSERT INTO users (currency) VALUES ('USD')",
                      newest[] = "SELECT max(user_id) FROM users";
    int64_t before;
    char state[6];

    add(1);
    for (int i = 0; i < 3; i++) {
        before = ask(1, newest);
        if (i < 2)
            runs(&cluster, 0, "cells move 1 %s", node(1, false));
        runs(&cluster, 0, "cells move 1 %s", node(1, i == 2));
        fixture_exec(at_home(1), one);
        assert_true(ask(1, newest) > before);
    }
    before = ask(1, newest);
    fixture_exec(
        coordinator(),
        "SELECT citus_schema_move('" SCHEMA
        "_1'::regnamespace, nodename, nodeport, 'block_writes') FROM pg_dist_node "
        "WHERE shouldhaveshards AND (nodename, nodeport) NOT IN (SELECT nodename, "
        "nodeport FROM citus_shards WHERE table_name = '" SCHEMA
        "_1.users'::regclass) LIMIT 1");
    assert_string_equal(fixture_sqlstate(at_home(1), one, state), "2200H");
    runs(&cluster, 0, "migrate");
    fixture_exec(at_home(1), one);
    assert_true(ask(1, newest) > before && ask(1, newest) >> 40 == 1);
}

/* Guarantee: A client that sets nothing calls the functions at the node of the cell,
 * and is refused at the coordinator. */
CASE(client_calls_the_functions_at_the_node)
{
    char cancel[CALL];

    add(1);
    name_cancel(cancel);
    fixture_exec(at_home(1), cancel);
    fixture_exec(at_home(1), "SELECT count(*) FROM decisions_since(NULL, 100)");
    assert_int_equal(
        fixture_query_int8(at_home(1),
                           "SELECT count(*) FROM orders WHERE state = 'cancelled'"),
        1);
    runs(&cluster, 0, "status --cells 1");
}

/* Guarantee: Months that a cell needs are made by the coordinator, also for a pool that
 * runs. */
CASE(months_of_a_cell_are_made_by_the_coordinator)
{
    add(1);
    starts(&cluster, &pool, "run --billing 1 --orders 1");
    await_all_worked(1);
    assert_int_equal(ask(1, "SELECT count(*) FROM months WHERE month < '2012-01-01'"),
                     0);
    fixture_exec(at_home(1),
                 "INSERT INTO subscriptions (user_id, plan, amount_minor, currency, "
                 "anchor_at, unit, every, next_due_at) SELECT min(user_id), 'old', 0, "
                 "min(currency), '2011-05-01Z', 'year', 30, '2011-05-01Z' FROM users");
    await_all_worked(1);
    end_pool();
    assert_int_equal(ask(1, "SELECT count(*) FROM months WHERE month = '2011-05-01'"),
                     1);
    says(&cluster, 0, "46 of 46 invariants hold", "audit --wait 0s");
}
