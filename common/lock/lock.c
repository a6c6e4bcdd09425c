/* lock: the lock object, the names of its keys, and its questions without I/O. */
#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>
#include <unistd.h>

#include "common/lock/internal.h"

struct ll_lock *ll_new(struct ll_client *c)
{
    struct ll_lock *l = calloc(1, sizeof *l);

    if (l != NULL)
        l->client = c;
    return l;
}

void ll_set_nonce_copy(struct ll_lock *l, char *copy)
{
    l->nonce_copy = copy;
}

void ll_clear(struct ll_lock *l)
{
    l->n = l->granted = 0;
    l->token = 0;
    l->released = l->releasing = l->uncertain = false;
    l->lost = false;
    l->release_code = LL_OK;
}

int ll_new_nonce(struct ll_lock *l)
{
    uint64_t raw[2]; /* unbuffered: a child after fork never repeats a nonce */

    if (getrandom(raw, sizeof raw, 0) != sizeof raw)
        return ll_fail(l->client, LL_E_UNAVAILABLE, "getrandom: %s", strerror(errno));
    (void)snprintf(l->nonce, sizeof l->nonce, "%016" PRIx64 "%016" PRIx64, raw[0],
                   raw[1]);
    (void)snprintf(l->mark, sizeof l->mark, "%s|", l->nonce);
    if (l->nonce_copy != NULL)
        memcpy(l->nonce_copy, l->nonce, sizeof l->nonce);
    return LL_OK;
}

/* ---- names ---- */

void ll_free_names(struct ll_lock *l)
{
    free(l->names);
    free(l->offsets);
    free(l->table);
    free(l->slots);
}

static bool make_room(struct ll_lock *l, size_t n, size_t name_bytes)
{
    ll_free_names(l);
    l->names = malloc(name_bytes);
    l->offsets = calloc(n + 1, sizeof *l->offsets);
    l->table = calloc(2 * n, sizeof *l->table);
    l->slots = calloc(n, sizeof *l->slots);
    return l->names != NULL && l->offsets != NULL && l->table != NULL &&
           l->slots != NULL;
}

const char *ll_name(const struct ll_lock *l, size_t i, size_t *len)
{
    *len = l->offsets[i + 1] - l->offsets[i];
    return l->names + l->offsets[i];
}

/* FNV-1a. */
static uint64_t hash_of(const char *name, size_t len)
{
    uint64_t hash = UINT64_C(14695981039346656037);

    for (size_t i = 0; i < len; i++)
        hash = (hash ^ (unsigned char)name[i]) * UINT64_C(1099511628211);
    return hash;
}

/* A hash table of indices, counted from 1. */
static int check_distinct(struct ll_lock *l)
{
    size_t size = 2 * l->n;

    for (size_t i = 0; i < l->n; i++) {
        size_t len, other_len;
        const char *name = ll_name(l, i, &len), *other;
        size_t at = hash_of(name, len) % size;

        for (; l->table[at] != 0; at = (at + 1) % size) {
            other = ll_name(l, l->table[at] - 1, &other_len);
            if (len == other_len && memcmp(name, other, len) == 0)
                return ll_fail(l->client, LL_E_INVAL, "keys %zu and %zu are the same",
                               l->table[at] - 1, i);
        }
        l->table[at] = i + 1;
    }
    return LL_OK;
}

int ll_store_names(struct ll_lock *l, const struct ll_key *keys, size_t n)
{
    const struct ll_client *c = l->client;
    size_t bytes = 0, at = 0;

    if (n == 0 || n > LL_KEYS_MAX)
        return ll_fail(l->client, LL_E_INVAL, "1 to %d keys", LL_KEYS_MAX);
    for (size_t i = 0; i < n; i++) {
        if (keys[i].len == 0 || keys[i].len > LL_KEY_MAX || keys[i].name[0] == '!')
            return ll_fail(l->client, LL_E_INVAL,
                           "key %zu: 1 to %d bytes, not starting with !", i,
                           LL_KEY_MAX);
        bytes += c->prefix_len + keys[i].len;
    }
    if (!make_room(l, n, bytes))
        return ll_fail_as(l->client, LL_E_NOMEM);
    for (size_t i = 0; i < n; i++) {
        l->offsets[i] = at;
        memcpy(l->names + at, c->prefix, c->prefix_len);
        memcpy(l->names + at + c->prefix_len, keys[i].name, keys[i].len);
        at += c->prefix_len + keys[i].len;
        l->slots[i].code = LL_BUSY;
    }
    l->offsets[n] = at;
    l->n = n;
    return check_distinct(l);
}

void ll_put_name(struct ll_text *t, const struct ll_lock *l, size_t i)
{
    ll_put(t, l->names + l->offsets[i], l->offsets[i + 1] - l->offsets[i]);
}

void ll_put_span(struct ll_text *t, const struct ll_span *s)
{
    ll_put_word(t, s->l->client->last_key);
    for (size_t i = 0; i < s->n; i++)
        ll_put_name(t, s->l, ll_span_key(s, i));
}

/* ---- questions without I/O ---- */

int ll_check_lease(const struct ll_lock *l, uint32_t lease_ms)
{
    const struct ll_client *c = l->client;

    if (lease_ms == 0)
        return ll_fail(l->client, LL_E_INVAL, "a lease is 1 ms or more");
    if (c->kind == LL_QUORUM && lease_ms > c->o.max_lease_ms)
        return ll_fail(l->client, LL_E_INVAL, "the lease is longer than max_lease_ms");
    return LL_OK;
}

int ll_check_mode(const struct ll_lock *l, int mode)
{
    return mode == LL_ALL || mode == LL_ANY || mode == LL_ONE
               ? LL_OK
               : ll_fail(l->client, LL_E_INVAL, "there is no mode %d", mode);
}

bool ll_was_valid(const struct ll_lock *l)
{
    return !l->lost && ll_now_ms() < l->deadline_ms;
}

int64_t ll_deadline(uint32_t lease_ms)
{
    return ll_now_ms() + lease_ms - (lease_ms / 100 + 2);
}

size_t ll_next_held(const struct ll_lock *l, size_t i)
{
    while (i < l->n && !l->slots[i].held)
        i++;
    return i;
}

int ll_key_code(const struct ll_lock *l, size_t i)
{
    return i < l->n ? l->slots[i].code : LL_E_INVAL;
}

int64_t ll_key_busy_ms(const struct ll_lock *l, size_t i)
{
    return i < l->n ? l->slots[i].busy_ms : 0;
}

size_t ll_granted(const struct ll_lock *l)
{
    return l->released ? 0 : l->granted;
}

int64_t ll_token(const struct ll_lock *l)
{
    return l->token;
}

int64_t ll_left_ms(const struct ll_lock *l)
{
    int64_t left = l->deadline_ms - ll_now_ms();

    if (l->granted == 0 || l->released || l->releasing || l->lost || left <= 0 ||
        l->client->owner != getpid())
        return 0;
    return left;
}

bool ll_valid(const struct ll_lock *l, uint32_t margin_ms)
{
    return ll_left_ms(l) > (int64_t)margin_ms;
}
