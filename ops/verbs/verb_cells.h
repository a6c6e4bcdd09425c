/* verb_cells: what `cells` prints, which `status` prints of several cells, too. */
#ifndef LEDGERLOCK_VERB_CELLS_H
#define LEDGERLOCK_VERB_CELLS_H

#include <stdbool.h>

#include "common/base/config.h"

/* A line for each cell, or one document; again and again every second until nobody
 * reads it. A cell that cannot be read says why, and its error gives the exit code. */
enum exit_code cells_show(const struct config *c, bool as_json, bool again);

#endif
