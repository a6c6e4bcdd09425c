/* migrate: the embedded migrations (numbered, with checksums) and functions, beside
 * what a database has of them. */
#ifndef LEDGERLOCK_MIGRATE_H
#define LEDGERLOCK_MIGRATE_H

#include <stdbool.h>
#include <stddef.h>

#include "common/base/err.h"
#include "common/pg/pg.h"

enum { MIGRATE_HASH = 65, MIGRATE_NAME = 64 };

/* ERR_SCHEMA with what to do when the database's schema is missing, older than this
 * program or newer by more than expansions, or when a migration or function text
 * differs from the one applied. */
MUST_CHECK int migrate_check(struct pg *pg, struct err *e);

/* The expansion by a newer program that the database has, "": none. Bodies of
 * functions and views are not compared with this program's then: a newer one replaces
 * them. */
MUST_CHECK int
migrate_read_newer(struct pg *pg, char newer[MIGRATE_NAME], struct err *e);

/* ERR_SCHEMA when somebody changed its objects by hand. Objects that somebody added are
 * left alone, except rights of our roles. */
MUST_CHECK int migrate_check_objects(struct pg *pg, struct err *e);

/* The objects that the migrations make, a line each, for sql/audit/schema_as_built.
 */
MUST_CHECK int migrate_objects(struct pg *pg, const char **objects, struct err *e);

/* ERR_REFUSED with what to do when the database cannot be one of ledgerlock: in another
 * encoding than UTF8, a template, of a standby, or read-only; a caller that waits until
 * it takes writes is not refused for the last. */
MUST_CHECK int migrate_check_database(struct pg *pg, bool waits, struct err *e);

/* ERR_REFUSED when the schema belongs to the roles of another prefix: what they may do
 * would stay theirs. */
MUST_CHECK int migrate_check_prefix(struct pg *pg, struct err *e);

/* Gives PUBLIC and our roles the rights that the migrations give, and no others, on the
 * objects that they make; makes roles that are missing. All of it or nothing. */
MUST_CHECK int migrate_give_rights(struct pg *pg, struct err *e);

/* ---- between verb_migrate.c and migrate.c ---- */

/* One embedded text. */
struct piece {
    const char *kind; /* "migration" or "function", as in the table */
    const char *name;
    const char *text;
};

enum piece_state { PIECE_APPLIED, PIECE_MISSING, PIECE_CHANGED };

/* All of them, in the order in which they are applied. */
size_t migrate_piece_ct(void);
struct piece migrate_piece(size_t i);

/* The record: rows of kind, name, checksum. *applied is NULL if there is none.
 * ERR_SCHEMA with whose work it is when this role may not read it. */
MUST_CHECK int migrate_read(struct pg *pg, struct pg_result **applied, struct err *e);

/* ERR_SCHEMA if a migration was applied that this program does not have, unless it is
 * an expansion, one that older programs can live with (its name has "_expand_"): newer
 * is its name then, else "". */
MUST_CHECK int migrate_check_newer(const struct pg_result *applied,
                                   char newer[MIGRATE_NAME],
                                   struct err *e);

MUST_CHECK int
migrate_hash(struct pg *pg, const char *text, char hash[MIGRATE_HASH], struct err *e);

/* Compares one text with the record. A migration must not change once it is applied. */
MUST_CHECK int migrate_compare(struct pg *pg,
                               const struct pg_result *applied,
                               const struct piece *p,
                               enum piece_state *state,
                               struct err *e);

#endif
