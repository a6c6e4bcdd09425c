/* generator: made-up users, subscriptions, SKUs and orders, all from one number. Row i
 * of each kind depends only on (seed, sizes, now, i), in integers, so the same words
 * give the same rows on every machine, in any order, any number of times. Knows no
 * database.
 *
 * Random numbers: splitmix64 (Steele, Lea, Flood 2014), one stream per kind and row. */
#ifndef LEDGERLOCK_GENERATOR_H
#define LEDGERLOCK_GENERATOR_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "common/base/err.h"

enum { GEN_LINES_MAX = 4 };

struct generator {
    uint64_t seed;
    int64_t user_ct, subscription_ct, sku_ct, order_ct;
    int64_t now;

    /* filled by generator_open: 8 bytes a user and 24 a SKU */
    int64_t *need_minor;  /* per user: cost of all due periods and orders */
    int64_t *demand;      /* per SKU: units wanted by all orders */
    int64_t *price_minor; /* per SKU */
    uint64_t *zipf;       /* per SKU: running sum of weights 1 / rank */
    int64_t period_ct;    /* periods due at now */
};

struct gen_subscription {
    int64_t user_id;
    const char *plan, *unit;
    int64_t amount_minor;
    int64_t anchor_at;
    bool is_cancelled;
    int64_t cancel_at;
    int64_t due_ct; /* periods that start at or before now and before cancel_at */
};

struct gen_sku {
    int64_t qty, price_minor;
};

struct gen_line {
    int64_t sku_id, qty; /* sku_id rises from line to line */
};

struct gen_order {
    int64_t user_id, placed_at, total_minor;
    size_t line_ct;
    struct gen_line lines[GEN_LINES_MAX];
    bool is_sent_twice;
};

/* Reads seed, counts and now from *g and computes the rest by generating every
 * subscription and order once. Close it also after an error. */
MUST_CHECK int generator_open(struct generator *g, struct err *e);
void generator_close(struct generator *g);

/* Row `id`, from 1 to the count. */
int64_t generator_deposit(const struct generator *g,
                          int64_t user_id); /* the opening one */
struct gen_subscription generator_subscription(const struct generator *g, int64_t id);
struct gen_sku generator_sku(const struct generator *g, int64_t id);
struct gen_order generator_order(const struct generator *g, int64_t id);

/* The first SKUs are ordered most; the stock of this many is a tenth of the demand. */
int64_t generator_hot_ct(const struct generator *g);

#endif
