/* cells: databases on two servers of their own, worked and proved as one. */
#include "tests/lib/pool_world.h"
#include "tests/lib/private_pg.h"
#include "tests/lib/runs.h"

enum { CELLS = 2 };

static struct private_pg server[CELLS];
static struct fixture cell[CELLS]; /* cell[0] has number 1, on a server of its own */
static struct fixture_child pool, other;

static void start_servers(void)
{
    for (int i = 0; i < CELLS; i++)
        private_pg_open(&server[i]);
}

static void stop_servers(void)
{
    for (int i = 0; i < CELLS; i++)
        private_pg_close(&server[i]);
}

/* The runs that follow know both; the database that a fixture names does not count. */
static void name_cells(const char *of_1, const char *of_2)
{
    char urls[1000];

    (void)snprintf(urls, sizeof urls, "1=%s 2=%s", of_1, of_2);
    fixture_env("LEDGERLOCK_CELLS_URLS", urls);
}

static void open_cells(void)
{
    pool = other = (struct fixture_child){0};
    for (int i = 0; i < CELLS; i++) {
        (void)setenv("LL_TEST_PG", server[i].url, 1);
        fixture_open(&cell[i]);
    }
    name_cells(cell[0].url, cell[1].url);
    fixture_env("LEDGERLOCK_POSTGRES_DURABILITY", "any");
    says(&cell[0], 0, "cell 2: applied", "migrate");
}

static void kill_pool(struct fixture_child *child)
{
    if (child->pid != 0) {
        (void)kill(child->pid, SIGKILL);
        (void)fixture_wait(child, 60, NULL);
        child->pid = 0;
    }
}

static void close_cells(void)
{
    kill_pool(&pool);
    kill_pool(&other);
    for (int i = 0; i < CELLS; i++) {
        (void)setenv("LL_TEST_PG", server[i].url, 1);
        fixture_close(&cell[i]);
    }
}

GROUP(.start = start_servers,
      .stop = stop_servers,
      .open = open_cells,
      .close = close_cells);

static void seed(int seed)
{
    for (int number = 1; number <= CELLS; number++)
        runs(&cell[0], 0,
             "seed --cells %d --seed %d --users 60 --subscriptions 150 --skus 12 "
             "--orders 80",
             number, seed + number);
}

static void both_hold(int64_t n, const char *sql)
{
    holds(&cell[0], n, sql);
    holds(&cell[1], n, sql);
}

static int64_t left_in(int i)
{
    return fixture_query_int8(
        cell[i].url,
        "SET search_path = ledgerlock; SELECT (SELECT count(*) FROM orders WHERE state = "
        "'pending') + (SELECT count(*) FROM subscriptions WHERE next_due_at <= now() AND "
        "state IN ('active', 'past_due'))");
}

static void await_all_worked(int i)
{
    FIXTURE_AWAIT(left_in(i) == 0, "cell %d has %" PRId64 " rows due", i + 1,
                  left_in(i));
}

static void place_again(int i)
{
    fixture_exec(
        cell[i].url,
        "SET search_path = ledgerlock; SELECT place_order(user_id, 'again ' || "
        "gen_random_uuid(), '[{\"sku\": \"SKU-00012\", \"qty\": 1}]') FROM users");
}

/* ---- run ---- */

/* Guarantee: A pool with fewer workers than cells serves all of them in turn, until
 * nothing is due in any; each charge stands in its own cell once. */
CASE(one_worker_of_a_job_serves_every_cell)
{
    seed(1);
    starts(&cell[0], &pool, "run --billing 1 --orders 1");
    for (int i = 0; i < CELLS; i++)
        await_all_worked(i);
    place_again(0);
    await_all_worked(0);
    place_again(1);
    await_all_worked(1);
    pool_end(&pool);
    pool = (struct fixture_child){0};
    says(&cell[0], 0, "48 of 48 invariants hold", "audit");
    both_hold(0,
              "SELECT count(*) FROM users WHERE user_id >> 40 <> (SELECT max(order_id) "
              ">> 40 FROM orders)");
    both_hold(60, "SELECT count(*) FROM orders WHERE idempotency_key LIKE 'again %'");
    both_hold(1, "SELECT (count(*) > 100)::int FROM charges");
}

