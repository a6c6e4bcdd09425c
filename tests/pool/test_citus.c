/* citus: cells that are schemas of a Citus cluster, by LL_TEST_CITUS_URL, a superuser's
 * at its coordinator. */
#include "tests/lib/citus_world.h"
#include "tests/lib/page.h"
#include "tests/lib/pool_world.h"
#include "tests/lib/session.h"

enum { CALL = 100 };

GROUP(.open = citus_open, .close = citus_close);

/* A call that takes a pending order of cell 1 back. */
static void name_cancel(char call[CALL])
{
    fixture_query_text(
        citus_home(1),
        "SELECT format('SELECT cancel_order(%s, %s)', user_id, order_id) "
        "FROM orders WHERE state = 'pending' LIMIT 1",
        call, CALL);
}

/* ---- cases ---- */

/* Guarantee: Cells of a Citus cluster are found in its catalogue, worked on their
 * nodes, and proven by one audit. */
CASE(cells_of_a_cluster_are_worked_and_proven)
{
    citus_add(1);
    citus_add(2);
    says(&cluster, 0, "cell 1: schema is up to date", "migrate");
    says(&cluster, 0, "nothing left", "run --once");
    says(&cluster, 0, "48 of 48 invariants hold", "audit --wait 0s");
    says(&cluster, 0, citus_node(1, true), "cells");
    shows(citus_node(2, true));
    for (int i = 1; i <= 2; i++) {
        assert_true(citus_ask(i, "SELECT count(*) FROM charges") > 100);
        assert_int_equal(citus_ask(i, "SELECT max(order_id) >> 40 FROM orders"), i);
        assert_int_equal(citus_ask(i, "SELECT max(event_id) >> 40 FROM events"), i);
    }
}

/* Guarantee: A session that is left at the node from which the cell was moved decides
 * nothing and gives no number out. */
CASE(session_at_the_old_node_is_refused)
{
    PGconn *old;
    char cancel[CALL];

    citus_add(1);
    name_cancel(cancel);
    old = session_open(citus_home(1));
    session_do(old, "SET search_path = " CITUS_SCHEMA "_1");
    session_do(old, "SELECT count(*) FROM users");
    runs(&cluster, 0, "cells move 1 %s", citus_node(1, false));
    session_refused("25006", PQexec(old, cancel));
    session_refused("2200H",
                    PQexec(old, "INSERT INTO users (currency) VALUES ('USD')"));
    PQfinish(old);
    fixture_exec(citus_home(1), "INSERT INTO users (currency) VALUES ('USD')");
    assert_int_equal(citus_ask(1, "SELECT max(user_id) >> 40 FROM users"), 1);
}

/* Guarantee: Numbers of rows never go back, however often a cell moves, and by whom. */
CASE(numbers_go_on_behind_those_that_were_given)
{
    static const char one[] = "INSERT INTO users (currency) VALUES ('USD')",
                      newest[] = "SELECT max(user_id) FROM users";
    int64_t before;
    char state[6];

    citus_add(1);
    for (int i = 0; i < 3; i++) {
        before = citus_ask(1, newest);
        if (i < 2)
            runs(&cluster, 0, "cells move 1 %s", citus_node(1, false));
        runs(&cluster, 0, "cells move 1 %s", citus_node(1, i == 2));
        fixture_exec(citus_home(1), one);
        assert_true(citus_ask(1, newest) > before);
    }
    before = citus_ask(1, newest);
    fixture_exec(
        cluster.url,
        "SELECT citus_schema_move('" CITUS_SCHEMA
        "_1'::regnamespace, nodename, nodeport, 'block_writes') FROM pg_dist_node "
        "WHERE shouldhaveshards AND (nodename, nodeport) NOT IN (SELECT nodename, "
        "nodeport FROM citus_shards WHERE table_name = '" CITUS_SCHEMA
        "_1.users'::regclass) LIMIT 1");
    assert_string_equal(fixture_sqlstate(citus_home(1), one, state), "2200H");
    runs(&cluster, 0, "migrate");
    fixture_exec(citus_home(1), one);
    assert_true(citus_ask(1, newest) > before && citus_ask(1, newest) >> 40 == 1);
}

