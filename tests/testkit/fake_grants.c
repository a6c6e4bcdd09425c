/* fake_grants: a server that grants every lock that it is asked for. */
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "lua_gen.h"
#include "tests/testkit/fake_inside.h"
#include "tests/testkit/fake_redis.h"

/* Tokens that it makes up are below. */
#define TOKENS (UINT64_C(1) << 50)

/* Two in a row get the same. */
static const char *make_token(struct server *s)
{
    s->is_token_used = !s->is_token_used;
    if (s->o->token != NULL)
        return s->o->token;
    if (s->is_token_used) {
        s->state ^= s->state << 13;
        s->state ^= s->state >> 7;
        s->state ^= s->state << 17;
        (void)snprintf(s->token, sizeof s->token, "%llu",
                       1 + (unsigned long long)(s->state % TOKENS));
    }
    return s->token;
}

void fake_forget(struct server *s, const struct link *by)
{
    for (struct held *h = s->held; h < s->held + HELD; h++)
        h->by = h->by == by ? NULL : h->by;
}

/* Notes a key; whether somebody else holds it. */
static bool note(struct server *s, struct link *by, const char *name)
{
    struct held *empty = NULL;
    bool is_shared = false;

    for (struct held *h = s->held; h < s->held + HELD; h++) {
        if (h->by == NULL)
            empty = h;
        else if (h->by != by && strcmp(h->name, name) == 0)
            is_shared = true;
    }
    if (empty != NULL) {
        empty->by = by;
        (void)snprintf(empty->name, sizeof empty->name, "%s", name);
    }
    return is_shared;
}

/* EVALSHA sha n last key... */
static void
grant(struct server *s, struct link *by, const redisReply *words, char *answer)
{
    size_t keys = strtoul(words->element[2]->str, NULL, 10);
    const char *token = make_token(s);
    bool is_shared = false;

    fake_forget(s, by);
    for (size_t i = 4; i < 3 + keys; i++)
        is_shared = note(s, by, words->element[i]->str) || is_shared;
    atomic_fetch_add(&s->shared->grants, 1);
    atomic_fetch_add(&s->shared->shared_grants, is_shared ? 1 : 0);
    (void)snprintf(answer, ANSWER, "*3\r\n" FAKE_ID "$2\r\nok\r\n$%zu\r\n%s\r\n",
                   strlen(token), token);
}

/* One '1' for each key: it was yours all the time. */
static void say_yours(size_t keys, char *answer)
{
    int head = snprintf(answer, ANSWER, "*2\r\n" FAKE_ID "$%zu\r\n", keys);

    memset(answer + head, '1', keys);
    (void)strcpy(answer + (size_t)head + keys, "\r\n");
}

static void
script(struct server *s, struct link *by, const redisReply *words, char *answer)
{
    const char *sha1 = words->element[1]->str;
    size_t keys = strtoul(words->element[2]->str, NULL, 10);

    if (strcmp(sha1, lua_texts[LUA_ACQUIRE].sha1) == 0) {
        grant(s, by, words, answer);
    } else if (strcmp(sha1, lua_texts[LUA_RELEASE].sha1) == 0) {
        fake_forget(s, by);
        say_yours(strtoul(words->element[words->elements - 2]->str, NULL, 10), answer);
    } else if (strcmp(sha1, lua_texts[LUA_RAISE].sha1) == 0) {
        say_yours(keys - 1, answer); /* beside the last token's */
    } else {
        (void)snprintf(answer, ANSWER, "-ERR no answer to script %s\r\n", sha1);
    }
}

/* Clients without our scripts send these commands for a lock. */
void fake_grant(struct server *s,
                struct link *by,
                const redisReply *words,
                char *answer)
{
    static const char *const numbers[] = {"SETNX", "PEXPIRE", "DEL", "EVAL"};
    const char *word = words->element[0]->str;

    if (strcmp(word, "EVALSHA") == 0)
        script(s, by, words, answer);
    else if (strcmp(word, "EXEC") == 0)
        (void)strcpy(answer, "*1\r\n:1\r\n");
    else if (strcmp(word, "GET") != 0) /* SET, WATCH, MULTI */
        (void)strcpy(answer, "+OK\r\n");
    for (size_t i = 0; i < sizeof numbers / sizeof numbers[0]; i++) {
        if (strcmp(word, numbers[i]) == 0)
            (void)strcpy(answer, ":1\r\n");
    }
}
