/* lock_watch: MONITOR on a thread of its own, and what each command may do. */
#include "tests/lib/lock_watch.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

enum { WORDS = 2 * WATCH_ENDLESS + 4 };

#define LAST_WORD "the watch ends"

/* ---- one command ---- */

static bool is_one_of(const char *word, const char *const *list)
{
    while (*list != NULL && strcasecmp(word, *list) != 0)
        list++;
    return *list != NULL;
}

/* SET key value ... PX ms */
static bool has_end(char **words, size_t n)
{
    for (size_t i = 3; i + 1 < n; i++) {
        if (strcasecmp(words[i], "PX") == 0)
            return atoll(words[i + 1]) > 0;
    }
    return false;
}

/* Keys without an end, every second word: the next commands must give them one. */
static const char *await_ends(struct lock_watch *w, char **words, size_t n)
{
    w->is_refusable = strcasecmp(words[0], "MSETNX") == 0;
    w->endless_ct = w->ended_ct = 0;
    for (size_t i = 1; i < n; i += 2) {
        if (w->endless_ct == WATCH_ENDLESS)
            return "more keys without an end than are watched";
        (void)snprintf(w->endless[w->endless_ct++], sizeof w->endless[0], "%s",
                       words[i]);
    }
    return NULL;
}

/* The next command after such keys were made. */
static const char *judge_end(struct lock_watch *w, char **words, size_t n)
{
    const char *key = w->endless[w->ended_ct];
    bool is_of_key = n > 2 && strcmp(words[1], key) == 0;

    if (is_of_key && strncasecmp(words[0], "PEXPIRE", 7) == 0) {
        w->ended_ct++;
        w->set_ct += w->is_refusable ? 1 : 0;
        return atoll(words[2]) > 0 ? NULL : "an end that is none";
    }
    /* refused: none was made, and they are asked for one by one */
    if (is_of_key && w->is_refusable && w->ended_ct == 0 && has_end(words, n)) {
        w->endless_ct = 0;
        w->set_ct++;
        return NULL;
    }
    return "a key without an end came before";
}

/* What could be wrong with it, NULL: nothing. name: the key without the prefix. */
static const char *
judge_key(struct lock_watch *w, char **words, size_t n, const char *name)
{
    static const char *const harmless[] = {"GET",   "MGET",  "PTTL", "EXISTS", "HGET",
                                           "HMGET", "WATCH", "DEL",  "BLPOP",  NULL};
    static const char *const of_records[] = {"HSET", "HINCRBY", "HDEL", NULL};
    static const char *const records[] = {"!fence", "!node", "!amnesia", NULL};

    if (is_one_of(words[0], harmless))
        return NULL;
    if (is_one_of(words[0], of_records))
        return is_one_of(name, records) ? NULL : "a hash that is no record";
    if (strcasecmp(words[0], "SET") == 0) {
        w->set_ct += name[0] != '!' ? 1 : 0;
        return has_end(words, n) ? NULL : "set without an end";
    }
    if (strcasecmp(words[0], "PEXPIRE") == 0 || strcasecmp(words[0], "PEXPIREAT") == 0)
        return n > 2 && atoll(words[2]) > 0 ? NULL : "an end that is none";
    if (strcasecmp(words[0], "LPUSH") == 0 && strncmp(name, "!wake:", 6) == 0)
        return await_ends(w, words, 2);
    if (strcasecmp(words[0], "MSETNX") == 0)
        return await_ends(w, words, n);
    return "a command not known to be harmless";
}

static const char *judge(struct lock_watch *w, char **words, size_t n)
{
    size_t len = strlen(w->prefix);

    if (w->ended_ct < w->endless_ct) /* what follows in the same script */
        return judge_end(w, words, n);
    if (n < 2 || strncmp(words[1], w->prefix, len) != 0)
        return NULL;
    return judge_key(w, words, n, words[1] + len);
}

/* ---- the thread ---- */

/* 1700000000.123456 [0 lua] "SET" "key" "value" ... */
static size_t split(char *line, char **words)
{
    size_t n = 0;
    char *at = strchr(line, ']');

    while (n < WORDS && at != NULL && (at = strchr(at, '"')) != NULL) {
        words[n++] = ++at;
        while (*at != '\0' && *at != '"')
            at += at[0] == '\\' && at[1] != '\0' ? 2 : 1;
        if (*at != '\0')
            *at++ = '\0';
    }
    return n;
}

static void *read_all(void *arg)
{
    struct lock_watch *w = arg;
    bool is_over = false;
    void *got;

    while (!is_over && redisGetReply(w->monitor, &got) == REDIS_OK) {
        redisReply *reply = got;
        char *words[WORDS];
        char line[512];
        size_t n;
        const char *wrong;

        (void)snprintf(line, sizeof line, "%s", reply->str);
        n = split(reply->str, words);
        wrong = judge(w, words, n);
        if (wrong != NULL && w->reason[0] == '\0')
            (void)snprintf(w->reason, sizeof w->reason, "%s: %s", wrong, line);
        is_over = n == 2 && strcmp(words[1], LAST_WORD) == 0;
        freeReplyObject(reply);
    }
    return NULL;
}

void lock_watch_start(struct lock_watch *w, const char *url, const char *prefix)
{
    redisReply *reply;

    memset(w, 0, sizeof *w);
    (void)snprintf(w->url, sizeof w->url, "%s", url);
    (void)snprintf(w->prefix, sizeof w->prefix, "%s", prefix);
    w->monitor = lock_raw_connection(url);
    reply = redisCommand(w->monitor, "MONITOR");
    assert_string_equal(reply->str, "OK");
    freeReplyObject(reply);
    assert_int_equal(pthread_create(&w->thread, NULL, read_all, w), 0);
}

/* Only the records may stay for ever: they are hashes. */
static void check_ends(const struct lock_watch *w, redisContext *raw)
{
    redisReply *keys = redisCommand(raw, "KEYS %s*", w->prefix);

    for (size_t i = 0; i < keys->elements; i++) {
        redisReply *left = redisCommand(raw, "PTTL %s", keys->element[i]->str);
        redisReply *type = redisCommand(raw, "TYPE %s", keys->element[i]->str);

        if (left->integer == -1 && strcmp(type->str, "hash") != 0)
            fail_msg("%s has no end", keys->element[i]->str);
        freeReplyObject(left);
        freeReplyObject(type);
    }
    freeReplyObject(keys);
}

void lock_watch_stop(struct lock_watch *w, unsigned least)
{
    redisContext *raw = lock_raw_connection(w->url);

    freeReplyObject(redisCommand(raw, "ECHO %s", LAST_WORD));
    (void)pthread_join(w->thread, NULL);
    check_ends(w, raw);
    redisFree(raw);
    redisFree(w->monitor);
    if (w->reason[0] != '\0')
        fail_msg("%s", w->reason);
    assert_true(w->set_ct >= least);
}
