/* list: who holds what, and the operator's way to end it. */
#include <ctype.h>
#include <hiredis/hiredis.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "common/lock/internal.h"

enum { PATTERN = 2 * LL_PREFIX_MAX + 2, HOLDER = 48 };

static int refuse_quorum(struct ll_client *c)
{
    if (c->node_ct > 1)
        return ll_fail(c, LL_E_INVAL,
                       "a quorum is listed and released node by node: connect to one");
    return LL_OK;
}

/* The prefix as it stands, whatever characters of a pattern it contains. */
static void write_pattern(const struct ll_client *c, char *pattern)
{
    size_t at = 0;

    for (size_t i = 0; i < c->prefix_len; i++) {
        if (strchr("*?[]\\^-", c->prefix[i]) != NULL)
            pattern[at++] = '\\';
        pattern[at++] = c->prefix[i];
    }
    pattern[at++] = '*';
    pattern[at] = '\0';
}

static bool is_lock(const struct ll_client *c, const redisReply *name)
{
    return name->str != NULL && name->len > c->prefix_len &&
           memcmp(name->str, c->prefix, c->prefix_len) == 0 &&
           name->str[c->prefix_len] != '!';
}

/* ---- one key ---- */

/* Takes "nonce|token" apart; 0: not a value of ours. */
static int64_t token_of(const redisReply *value)
{
    const char *text = value->str;
    char *rest;
    long long token;

    if (strspn(text, "0123456789abcdef") != LL_NONCE_HEX || text[LL_NONCE_HEX] != '|')
        return 0;
    token = strtoll(text + LL_NONCE_HEX + 1, &rest, 10);
    return *rest == '\0' && isdigit((unsigned char)rest[-1]) && token > 0 ? token : 0;
}

static void write_holder(char *holder, const redisReply *value, int64_t token)
{
    size_t most = token > 0 ? LL_NONCE_HEX : HOLDER - 4;
    size_t n = value->len < most ? value->len : most;

    for (size_t i = 0; i < n; i++)
        holder[i] = value->str[i] >= ' ' && value->str[i] <= '~' ? value->str[i] : '?';
    (void)strcpy(holder + n, token == 0 && value->len > n ? "..." : "");
}

/* Tells of a key by the answers to GET and PTTL; one that has gone since is left out,
 * one of another type is told. */
static void tell(struct ll_client *c,
                 const redisReply *name,
                 const redisReply *value,
                 const redisReply *left,
                 ll_held_fn fn,
                 void *arg)
{
    struct ll_held held = {.name = name->str + c->prefix_len, .left_ms = left->integer};
    char holder[HOLDER] = "(not a string)";

    if (left->integer == -2 || value->type == REDIS_REPLY_NIL)
        return;
    if (value->type == REDIS_REPLY_STRING) {
        held.token = token_of(value);
        write_holder(holder, value, held.token);
    }
    held.holder = holder;
    fn(&held, arg);
}

/* ---- one step ---- */

static void add_key(struct ll_pipe *p, const char *command, const redisReply *name)
{
    const char *argv[] = {command, name->str};
    const size_t lens[] = {strlen(command), name->len};

    ll_pipe_add(p, 2, argv, lens);
}

/* GET and PTTL of every lock among the names, in one round trip. GET, since MGET tells
 * of no key that it is of another type. */
static int
tell_all(struct ll_client *c, const redisReply *names, ll_held_fn fn, void *arg)
{
    struct ll_pipe pipe = {0};
    size_t at = 0;
    int code = LL_OK;

    for (size_t i = 0; i < names->elements; i++) {
        if (!is_lock(c, names->element[i]))
            continue;
        add_key(&pipe, "GET", names->element[i]);
        add_key(&pipe, "PTTL", names->element[i]);
    }
    if (pipe.n > 0)
        code = ll_pipe_run(c, &c->nodes[0], &pipe, ll_now_ms() + c->reply_ms);
    for (size_t i = 0; code == LL_OK && at < pipe.reply_ct; i++) {
        if (!is_lock(c, names->element[i]))
            continue;
        tell(c, names->element[i], pipe.replies[at], pipe.replies[at + 1], fn, arg);
        at += 2;
    }
    ll_pipe_free(&pipe);
    return code;
}

/* *cursor is "0" again when the scan is through. */
static int
scan_step(struct ll_client *c, const char *pattern, char *cursor, redisReply **names)
{
    redisReply *reply;
    int code =
        ll_words(c, &c->nodes[0], ll_now_ms() + c->reply_ms, &reply, 6,
                 (const char *[]){"SCAN", cursor, "MATCH", pattern, "COUNT", "200"});

    if (code != LL_OK)
        return code;
    *names = reply;
    if (reply->type != REDIS_REPLY_ARRAY || reply->elements != 2 ||
        reply->element[0]->str == NULL || reply->element[0]->len > 20) {
        freeReplyObject(reply);
        return ll_fail(c, LL_E_PROTO, "SCAN answered nonsense");
    }
    (void)strcpy(cursor, reply->element[0]->str);
    return LL_OK;
}

int ll_list(struct ll_client *c, ll_held_fn fn, void *arg)
{
    char pattern[PATTERN];
    char cursor[24] = "0";
    int code = ll_check_owner(c);

    if (code == LL_OK)
        code = refuse_quorum(c);
    if (code == LL_OK)
        code = ll_connect(c);
    if (code != LL_OK)
        return code;
    write_pattern(c, pattern);
    do {
        redisReply *reply;

        code = scan_step(c, pattern, cursor, &reply);
        if (code == LL_OK) {
            code = tell_all(c, reply->element[1], fn, arg);
            freeReplyObject(reply);
        }
    } while (code == LL_OK && strcmp(cursor, "0") != 0);
    return code == LL_E_UNCERTAIN ? LL_E_UNAVAILABLE : code; /* nothing was changed */
}

/* ---- force ---- */

int ll_force_release(struct ll_client *c, const char *name)
{
    char key[LL_PREFIX_MAX + LL_KEY_MAX + 1];
    bool asked_before = false;
    redisReply *reply;
    int code = ll_check_owner(c);

    if (code == LL_OK)
        code = refuse_quorum(c);
    if (code != LL_OK)
        return code;
    if (name[0] == '\0' || name[0] == '!' || strlen(name) > LL_KEY_MAX)
        return ll_fail(c, LL_E_INVAL, "a key is 1 to %d bytes, not starting with !",
                       LL_KEY_MAX);
    (void)snprintf(key, sizeof key, "%s%s", c->prefix, name);
    for (int attempt = 0; attempt < 2; attempt++) {
        code = ll_connect(c);
        if (code == LL_OK)
            code = ll_words(c, &c->nodes[0], ll_now_ms() + c->reply_ms, &reply, 2,
                            (const char *[]){"DEL", key});
        if (code != LL_E_UNCERTAIN && code != LL_E_UNAVAILABLE)
            break;
        asked_before = asked_before || code == LL_E_UNCERTAIN;
    }
    if (code == LL_E_UNAVAILABLE && asked_before)
        return LL_E_UNCERTAIN;
    if (code != LL_OK)
        return code;
    code = reply->integer > 0 || asked_before ? LL_OK : LL_GONE;
    freeReplyObject(reply);
    return code;
}
