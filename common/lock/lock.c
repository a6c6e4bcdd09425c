/* lock: the lock object, the names of its keys, and its questions without I/O. */
#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "common/lock/internal.h"

/* A shorter one would be over when it is granted: see rlock_deadline. */
enum { LEASE_LEAST_MS = 3 };

struct rlock *rlock_new(struct rlock_client *c)
{
    struct rlock *l = calloc(1, sizeof *l);

    if (l != NULL)
        l->client = c;
    return l;
}

void rlock_set_nonce_copy(struct rlock *l, char *copy)
{
    l->nonce_copy = copy;
}

/* The end of the values of its keys: "|=text". */
int rlock_set_text(struct rlock *l, const char *text)
{
    char *copy = NULL;
    size_t len = text != NULL ? strlen(text) : 0;

    for (size_t i = 0; i < len; i++) {
        if (text[i] == '|' || (unsigned char)text[i] < ' ' || i == RLOCK_TEXT_MAX)
            return rlock_fail(
                l->client, RLOCK_E_INVAL,
                "a text has up to %d bytes, no | and no control character",
                RLOCK_TEXT_MAX);
    }
    if (l->granted > 0 && !l->released)
        return rlock_fail(l->client, RLOCK_E_INVAL, "the lock is held");
    if (len > 0) {
        copy = malloc(len + 3);
        if (copy == NULL)
            return rlock_fail_as(l->client, RLOCK_E_NOMEM);
        (void)snprintf(copy, len + 3, "|=%s", text);
    }
    free(l->text);
    l->text = copy;
    return RLOCK_OK;
}

const char *rlock_text_of(const struct rlock *l)
{
    return l->text != NULL ? l->text : "";
}

void rlock_put_value(struct rlock_text *t, const struct rlock *l, int64_t token)
{
    char value[RLOCK_NONCE_SIZE + RLOCK_TEXT_MAX + 24];

    (void)snprintf(value, sizeof value, "%s%" PRId64 "%s", l->mark, token,
                   rlock_text_of(l));
    rlock_put_word(t, value);
}

void rlock_clear(struct rlock *l)
{
    l->n = l->granted = 0;
    l->token = 0;
    l->released = l->releasing = l->uncertain = false;
    l->lost = l->is_taking = false;
    l->release_code = RLOCK_OK;
}

int rlock_new_nonce(struct rlock *l)
{
    static const char hex[] = "0123456789abcdef";
    unsigned char raw[RLOCK_NONCE_HEX / 2];

    if (!rlock_random(raw, sizeof raw))
        return rlock_fail(l->client, RLOCK_E_UNAVAILABLE, "no random bytes: %s",
                          strerror(errno));
    for (size_t i = 0; i < RLOCK_NONCE_HEX; i++)
        l->nonce[i] = hex[i % 2 == 0 ? raw[i / 2] >> 4 : raw[i / 2] & 15];
    memcpy(l->mark, l->nonce, RLOCK_NONCE_HEX);
    memcpy(l->mark + RLOCK_NONCE_HEX, "|", 2);
    if (l->nonce_copy != NULL)
        memcpy(l->nonce_copy, l->nonce, sizeof l->nonce);
    return RLOCK_OK;
}

/* ---- names ---- */

void rlock_free_names(struct rlock *l)
{
    free(l->names);
    free(l->offsets);
    free(l->table);
    free(l->slots);
}

void rlock_free_memory(struct rlock *l)
{
    rlock_free_names(l);
    free(l->text);
    free(l);
}

static bool make_room(struct rlock *l, size_t n, size_t name_bytes)
{
    rlock_free_names(l);
    l->names = malloc(name_bytes);
    l->offsets = calloc(n + 1, sizeof *l->offsets);
    l->table = calloc(2 * n, sizeof *l->table);
    l->slots = calloc(n, sizeof *l->slots);
    return l->names != NULL && l->offsets != NULL && l->table != NULL &&
           l->slots != NULL;
}

const char *rlock_name(const struct rlock *l, size_t i, size_t *len)
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
static int check_distinct(struct rlock *l)
{
    size_t size = 2 * l->n;

    for (size_t i = 0; i < l->n; i++) {
        size_t len, other_len;
        const char *name = rlock_name(l, i, &len), *other;
        size_t at = hash_of(name, len) % size;

        for (; l->table[at] != 0; at = (at + 1) % size) {
            other = rlock_name(l, l->table[at] - 1, &other_len);
            if (len == other_len && memcmp(name, other, len) == 0)
                return rlock_fail(l->client, RLOCK_E_INVAL,
                                  "keys %zu and %zu are the same", l->table[at] - 1, i);
        }
        l->table[at] = i + 1;
    }
    return RLOCK_OK;
}

