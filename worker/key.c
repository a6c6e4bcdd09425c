/* key: the builders. */
#include "worker/key.h"

#include <inttypes.h>
#include <stdio.h>

size_t key_user(char *buf, size_t size, int64_t user_id)
{
    return (size_t)snprintf(buf, size, "user:%" PRId64, user_id);
}

size_t key_sku(char *buf, size_t size, int64_t sku_id)
{
    return (size_t)snprintf(buf, size, "sku:%" PRId64, sku_id);
}
