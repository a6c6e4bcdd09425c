/* quorum_world: servers, proxies and clients of the quorum tests. */
#include "tests/lib/quorum_world.h"

#include <time.h>

#include "common/lock/internal.h"
#include "tests/lib/clock_world.h"

enum { AGE_MS = 10 * CLOCK_HOUR_MS };

int64_t quorum_ahead_us(void)
{
    struct timespec ts;

    (void)clock_gettime(CLOCK_REALTIME, &ts);
    return (int64_t)ts.tv_sec * 1000000 + 2 * INT64_C(1000) * AGE_MS;
}

int64_t quorum_now_ms(void)
{
    return fixture_now_ms();
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
    return lock_number(redisCommand(w->raw[node], format, w->prefix));
}

void quorum_set_last(struct quorum_world *w, size_t node, int64_t token)
{
    (void)lock_number(
        redisCommand(w->raw[node], "SET %s!last %lld", w->prefix, (long long)token));
}

int64_t quorum_last(struct quorum_world *w, size_t node)
{
    return quorum_ask(w, node, "GET %s!last");
}

int64_t quorum_token(struct quorum_world *w, size_t node, const char *name)
{
    redisReply *reply = redisCommand(w->raw[node], "GET %s%s", w->prefix, name);
    int64_t token = 0;
    char *end;

    assert_non_null(reply);
    if (reply->type == REDIS_REPLY_STRING &&
        strspn(reply->str, "0123456789abcdef") == RLOCK_NONCE_SIZE - 1 &&
        reply->str[RLOCK_NONCE_SIZE - 1] == '|') {
        token = strtoll(reply->str + RLOCK_NONCE_SIZE, &end, 10);
        token = *end == '\0' || *end == '|' ? token : 0; /* maybe a text */
    }
    freeReplyObject(reply);
    return token;
}

void quorum_kill(struct quorum_world *w, size_t node)
{
    redisFree(w->raw[node]);
    w->raw[node] = NULL;
    fixture_redis_kill(&w->servers[node]);
}

static void start(struct fixture_redis *server)
{
    bool before = fixture_movable_clocks;

    fixture_movable_clocks = true;
    fixture_redis_start(server, NULL);
    fixture_movable_clocks = before;
}

void quorum_restart(struct quorum_world *w, size_t node)
{
    start(&w->servers[node]);
    quorum_reconnect(w, node);
}

void quorum_age(struct quorum_world *w, size_t node)
{
    clock_jump_server(&w->servers[node], AGE_MS);
}

/* ---- all nodes ---- */

size_t quorum_copies(struct quorum_world *w, const char *name)
{
    size_t n = 0;

    for (size_t i = 0; i < w->n; i++) {
        if (w->raw[i] != NULL &&
            lock_number(redisCommand(w->raw[i], "EXISTS %s%s", w->prefix, name)) == 1)
            n++;
    }
    return n;
}

void quorum_wait_copies(struct quorum_world *w, const char *name, size_t n)
{
    FIXTURE_AWAIT(quorum_copies(w, name) == n, "%s%s is on %zu nodes, not on %zu",
                  w->prefix, name, quorum_copies(w, name), n);
}

void quorum_take(struct rlock *l, const char *name, uint32_t lease_ms)
{
    int code;

    FIXTURE_AWAIT((code = rlock_try(l, name, lease_ms)) == RLOCK_OK, "%s: %s", name,
                  rlock_strerror(code));
}

/* A node that is a little slower than a majority is not waited for, and may miss one.
 */
void quorum_take_everywhere(struct quorum_world *w,
                            struct rlock *l,
                            const char *name,
                            uint32_t lease_ms)
{
    for (int tries = 0; tries < 500; tries++) {
        quorum_take(l, name, lease_ms);
        for (int i = 0; i < 10 && quorum_copies(w, name) < w->n; i++)
            fixture_pause_ms(5);
        if (quorum_copies(w, name) == w->n)
            return;
        assert_true(rlock_release(l) >= 0);
    }
    fail_msg("%s is never granted by all nodes", name);
}

/* ---- the world ---- */

struct rlock_client *
quorum_client(const struct quorum_world *w, const char *url, uint32_t reply_ms)
{
    return LOCK_OPEN(.url = url, .prefix = w->prefix, .reply_ms = reply_ms,
                     .max_lease_ms = w->max_lease_ms);
}

static void append(char *list, size_t size, const char *url)
{
    size_t n = strlen(list);

    (void)snprintf(list + n, size - n, "%s%s", n > 0 ? "," : "", url);
}

void quorum_start(struct quorum_world *w, size_t n, uint32_t max_lease_ms)
{
    memset(w, 0, sizeof *w);
    w->n = n;
    w->max_lease_ms = max_lease_ms;
    for (size_t i = 0; i < n; i++) {
        start(&w->servers[i]);
        quorum_age(w, i);
        proxy_open_redis(&w->proxies[i], w->servers[i].url);
        append(w->url, sizeof w->url, w->proxies[i].url);
        append(w->plain_url, sizeof w->plain_url, w->servers[i].url);
        quorum_reconnect(w, i);
    }
}

void quorum_connect(struct quorum_world *w, struct rlock_client *c)
{
    do
        assert_int_equal(rlock_connect(c), RLOCK_OK);
    while (rlock_count(rlock_up_nodes(c)) < w->n);
}

void quorum_stop(struct quorum_world *w)
{
    for (size_t i = 0; i < w->n; i++) {
        proxy_close(&w->proxies[i]);
        fixture_redis_close(&w->servers[i]);
        if (w->raw[i] != NULL)
            redisFree(w->raw[i]);
    }
    w->n = 0;
}
