/* order_model: a shop is a function of its seed, so it is made once to be planted and
 * once more to be served. */
#include "tests/lib/order_model.h"

#include <inttypes.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>

#include "tests/lib/world.h"

enum { SKUS = 4, USERS = 3, ORDERS = 24, PRICES = 2, BUCKETS = 64 };

struct shop {
    uint32_t bucket;
    int64_t on_hand[SKUS];
    int64_t balance[USERS];
    size_t n;

    struct {
        size_t user;
        int64_t qty[SKUS][PRICES]; /* 0: no such line */
        int64_t total;
    } orders[ORDERS];
};

static char sql[1 << 20];
static size_t sql_size;

static int64_t below(uint32_t *random, uint32_t n)
{
    *random = *random * 1664525u + 1013904223u;
    return (int64_t)((*random >> 8) % n);
}

/* Each SKU has two prices, 0 to 3 and one more; many orders are free of charge. */
static int64_t price_of(size_t sku, size_t price)
{
    return (int64_t)(sku + price);
}

static void make_order(struct shop *s, size_t i, uint32_t *random)
{
    int64_t lines = 1 + below(random, 3);

    s->orders[i].user = (size_t)below(random, USERS);
    for (int64_t l = 0; l < lines; l++) {
        size_t sku = (size_t)below(random, SKUS), price = (size_t)below(random, PRICES);
        int64_t qty = 1 + below(random, 4);

        s->orders[i].qty[sku][price] += qty;
        s->orders[i].total += qty * price_of(sku, price);
    }
}

static void make_shop(struct shop *s, uint32_t bucket, uint32_t seed)
{
    uint32_t random = seed * 2654435761u;

    memset(s, 0, sizeof *s);
    s->bucket = bucket;
    for (size_t i = 0; i < SKUS; i++)
        s->on_hand[i] = below(&random, 16);
    for (size_t i = 0; i < USERS; i++)
        s->balance[i] = below(&random, 70);
    s->n = 1 + (size_t)below(&random, ORDERS);
    for (size_t i = 0; i < s->n; i++)
        make_order(s, i, &random);
}

/* Ids keep the shops apart and every SKU of one shop in its bucket. */
static int64_t sku_id(const struct shop *s, size_t sku)
{
    return (int64_t)(s->bucket + BUCKETS * (sku + 1));
}

static int64_t user_id(const struct shop *s, size_t user)
{
    return (int64_t)(1 + s->bucket * USERS + user);
}

static int64_t order_id(const struct shop *s, size_t order)
{
    return (int64_t)(1 + s->bucket * ORDERS + order);
}

/* ---- planting ------------------------------------------------------------ */

static void add(const char *fmt, ...) __attribute__((format(printf, 1, 2)));

static void add(const char *fmt, ...)
{
    va_list ap;
    int n;

    va_start(ap, fmt);
    n = vsnprintf(sql + sql_size, sizeof sql - sql_size, fmt, ap);
    va_end(ap);
    assert_true(n >= 0 && (size_t)n < sizeof sql - sql_size);
    sql_size += (size_t)n;
}

static void plant_order(const struct shop *s, size_t i)
{
    int64_t id = order_id(s, i);

    add("INSERT INTO orders (order_id, user_id, idempotency_key, request_hash, "
        "total_minor, currency, bucket, placed_at) VALUES (%" PRId64 ", %" PRId64
        ", '%zu', '', %" PRId64 ", 'USD', %" PRIu32 ", '2024-01-01Z');",
        id, user_id(s, s->orders[i].user), i, s->orders[i].total, s->bucket);
    for (size_t sku = 0; sku < SKUS; sku++) {
        for (size_t price = 0; price < PRICES; price++) {
            if (s->orders[i].qty[sku][price] > 0)
                add("INSERT INTO order_lines VALUES (%" PRId64 ", %" PRId64 ", %" PRId64
                    ", %" PRId64 ");",
                    id, sku_id(s, sku), price_of(sku, price),
                    s->orders[i].qty[sku][price]);
        }
    }
}

