/* migrate: embedded, numbered, checksummed migrations under an advisory lock, then the
 * server functions of sql/functions, replaced whenever their text changed. */
#ifndef LEDGERLOCK_MIGRATE_H
#define LEDGERLOCK_MIGRATE_H

#include "common/err.h"
#include "common/pg.h"

/* ERR_SCHEMA with what to do when the database's schema is missing, older or newer than
 * this program, or a migration or function text differs from the one applied. */
MUST_CHECK int migrate_check(struct pg *pg, struct err *e);

#endif
