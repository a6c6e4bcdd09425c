/* world: one migrated database with few words to fill it, to run the pool over it as
 * the worker role, and to ask what became of it. Clients use the doors: deposit and
 * place_order. Anything that does not work fails the test at once. */
#ifndef LEDGERLOCK_WORLD_H
#define LEDGERLOCK_WORLD_H

#include "tests/lib/fixture.h"

struct world {
    struct fixture f;        /* runs the program as ledgerlock_worker */
    char owner[FIXTURE_URL]; /* for the statements of a test */
    struct fixture_output o; /* of the latest run */
};

extern struct world world;

/* Setup and teardown of cmocka: a fresh world, and its end. */
int world_open(void **state);
int world_close(void **state);

/* ---- SQL as the owner, with search_path ledgerlock ----------------------- */

void world_do(const char *fmt, ...) __attribute__((format(printf, 1, 2)));
int64_t world_ask(const char *fmt, ...) __attribute__((format(printf, 1, 2)));

/* The text is overwritten by the next call. */
const char *world_text(const char *fmt, ...) __attribute__((format(printf, 1, 2)));

/* Asserts that the query answers this text. */
void world_expect(const char *expected, const char *sql);

/* Asks as the superuser, who sees every session, until the answer is true; fails the
 * test after half a minute. */
void world_wait(const char *sql);

/* Whether a session of this database waits for a row. */
extern const char world_blocked[];

/* ---- filling ------------------------------------------------------------- */

/* A user with a wallet in USD; deposit number 1 unless balance is 0. */
void world_user(int64_t user, int64_t balance_minor);
void world_deposit(int64_t user, int64_t number, int64_t amount_minor);

/* A monthly subscription that starts at its anchor ("2024-01-31Z"). */
void world_subscription(int64_t id, int64_t user, int64_t amount, const char *anchor);

void world_sku(int64_t id, const char *sku, int64_t qty, int64_t unit_price_minor);

/* place_order on 1 January 2024 with lines as JSON; returns the order. */
int64_t world_order(int64_t user, const char *key, const char *lines);

/* ---- running ------------------------------------------------------------- */

/* `run -w 1 --once --now NOW`; asserts exit 0. */
void world_run(const char *now);

/* The same with so many workers. */
void world_run_pool(const char *workers, const char *now);

/* `audit --now NOW --lag 0s`; asserts that every invariant holds, or with a name, that
 * exactly this one is broken. */
void world_audit(const char *now, const char *broken);

/* All that was moved, in one line: counts and sums. Two worlds that were worked the
 * same way have the same line. Overwritten by the next call. */
const char *world_totals(void);

#endif