/* Guarantee: The counters of a worker stand in the cell that it counted them in. */
CASE(counters_are_of_their_cell)
{
    seed(3);
    starts(&cell[0], &pool, "run --billing 1 --orders 1");
    for (int i = 0; i < CELLS; i++)
        await_all_worked(i);
    pool_end(&pool);
    pool = (struct fixture_child){0};
    both_hold(0, "SELECT (SELECT sum((counters->>'charged')::bigint) FROM workers) - "
                 "(SELECT count(*) FROM charges WHERE state = 'paid')");
}

/* Guarantee: Run --once works each cell until nothing is due, and says so of each. */
CASE(run_once_works_every_cell)
{
    seed(5);
    says(&cell[0], 0, "cell 2: billing:", "run --once");
    shows("cell 1: billing:");
    both_hold(0, "SELECT count(*) FROM orders WHERE state = 'pending'");
    says(&cell[0], 0, "48 of 48 invariants hold", "audit --wait 0s");
}

/* Guarantee: A cell whose server is away stops only itself: the others are worked, and
 * it is worked again when its server is back, though the pool started without it. */
CASE(server_that_is_away_stops_only_its_cell)
{
    seed(7);
    private_pg_kill(&server[1]);
    starts(&cell[0], &pool, "run --billing 1 --orders 1");
    await_all_worked(0);
    promise_int_equal(pool_log_count(&pool, "event=pool.started"), 1);
    private_pg_start(&server[1]);
    await_all_worked(1);
    pool_log_wait(&pool, "event=pool.cell_back");
    private_pg_kill(&server[1]);
    place_again(0);
    await_all_worked(0);
    pool_log_wait(&pool, "event=pool.cell_away");
    private_pg_start(&server[1]);
    place_again(1);
    await_all_worked(1);
    pool_end(&pool);
    pool = (struct fixture_child){0};
    says(&cell[0], 0, "48 of 48 invariants hold", "audit");
}

/* Guarantee: The pool does not start while all cells are away. */
CASE(pool_without_any_cell_does_not_start)
{
    name_cells("postgresql:///a?host=/nowhere", "postgresql:///b?host=/nowhere");
    says(&cell[0], 4, "cell 2", "run");
}

static int64_t places_in(int i)
{
    return fixture_query_int8(
        cell[i].url, "SELECT count(*) FROM pg_locks AS l JOIN pg_stat_activity "
                     "AS a USING (pid) WHERE locktype = 'advisory' AND "
                     "application_name LIKE 'ledgerlock worker%'");
}

/* Guarantee: The cells of a pool that dies are worked by another one. */
CASE(cells_of_a_dead_pool_go_to_another)
{
    seed(9);
    starts(&cell[0], &pool, "run --billing 2 --orders 2");
    FIXTURE_AWAIT(places_in(0) >= 2 && places_in(1) >= 2, "no place is taken");
    starts(&cell[0], &other, "run --billing 2 --orders 2");
    pool_log_wait(&other, "event=pool.started");
    kill_pool(&pool);
    for (int i = 0; i < CELLS; i++) {
        place_again(i);
        await_all_worked(i);
    }
    pool_end(&other);
    other = (struct fixture_child){0};
    says(&cell[0], 0, "48 of 48 invariants hold", "audit");
}

/* ---- what is refused ---- */

/* Guarantee: A database that is not that of the cell is worked by nobody. */
CASE(database_of_another_cell_is_refused)
{
    name_cells(cell[1].url, cell[0].url);
    says(&cell[0], 6, "LL-3116", "run");
    says(&cell[0], 6, "it is that of cell 2", "audit");
    says(&cell[0], 6, "LL-3116", "status");
    says(&cell[0], 6, "LL-3116", "parked --cells 1");
}

