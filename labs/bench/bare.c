/* bare: loops over hiredis as its README writes them. */
#include "labs/bench/bare.h"

#include <hiredis/hiredis.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/time.h>
#include <time.h>

#include "lua_gen.h"

enum { LEASE_MS = 60000, WORD = 96 };

struct bare {
    redisContext *conn;
};

static int64_t now_us(void)
{
    struct timespec ts;

    (void)clock_gettime(CLOCK_BOOTTIME, &ts);
    return (int64_t)ts.tv_sec * 1000000 + ts.tv_nsec / 1000;
}

struct bare *bare_open(const char *url)
{
    struct bare *b = calloc(1, sizeof *b);
    static const struct timeval limit = {.tv_sec = 2};
    char host[128] = "";
    int port = 6379;

    if (b == NULL)
        return NULL;
    if (strncmp(url, "unix://", 7) == 0)
        b->conn = redisConnectUnixWithTimeout(url + 7, limit);
    else if (sscanf(url, "redis://%127[^:/]:%d", host, &port) >= 1)
        b->conn = redisConnectWithTimeout(host, port, limit);
    if (b->conn == NULL || b->conn->err != 0) {
        bare_close(b);
        return NULL;
    }
    return b;
}

void bare_close(struct bare *b)
{
    if (b == NULL)
        return;
    if (b->conn != NULL)
        redisFree(b->conn);
    free(b);
}

/* Frees the reply; whether it is there and no error. */
static int is_good(redisReply *reply)
{
    int good = reply != NULL && reply->type != REDIS_REPLY_ERROR;

    if (reply != NULL)
        freeReplyObject(reply);
    return good;
}

static int load(struct bare *b, enum lua_id id, char sha[41])
{
    redisReply *reply =
        redisCommand(b->conn, "SCRIPT LOAD %s", (const char *)lua_texts[id].text);

    if (reply == NULL || reply->type != REDIS_REPLY_STRING)
        return is_good(reply) - 1;
    (void)snprintf(sha, 41, "%s", reply->str);
    return is_good(reply) ? 0 : -1;
}

int64_t bare_scripts(struct bare *b, const char *prefix, size_t rounds)
{
    char acquire[41], release[41], last[WORD], key[WORD], list[WORD], nonce[40],
        mark[41];
    const char *take[] = {"EVALSHA", acquire,         "2",   last, key, nonce, "60000",
                          "0",       "9000000000000", "all", "0",  "0", "",    "1"};
    const char *give[] = {"EVALSHA", release, "2", key, list, mark, "", "1", "1"};
    int64_t start;

    if (load(b, LUA_ACQUIRE, acquire) != 0 || load(b, LUA_RELEASE, release) != 0)
        return -1;
    (void)snprintf(last, sizeof last, "%s!last", prefix);
    (void)snprintf(key, sizeof key, "%suser:1", prefix);
    (void)snprintf(list, sizeof list, "%s!wake:user:1", prefix);
    start = now_us();
    for (size_t i = 0; i < rounds; i++) {
        (void)snprintf(nonce, sizeof nonce, "%032zx", i + 1);
        (void)snprintf(mark, sizeof mark, "%s|", nonce);
        if (!is_good(redisCommandArgv(b->conn, 14, take, NULL)) ||
            !is_good(redisCommandArgv(b->conn, 9, give, NULL)))
            return -1;
    }
    return now_us() - start;
}

static int drain(struct bare *b, size_t n)
{
    for (size_t i = 0; i < n; i++) {
        void *reply = NULL;

        if (redisGetReply(b->conn, &reply) != REDIS_OK || !is_good(reply))
            return -1;
    }
    return 0;
}

int64_t bare_pipeline(struct bare *b, const char *prefix, size_t n, size_t rounds)
{
    int64_t start = now_us();

    for (size_t round = 0; round < rounds; round++) {
        for (size_t i = 0; i < n; i++)
            (void)redisAppendCommand(b->conn, "SET %suser:%d %032x NX PX %d", prefix,
                                     (int)i, (unsigned)round, LEASE_MS);
        if (drain(b, n) != 0)
            return -1;
        for (size_t i = 0; i < n; i++)
            (void)redisAppendCommand(b->conn, "DEL %suser:%d", prefix, (int)i);
        if (drain(b, n) != 0)
            return -1;
    }
    return now_us() - start;
}

