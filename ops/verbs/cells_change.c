/* cells_change: cells of a Citus cluster, which places and moves them. */
#include "ops/verbs/cells_change.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "common/base/cells.h"
#include "ops/cli/cli.h"
#include "ops/cli/migrate.h"
#include "ops/verbs/verb_migrate.h"

enum { HOST = 256, MOVE_MS = 24 * 3600 * 1000 };

/* The settings of a cell that may not be there yet. */
static int
enter(const struct config *c, const char *number, struct config *of_cell, struct err *e)
{
    static struct cell cell;
    char *end;

    cell.number = strtol(number, &end, 10);
    if (end == number || *end != '\0' || cell.number < 0 || cell.number > CELL_MOST)
        return err_set(e, ERR_INVALID, "LL-1025 \"%s\" is no number of a cell: 0 to %d",
                       number, (int)CELL_MOST);
    if (c->cells_citus[0] == '\0')
        return err_set(
            e, ERR_INVALID,
            "LL-1026 cells are added and moved in a Citus cluster "
            "(cells.citus): make a database, write it to cells.urls, and run "
            "ledgerlock migrate");
    (void)snprintf(cell.url, sizeof cell.url, "%s", c->cells_citus);
    cells_enter(c, &cell, of_cell);
    return 0;
}

int cells_add(const struct config *c, const char *number, struct err *e)
{
    static struct config of_cell;

    if (enter(c, number, &of_cell, e) != 0)
        return (int)e->code;
    (void)printf("cell %" PRId64 ": ", of_cell.cell);
    (void)fflush(stdout);
    return migrate_one(&of_cell, e);
}

/* ---- to another node ---- */

struct move {
    const struct config *of_cell;
    char host[HOST];
    char port_text[16];
    int64_t port;
    struct pg *coordinator, *to;
};

static int read_node(struct move *m, const char *node, struct err *e)
{
    const char *colon = strrchr(node, ':');
    char *end;

    m->port = colon != NULL ? strtol(colon + 1, &end, 10) : 0;
    if (m->port < 1 || m->port > 65535 || *end != '\0' || colon == node ||
        colon - node >= HOST)
        return err_set(
            e, ERR_INVALID,
            "LL-1028 \"%s\" is no node: write HOST:PORT, as in SELECT nodename, "
            "nodeport FROM pg_dist_node",
            node);
    (void)snprintf(m->host, sizeof m->host, "%.*s", (int)(colon - node), node);
    (void)snprintf(m->port_text, sizeof m->port_text, "%" PRId64, m->port);
    return 0;
}

static int check_listed(const struct config *c, int64_t cell, struct err *e)
{
    static struct cells cells;

    if (cells_read(c, &cells, e) != 0)
        return (int)e->code;
    return cells_have(&cells, cell)
               ? 0
               : err_set(e, ERR_INVALID, "LL-2022 there is no cell %" PRId64, cell);
}

static int check_node(struct move *m, struct err *e)
{
    const struct pg_param node[] = {pg_text(m->host), pg_int8(m->port)};
    int64_t is_it = 0;

    if (pg_ask(m->to, SQL_CELLS_CHECK_NODE, node, 2, &is_it, e) == 0 && is_it == 0)
        (void)err_set(e, ERR_REFUSED,
                      "LL-3117 the server at %s:%" PRId64
                      " is not that node of the cluster, by its own catalogue",
                      m->host, m->port);
    return (int)e->code;
}

/* To the coordinator and the node: the catalogue still has the cell elsewhere. */
static int connect_both(struct move *m, struct err *e)
{
    static struct config here;
    const struct cli_limits wait = {.answer_ms = MOVE_MS};
    const struct cli_limits there = {
        .answer_ms = MOVE_MS, .host = m->host, .port = m->port_text};

    here = *m->of_cell;
    here.is_distributed = false;
    if (cli_connect_within(&here, "cells", &wait, &m->coordinator, e) != 0 ||
        cli_connect_within(&here, "cells", &there, &m->to, e) != 0 ||
        check_node(m, e) != 0)
        return (int)e->code;
    return pg_exec(m->to, SQL_CELLS_KEEP_HERE, NULL, 0, NULL, e);
}

/* Once the rows are there and nobody writes, the node goes on with the numbers. Another
 * move waits for the lock, and moves from where this one ended. */
static int move_rows(struct move *m, const char *mode, struct err *e)
{
    const struct pg_param node[] = {pg_text(m->host), pg_int8(m->port), pg_text(mode)};
    const struct pg_param cell = pg_int8(m->of_cell->cell);

    cli_progress("moving cell %" PRId64 " to %s:%" PRId64, m->of_cell->cell, m->host,
                 m->port);
    if (pg_begin(m->coordinator, e) != 0 ||
        pg_exec(m->coordinator, SQL_MIGRATE_LOCK, NULL, 0, NULL, e) != 0 ||
        pg_exec(m->coordinator, SQL_CELLS_MOVE, node, 3, NULL, e) != 0 ||
        pg_exec(m->to, SQL_CELLS_CONTINUE_NUMBERS, &cell, 1, NULL, e) != 0 ||
        migrate_give_rights(m->to, e) != 0 || pg_commit(m->coordinator, e) != 0)
        return (int)e->code;
    return migrate_end_numbers(m->coordinator, e);
}

int cells_move_to(const struct config *c,
                  const char *number,
                  const char *node,
                  bool is_online,
                  struct err *e)
{
    static struct config of_cell;
    struct move m = {.of_cell = &of_cell};

    if (enter(c, number, &of_cell, e) == 0 && check_listed(c, of_cell.cell, e) == 0 &&
        read_node(&m, node, e) == 0 && connect_both(&m, e) == 0)
        (void)!move_rows(&m, is_online ? "force_logical" : "block_writes", e);
    cli_progress_end();
    pg_close(m.coordinator);
    pg_close(m.to);
    cli_name_role(&of_cell, "cells", e);
    if (e->code == 0)
        (void)printf("cell %" PRId64 " is on %s\n", of_cell.cell, node);
    return (int)e->code;
}