void order_model_plant(uint32_t bucket, uint32_t seed)
{
    struct shop s;

    make_shop(&s, bucket, seed);
    if (sql_size == 0)
        add("SET search_path = ledgerlock;");
    for (size_t i = 0; i < USERS; i++) {
        add("INSERT INTO users (user_id, currency) VALUES (%" PRId64 ", 'USD');",
            user_id(&s, i));
        if (s.balance[i] > 0)
            add("SELECT deposit(%" PRId64 ", 1, %" PRId64 ");", user_id(&s, i),
                s.balance[i]);
    }
    for (size_t i = 0; i < SKUS; i++)
        add("INSERT INTO stock (sku_id, sku, initial_qty, on_hand, unit_price_minor, "
            "currency) SELECT id, 'S' || id, qty, qty, 1, 'USD' FROM (VALUES (%" PRId64
            ", %" PRId64 ")) AS v (id, qty);",
            sku_id(&s, i), s.on_hand[i]);
    for (size_t i = 0; i < s.n; i++)
        plant_order(&s, i);
}

void order_model_start(void)
{
    fixture_exec(world.owner, sql);
    sql_size = 0;
}

/* ---- serving ------------------------------------------------------------- */

struct verdict {
    bool is_short;
    bool is_poor;
};

static struct verdict serve(struct shop *s, size_t i)
{
    int64_t *balance = &s->balance[s->orders[i].user];
    struct verdict v = {.is_poor = s->orders[i].total > *balance};
    int64_t qty[SKUS];

    for (size_t sku = 0; sku < SKUS; sku++) {
        qty[sku] = s->orders[i].qty[sku][0] + s->orders[i].qty[sku][1];
        v.is_short = v.is_short || qty[sku] > s->on_hand[sku];
    }
    if (v.is_short || v.is_poor)
        return v;
    *balance -= s->orders[i].total;
    for (size_t sku = 0; sku < SKUS; sku++)
        s->on_hand[sku] -= qty[sku];
    return v;
}

/* What the database says of the shop: a letter for each order, then stock and
 * balances. */
static const char *database_says(const struct shop *s)
{
    return world_text(
        "SELECT (SELECT string_agg(CASE WHEN state = 'fulfilled' THEN 'F' WHEN reason = "
        "'out_of_stock' THEN 'S' WHEN reason = 'insufficient_funds' THEN 'P' ELSE '?' "
        "END, '' ORDER BY order_id) FROM orders WHERE bucket = %" PRIu32
        ") || ' ' || (SELECT string_agg(on_hand::text, ' ' ORDER BY sku_id) FROM stock "
        "WHERE sku_id %% 64 = %" PRIu32 ") || ' ' || (SELECT string_agg("
        "balance_minor::text, ' ' ORDER BY user_id) FROM users WHERE user_id BETWEEN "
        "%" PRId64 " AND %" PRId64 ")",
        s->bucket, s->bucket, user_id(s, 0), user_id(s, USERS - 1));
}

void order_model_compare(uint32_t bucket, uint32_t seed)
{
    char expected[256];
    size_t n = 0;
    struct shop s;
    const char *actual;

    make_shop(&s, bucket, seed);
    actual = database_says(&s);
    for (size_t i = 0; i < s.n; i++) {
        struct verdict v = serve(&s, i);
        bool is_true = actual[i] == 'S' ? v.is_short : v.is_poor;

        expected[n++] = !v.is_short && !v.is_poor ? 'F' : is_true ? actual[i] : 'R';
    }
    for (size_t i = 0; i < SKUS + USERS; i++)
        n += (size_t)snprintf(expected + n, sizeof expected - n, " %" PRId64,
                              i < SKUS ? s.on_hand[i] : s.balance[i - SKUS]);
    if (strcmp(actual, expected) != 0)
        fail_msg("seed %" PRIu32 ": expected %s, found %s", seed, expected, actual);
}