static const struct {
    const char *name, *urls, *only, *says;
} lists[] = {
    {"without_a_number", "postgresql:///a", "all", "LL-2021"},
    {"without_a_database", "1=", "all", "LL-2021"},
    {"number_too_high", "8192=postgresql:///a", "all", "LL-2021"},
    {"number_twice", "1=postgresql:///a 1=postgresql:///b", "all", "LL-2021"},
    {"database_twice", "1=postgresql:///a 2=postgresql:///a", "all", "LL-2021"},
    {"url_that_is_none", "1=postgresql:///a?nonsense=1", "all", "LL-3001"},
    {"cell_that_is_none", "1=postgresql:///a 2=postgresql:///b", "1,3", "LL-2022"},
    {"list_that_is_none", "1=postgresql:///a 2=postgresql:///b", "1;2", "LL-2022"},
};

/* Guarantee: A list of cells that is none is refused with what to write. */
CASE_ROWS(list_of_cells_is_checked, lists, .alone = true)
{
    fixture_env("LEDGERLOCK_CELLS_URLS", row->urls);
    fixture_env("LEDGERLOCK_CELLS_ONLY", row->only);
    says(NULL, 3, row->says, "config check");
    fixture_env("LEDGERLOCK_CELLS_ONLY", NULL);
}

/* Guarantee: A verb about one database asks which cell is meant. */
CASE(verb_about_one_database_wants_one_cell)
{
    says(&cell[0], 2, "LL-2025", "parked");
    runs(&cell[0], 0, "parked --cells 2");
    says(&cell[0], 2, "LL-1023", "migrate --cell 5");
    fixture_env("LEDGERLOCK_LOCKS_PREFIX", "a{b}c:");
    says(&cell[0], 3, "LL-2023", "run");
    fixture_env("LEDGERLOCK_LOCKS_PREFIX", NULL);
    says(&cell[0], 3, "LL-2024", "run --pooling transaction");
    says(&cell[0], 2, "LL-2026", "run --http 0");
}

/* ---- status, list, audit ---- */

/* Guarantee: Status and the list show each cell, also beside one that is away, which
 * gives the exit code. */
CASE(each_cell_is_shown)
{
    seed(13);
    runs(&cell[0], 0, "cells --json");
    said_are("1/jobs/orders/due=80, 2/jobs/orders/due=80, 2/bytes>100000", "cells");
    says(&cell[0], 0, "VERDICT", "status");
    says(&cell[0], 0, "billing", "status --cells 2");
    private_pg_kill(&server[1]);
    runs(&cell[0], 4, "cells --json");
    shows("cell 2");
    runs(&cell[0], 4, "audit");
    shows("cell 2");
    private_pg_start(&server[1]);
}

/* Guarantee: An invariant that one cell breaks is broken, and its row names the cell.
 */
CASE(audit_of_all_names_the_cell)
{
    seed(15);
    runs(&cell[0], 0, "run --once");
    fixture_unguard(&cell[1]);
    fixture_exec(cell[1].url,
                 "UPDATE ledgerlock.users SET balance_minor = balance_minor + 1"
                 " WHERE user_id = (2::bigint << 40) + 1");
    says(&cell[0], 1, "cell 2: user 2199023255553", "audit --json");
    assert_true(said_is_broken("balance_is_sum_of_ledger"));
    said_are("1/ok=1, 2/ok=0", "cells");
    fixture_exec(cell[1].url, "UPDATE ledgerlock.users SET user_id = 7 WHERE user_id = "
                              "(2::bigint << 40) + 1");
    runs(&cell[0], 1, "audit --json");
    assert_true(said_is_broken("ids_are_of_their_cell"));
}

/* ---- units that move ---- */

