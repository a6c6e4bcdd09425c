/* names: the keys of a call, prefixed, one after the other. */
#include <inttypes.h>
#include <string.h>

#include "common/lock/internal.h"

static bool is_name(const struct ll_key *key)
{
    return key->len > 0 && key->len <= LL_KEY_MAX && key->name[0] != '!';
}

int ll_store_names(struct ll_lock *l, const struct ll_key *keys, size_t n)
{
    const struct ll_client *c = l->client;
    size_t bytes = 0;
    size_t at = 0;

    if (n == 0 || n > (size_t)INT32_MAX)
        return ll_fail(l->client, LL_E_INVAL, "at least one key");
    for (size_t i = 0; i < n; i++) {
        if (!is_name(&keys[i]))
            return ll_fail(l->client, LL_E_INVAL,
                           "key %zu: 1 to %d bytes, not starting with !", i,
                           LL_KEY_MAX);
        bytes += c->prefix_len + keys[i].len;
    }
    if (ll_lock_reserve(l, n, bytes) != LL_OK)
        return LL_E_NOMEM;
    for (size_t i = 0; i < n; i++) {
        l->offsets[i] = at;
        memcpy(l->names + at, c->prefix, c->prefix_len);
        memcpy(l->names + at + c->prefix_len, keys[i].name, keys[i].len);
        at += c->prefix_len + keys[i].len;
        l->slots[i] = (struct ll_slot){.code = LL_OK};
    }
    l->offsets[n] = at;
    l->n = n;
    return LL_OK;
}

/* FNV-1a. */
static uint64_t hash_of(const char *name, size_t len)
{
    uint64_t hash = UINT64_C(14695981039346656037);

    for (size_t i = 0; i < len; i++)
        hash = (hash ^ (unsigned char)name[i]) * UINT64_C(1099511628211);
    return hash;
}

static bool is_same(const struct ll_lock *l, size_t a, size_t b)
{
    size_t len, other_len;
    const char *name = ll_name(l, a, &len), *other = ll_name(l, b, &other_len);

    return len == other_len && memcmp(name, other, len) == 0;
}

/* A hash table of indices, counted from 1, in the room for the lengths of a command,
 * which is at least twice the number of keys and not yet in use. */
int ll_check_distinct(struct ll_lock *l)
{
    size_t *seen = l->lens;
    size_t size = 2 * l->n;

    memset(seen, 0, size * sizeof *seen);
    for (size_t i = 0; i < l->n; i++) {
        size_t len;
        const char *name = ll_name(l, i, &len);
        size_t at = hash_of(name, len) % size;

        for (; seen[at] != 0; at = (at + 1) % size) {
            if (is_same(l, seen[at] - 1, i))
                return ll_fail(l->client, LL_E_INVAL, "keys %zu and %zu are the same",
                               seen[at] - 1, i);
        }
        seen[at] = i + 1;
    }
    return LL_OK;
}
