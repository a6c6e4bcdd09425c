/* citus_load: pools and clients at work in a Citus cluster, while workers are killed,
 * cells are moved, and a node stops. */
#include "tests/lib/citus_world.h"
#include "tests/lib/pool_world.h"

enum { CELLS = 4, KILLS = 4 };

GROUP(.open = citus_open, .close = citus_close);

static void begin(int cells)
{
    char first[280];

    for (int cell = 1; cell <= cells; cell++)
        citus_add_fresh(cell);
    (void)snprintf(first, sizeof first, "%s", citus_node(1, true));
    for (int cell = 2; cell <= cells && strcmp(first, citus_node(cell, true)) == 0;)
        assert_true(++cell <= cells); /* else all are on one node */
    citus_clients_start(cells);
    for (int i = 0; i < CITUS_POOLS; i++)
        starts(&cluster, &citus_pool[i], "run -w 2");
    for (int i = 0; i < CITUS_POOLS; i++)
        pool_log_wait(&citus_pool[i], "event=pool.started");
}

/* All that is due is decided, and nothing is lost or done twice. */
static void end(int cells)
{
    citus_clients_end();
    for (int cell = 1; cell <= cells; cell++)
        citus_await_worked(cell);
    for (int i = 0; i < CITUS_POOLS; i++) {
        if (citus_pool[i].pid != 0)
            citus_end_pool(i);
    }
    says(&cluster, 0, "48 of 48 invariants hold", "audit --wait 0s");
}

static void await_decided(int cell, int64_t more)
{
    static const char decided[] =
        "SELECT count(*) FROM orders WHERE state <> 'pending'";
    int64_t to = citus_ask(cell, decided) + more;

    FIXTURE_AWAIT(citus_ask(cell, decided) >= to, "cell %d is not worked", cell);
}

static void kill_a_worker(const struct fixture_child *pool, size_t which)
{
    unsigned died = pool_log_count(pool, "event=pool.worker_died");
    pid_t pids[POOL_CHILDREN];
    size_t n = pool_children(pool->pid, pids);

    assert_true(n > 0);
    (void)kill(pids[which % n], SIGKILL);
    FIXTURE_AWAIT(pool_log_count(pool, "event=pool.worker_died") > died,
                  "nobody noticed that a worker died");
}

/* Guarantee: Cells on two nodes of a Citus cluster stay exact while workers of two
 * pools and one pool as a whole are killed and clients write: what is due is decided
 * once, and what was acknowledged is there. */
CASE(kills_under_load_leave_every_cell_of_two_nodes_exact)
{
    begin(CELLS);
    for (size_t i = 0; i < KILLS; i++) {
        for (int pool = 0; pool < CITUS_POOLS; pool++)
            kill_a_worker(&citus_pool[pool], i);
        await_decided((int)i % CELLS + 1, 1);
    }
    citus_kill_pool(0);
    for (int cell = 1; cell <= CELLS; cell++)
        await_decided(cell, 5);
    end(CELLS);
    for (int cell = 1; cell <= CELLS; cell++)
        citus_check(cell);
}

/* Guarantee: Each cell that moves to another node, with --online or without, while
 * pools work it and clients write to it, has at its new home all that was acknowledged,
 * and nothing twice. */
CASE(cells_that_move_under_load_are_exact)
{
    begin(2);
    for (int i = 0; i < 6; i++) {
        int cell = i % 2 + 1;
        bool is_online = (i / 2 + cell) % 2 == 0;
        char there[280];

        (void)snprintf(there, sizeof there, "%s", citus_node(cell, false));
        citus_clients_go_on(cell, 2);
        (void)citus_clients_stood_ms(cell);
        says(&cluster, 0, "is on", "cells move %d %s%s", cell, there,
             is_online ? " --online" : "");
        assert_string_equal(citus_node(cell, true), there);
        citus_clients_go_on(cell, 2);
        print_message("cell %d moved %s: its clients stood still for %" PRId64 " ms\n",
                      cell, is_online ? "online" : "with writers held",
                      citus_clients_stood_ms(cell));
        await_decided(cell, 2);
    }
    end(2);
}

static const struct test_group nodes = {
    .open = citus_open, .close = citus_close, .missing = citus_cannot_stop};

/* Guarantee: While a node of a Citus cluster is away the cells of the others are
 * worked; its own are worked again when it is back, and lose nothing. */
CASE(node_that_stops_and_starts_stops_only_its_cells, .group = &nodes)
{
    char node[280];
    bool is_on_it[5];

    begin(4);
    (void)snprintf(node, sizeof node, "%s", citus_node(1, true));
    for (int cell = 1; cell <= 4; cell++) {
        is_on_it[cell] = strcmp(citus_node(cell, true), node) == 0;
        await_decided(cell, 1);
    }
    citus_stop_node(node);
    for (int i = 0; i < CITUS_POOLS; i++)
        pool_log_wait(&citus_pool[i], "event=pool.cell_away");
    for (int cell = 1; cell <= 4; cell++) {
        if (!is_on_it[cell]) {
            citus_clients_go_on(cell, 10);
            await_decided(cell, 10);
        }
    }
    citus_start_node(node);
    for (int cell = 1; cell <= 4; cell++)
        await_decided(cell, 2);
    end(4);
    for (int cell = 1; cell <= 4; cell++)
        citus_check(cell);
}