/* Guarantee: A client that sets nothing calls the functions at the node of the cell,
 * and is refused at the coordinator. */
CASE(client_calls_the_functions_at_the_node)
{
    char cancel[CALL];

    citus_add(1);
    name_cancel(cancel);
    fixture_exec(citus_home(1), cancel);
    fixture_exec(citus_home(1), "SELECT count(*) FROM decisions_since(NULL, 100)");
    assert_int_equal(
        fixture_query_int8(citus_home(1),
                           "SELECT count(*) FROM orders WHERE state = 'cancelled'"),
        1);
    runs(&cluster, 0, "status --cells 1");
}

/* Guarantee: Months that a cell needs are made by the coordinator, also for a pool that
 * runs. */
CASE(months_of_a_cell_are_made_by_the_coordinator)
{
    citus_add(1);
    starts(&cluster, &citus_pool[0], "run --billing 1 --orders 1");
    citus_await_worked(1);
    assert_int_equal(
        citus_ask(1, "SELECT count(*) FROM months WHERE month < '2012-01-01'"), 0);
    fixture_exec(citus_home(1),
                 "INSERT INTO subscriptions (user_id, plan, amount_minor, currency, "
                 "anchor_at, unit, every, next_due_at) SELECT min(user_id), 'old', 0, "
                 "min(currency), '2011-05-01Z', 'year', 30, '2011-05-01Z' FROM users");
    citus_await_worked(1);
    citus_end_pool(0);
    assert_int_equal(
        citus_ask(1, "SELECT count(*) FROM months WHERE month = '2011-05-01'"), 1);
    says(&cluster, 0, "46 of 46 invariants hold", "audit --wait 0s");
}

/* Guarantee: A pool that is told to read its settings again works a cell that its Citus
 * cluster got meanwhile, and follows one that has moved. */
CASE(reload_finds_the_cell_that_was_added)
{
    citus_add_fresh(1);
    citus_add_fresh(2);
    starts(&cluster, &citus_pool[0], "run --billing 1 --orders 1");
    citus_await_worked(1);
    citus_await_worked(2);
    citus_add_fresh(3);
    runs(&cluster, 0, "cells move 1 %s", citus_node(1, false));
    (void)kill(citus_pool[0].pid, SIGHUP);
    pool_log_wait(&citus_pool[0], "event=pool.reloaded");
    citus_await_worked(3);
    fixture_exec(citus_home(1),
                 "SELECT place_order(user_id, 'again', '[{\"sku\": \"SKU-00012\", "
                 "\"qty\": 1}]') FROM users");
    citus_await_worked(1);
    citus_end_pool(0);
    says(&cluster, 0, "48 of 48 invariants hold", "audit --wait 0s");
}

/* Guarantee: A pool that began with the one cell of a Citus cluster says that it is to
 * be started again when there are more. */
CASE(reload_of_a_pool_of_one_cell_asks_for_a_restart)
{
    citus_add_fresh(1);
    starts(&cluster, &citus_pool[0], "run --billing 1 --orders 1");
    citus_await_worked(1);
    citus_add_fresh(2);
    (void)kill(citus_pool[0].pid, SIGHUP);
    pool_log_wait(&citus_pool[0], "LL-2029 there are 2 cells by now");
    citus_end_pool(0);
}

/* Guarantee: The page of a pool shows a cell that has moved as it is at its new home.
 */
CASE(page_follows_a_cell_that_moves)
{
    citus_add_fresh(1);
    citus_add_fresh(2);
    page_port = fixture_free_port();
    starts(&cluster, &citus_pool[0], "run --billing 1 --orders 1 --http %d", page_port);
    PAGE_AWAIT("/state", "\"cell\":1,\"verdict\":\"good\"",
               "\"cell\":2,\"verdict\":\"good\"");
    runs(&cluster, 0, "cells move 1 %s", citus_node(1, false));
    runs(&cluster, 0, "pause billing --reason moved --cells 1");
    PAGE_AWAIT("/state", "\"cell\":1,\"verdict\":\"good\"", "\"reason\":\"moved\"");
    citus_end_pool(0);
}
