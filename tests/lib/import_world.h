/* import_world: files to import, and what the database says of them afterwards. For the
 * tests of import. */
#ifndef LEDGERLOCK_IMPORT_WORLD_H
#define LEDGERLOCK_IMPORT_WORLD_H

#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "tests/lib/fixture.h"

#define ORDERS "order_ref,customer_ref,sku,quantity,unit_price,placed_at\n"
#define SUBSCRIPTIONS "customer_ref,plan,amount,unit,every,anchor_at\n"
#define STOCK "sku,quantity,unit_price\n"
#define THREE_SKUS STOCK "A,10,2.50\nB,5,1.00\n\"C, large\",0,99.99\n"
#define L "ledgerlock."

static struct fixture f;
static struct fixture_output o;
static char orders[128], subscriptions[128], stock[128], rejects[140];

static inline int opened(void **state)
{
    (void)state;
    fixture_open_migrated(&f);
    fixture_file(stock, sizeof stock, THREE_SKUS, 0600);
    orders[0] = subscriptions[0] = '\0';
    (void)snprintf(rejects, sizeof rejects, "%s.rejects", stock);
    return 0;
}

static inline int done(void **state)
{
    (void)state;
    (void)unlink(stock);
    (void)unlink(rejects);
    (void)unlink(orders);
    (void)unlink(subscriptions);
    fixture_close(&f);
    return 0;
}

static inline void write_file(char path[128], const char *text)
{
    (void)unlink(path);
    fixture_file(path, 128, text, 0600);
}

static inline int import_orders(const char *text)
{
    write_file(orders, text);
    return fixture_run(&f, &o, "import", "--stock", stock, "--orders", orders, NULL);
}

static inline int import_subscriptions(const char *text)
{
    write_file(subscriptions, text);
    return fixture_run(&f, &o, "import", "--subscriptions", subscriptions, NULL);
}

static inline void assert_query(const char *sql, int64_t expected)
{
    assert_int_equal(fixture_query_int8(f.url, sql), expected);
}

static inline void assert_text(const char *sql, const char *expected)
{
    char got[512];

    fixture_query_text(f.url, sql, got, sizeof got);
    assert_string_equal(got, expected);
}

static inline void assert_empty(void)
{
    assert_query("SELECT (SELECT count(*) FROM " L "users) + (SELECT count(*) FROM " L
                 "stock) + (SELECT count(*) FROM " L
                 "orders) + (SELECT count(*) FROM " L
                 "subscriptions) + (SELECT count(*) FROM " L "transfers)",
                 0);
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, opened, done)

#endif
