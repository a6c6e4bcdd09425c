/* key: the builders. */
#include "worker/key.h"

#include <string.h>

enum { DIGITS = 20 };

/* By hand: a name is built for every row that is worked, and printf takes five times as
 * long. */
static size_t put(char *buf, const char *kind, size_t at, int64_t id)
{
    uint64_t left = id < 0 ? 0 - (uint64_t)id : (uint64_t)id;
    char digits[DIGITS];
    size_t first = DIGITS;

    do {
        digits[--first] = (char)('0' + left % 10);
        left /= 10;
    } while (left > 0);
    if (id < 0)
        digits[--first] = '-';
    memcpy(buf, kind, at);
    memcpy(buf + at, digits + first, DIGITS - first);
    at += DIGITS - first;
    buf[at] = '\0';
    return at;
}

size_t key_user(char buf[KEY_NAME], int64_t user_id)
{
    return put(buf, "user:", strlen("user:"), user_id);
}

size_t key_sku(char buf[KEY_NAME], int64_t sku_id)
{
    return put(buf, "sku:", strlen("sku:"), sku_id);
}
