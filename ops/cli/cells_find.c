/* cells_find: the cells of a Citus cluster, from its catalogue. */
#include <stdio.h>

#include "ops/cli/cli.h"

enum { ANSWER_MS = 10000 };

int cli_find_cells(struct config *c, struct err *e)
{
    static struct config coordinator;
    const struct cli_limits limits = {.answer_ms = ANSWER_MS};
    const struct pg_param params[] = {pg_text(c->postgres_schema),
                                      pg_text(c->cells_only)};
    struct pg_result *res = NULL;
    struct pg *pg = NULL;

    c->cells_found[0] = '\0';
    if (c->cells_citus[0] == '\0')
        return 0;
    coordinator = *c;
    (void)snprintf(coordinator.postgres_url, sizeof coordinator.postgres_url, "%s",
                   c->cells_citus);
    if (cli_connect_within(&coordinator, "cells", &limits, &pg, e) == 0 &&
        pg_exec(pg, SQL_CELLS_LIST_FOUND, params, 2, &res, e) == 0)
        (void)snprintf(c->cells_found, sizeof c->cells_found, "%s",
                       pg_get_text(res, 0, 0));
    pg_result_free(res);
    pg_close(pg);
    return e->code == 0 ? 0 : err_wrap(e, "cells.citus");
}
