/* cells_verbs: the list of cells as it is checked, shown and proved, and units that
 * move from one to another. */
#include "tests/lib/cells_world.h"

GROUP(.start = cells_start,
      .stop = cells_stop,
      .open = cells_open,
      .close = cells_close);

/* ---- what is refused ---- */

/* Guarantee: A database that is not that of the cell is worked by nobody. */
CASE(database_of_another_cell_is_refused)
{
    cells_name(cell[1].url, cell[0].url);
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
    {"password_in_it", "1=postgresql:///a postgresql://u:s3cret@h/b", "all",
     "postgres.password_file"},
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
    promise_true(strstr(said.err, "s3cret") == NULL);
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
    says(&cell[0], 2, "LL-2024", "run --pooling transaction");
}

/* Guarantee: A wrong word of `cells`, a list beside a cluster, and a cluster that
 * cannot be asked are told. */
CASE(words_of_cells_are_checked)
{
    says(&cell[0], 2, "LL-1027", "cells remove 3");
    says(&cell[0], 2, "LL-1026", "cells add 3");
    fixture_env("LEDGERLOCK_CELLS_CITUS", "postgresql:///shop?host=/nowhere");
    says(&cell[0], 3, "LL-2028", "config check");
    fixture_env("LEDGERLOCK_CELLS_URLS", NULL);
    runs(&cell[0], 0, "config check");
    says(&cell[0], 4, "cells.citus", "cells");
    shows("LL-3003");
    fixture_env("LEDGERLOCK_CELLS_CITUS", NULL);
}

/* ---- status, list, audit ---- */

/* Guarantee: Status and the list show each cell, also beside one that is away, which
 * gives the exit code. */
CASE(each_cell_is_shown)
{
    cells_seed(13);
    runs(&cell[0], 0, "cells --json");
    said_are("1/jobs/orders/due=80, 2/jobs/orders/due=80, 2/bytes>100000", "cells");
    says(&cell[0], 0, "VERDICT", "status");
    says(&cell[0], 0, "billing", "status --cells 2");
    private_pg_kill(&cells_server[1]);
    runs(&cell[0], 4, "cells --json");
    shows("cell 2");
    runs(&cell[0], 4, "audit");
    shows("cell 2");
    private_pg_start(&cells_server[1]);
}

/* Guarantee: An invariant that one cell breaks is broken, and its row names the cell.
 */
CASE(audit_of_all_names_the_cell)
{
    cells_seed(15);
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
    return cells_ask(i, "SELECT on_hand FROM ledgerlock.stock WHERE sku = 'SKU-00012'");
}

/* Guarantee: Units move from cell to cell once for each key, and no more than there
 * are. */
CASE(units_move_once_for_each_key)
{
    int64_t before[CELLS];

    cells_seed(17);
    before[0] = on_hand(0);
    before[1] = on_hand(1);
    for (int i = 0; i < 2; i++)
        says(&cell[0], 0, "3 units of SKU-00012",
             "move-stock SKU-00012 3 --from 1 --to 2 --key a");
    says(&cell[0], 2, "LL001", "move-stock SKU-00012 4 --from 1 --to 2 --key a");
    says(&cell[0], 6, "LL003", "move-stock SKU-00012 4000000 --from 1 --to 2 --key b");
    says(&cell[0], 2, "does not exist", "move-stock NONE 4 --from 1 --to 2 --key b");
    says(&cell[0], 2, "LL-1024", "move-stock SKU-00012 0 --from 1 --to 2 --key b");
    says(&cell[0], 2, "LL-1024", "move-stock SKU-00012 1 --from 2 --to 2 --key b");
    says(&cell[0], 2, "LL-1024", "move-stock SKU-00012 1 --from 2 --to 1");
    says(&cell[0], 2, "LL-2022", "move-stock SKU-00012 1 --from 2 --to 3 --key b");
    promise_int_equal(on_hand(0), before[0] - 3);
    promise_int_equal(on_hand(1), before[1] + 3);
    runs(&cell[0], 0, "run --once");
    says(&cell[0], 0, "48 of 48 invariants hold", "audit --lag 0s");
}

/* Guarantee: Moves of one SKU in opposite directions at the same time are all made. */
CASE(moves_in_opposite_directions_do_not_wait_for_each_other)
{
    int64_t before;
    struct fixture_child moves[8];

    cells_seed(27);
    runs(&cell[0], 0, "run --once");
    before = on_hand(0) + on_hand(1);
    for (int i = 0; i < 8; i++)
        starts(&cell[0], &moves[i],
               "move-stock SKU-00012 1 --from %d --to %d --key k%d", 1 + i % 2,
               2 - i % 2, i);
    for (int i = 0; i < 8; i++)
        promise_int_equal(fixture_wait(&moves[i], 60, NULL), 0);
    promise_int_equal(on_hand(0) + on_hand(1), before);
    says(&cell[0], 0, "48 of 48 invariants hold", "audit --lag 0s");
}

/* Guarantee: A move that is cut off between its two commits is on its way: the audit
 * counts its units, names it when it takes longer than the lag, and the same command
 * ends it. */
CASE(move_that_is_cut_off_is_ended_by_the_same_command)
{
    int64_t before;

    cells_seed(19);
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
    cells_seed(21);
    runs(&cell[0], 0, "run --once");
    fixture_exec(cell[1].url,
                 "SET search_path = ledgerlock; SELECT adjust_stock('SKU-00012', 5, "
                 "'from cell 1', 'made up', p_cell => 1)");
    says(&cell[0], 1, "they came and never left", "audit --json");
    assert_true(said_is_broken("units_moved_arrive"));
}