/* Calls of a command out of INFO commandstats; 0 when it was never called. */
static int64_t calls_of(const char *stats, const char *command)
{
    char name[48];
    const char *at;

    (void)snprintf(name, sizeof name, "cmdstat_%s:calls=", command);
    at = strstr(stats, name);
    return at == NULL ? 0 : strtoll(at + strlen(name), NULL, 10);
}

int64_t bare_commands(struct bare *b)
{
    redisReply *reply = redisCommand(b->conn, "INFO commandstats");
    int64_t n = -1;

    if (reply != NULL && reply->type == REDIS_REPLY_STRING)
        n = calls_of(reply->str, "evalsha") + calls_of(reply->str, "blpop");
    (void)is_good(reply);
    return n;
}

int64_t bare_writes(struct bare *b)
{
    static const char name[] = "rdb_changes_since_last_save:";
    redisReply *reply = redisCommand(b->conn, "INFO persistence");
    const char *at = NULL;
    int64_t n = -1;

    if (reply != NULL && reply->type == REDIS_REPLY_STRING)
        at = strstr(reply->str, name);
    if (at != NULL)
        n = strtoll(at + strlen(name), NULL, 10);
    (void)is_good(reply);
    return n;
}

void bare_forget(struct bare *b, const char *prefix)
{
    (void)is_good(redisCommand(b->conn, "DEL %s!last %s!max_lease", prefix, prefix));
}

void bare_version(struct bare *b, char *buf, size_t size)
{
    redisReply *reply = redisCommand(b->conn, "INFO server");
    const char *at = NULL;

    (void)snprintf(buf, size, "unknown");
    if (reply != NULL && reply->type == REDIS_REPLY_STRING)
        at = strstr(reply->str, "redis_version:");
    if (at != NULL)
        (void)snprintf(buf, size, "%.*s", (int)strcspn(at + 14, "\r\n"), at + 14);
    (void)is_good(reply);
}

/* Seconds with a fraction out of INFO cpu. */
static double seconds_of(const char *info, const char *name)
{
    const char *at = strstr(info, name);

    return at == NULL ? 0 : strtod(at + strlen(name), NULL);
}

int64_t bare_cpu_us(struct bare *b)
{
    redisReply *reply = redisCommand(b->conn, "INFO cpu");
    int64_t us = -1;

    if (reply != NULL && reply->type == REDIS_REPLY_STRING)
        us = (int64_t)((seconds_of(reply->str, "used_cpu_sys:") +
                        seconds_of(reply->str, "used_cpu_user:")) *
                       1e6);
    (void)is_good(reply);
    return us;
}

#define TEXT_OF(token) #token
#define VERSION_TEXT(major, minor, patch)                                              \
    TEXT_OF(major) "." TEXT_OF(minor) "." TEXT_OF(patch)

const char *bare_library(void)
{
    return VERSION_TEXT(HIREDIS_MAJOR, HIREDIS_MINOR, HIREDIS_PATCH);
}

static void read_answer(const redisReply *reply, struct bare_answer *answer)
{
    while (reply->type == REDIS_REPLY_ARRAY && reply->elements > 0)
        reply = reply->element[0];
    answer->kind = BARE_NIL;
    if (reply->type == REDIS_REPLY_INTEGER) {
        answer->kind = BARE_NUMBER;
        answer->number = reply->integer;
    } else if (reply->str != NULL) {
        answer->kind = reply->type == REDIS_REPLY_ERROR ? BARE_ERROR : BARE_TEXT;
        (void)snprintf(answer->text, sizeof answer->text, "%s", reply->str);
    }
}

void bare_ask(struct bare *b,
              const char *const *words,
              size_t n,
              struct bare_answer *answer)
{
    const char *argv[16];
    redisReply *reply = NULL;

    *answer = (struct bare_answer){.kind = BARE_BROKEN};
    if (b == NULL || n > sizeof argv / sizeof argv[0])
        return;
    memcpy(argv, words, n * sizeof argv[0]);
    (void)redisSetTimeout(b->conn, (struct timeval){.tv_sec = 2});
    reply = redisCommandArgv(b->conn, (int)n, argv, NULL);
    if (reply != NULL)
        read_answer(reply, answer);
    (void)is_good(reply);
}
