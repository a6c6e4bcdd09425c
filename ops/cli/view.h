/* view: what a person wants to see of a database that pools work, read from its tables.
 */
#ifndef LEDGERLOCK_VIEW_H
#define LEDGERLOCK_VIEW_H

#include <jansson.h>
#include <stdbool.h>

#include "common/base/config.h"
#include "common/pg/pg.h"

/* Opens a connection for the reading, unless *pg is a usable one, in the place of a
 * broken one. No statement takes longer than some seconds, and none waits for a lock
 * longer than one. */
MUST_CHECK int
view_connect(const struct config *c, const char *of, struct pg **pg, struct err *e);

/* After a reading: closes a connection that may be of the wrong node, since the cell
 * has moved; it is kept after a timeout. */
void view_drop(struct pg **pg, const struct err *e);

/* For how many times as long as a reading took the tables are left alone; less while
 * somebody watches: `status --watch`, and the page of the demonstration. */
enum { VIEW_REST = 50, VIEW_REST_WATCHED = 5 };

/* How long to leave them alone: so many times as long as the reading took, at least 1 s
 * and at most 30 s. The first one of a connection also loads the catalog of PostgreSQL,
 * so it tells nothing of the tables: 1 s. */
int64_t view_pause_ms(int rest, bool is_first, int64_t took_ms);

/* Reads them into a new object, which the caller owns, also on error:
 *   database   which schema of which database: no other one has this text
 *   jobs       by name: due, oldest_due_ms, future, parked
 *   paused     jobs that are paused: job, since, by, reason
 *   newest     one row (function check_newest): charges, wallets and skus, as many as
 *              were looked at; charged_twice, oversold (-1: not counted), wrong_totals
 *   audit      the last whole audit that a pool made, or null: invariants, broken
 *              (names), took_ms, age_ms
 *   stock      the most wanted SKUs: sku, sold, on_hand, initial_qty
 *   waits      sessions that wait for another: application_name, holder, pids, waits_ms
 *   incidents  the last: kind, resource, worker, phase, detail, at_ms
 *   parked     rows that are parked: row, id, since, reason
 *   workers    those that reported of late; now: as text; counted, working: the
 * counters and the number of workers of each job now: counts as now; NULL: the
 * database's clock. */
MUST_CHECK int
view_read_tables(struct pg *pg, const char *now, json_t **out, struct err *e);

/* The wall clock, in milliseconds since 1970. */
int64_t view_now_ms(void);

/* "0 charged twice, 0 oversold, 0 totals wrong": a row of `newest`; returns text. */
enum { VIEW_FIGURES = 128 };

const char *view_figures(const json_t *of, char text[VIEW_FIGURES]);

/* The verdict of them and of the last whole audit: "bad" stays so; one that was good
 * and can no longer be read in time is "unknown". */
const char *view_verdict(const json_t *tables, const json_t *audit, bool is_late);

#endif
