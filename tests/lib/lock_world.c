/* lock_world: set-up of the lock tests. */
#include "tests/lib/lock_world.h"

#include <stdlib.h>
#include <string.h>

/* One Redis for the whole file, flushed before every test; a fresh one where a test
 * asks. */
struct fixture_redis lock_server;

static struct ll_client *open_client(const char *url, uint32_t reply_ms, bool plain)
{
    struct ll_options o = {
        .size = sizeof o, .url = url, .reply_ms = reply_ms, .no_scripts = plain};
    struct ll_client *c;
    char why[160] = "";

    if (ll_open(&c, &o, why, sizeof why) != LL_OK)
        fail_msg("ll_open: %s", why);
    return c;
}

struct ll_client *lock_client(const char *url, uint32_t reply_ms)
{
    return open_client(url, reply_ms, false);
}

struct ll_client *lock_plain_client(const char *url, uint32_t reply_ms)
{
    return open_client(url, reply_ms, true);
}

void lock_install_epoch(struct ll_client *c, int64_t epoch)
{
    int64_t current;

    assert_int_equal(ll_install_epoch(c, epoch, &current), LL_OK);
}

redisContext *lock_raw_connection(const char *url)
{
    redisContext *raw = redisConnectUnix(url + strlen("unix://"));

    assert_non_null(raw);
    assert_int_equal(raw->err, 0);
    return raw;
}

static redisReply *raw_reply(struct lock_world *w, const char *command, va_list args)
{
    redisReply *reply = redisvCommand(w->raw, command, args);

    assert_non_null(reply);
    return reply;
}

void lock_raw_do(struct lock_world *w, const char *command, ...)
{
    va_list args;

    va_start(args, command);
    freeReplyObject(raw_reply(w, command, args));
    va_end(args);
}

long long lock_raw_integer(struct lock_world *w, const char *command, ...)
{
    va_list args;
    redisReply *reply;
    long long v;

    va_start(args, command);
    reply = raw_reply(w, command, args);
    va_end(args);
    v = reply->integer;
    freeReplyObject(reply);
    return v;
}

static int open_world(void **state, bool plain)
{
    struct lock_world *w = calloc(1, sizeof *w);

    w->raw = lock_raw_connection(lock_server.url);
    lock_raw_do(w, "FLUSHALL");
    w->a = open_client(lock_server.url, 0, plain);
    w->b = open_client(lock_server.url, 0, plain);
    w->la = ll_new(w->a);
    w->lb = ll_new(w->b);
    lock_install_epoch(w->a, 1);
    *state = w;
    return 0;
}

int lock_open_world(void **state)
{
    return open_world(state, false);
}

int lock_open_plain_world(void **state)
{
    return open_world(state, true);
}

int lock_close_world(void **state)
{
    struct lock_world *w = *state;

    ll_free(w->la);
    ll_free(w->lb);
    ll_close(w->a);
    ll_close(w->b);
    redisFree(w->raw);
    free(w);
    return 0;
}

int lock_start_server(void **state)
{
    (void)state;
    fixture_redis_start(&lock_server, NULL);
    return 0;
}

int lock_start_plain_server(void **state)
{
    (void)state;
    fixture_redis_start(&lock_server, "--user", "default", "on", "nopass", "~*", "&*",
                        "+@all", "-@scripting", NULL);
    return 0;
}

int lock_stop_server(void **state)
{
    (void)state;
    fixture_redis_close(&lock_server);
    return 0;
}
