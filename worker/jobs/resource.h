/* resource: the kinds of rows that are locked: in Redis by name, in PostgreSQL by their
 * claim, and in this order wherever several kinds are taken. */
#ifndef LEDGERLOCK_RESOURCE_H
#define LEDGERLOCK_RESOURCE_H

#include <stddef.h>
#include <stdint.h>

#include "sql_gen.h"

enum resource_kind { RESOURCE_USER, RESOURCE_SKU, RESOURCE_KIND_COUNT };

enum { RESOURCE_NAME = 32 };

struct resource {
    const char *name; /* "user", as it begins the names of its keys */

    /* $1 token, $2 ids: locks those rows, but none that another session holds or that
     * carries a newer token. One row: transaction id, the ids in their order. */
    const struct sql_text *claim;

    /* $1 token, $2 ids: id, fence and null of those that carry a newer token, highest
     * first; why instead of the null if no batch can ever claim it; the fence is null
     * of one that does not exist. */
    const struct sql_text *refused;
};

extern const struct resource resources[RESOURCE_KIND_COUNT];

/* Writes the name of a key, the same in every program that shares the Redis: "user:42"
 * is the user and with it the wallet, "sku:1001" the stock of a SKU. Returns its
 * length. */
size_t resource_key(char buf[RESOURCE_NAME], enum resource_kind kind, int64_t id);

#endif