int rlock_store_names(struct rlock *l, const struct rlock_key *keys, size_t n)
{
    const struct rlock_client *c = l->client;
    size_t bytes = 0, at = 0;

    if (n == 0 || n > RLOCK_KEYS_MAX)
        return rlock_fail(l->client, RLOCK_E_INVAL, "1 to %d keys", RLOCK_KEYS_MAX);
    for (size_t i = 0; i < n; i++) {
        if (keys[i].len == 0 || keys[i].len > RLOCK_KEY_MAX || keys[i].name[0] == '!')
            return rlock_fail(l->client, RLOCK_E_INVAL,
                              "key %zu: 1 to %d bytes, not starting with !", i,
                              RLOCK_KEY_MAX);
        bytes += c->prefix_len + keys[i].len;
    }
    if (!make_room(l, n, bytes))
        return rlock_fail_as(l->client, RLOCK_E_NOMEM);
    for (size_t i = 0; i < n; i++) {
        l->offsets[i] = at;
        memcpy(l->names + at, c->prefix, c->prefix_len);
        memcpy(l->names + at + c->prefix_len, keys[i].name, keys[i].len);
        at += c->prefix_len + keys[i].len;
        l->slots[i].code = RLOCK_BUSY;
    }
    l->offsets[n] = at;
    l->n = n;
    return check_distinct(l);
}

void rlock_put_name(struct rlock_text *t, const struct rlock *l, size_t i)
{
    rlock_put(t, l->names + l->offsets[i], l->offsets[i + 1] - l->offsets[i]);
}

size_t rlock_wake_name(const struct rlock *l, size_t i, char name[RLOCK_WAKE_NAME])
{
    const struct rlock_client *c = l->client;
    static const char of[] = "!wake:";
    size_t at = c->prefix_len + sizeof of - 1, len;
    const char *key = rlock_name(l, i, &len);

    memcpy(name, c->prefix, c->prefix_len);
    memcpy(name + c->prefix_len, of, sizeof of - 1);
    memcpy(name + at, key + c->prefix_len, len - c->prefix_len);
    return at + len - c->prefix_len;
}

void rlock_put_span(struct rlock_text *t, const struct rlock_span *s)
{
    for (size_t i = 0; i < s->n; i++)
        rlock_put_name(t, s->l, rlock_span_key(s, i));
}

/* ---- questions without I/O ---- */

int rlock_check_op(const struct rlock *l)
{
    return l->op == NULL ? RLOCK_OK
                         : rlock_fail(l->client, RLOCK_E_INVAL,
                                      "a call of the loop is under way for this lock");
}

int rlock_check_lease(const struct rlock *l, uint32_t lease_ms)
{
    const struct rlock_client *c = l->client;

    if (lease_ms < LEASE_LEAST_MS)
        return rlock_fail(
            l->client, RLOCK_E_INVAL,
            "a lease is at least 3 ms, since 2 ms of it are not counted on");
    if (c->kind == RLOCK_QUORUM && lease_ms > c->o.max_lease_ms)
        return rlock_fail(l->client, RLOCK_E_INVAL,
                          "the lease is longer than max_lease_ms");
    return RLOCK_OK;
}

int rlock_check_mode(const struct rlock *l, int mode, size_t n)
{
    if (mode < RLOCK_ALL || mode > RLOCK_MODES_END)
        return rlock_fail(l->client, RLOCK_E_INVAL, "there is no mode %d", mode);
    if (mode >= RLOCK_ONE && rlock_wanted((enum rlock_mode)mode) > n)
        return rlock_fail(l->client, RLOCK_E_INVAL, "%zu of %zu keys cannot be granted",
                          rlock_wanted((enum rlock_mode)mode), n);
    return RLOCK_OK;
}

bool rlock_was_valid(const struct rlock *l)
{
    return !l->lost && rlock_now_ms() < l->deadline_ms;
}

int64_t rlock_deadline(uint32_t lease_ms)
{
    return rlock_now_ms() + lease_ms - (lease_ms / 100 + 2);
}

size_t rlock_next_held(const struct rlock *l, size_t i)
{
    while (i < l->n && !l->slots[i].held)
        i++;
    return i;
}

int rlock_key_code(const struct rlock *l, size_t i)
{
    return i < l->n ? l->slots[i].code : RLOCK_E_INVAL;
}

int64_t rlock_key_busy_ms(const struct rlock *l, size_t i)
{
    return i < l->n ? l->slots[i].busy_ms : 0;
}

size_t rlock_granted(const struct rlock *l)
{
    return l->released ? 0 : l->granted;
}

int64_t rlock_token(const struct rlock *l)
{
    return l->token;
}

int64_t rlock_left_ms(const struct rlock *l)
{
    int64_t left = l->deadline_ms - rlock_now_ms();

    if (l->granted == 0 || l->released || l->releasing || l->is_taking || l->lost ||
        left <= 0 || !rlock_is_owner(l->client))
        return 0;
    return left;
}

bool rlock_valid(const struct rlock *l, uint32_t margin_ms)
{
    return rlock_left_ms(l) > (int64_t)margin_ms;
}
