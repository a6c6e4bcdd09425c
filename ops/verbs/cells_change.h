/* cells_change: a cell more in a Citus cluster, and one on another node. */
#ifndef LEDGERLOCK_CELLS_CHANGE_H
#define LEDGERLOCK_CELLS_CHANGE_H

#include <stdbool.h>

#include "common/base/config.h"
#include "common/base/err.h"

/* Makes the schema of the cell, and distributes it: Citus chooses the node. Run again
 * after a failure it goes on. */
MUST_CHECK int cells_add(const struct config *c, const char *number, struct err *e);

/* Moves the cell to the node "HOST:PORT" in one transaction of the cluster: cut off
 * midway it stays where it was. Clients and workers wait, or with is_online from the
 * end of the copy on. */
MUST_CHECK int cells_move_to(const struct config *c,
                             const char *number,
                             const char *node,
                             bool is_online,
                             struct err *e);

#endif
