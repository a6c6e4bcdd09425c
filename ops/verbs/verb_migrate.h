/* verb_migrate: also what `cells add` does. */
#ifndef LEDGERLOCK_VERB_MIGRATE_H
#define LEDGERLOCK_VERB_MIGRATE_H

#include "common/base/config.h"
#include "common/base/err.h"
#include "common/pg/pg.h"

/* Makes the schema of the settings or brings it up to this program, distributes it if
 * it is a cell of a Citus cluster, and says on stdout what it did. */
MUST_CHECK int migrate_one(const struct config *c, struct err *e);

/* Has every node but the one of the cell give out no number of its rows; all of them
 * can be told again. */
MUST_CHECK int migrate_end_numbers(struct pg *coordinator, struct err *e);

#endif
