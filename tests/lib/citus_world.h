/* citus_world: cells that are schemas of a Citus cluster, pools over them, and clients
 * that write to them. The cluster is of LL_TEST_CITUS_URL, a superuser's at its
 * coordinator. */
#ifndef LEDGERLOCK_CITUS_WORLD_H
#define LEDGERLOCK_CITUS_WORLD_H

#include "tests/lib/runs.h"

#define CITUS_SCHEMA "ledgerlock_test"

enum { CITUS_CELLS = 8, CITUS_POOLS = 2 };

extern struct fixture cluster; /* its url is of the coordinator */
extern struct fixture_child citus_pool[CITUS_POOLS];

/* A cluster without cells; skips where there is none. The other ends the pools and the
 * clients, too. */
void citus_open(void);
void citus_close(void);

/* TERM for a pool, which ends well; and SIGKILL for it. */
void citus_end_pool(int i);
void citus_kill_pool(int i);

/* ---- cells ---- */

/* A new cell, and work for it; and one whose work needs no month but those that are
 * there. */
void citus_add(int cell);
void citus_add_fresh(int cell);

/* The node that has the cell, or one that has not, as HOST:PORT. */
const char *citus_node(int cell, bool is_home);

/* The database at the node of the cell, with the schema of the cell in search_path, and
 * of a role; overwritten by the next call. */
const char *citus_home(int cell);
const char *citus_home_as(int cell, const char *role);

/* Asks the cell, at its node. */
int64_t citus_ask(int cell, const char *sql);

/* Waits until nothing is due in the cell. */
void citus_await_worked(int cell);

/* The checker finds nothing in the rows of the cell. */
void citus_check(int cell);

/* ---- a node ---- */

/* Words for what the machine lacks to stop a node; NULL: nothing. */
const char *citus_cannot_stop(void);

/* Stops a node, HOST:PORT, in mode immediate; and starts it again. */
void citus_stop_node(const char *node);
void citus_start_node(const char *node);

/* ---- clients ---- */

/* Two clients of each of the cells 1 to n, which order, deposit and subscribe again and
 * again. A client that is not answered finds the node of its cell again, and calls
 * again with the same keys. */
void citus_clients_start(int n);

/* Waits until each client of the cell was answered so many times more. */
void citus_clients_go_on(int cell, int64_t times);

/* Ends them, and asserts that each cell has what was acknowledged, once, and nothing
 * else of them. */
void citus_clients_end(void);

/* Ends them by SIGKILL, if there are any. */
void citus_clients_kill(void);

/* The longest time for which a client of the cell had no answer; and forgets it. */
int64_t citus_clients_stood_ms(int cell);

#endif
