/* import_world: files to import, and what the database says of them afterwards. For the
 * tests of import. */
#ifndef LEDGERLOCK_IMPORT_WORLD_H
#define LEDGERLOCK_IMPORT_WORLD_H

#include <sys/stat.h>

#include "tests/lib/runs.h"

#define ORDERS "order_ref,customer_ref,sku,quantity,unit_price,placed_at\n"
#define SUBSCRIPTIONS "customer_ref,plan,amount,unit,every,anchor_at\n"
#define STOCK "sku,quantity,unit_price\n"
#define THREE_SKUS STOCK "A,10,2.50\nB,5,1.00\n\"C, large\",0,99.99\n"

static struct fixture f;
static char orders[128], subscriptions[128], stock[128], rejects[140];

static inline void opened(void)
{
    fixture_open_migrated(&f);
    fixture_file(stock, sizeof stock, THREE_SKUS, 0600);
    orders[0] = subscriptions[0] = '\0';
    (void)snprintf(rejects, sizeof rejects, "%s.rejects", stock);
}

static inline void done(void)
{
    (void)unlink(stock);
    (void)unlink(rejects);
    (void)unlink(orders);
    (void)unlink(subscriptions);
    fixture_close(&f);
}

static inline void write_file(char path[128], const char *text)
{
    (void)unlink(path);
    fixture_file(path, 128, text, 0600);
}

static inline void import_orders(int code, const char *text)
{
    write_file(orders, text);
    runs(&f, code, "import --stock %s --orders %s", stock, orders);
}

static inline void import_subscriptions(int code, const char *text)
{
    write_file(subscriptions, text);
    runs(&f, code, "import --subscriptions %s", subscriptions);
}

static inline void assert_text(const char *sql, const char *expected)
{
    char got[512], all[1024];

    (void)snprintf(all, sizeof all, "SET search_path = ledgerlock; %s", sql);
    fixture_query_text(f.url, all, got, sizeof got);
    assert_string_equal(got, expected);
}

static inline void assert_empty(void)
{
    holds(
        &f, 0,
        "SELECT (SELECT count(*) FROM users) + (SELECT count(*) FROM stock) + (SELECT count(*) FROM orders)"
        " + (SELECT count(*) FROM subscriptions) + (SELECT count(*) FROM ledger)");
}

#endif
