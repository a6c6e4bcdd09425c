/* world: all that a test of the program stands on, declared as data:
 *
 *   WORLD(.lease_ms = 2000, .poll_ms = 100, .batch = 5, .work = &small);
 *
 * One migrated database, few words to fill it, to run the pool over it and to ask what
 * became of it; where it is asked for, a Redis of its own, proxies before both servers
 * and the histories of the workers. Anything that does not work fails the test at once.
 */
#ifndef LEDGERLOCK_WORLD_H
#define LEDGERLOCK_WORLD_H

#include "tests/lib/checker.h"
#include "tests/lib/load.h"
#include "tests/lib/pool_world.h"
#include "tests/lib/proxy.h"
#include "tests/lib/runs.h"

struct world {
    const struct world_plan *plan;
    struct fixture f;        /* runs the program as ledgerlock_worker */
    struct fixture through;  /* the same, through the proxies */
    char owner[FIXTURE_URL]; /* for the statements of a test */
    struct fixture_redis redis;
    struct proxy to_postgres, to_redis;
    struct fixture_child pool; /* is ended with the world */
    struct pool_work work;     /* that was put in */
    struct load load;
    struct checker checker;
    /* For fault.h: */
    int lease_ms, bound_ms;      /* of the checker: lease and recovery */
    struct fixture_child others; /* of the job that the pool does not work, or any */
    bool is_one;
    pid_t clients;       /* of the load; 0: they do not run */
    bool has_no_clients; /* until fault_recovers */
    bool is_slow;        /* fault_slow_down was called */
    bool in_parts;       /* batches were worked row by row, each with one token */
};

extern struct world world;

struct world_plan {
    const char *role;             /* that runs the program; NULL: ledgerlock_worker */
    int lease_ms, poll_ms, batch; /* of its pools; 0: as they are shipped */
    const struct pool_work *work; /* is there from the start */
    const struct load_size *load; /* likewise */
    bool any;           /* all workers of orders serve at once, in any order */
    bool points;        /* the program is the test build */
    bool checker;       /* and writes histories */
    bool redis;         /* a Redis of its own, which asks for the password */
    bool proxies;       /* world.through leads through them */
    void (*also)(void); /* what the test adds, when all is there */
    void (*undo)(void); /* undoes that, when the pool is gone */
};

/* The world of all cases of a file; GROUP_OF_WORLD may be given other parts. */
#define WORLD(...)                                                                     \
    static const struct world_plan world_plan = {__VA_ARGS__};                         \
    GROUP(.plan = &world_plan, GROUP_OF_WORLD)
#define GROUP_OF_WORLD .open = world_open, .end = world_end, .close = world_close

/* A pool that still runs at the end of a case is told to stop, and must exit with 0. */
void world_end(void);

/* A fresh world as the plan of the file says, or as this one says; and its end. */
void world_open(void);
void world_open_as(const struct world_plan *plan);
void world_close(void);

/* Puts a load into a world without one; NULL: none. */
void world_fill(const struct load_size *size);

/* How long a pool may take to be at work again after a fault, for the checker. */
enum { WORLD_BOUND_MS = 30000 };

/* Kills a run, if there is one. */
void world_kill(struct fixture_child *child);

/* ---- SQL as the owner, with search_path ledgerlock ----------------------- */

void world_do(const char *fmt, ...) __attribute__((format(printf, 1, 2)));
int64_t world_ask(const char *fmt, ...) __attribute__((format(printf, 1, 2)));

/* The text is overwritten by the next call. */
const char *world_text(const char *fmt, ...) __attribute__((format(printf, 1, 2)));

/* Asserts that the query answers this text. */
void world_expect(const char *expected, const char *sql);

/* Prints what a program that runs has logged; returns the rest of a sentence that
 * begins with "why". A failure's own words are cut after a kilobyte. */
const char *world_show_log(const struct fixture_child *child);

/* Asks as the superuser, who sees every session, until the answer is true. */
void world_wait(const char *fmt, ...) __attribute__((format(printf, 1, 2)));

/* Until a session of this database waits for a row. */
void world_wait_blocked(void);

/* ---- filling ------------------------------------------------------------- */

/* Heads of statements that make many rows: a SELECT of these columns follows. */
#define INTO_USERS "INSERT INTO users (user_id, currency) "
#define INTO_SUBSCRIPTIONS                                                             \
    "INSERT INTO subscriptions (subscription_id, user_id, plan, amount_minor,"         \
    " currency, anchor_at, unit, next_due_at) "
#define INTO_ANY_SUBSCRIPTIONS                                                         \
    "INSERT INTO subscriptions (user_id, plan, amount_minor, currency, anchor_at,"     \
    " unit, next_due_at) "
#define INTO_STOCK                                                                     \
    "INSERT INTO stock (sku_id, sku, initial_qty, on_hand, unit_price_minor, currency) "
#define INTO_ORDERS                                                                    \
    "INSERT INTO orders (order_id, user_id, idempotency_key, request_hash,"            \
    " total_minor, currency, placed_at) "
#define INTO_LINES "INSERT INTO order_lines (order_id, sku_id, unit_price_minor, qty) "

/* A user with a wallet in USD; deposit "1" unless balance is 0. */
void world_user(int64_t user, int64_t balance_minor);
void world_deposit(int64_t user, int64_t number, int64_t amount_minor);

/* A monthly subscription that starts at its anchor ("2024-01-31Z"). */
void world_subscription(int64_t id, int64_t user, int64_t amount, const char *anchor);

void world_sku(int64_t id, const char *sku, int64_t qty, int64_t unit_price_minor);

/* place_order on 1 January 2024 with lines as JSON; returns the order. */
int64_t world_order(int64_t user, const char *key, const char *lines);

/* ---- running ------------------------------------------------------------- */

/* `run --once --now NOW` with one worker of each job; asserts exit 0. */
void world_run(const char *now);

/* The same with so many workers of each job. */
void world_run_pool(const char *workers, const char *now);

/* The first, and world_audit. */
void world_settle(const char *now);

/* `audit --now NOW --lag 0s`, at the clock's time if now is NULL; asserts that every
 * invariant holds, or with a name, that exactly this one is broken. */
void world_audit(const char *now, const char *broken);

/* All that was moved, in one line: counts and sums. Two worlds that were worked the
 * same way have the same line. Overwritten by the next call. */
const char *world_totals(void);

#endif
