/* quorum_world: servers, proxies and clients of the quorum tests. */
#include "tests/lib/quorum_world.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

static struct quorum_world shared;

static int64_t now(clockid_t clock, int64_t per_second)
{
    struct timespec ts;

    (void)clock_gettime(clock, &ts);
    return (int64_t)ts.tv_sec * per_second + ts.tv_nsec / (1000000000 / per_second);
}

int64_t quorum_now_us(void)
{
    return now(CLOCK_REALTIME, 1000000);
}

int64_t quorum_now_ms(void)
{
    return now(CLOCK_MONOTONIC, 1000);
}

/* ---- one node ---- */

void quorum_reconnect(struct quorum_world *w, size_t node)
{
    if (w->raw[node] != NULL)
        redisFree(w->raw[node]);
    w->raw[node] = lock_raw_connection(w->servers[node].url);
}

long long quorum_ask(struct quorum_world *w, size_t node, const char *format)
{
    redisReply *reply = redisCommand(w->raw[node], format, w->prefix);
    long long v;

    assert_non_null(reply);
    v = reply->type == REDIS_REPLY_STRING ? strtoll(reply->str, NULL, 10)
        : reply->type == REDIS_REPLY_NIL  ? -1
                                          : reply->integer;
    freeReplyObject(reply);
    return v;
}

static void info_field(const char *info, const char *name, char *value, size_t size)
{
    const char *at = strstr(info, name);

    assert_non_null(at);
    at += strlen(name);
    (void)snprintf(value, size, "%.*s", (int)strcspn(at, "\r\n"), at);
}

void quorum_plant(struct quorum_world *w, size_t node, int64_t counter)
{
    redisReply *info = redisCommand(w->raw[node], "INFO");
    char run_id[48], replid[48];

    info_field(info->str, "run_id:", run_id, sizeof run_id);
    info_field(info->str, "master_replid:", replid, sizeof replid);
    freeReplyObject(info);
    freeReplyObject(redisCommand(w->raw[node], "HSET %s!node ident %s:%s c %lld",
                                 w->prefix, run_id, replid, (long long)counter));
}

int64_t quorum_plant_skew(struct quorum_world *w)
{
    static const int skew[] = {4, 0, 1};
    int64_t base = quorum_now_us() + INT64_C(3600000000);

    for (size_t i = 0; i < 3; i++)
        quorum_plant(w, i, base + skew[i]);
    return base;
}

void quorum_kill(struct quorum_world *w, size_t node)
{
    redisFree(w->raw[node]);
    w->raw[node] = NULL;
    fixture_redis_kill(&w->servers[node]);
}

void quorum_restart(struct quorum_world *w, size_t node)
{
    fixture_redis_start(&w->servers[node], NULL);
    quorum_reconnect(w, node);
}

size_t quorum_copies(struct quorum_world *w, const char *name)
{
    size_t n = 0;

    for (size_t i = 0; i < w->n; i++) {
        redisReply *reply = NULL;

        if (w->raw[i] != NULL)
            reply = redisCommand(w->raw[i], "EXISTS %s%s", w->prefix, name);
        n += reply != NULL && reply->integer == 1 ? 1 : 0;
        freeReplyObject(reply);
    }
    return n;
}

/* ---- the world ---- */

struct ll_client *quorum_client(const struct quorum_world *w,
                                const char *url,
                                uint32_t reply_ms,
                                uint32_t max_lease_ms)
{
    struct ll_options o = {.size = sizeof o,
                           .url = url,
                           .prefix = w->prefix,
                           .reply_ms = reply_ms,
                           .max_lease_ms =
                               max_lease_ms != 0 ? max_lease_ms : QUORUM_MAX_LEASE_MS};
    struct ll_client *c;
    char why[160] = "";

    if (ll_open(&c, &o, why, sizeof why) != LL_OK)
        fail_msg("ll_open: %s", why);
    return c;
}

static void append(char *list, size_t size, const char *url)
{
    size_t n = strlen(list);

    (void)snprintf(list + n, size - n, "%s%s", n > 0 ? "," : "", url);
}

static void start_servers(struct quorum_world *w, size_t n)
{
    memset(w, 0, sizeof *w);
    w->n = n;
    for (size_t i = 0; i < n; i++) {
        fixture_redis_start(&w->servers[i], NULL);
        proxy_open_redis(&w->proxies[i], w->servers[i].url);
        append(w->url, sizeof w->url, w->proxies[i].url);
        append(w->plain_url, sizeof w->plain_url, w->servers[i].url);
        quorum_reconnect(w, i);
    }
}

/* Clients of a prefix that nobody used before. */
static void open_clients(struct quorum_world *w, bool voting)
{
    static unsigned ct;

    (void)snprintf(w->prefix, sizeof w->prefix, "t%u:", ct++);
    for (size_t i = 0; i < w->n && voting; i++)
        quorum_plant(w, i, 0);
    w->a = quorum_client(w, w->url, 200, 0);
    w->b = quorum_client(w, w->plain_url, 200, 0);
    w->la = ll_new(w->a);
    w->lb = ll_new(w->b);
}

static void close_clients(struct quorum_world *w)
{
    ll_free(w->la);
    ll_free(w->lb);
    ll_close(w->a);
    ll_close(w->b);
}

static void stop_servers(struct quorum_world *w)
{
    for (size_t i = 0; i < w->n; i++) {
        proxy_close(&w->proxies[i]);
        fixture_redis_close(&w->servers[i]);
        if (w->raw[i] != NULL)
            redisFree(w->raw[i]);
    }
}

void quorum_open(struct quorum_world *w, size_t n, bool voting)
{
    start_servers(w, n);
    open_clients(w, voting);
}

void quorum_close(struct quorum_world *w)
{
    close_clients(w);
    stop_servers(w);
}

int quorum_start_servers(void **state)
{
    (void)state;
    start_servers(&shared, 3);
    return 0;
}

int quorum_stop_servers(void **state)
{
    (void)state;
    stop_servers(&shared);
    return 0;
}

int quorum_open_shared(void **state)
{
    open_clients(&shared, true);
    *state = &shared;
    return 0;
}

int quorum_close_shared(void **state)
{
    (void)state;
    for (size_t i = 0; i < shared.n; i++)
        proxy_pass(&shared.proxies[i]);
    close_clients(&shared);
    return 0;
}
