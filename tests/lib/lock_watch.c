/* lock_watch: MONITOR on a thread of its own, and what each command may do. */
#include "tests/lib/lock_watch.h"

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
    bool is_same = n > 2 && strcmp(words[1], w->without_end) == 0;
    bool is_end =
        is_same && strcasecmp(words[0], "PEXPIRE") == 0 && atoll(words[2]) > 0;

    w->without_end[0] = '\0';
    return is_end ? NULL : "a key without an end came before";
}

/* SET key value ... PX ms, or COPY of a key that was set so to one that is not there */
static const char *judge_set(struct lock_watch *w, char **words, size_t n, bool is_lock)
{
    bool is_copy = strcasecmp(words[0], "COPY") == 0;

    if (n > 4 && strcasecmp(words[n - 1], "KEEPTTL") == 0)
        return strcasecmp(words[3], "XX") == 0 ? NULL : "an end kept that may be none";
    w->set_ct += is_lock ? 1 : 0;
    if (is_copy)
        return n == 3 && strcmp(words[1], w->ended) == 0
                   ? NULL
                   : "a copy of a key that may have no end, or over another";
    (void)snprintf(w->ended, sizeof w->ended, "%s", words[1]);
    return has_end(words, n) ? NULL : "set without an end";
}

/* The fault of a command; NULL: it has none. name: the key without the prefix. */
static const char *
judge_key(struct lock_watch *w, char **words, size_t n, const char *name)
{
    static const char *const harmless[] = {"GET", "MGET",  "PTTL", "EXISTS",
                                           "DEL", "BLPOP", NULL};

    if (is_one_of(words[0], harmless))
        return NULL;
    if (lock_may_stay(name))
        return NULL;
    if (strcasecmp(words[0], "SET") == 0 || strcasecmp(words[0], "COPY") == 0)
        return judge_set(w, words, n, name[0] != '!');
    if (strcasecmp(words[0], "PEXPIRE") == 0)
        return n > 2 && atoll(words[2]) > 0 ? NULL : "an end that is none";
    if (strcasecmp(words[0], "LPUSH") == 0 && strncmp(name, "!wake:", 6) == 0) {
        (void)snprintf(w->without_end, sizeof w->without_end, "%s", words[1]);
        return NULL;
    }
    return "a command not known to be harmless";
}

/* Scripts that touch only the keys that they are called with run on servers that lock
 * those keys, and in a slot that moves. */
static bool is_declared(const struct lock_watch *w, char **words, size_t n)
{
    static const char *const of_keys[] = {"MGET", "DEL", "EXISTS", NULL};
    size_t keys = is_one_of(words[0], of_keys)        ? n - 1
                  : strcasecmp(words[0], "COPY") == 0 ? 2
                                                      : 1;
    char key[128];

    for (size_t i = 1; i <= keys && i < n; i++) {
        (void)snprintf(key, sizeof key, "\"%s\"", words[i]);
        if (w->declared == NULL || strstr(w->declared, key) == NULL)
            return false;
    }
    return true;
}

static const char *judge(struct lock_watch *w, char **words, size_t n, bool is_inside)
{
    size_t len = strlen(w->prefix);

    if (is_inside && n > 1 && !is_declared(w, words, n))
        return "a key that its script has not declared";

    if (w->without_end[0] != '\0') /* what follows in the same script */
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

static void note_call(struct lock_watch *w, const char *line)
{
    if (strstr(line, "] \"EVAL") == NULL)
        return;
    free(w->declared);
    w->declared = strdup(line);
    assert_non_null(w->declared);
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
        note_call(w, reply->str);
        n = split(reply->str, words);
        wrong = judge(w, words, n, strstr(line, " lua] ") != NULL);
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

void lock_watch_stop(struct lock_watch *w, unsigned least)
{
    redisContext *raw = lock_raw_connection(w->url);

    freeReplyObject(redisCommand(raw, "ECHO %s", LAST_WORD));
    (void)pthread_join(w->thread, NULL);
    lock_assert_ends(raw, w->prefix);
    redisFree(raw);
    redisFree(w->monitor);
    free(w->declared);
    w->declared = NULL;
    if (w->reason[0] != '\0')
        fail_msg("%s", w->reason);
    assert_true(w->set_ct >= least);
}
