/* text: commands in the protocol of Redis, and the codes of its answers. hiredis
 * formats every length with sprintf, which took more time than all other work of a
 * worker together; hence this code. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "common/lock/connection.h"

enum { DIGITS = 20, OVERHEAD = DIGITS + 5 };

static bool make_room(struct rlock_text *t, size_t more)
{
    size_t room = t->room == 0 ? 1024 : t->room;
    char *bigger;

    if (t->room - t->size >= more)
        return true;
    while (room - t->size < more)
        room *= 2;
    bigger = t->is_short ? NULL : realloc(t->at, room);
    if (bigger == NULL) {
        t->is_short = true;
        return false;
    }
    t->at = bigger;
    t->room = room;
    return true;
}

/* Writes the digits at the end of the text; returns the place of the first. */
static size_t write_digits(char digits[DIGITS], uint64_t n)
{
    size_t first = DIGITS;

    do {
        digits[--first] = (char)('0' + n % 10);
        n /= 10;
    } while (n > 0);
    return first;
}

static void put_count(struct rlock_text *t, char type, size_t n)
{
    char digits[DIGITS];
    size_t first = write_digits(digits, n);
    char *p = t->at + t->size;

    *p = type;
    memcpy(p + 1, digits + first, DIGITS - first);
    /* NOLINTNEXTLINE(bugprone-not-null-terminated-result): its length is kept */
    memcpy(p + 1 + DIGITS - first, "\r\n", 2);
    t->size += 1 + DIGITS - first + 2;
}

void rlock_put_command(struct rlock_text *t, size_t argc)
{
    if (make_room(t, OVERHEAD))
        put_count(t, '*', argc);
}

void rlock_put(struct rlock_text *t, const char *word, size_t len)
{
    if (!make_room(t, OVERHEAD + len))
        return;
    put_count(t, '$', len);
    memcpy(t->at + t->size, word, len);
    memcpy(t->at + t->size + len, "\r\n", 2);
    t->size += len + 2;
}

void rlock_put_word(struct rlock_text *t, const char *word)
{
    rlock_put(t, word, strlen(word));
}

void rlock_put_number(struct rlock_text *t, int64_t number)
{
    char text[1 + DIGITS], *digits = text + 1;
    bool is_negative = number < 0;
    size_t first =
        write_digits(digits, is_negative ? 0 - (uint64_t)number : (uint64_t)number);

    if (is_negative)
        digits[--first] = '-';
    rlock_put(t, digits + first, DIGITS - first);
}

void rlock_put_words(struct rlock_text *t, const char *const *words)
{
    size_t n = 0;

    while (words[n] != NULL)
        n++;
    rlock_put_command(t, n);
    for (size_t i = 0; i < n; i++)
        rlock_put_word(t, words[i]);
}

void rlock_text_free(struct rlock_text *t)
{
    free(t->at);
    *t = (struct rlock_text){0};
}

/* ---- answers ---- */

