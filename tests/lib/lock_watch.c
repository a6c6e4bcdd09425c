/* lock_watch: MONITOR on a thread of its own, and what each command may do. */
#include "tests/lib/lock_watch.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

enum { WORDS = 8 };

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

/* The next command after a key was made without an end. */
static const char *judge_end(struct lock_watch *w, char **words, size_t n)
{
    bool is_end = n > 2 && strcasecmp(words[0], "PEXPIRE") == 0 &&
                  strcmp(words[1], w->endless) == 0 && atoll(words[2]) > 0;

    w->endless[0] = '\0';
    return is_end ? NULL : "a key without an end came before";
}

/* SET key value ... PX ms, or COPY of a key that was set so to one that is not there */
static const char *judge_set(struct lock_watch *w, char **words, size_t n, bool is_lock)
{
    bool is_copy = strcasecmp(words[0], "COPY") == 0;

    w->set_ct += is_lock ? 1 : 0;
    if (is_copy)
        return n == 3 && strcmp(words[1], w->ended) == 0
                   ? NULL
                   : "a copy of a key that may have no end, or over another";
    (void)snprintf(w->ended, sizeof w->ended, "%s", words[1]);
    return has_end(words, n) ? NULL : "set without an end";
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
    if (strcasecmp(words[0], "SET") == 0 || strcasecmp(words[0], "COPY") == 0)
        return judge_set(w, words, n, name[0] != '!');
    if (strcasecmp(words[0], "PEXPIRE") == 0)
        return n > 2 && atoll(words[2]) > 0 ? NULL : "an end that is none";
    if (strcasecmp(words[0], "LPUSH") == 0 && strncmp(name, "!wake:", 6) == 0) {
        (void)snprintf(w->endless, sizeof w->endless, "%s", words[1]);
        return NULL;
    }
    return "a command not known to be harmless";
}

static const char *judge(struct lock_watch *w, char **words, size_t n)
{
    size_t len = strlen(w->prefix);

    if (w->endless[0] != '\0') /* what follows in the same script */
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
