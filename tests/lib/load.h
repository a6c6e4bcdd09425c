/* load: an input made in memory, and what must come out of it, computed here and
 * nowhere else: no SQL, none of the program's code. The same load goes into the real
 * tables and into plain ones without constraints.
 *
 * It is made so that the result does not depend on who is first: a user either can pay
 * everything, or has one subscription, no order, and money for a known number of
 * periods; an order wants at most one hot SKU, one piece of it, and everything else is
 * plenty. */
#ifndef LEDGERLOCK_LOAD_H
#define LEDGERLOCK_LOAD_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum { LOAD_LINES = 3 };

/* Ids are index + 1 everywhere. Instants are seconds since 1970, UTC. */
struct load_user {
    int64_t balance_minor;
};

struct load_subscription {
    int64_t user_id; /* 0: this place in the array is empty */
    int64_t amount_minor, anchor_at;
    const char *unit;
    int64_t due;  /* periods that have begun at `now` */
    int64_t paid; /* of these, how many the wallet pays */
};

struct load_sku {
    int64_t qty, price_minor;
    int64_t wanted; /* pieces in all orders */
    bool hot;
};

struct load_order {
    int64_t user_id, total_minor;
    size_t lines;
    int64_t sku_id[LOAD_LINES], qty[LOAD_LINES];
    int64_t hot_sku_id; /* 0: none, so it must be fulfilled */
};

struct load {
    int64_t now;
    struct load_user *users;
    struct load_subscription *subscriptions;
    struct load_sku *skus;
    struct load_order *orders;
    size_t user_ct, subscription_ct, sku_ct, order_ct, hot_ct;
    int64_t periods_due, periods_paid, charged_minor;
    int64_t hot_units; /* pieces of hot SKUs that must be sold */
};

/* Sizes and seed in, everything else out; free with load_free. */
void load_make(
    struct load *l, uint64_t seed, size_t users, size_t subscriptions, size_t orders);
void load_free(struct load *l);

/* `now` as ISO 8601 for --now. */
void load_now(const struct load *l, char *buf, size_t size);

/* Into the program's own tables (migrated and empty), with opening deposits. */
void load_fill_ledgerlock(const struct load *l, const char *url);

/* Into plain tables of a schema `naive`, made here: no key, no constraint, no fence. */
void load_fill_naive(const struct load *l, const char *url);

#endif
