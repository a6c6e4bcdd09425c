/* move-stock: units of a SKU from one cell to another. */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "common/base/cells.h"
#include "ops/cells/cells_moves.h"
#include "ops/cli/cli.h"

static struct values {
    int64_t from, to;
    const char *key;
} values = {.from = CELL_NONE, .to = CELL_NONE};

static const struct cli_flag flags[] = {
    {"from", CLI_INT, offsetof(struct values, from), 0, CELL_MOST,
     "cell that the units leave"},
    {"to", CLI_INT, offsetof(struct values, to), 0, CELL_MOST,
     "cell that they come to"},
    {"key", CLI_TEXT, offsetof(struct values, key), 0, 0,
     "name of this move: with the same one it is made once, however often it is run"},
    {0},
};

static int open_cell(const struct config *c,
                     const struct cells *cells,
                     int64_t number,
                     struct pg **pg,
                     struct err *e)
{
    static struct config of_cell;

    for (size_t i = 0; i < cells->n; i++) {
        if (cells->of[i].number != number)
            continue;
        cells_enter(c, &cells->of[i], &of_cell);
        if (cli_open(&of_cell, "move-stock", pg, e) == 0)
            return 0;
        cli_name_role(&of_cell, "move-stock", e);
        return err_wrap(e, "cell %" PRId64, number);
    }
    return err_set(e, ERR_INVALID, "LL-2022 cells.urls has no cell %" PRId64, number);
}

/* Units of the command line; 0: they are none. */
static int64_t units_of(const char *text)
{
    return strlen(text) <= 18 && text[strspn(text, "0123456789")] == '\0' ? atoll(text)
                                                                          : 0;
}

static int move(const struct config *c,
                const struct cells *cells,
                const struct cell_move *m,
                int64_t left[2],
                struct err *e)
{
    struct pg *from = NULL, *to = NULL;

    if (open_cell(c, cells, m->from, &from, e) == 0 &&
        open_cell(c, cells, m->to, &to, e) == 0)
        (void)!cells_move(from, to, m, left, e);
    cli_progress_end();
    pg_close(from);
    pg_close(to);
    return (int)e->code;
}

static enum exit_code run(const struct config *c, int argc, char **argv)
{
    static struct cells cells;
    struct cell_move m = {.from = values.from, .to = values.to, .key = values.key};
    int64_t left[2] = {0};
    struct err e = {0};

    if (argc != 2 || units_of(argv[1]) == 0)
        return cli_usage("move-stock",
                         "LL-1024 it takes a SKU and a number of units above zero");
    if (m.from == CELL_NONE || m.to == CELL_NONE || m.from == m.to)
        return cli_usage("move-stock", "LL-1024 name two cells by --from and --to");
    if (m.key == NULL)
        return cli_usage("move-stock", "LL-1024 name the move by --key");
    m.sku = argv[0];
    m.qty = units_of(argv[1]);
    if (cells_read(c, &cells, &e) != 0 || move(c, &cells, &m, left, &e) != 0)
        return cli_fail(&e);
    (void)printf("%" PRId64 " units of %s went from cell %" PRId64 " (%" PRId64
                 " on hand) to cell %" PRId64 " (%" PRId64 " on hand)\n",
                 m.qty, m.sku, m.from, left[0], m.to, left[1]);
    return EXIT_OK;
}

const struct cli_verb verb_move_stock = {
    .name = "move-stock",
    .use = "SKU UNITS",
    .who = "members of ledgerlock_warehouse",
    .sentence = "moves units of a SKU from one cell to another, once for each key",
    .example = "ledgerlock move-stock SKU-00001 20 --from 1 --to 2 --key 2026-11-29/1",
    .flags = flags,
    .values = &values,
    .settings = "cells.",
    .run = run,
    .max_words = 2,
    .all_cells = true,
};
