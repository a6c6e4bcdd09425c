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
    int64_t port;
    struct pg *coordinator, *from, *to;
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
    return 0;
}

/* To the node itself: the catalogue still has the other one. */
static int connect_to(struct move *m, struct err *e)
{
    static struct config there;
    int n;

    there = *m->of_cell;
    there.is_distributed = false;
    n = snprintf(there.postgres_url, sizeof there.postgres_url,
                 "%s%shost=%s&port=%" PRId64, m->of_cell->postgres_url,
                 strchr(m->of_cell->postgres_url, '?') != NULL ? "&" : "?", m->host,
                 m->port);
    return n >= (int)sizeof there.postgres_url
               ? err_set(e, ERR_CONFIG, "LL-2029 cells.citus is too long a URL")
               : cli_connect(&there, "cells", &m->to, e);
}

static int connect_all(struct move *m, struct err *e)
{
    static struct config at_coordinator;
    const struct cli_limits limits = {.answer_ms = MOVE_MS};

    at_coordinator = *m->of_cell;
    at_coordinator.is_distributed = false;
    if (cli_connect_within(&at_coordinator, "cells", &limits, &m->coordinator, e) !=
            0 ||
        cli_connect(m->of_cell, "cells", &m->from, e) != 0 || connect_to(m, e) != 0)
        return (int)e->code;
    if (pg_exec(m->from, SQL_CELLS_KEEP_HERE, NULL, 0, NULL, e) != 0 ||
        pg_exec(m->to, SQL_CELLS_KEEP_HERE, NULL, 0, NULL, e) != 0)
        return (int)e->code;
    return 0;
}

/* Once the rows are there and nobody writes: the node goes on with the numbers. */
static int take_over(struct move *m, struct err *e)
{
    struct pg_result *res = NULL;

    if (pg_exec(m->from, SQL_CELLS_READ_NUMBERS, NULL, 0, &res, e) == 0) {
        const struct pg_param params[] = {pg_int8(m->of_cell->cell),
                                          pg_text(pg_get_text(res, 0, 0))};

        (void)!pg_exec(m->to, SQL_CELLS_CONTINUE_NUMBERS, params, 2, NULL, e);
    }
    pg_result_free(res);
    return e->code != 0 ? (int)e->code : migrate_give_rights(m->to, e);
}

static int move_rows(struct move *m, const char *mode, struct err *e)
{
    const struct pg_param node[] = {pg_text(m->host), pg_int8(m->port), pg_text(mode)};

    cli_progress("moving cell %" PRId64 " to %s:%" PRId64, m->of_cell->cell, m->host,
                 m->port);
    if (pg_begin(m->coordinator, e) != 0 ||
        pg_exec(m->coordinator, SQL_CELLS_MOVE, node, 3, NULL, e) != 0 ||
        take_over(m, e) != 0 || pg_commit(m->coordinator, e) != 0)
        return (int)e->code;
    return pg_exec(m->from, SQL_CELLS_END_NUMBERS, NULL, 0, NULL, e);
}

int cells_move_to(const struct config *c,
                  const char *number,
                  const char *node,
                  bool is_online,
                  struct err *e)
{
    static struct config of_cell;
    struct move m = {.of_cell = &of_cell};

    if (enter(c, number, &of_cell, e) == 0 && read_node(&m, node, e) == 0 &&
        connect_all(&m, e) == 0)
        (void)!move_rows(&m, is_online ? "force_logical" : "block_writes", e);
    cli_progress_end();
    pg_close(m.coordinator);
    pg_close(m.from);
    pg_close(m.to);
    cli_name_role(&of_cell, "cells", e);
    if (e->code == 0)
        (void)printf("cell %" PRId64 " is on %s\n", of_cell.cell, node);
    return (int)e->code;
}