static int64_t on_hand(int i)
{
    return fixture_query_int8(
        cell[i].url, "SELECT on_hand FROM ledgerlock.stock WHERE sku = 'SKU-00012'");
}

/* Guarantee: Units move from cell to cell once for each key, and no more than there
 * are. */
CASE(units_move_once_for_each_key)
{
    int64_t before[CELLS];

    seed(17);
    before[0] = on_hand(0);
    before[1] = on_hand(1);
    for (int i = 0; i < 2; i++)
        says(&cell[0], 0, "3 units of SKU-00012",
             "move-stock SKU-00012 3 --from 1 --to 2 --key a");
    says(&cell[0], 2, "LL001", "move-stock SKU-00012 4 --from 1 --to 2 --key a");
    says(&cell[0], 6, "LL003", "move-stock SKU-00012 4000000 --from 1 --to 2 --key b");
    says(&cell[0], 2, "cell 2", "move-stock NONE 4 --from 1 --to 2 --key b");
    says(&cell[0], 2, "LL-1024", "move-stock SKU-00012 0 --from 1 --to 2 --key b");
    says(&cell[0], 2, "LL-1024", "move-stock SKU-00012 1 --from 2 --to 2 --key b");
    says(&cell[0], 2, "LL-1024", "move-stock SKU-00012 1 --from 2 --to 1");
    says(&cell[0], 2, "LL-2022", "move-stock SKU-00012 1 --from 2 --to 3 --key b");
    promise_int_equal(on_hand(0), before[0] - 3);
    promise_int_equal(on_hand(1), before[1] + 3);
    runs(&cell[0], 0, "run --once");
    says(&cell[0], 0, "48 of 48 invariants hold", "audit --lag 0s");
}

/* Guarantee: A move that is cut off between its two commits is on its way: the audit
 * counts its units, names it when it takes longer than the lag, and the same command
 * ends it. */
CASE(move_that_is_cut_off_is_ended_by_the_same_command)
{
    int64_t before;

    seed(19);
    runs(&cell[0], 0, "run --once");
    before = on_hand(0) + on_hand(1);
    fixture_exec(
        cell[1].url,
        "CREATE FUNCTION public.cut() RETURNS trigger LANGUAGE plpgsql AS 'BEGIN RAISE "
        "EXCEPTION ''cut off''; END';"
        "CREATE CONSTRAINT TRIGGER cut AFTER INSERT ON ledgerlock.stock_entries DEFERRABLE "
        "INITIALLY DEFERRED FOR EACH ROW EXECUTE FUNCTION public.cut()");
    says(&cell[0], 70, "run it again with the same key",
         "move-stock SKU-00012 2 --from 1 --to 2 --key a");
    promise_int_equal(on_hand(0) + on_hand(1), before - 2);
    fixture_exec(cell[1].url, "DROP TRIGGER cut ON ledgerlock.stock_entries; "
                              "DROP FUNCTION public.cut()");
    runs(&cell[0], 0, "audit --json");
    said_are("under_way=2", "totals/stock");
    runs(&cell[0], 1, "audit --lag 0s --json");
    assert_true(said_is_broken("units_moved_arrive"));
    runs(&cell[0], 0, "move-stock SKU-00012 2 --from 1 --to 2 --key a");
    promise_int_equal(on_hand(0) + on_hand(1), before);
    runs(&cell[0], 0, "audit --lag 0s --json");
    said_are("under_way=0", "totals/stock");
}

/* Guarantee: Units that came to a cell and left none break the audit. */
CASE(units_that_never_left_are_found)
{
    seed(21);
    runs(&cell[0], 0, "run --once");
    fixture_exec(cell[1].url,
                 "SET search_path = ledgerlock; SELECT adjust_stock('SKU-00012', 5, "
                 "'from cell 1', 'made up', p_cell => 1)");
    says(&cell[0], 1, "they came and never left", "audit --json");
    assert_true(said_is_broken("units_moved_arrive"));
}
