/* cells_world: two cells, each on a server of its own, and a case at a time in fresh
 * databases. */
#ifndef LEDGERLOCK_CELLS_WORLD_H
#define LEDGERLOCK_CELLS_WORLD_H

#include "tests/lib/private_pg.h"
#include "tests/lib/runs.h"

enum { CELLS = 2 };

extern struct private_pg cells_server[CELLS];
extern struct fixture cell[CELLS]; /* cell[0] has number 1 */

/* Ground of a file: servers once, migrated databases for each case. */
void cells_start(void);
void cells_stop(void);
void cells_open(void);
void cells_close(void);

/* The runs that follow know both; the database that a fixture names does not count. */
void cells_name(const char *of_1, const char *of_2);

/* Work for both, made from this number. */
void cells_seed(int seed);

/* Asks a cell as the owner, whose search_path is ledgerlock; asserts the same of both.
 */
int64_t cells_ask(int i, const char *sql);
void cells_hold(int64_t n, const char *sql);

#endif
