/* cells: databases on two servers of their own, worked by a pool. */
#include "tests/lib/cells_world.h"
#include "tests/lib/page.h"
#include "tests/lib/pool_world.h"

static struct fixture_child pool, other;

static void kill_pool(struct fixture_child *child)
{
    if (child->pid != 0) {
        (void)kill(child->pid, SIGKILL);
        (void)fixture_wait(child, 60, NULL);
        child->pid = 0;
    }
}

static void end_pool(struct fixture_child *child)
{
    pool_end(child);
    child->pid = 0;
}

static void close_all(void)
{
    kill_pool(&pool);
    kill_pool(&other);
    cells_close();
}

GROUP(.start = cells_start, .stop = cells_stop, .open = cells_open, .close = close_all);

static int64_t left_in(int i)
{
    return cells_ask(
        i,
        "SELECT (SELECT count(*) FROM orders WHERE state = "
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
    cells_seed(1);
    starts(&cell[0], &pool, "run --billing 1 --orders 1");
    for (int i = 0; i < CELLS; i++)
        await_all_worked(i);
    place_again(0);
    await_all_worked(0);
    place_again(1);
    await_all_worked(1);
    end_pool(&pool);
    says(&cell[0], 0, "48 of 48 invariants hold", "audit");
    cells_hold(
        0, "SELECT count(*) FROM users WHERE user_id >> 40 <> (SELECT max(order_id) "
           ">> 40 FROM orders)");
    cells_hold(60, "SELECT count(*) FROM orders WHERE idempotency_key LIKE 'again %'");
    cells_hold(1, "SELECT (count(*) > 100)::int FROM charges");
}

/* Guarantee: The counters of a worker stand in the cell that it counted them in. */
CASE(counters_are_of_their_cell)
{
    cells_seed(3);
    starts(&cell[0], &pool, "run --billing 1 --orders 1");
    for (int i = 0; i < CELLS; i++)
        await_all_worked(i);
    end_pool(&pool);
    cells_hold(0, "SELECT (SELECT sum((counters->>'charged')::bigint) FROM workers) - "
                  "(SELECT count(*) FROM charges WHERE state <> 'declined')");
}

/* Guarantee: Run --once works each cell until nothing is due, and says so of each. */
CASE(run_once_works_every_cell)
{
    cells_seed(5);
    says(&cell[0], 0, "cell 2: billing:", "run --once");
    shows("cell 1: billing:");
    cells_hold(0, "SELECT count(*) FROM orders WHERE state = 'pending'");
    says(&cell[0], 0, "48 of 48 invariants hold", "audit --wait 0s");
}

/* Guarantee: A cell whose server is away stops only itself: the others are worked, and
 * it is worked again when its server is back, though the pool started without it. */
CASE(server_that_is_away_stops_only_its_cell)
{
    unsigned said_ct;

    cells_seed(7);
    private_pg_kill(&cells_server[1]);
    starts(&cell[0], &pool, "run --billing 1 --orders 1");
    await_all_worked(0);
    promise_int_equal(pool_log_count(&pool, "event=pool.started"), 1);
    private_pg_start(&cells_server[1]);
    await_all_worked(1);
    pool_log_wait(&pool, "event=pool.cell_back");
    said_ct = pool_log_count(&pool, "event=pool.cell_away");
    private_pg_kill(&cells_server[1]);
    place_again(0);
    await_all_worked(0);
    FIXTURE_AWAIT(pool_log_count(&pool, "event=pool.cell_away") > said_ct,
                  "it is not said again that the cell is away");
    private_pg_start(&cells_server[1]);
    place_again(1);
    await_all_worked(1);
    end_pool(&pool);
    says(&cell[0], 0, "48 of 48 invariants hold", "audit");
}

/* Guarantee: A cell in which every batch meets an error keeps nobody from the others,
 * and ends no pool. */
CASE(error_in_a_cell_stops_only_that_cell)
{
    cells_seed(23);
    fixture_exec(cell[0].url,
                 "CREATE FUNCTION public.fail() RETURNS trigger LANGUAGE plpgsql AS "
                 "'BEGIN RAISE EXCEPTION ''no'' USING ERRCODE = ''53100''; END';"
                 "CREATE TRIGGER fail AFTER INSERT ON ledgerlock.batches FOR EACH ROW "
                 "EXECUTE FUNCTION public.fail()");
    starts(&cell[0], &pool, "run --billing 1 --orders 1 --give-up-ms 1000");
    await_all_worked(1);
    pool_log_wait(&pool, "event=pool.cell_away");
    promise_true(left_in(0) > 0);
    fixture_exec(cell[0].url, "DROP TRIGGER fail ON ledgerlock.batches; "
                              "DROP FUNCTION public.fail()");
    await_all_worked(0);
    end_pool(&pool);
    says(&cell[0], 0, "48 of 48 invariants hold", "audit");
}

/* Guarantee: A pool that is told to read its settings again replaces the workers of all
 * cells. */
CASE(settings_are_read_again)
{
    cells_seed(25);
    starts(&cell[0], &pool, "run --billing 1 --orders 1");
    for (int i = 0; i < CELLS; i++)
        await_all_worked(i);
    (void)kill(pool.pid, SIGHUP);
    pool_log_wait(&pool, "event=pool.reloaded");
    for (int i = 0; i < CELLS; i++) {
        place_again(i);
        await_all_worked(i);
    }
    end_pool(&pool);
}

/* Guarantee: The pool does not start while all cells are away. */
CASE(pool_without_any_cell_does_not_start)
{
    cells_name("postgresql:///a?host=/nowhere", "postgresql:///b?host=/nowhere");
    says(&cell[0], 4, "cell 2", "run");
}

static int64_t places_in(int i)
{
    return cells_ask(i, "SELECT count(*) FROM pg_locks AS l JOIN pg_stat_activity "
                        "AS a USING (pid) WHERE locktype = 'advisory' AND "
                        "application_name LIKE 'ledgerlock worker%'");
}

/* Guarantee: The cells of a pool that dies are worked by another one. */
CASE(cells_of_a_dead_pool_go_to_another)
{
    cells_seed(9);
    starts(&cell[0], &pool, "run --billing 2 --orders 2");
    FIXTURE_AWAIT(places_in(0) >= 2 && places_in(1) >= 2, "no place is taken");
    starts(&cell[0], &other, "run --billing 2 --orders 2");
    pool_log_wait(&other, "event=pool.started");
    for (int i = 0; i < CELLS; i++)
        promise_true(places_in(i) <=
                     4); /* of billing 2; of orders 1, and its service */
    kill_pool(&pool);
    for (int i = 0; i < CELLS; i++) {
        place_again(i);
        await_all_worked(i);
    }
    end_pool(&other);
    says(&cell[0], 0, "48 of 48 invariants hold", "audit");
}

/* ---- the page ---- */

/* Guarantee: The page and the metrics show each cell of the pool, also one whose server
 * is away; the pool stays ready as long as it can work any. */
CASE(page_shows_each_cell)
{
    page_port = fixture_free_port();
    cells_seed(27);
    starts(&cell[0], &pool,
           "run --billing 1 --orders 1 --http %d --http-audit-every-s 1", page_port);
    for (int i = 0; i < CELLS; i++)
        await_all_worked(i);
    PAGE_AWAIT("/state", "\"cell\":1,\"verdict\":\"good\"",
               "\"cell\":2,\"verdict\":\"good\"", "\"broken\":[]");
    PAGE_AWAIT("/metrics", "\nledgerlock_backlog_rows{cell=\"1\",job=\"orders\"} 0\n",
               "\nledgerlock_audit_broken_invariants{cell=\"2\"} 0\n",
               "\nledgerlock_pg_up{cell=\"2\"} 1\n");
    private_pg_kill(&cells_server[1]);
    PAGE_AWAIT("/metrics", "\nledgerlock_pg_up{cell=\"1\"} 1\n",
               "\nledgerlock_pg_up{cell=\"2\"} 0\n");
    PAGE_AWAIT("/state", "\"cell\":2,\"verdict\":\"unknown\"");
    pool_log_wait(&pool, "event=pool.cell_away");
    page_is(200, "/readyz");
    private_pg_kill(&cells_server[0]);
    page_await(503, "/readyz", "cell 2: PostgreSQL does not answer");
    for (int i = 0; i < CELLS; i++)
        private_pg_start(&cells_server[i]);
    page_await(200, "/readyz", "ok");
    end_pool(&pool);
}

/* Guarantee: A browser shows each cell of a pool, all of them together, and the one
 * that the reader chooses. */
CASE(browser_shows_each_cell)
{
    page_port = fixture_free_port();
    cells_seed(29);
    starts(&cell[0], &pool,
           "run --billing 1 --orders 1 --http %d --http-audit-every-s 1", page_port);
    for (int i = 0; i < CELLS; i++)
        await_all_worked(i);
    http_browse(page_port, "--cells");
    end_pool(&pool);
}
