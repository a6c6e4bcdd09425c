/* resource: the table, and the names of keys. */
#include "worker/jobs/resource.h"

#include <inttypes.h>
#include <stdio.h>

const struct resource resources[RESOURCE_KIND_COUNT] = {
    [RESOURCE_USER] = {"user", SQL_POOL_CLAIM_USERS, SQL_POOL_REFUSED_USERS},
    [RESOURCE_SKU] = {"sku", SQL_POOL_CLAIM_STOCK, SQL_POOL_REFUSED_STOCK},
};

size_t resource_key(char buf[RESOURCE_NAME], enum resource_kind kind, int64_t id)
{
    return (size_t)snprintf(buf, RESOURCE_NAME, "%s:%" PRId64, resources[kind].name,
                            id);
}
