/* shop: a small shop on the database of world.h whose figures are known beforehand, and
 * the troubles that a test adds to it.
 *
 * Users 1 .. 200 have a subscription each (the same number) of which one period is due,
 * and an order each (the same number) of one piece of SKU 68, 132 or 196, and money for
 * all of it. SKU 4 is plenty too, and nobody wants it yet. Users
 * 1 .. 31 share a shard. Rows that a test adds with the `_FIRST` times are pulled
 * before the rest, orders before all others. */
#ifndef LEDGERLOCK_SHOP_H
#define LEDGERLOCK_SHOP_H

#include "tests/lib/world.h"

enum { SHOP_USERS = 200, SHOP_BATCH = 50, SHOP_TROUBLE = 7, SHOP_SKU = 4 };

#define SHOP_NOW "2024-01-01T12:00:00Z"
#define SHOP_FIRST "'2023-12-31T20:00:00Z'"

/* Open and close of a group: world_open, the shop, batches of SHOP_BATCH rows, a lease
 * of two seconds, and the end of shop_hold. */
void shop_open(void);
void shop_close(void);

/* Gives a user so many more subscriptions that are due first, or orders of one piece of
 * a SKU that were placed first. */
void shop_subscribe(int64_t user, int n, int64_t amount_minor);
void shop_order(int64_t user, int64_t sku, int n);

/* A trouble that concerns user SHOP_TROUBLE or SKU SHOP_SKU, and nobody else. */
struct shop_trouble {
    const char *name;
    int subscriptions, orders, periods; /* more of them, due first */
    const char *sql;                    /* as the owner */
    const char *gone;                   /* rows, deleted past the foreign keys */
    const char *hold;                   /* as shop_hold */
    const char *key, *value;            /* set in Redis by somebody */
};

#define SHOP_USER_ROW .hold = "SELECT FROM users WHERE user_id = 7 FOR UPDATE"
#define SHOP_SKU_ROW .hold = "SELECT FROM stock WHERE sku_id = 4 FOR UPDATE"
#define SHOP_USER_KEY(text) .key = "user:7", .value = text
#define SHOP_SKU_KEY .key = "sku:4", .value = "other PX 600000"
#define SHOP_NO_USER .gone = "users WHERE user_id = 7"
#define SHOP_NO_SKU .gone = "stock WHERE sku_id = 4"
#define SHOP_NO_MONEY .sql = "UPDATE users SET balance_minor = 0 WHERE user_id = 7"
#define SHOP_FUTURE                                                                    \
    .sql = "UPDATE orders SET placed_at = '2024-01-02Z' WHERE order_id BETWEEN 100000" \
           " AND 999999; ANALYZE orders"

/* Plants it, its numbers so many times as large; forgets its keys. */
void shop_plant(const struct shop_trouble *t, int times);
void shop_forget(void);

/* A client that runs these statements in a transaction, which stays open. */
void shop_hold(const char *sql);

/* Ends it. */
void shop_let_go(void);

/* Sends "VERB <prefix>KEY REST" to Redis; the answer is overwritten by the next. */
const char *shop_key(const char *verb, const char *key, const char *rest);

/* `run --once` with two workers for each job, at SHOP_NOW; returns the exit code, the
 * outputs are in world.o. */
int shop_run(void);
int shop_run_with(const char *workers);

/* With four for each job, who begin together and serve orders in any order; and
 * asserts that workers of both jobs met (meet.h), which it cannot tell while the test
 * itself holds a key. */
int shop_run_any(void);
int shop_run_met(void);

/* How often a text stands in the log of the latest run; incidents of a kind. */
unsigned shop_log_count(const char *part);
int64_t shop_incidents(const char *kind);

/* Asserts that the subscriptions and orders of all but SHOP_TROUBLE were worked. */
void shop_assert_others_done(void);

#endif
