/* pool_redis: commands to the Redis of a pool, by hiredis. */
#include <hiredis/hiredis.h>

#include "tests/lib/pool_world.h"
#include "tests/lib/secrets.h"

static void to_text(const redisReply *r, char *reply, size_t size)
{
    reply[0] = '\0';
    if (r->type == REDIS_REPLY_INTEGER)
        (void)snprintf(reply, size, "%lld", r->integer);
    else if (r->type == REDIS_REPLY_ARRAY)
        (void)snprintf(reply, size, "%zu", (size_t)r->elements);
    else if (r->str != NULL)
        (void)snprintf(reply, size, "%s", r->str);
}

static const char *redis_password;

void pool_redis_password(const char *password)
{
    redis_password = password;
}

const char *pool_redis_secret(void)
{
    return redis_password;
}

void pool_redis_start(struct fixture_redis *r)
{
    fixture_env("LEDGERLOCK_REDIS_PASSWORD_FILE", secrets_of_redis());
    pool_redis_password(SECRET_OF_REDIS);
    fixture_redis_start(r, "--requirepass", SECRET_OF_REDIS, NULL);
}

static redisReply *ask_redis(const char *url, const char *command)
{
    static const struct timeval limit = {2, 0};
    redisContext *c = redisConnectUnixWithTimeout(url + strlen("unix://"), limit);
    char words[256];
    const char *argv[16];
    int argc = 0;
    redisReply *r;

    assert_true(c != NULL && c->err == 0);
    if (redis_password != NULL)
        freeReplyObject(redisCommand(c, "AUTH %s", redis_password));
    (void)snprintf(words, sizeof words, "%s", command);
    for (char *w = strtok(words, " "); w != NULL && argc < 16; w = strtok(NULL, " "))
        argv[argc++] = w;
    r = redisCommandArgv(c, argc, argv, NULL);
    assert_non_null(r);
    redisFree(c);
    return r;
}

void pool_redis(const char *url, char *reply, size_t size, const char *command)
{
    redisReply *r = ask_redis(url, command);

    to_text(r, reply, size);
    freeReplyObject(r);
}