int rlock_reply_code(struct rlock_client *c,
                     struct rlock_node *node,
                     const redisReply *reply)
{
    static const struct {
        const char *part;
        bool is_anywhere; /* errors from inside a script have the word further on */
        int code;
    } table[] = {
        {"READONLY", true, RLOCK_E_READONLY},
        {"UNBLOCKED", false, RLOCK_E_READONLY}, /* WAIT, by a change of roles */
        {"OOM command not allowed", true, RLOCK_E_OOM},
        {"LOADING", false, RLOCK_E_UNAVAILABLE},
        {"BUSY ", false, RLOCK_E_UNAVAILABLE},
        {"MASTERDOWN", false, RLOCK_E_UNAVAILABLE},
        {"MISCONF", true, RLOCK_E_UNAVAILABLE},
        {"NOREPLICAS", true, RLOCK_E_UNAVAILABLE},
        {"NOSCRIPT", false, RLOCK_E_UNAVAILABLE},
        {"CLUSTERDOWN", false, RLOCK_E_UNAVAILABLE},
        {"TRYAGAIN", false, RLOCK_E_UNAVAILABLE},
        {"MOVED ", false, RLOCK_E_UNAVAILABLE},
        {"ASK ", false, RLOCK_E_UNAVAILABLE},
        {"ERR max number of clients", false, RLOCK_E_UNAVAILABLE},
        /* a slot that is moving: the script stopped half-way */
        {"attempted to access a non local key", true, RLOCK_E_UNCERTAIN},
        {"CROSSSLOT", false, RLOCK_E_CLUSTER},
        {"ERR SELECT is not allowed in cluster mode", false, RLOCK_E_CLUSTER},
        {"NOAUTH", false, RLOCK_E_AUTH},
        {"WRONGPASS", false, RLOCK_E_AUTH},
        {"DENIED", false, RLOCK_E_AUTH},
        {"NOPERM", true, RLOCK_E_AUTH},
        {"The user executing the script can't run", true, RLOCK_E_AUTH}, /* Redis 7.0 */
        {"ACL failure", true, RLOCK_E_AUTH}, /* Redis 8, Valkey 8 */
        {"ERR AUTH", false, RLOCK_E_AUTH},
        {"ERR DB index is out of range", false, RLOCK_E_INVAL},
        {"ERR invalid DB index", false, RLOCK_E_INVAL},
    };

    int code = RLOCK_E_PROTO;

    if (reply->type != REDIS_REPLY_ERROR)
        return rlock_fail_at(c, node, code, " gave an answer of the wrong type (%d)",
                             reply->type);
    for (size_t i = 0; i < sizeof table / sizeof table[0]; i++) {
        const char *at = strstr(reply->str, table[i].part);

        if (at != NULL && (table[i].is_anywhere || at == reply->str)) {
            code = table[i].code;
            break;
        }
    }
    (void)rlock_fail_at(c, node, code, ": %s", reply->str);
    if (code == RLOCK_E_READONLY)
        node->is_stale = true; /* it was a primary when we connected: check again */
    return code;
}

bool rlock_is_error(const redisReply *reply, const char *word)
{
    return reply->type == REDIS_REPLY_ERROR &&
           strncmp(reply->str, word, strlen(word)) == 0;
}

bool rlock_cut_id(redisReply *reply, int64_t id)
{
    int64_t said;

    if (reply->type != REDIS_REPLY_ARRAY || reply->elements == 0 ||
        reply->element[0]->type != REDIS_REPLY_STRING ||
        !rlock_reply_number(reply->element[0], &said) || said != id)
        return false;
    freeReplyObject(reply->element[0]);
    reply->elements--;
    /* NOLINTNEXTLINE(bugprone-sizeof-expression): the array holds pointers */
    memmove(reply->element, reply->element + 1,
            reply->elements * sizeof *reply->element);
    return true;
}

bool rlock_is_late(const redisReply *reply)
{
    return reply->type == REDIS_REPLY_ARRAY && reply->elements == 1 &&
           reply->element[0]->type == REDIS_REPLY_STRING &&
           strcmp(reply->element[0]->str, "late") == 0;
}

/* As text: digits only, maybe after a minus; not too many. */
bool rlock_reply_number(const redisReply *reply, int64_t *number)
{
    const char *digits = reply->str;

    if (reply->type == REDIS_REPLY_INTEGER) {
        *number = reply->integer;
        return true;
    }
    if (reply->type != REDIS_REPLY_STRING && reply->type != REDIS_REPLY_STATUS)
        return false;
    digits += digits[0] == '-' ? 1 : 0;
    *number = strtoll(reply->str, NULL, 10);
    return digits[0] != '\0' && strspn(digits, "0123456789") <= 18 &&
           digits + strspn(digits, "0123456789") == reply->str + reply->len;
}

int64_t rlock_reply_token(const redisReply *reply)
{
    int64_t token;

    if (reply->type != REDIS_REPLY_STRING || !rlock_reply_number(reply, &token))
        return 0;
    return token > 0 && token < RLOCK_TOKEN_END ? token : 0;
}
