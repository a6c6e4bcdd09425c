/* cluster_world: starts, joins and ends the servers of a cluster. */
#include "tests/lib/cluster_world.h"

#include "tests/lib/ha_world.h"

enum { SLOTS = 16384 };

/* ---- one server ---- */

static redisReply *command(struct cluster_world *w, size_t server, const char *text)
{
    redisContext *raw = redisConnect("127.0.0.1", w->servers[server].port);
    redisReply *reply = raw == NULL || raw->err != 0 ? NULL : redisCommand(raw, text);

    if (raw != NULL)
        redisFree(raw);
    return reply;
}

long long cluster_ask(struct cluster_world *w, size_t server, const char *format, ...)
{
    char text[1024];
    redisReply *reply;
    va_list args;

    va_start(args, format);
    (void)vsnprintf(text, sizeof text, format, args);
    va_end(args);
    reply = command(w, server, text);
    if (reply == NULL)
        return -2;
    if (reply->type != REDIS_REPLY_ERROR)
        return lock_number(reply);
    freeReplyObject(reply);
    return -2;
}

/* A command that must not fail. */
__attribute__((format(printf, 3, 4))) static void
must(struct cluster_world *w, size_t server, const char *format, ...)
{
    char text[256];
    redisReply *reply;
    va_list args;

    va_start(args, format);
    (void)vsnprintf(text, sizeof text, format, args);
    va_end(args);
    reply = command(w, server, text);
    if (reply == NULL || reply->type == REDIS_REPLY_ERROR)
        fail_msg("server %zu: %s: %s", server, text,
                 reply == NULL ? "no answer" : reply->str);
    freeReplyObject(reply);
}

static bool
says(struct cluster_world *w, size_t server, const char *what, const char *of)
{
    redisReply *reply = command(w, server, of);
    bool does = reply != NULL && reply->str != NULL && strstr(reply->str, what) != NULL;

    if (reply != NULL)
        freeReplyObject(reply);
    return does;
}

static void start(struct cluster_server *s)
{
    char port[8], bus[8];

    s->port = fixture_free_port();
    s->bus = fixture_free_port();
    (void)snprintf(port, sizeof port, "%d", s->port);
    (void)snprintf(bus, sizeof bus, "%d", s->bus);
    (void)snprintf(s->url, sizeof s->url, "redis://127.0.0.1:%d", s->port);
    fixture_redis_start(&s->redis, "--port", port, "--bind", "127.0.0.1",
                        "--cluster-enabled", "yes", "--cluster-port", bus,
                        "--cluster-node-timeout", "1000",
                        "--cluster-replica-validity-factor", "0",
                        "--repl-diskless-sync-delay", "0", NULL);
}

static void learn_id(struct cluster_world *w, size_t server)
{
    redisReply *reply = command(w, server, "CLUSTER MYID");

    if (reply == NULL || reply->type != REDIS_REPLY_STRING)
        fail_msg("server %zu tells no id", server);
    else
        (void)snprintf(w->servers[server].id, sizeof w->servers[server].id, "%s",
                       reply->str);
    freeReplyObject(reply);
}

/* ---- all ---- */

static void
wait_until(struct cluster_world *w, size_t server, const char *what, const char *of)
{
    FIXTURE_AWAIT(says(w, server, what, of), "server %zu: %s: no %s", server, of, what);
}

static void wait_for_all(struct cluster_world *w, const char *what, const char *of)
{
    for (size_t i = 0; i < CLUSTER_SERVERS; i++)
        wait_until(w, i, what, of);
}

static void join(struct cluster_world *w)
{
    char known[32];

    for (size_t i = 0; i < CLUSTER_SERVERS; i++) {
        learn_id(w, i);
        if (i < CLUSTER_PRIMARIES)
            must(w, i, "CLUSTER ADDSLOTSRANGE %zu %zu", i * SLOTS / CLUSTER_PRIMARIES,
                 (i + 1) * SLOTS / CLUSTER_PRIMARIES - 1);
        must(w, i, "CLUSTER SET-CONFIG-EPOCH %zu", i + 1);
        if (i > 0)
            must(w, 0, "CLUSTER MEET 127.0.0.1 %d %d", w->servers[i].port,
                 w->servers[i].bus);
    }
    (void)snprintf(known, sizeof known, "cluster_known_nodes:%d", CLUSTER_SERVERS);
    wait_for_all(w, known, "CLUSTER INFO");
    wait_for_all(w, "cluster_state:ok", "CLUSTER INFO");
}

static void add_replicas(struct cluster_world *w)
{
    char text[64];

    for (size_t i = 0; i < CLUSTER_PRIMARIES; i++)
        must(w, i + CLUSTER_PRIMARIES, "CLUSTER REPLICATE %s", w->servers[i].id);
    for (size_t i = 0; i < CLUSTER_PRIMARIES; i++) {
        wait_until(w, i, "connected_slaves:1", "INFO replication");
        wait_until(w, i + CLUSTER_PRIMARIES, "master_link_status:up",
                   "INFO replication");
    }
    for (size_t i = 0; i < CLUSTER_PRIMARIES; i++) { /* all know whose */
        (void)snprintf(text, sizeof text, "slave %s", w->servers[i].id);
        wait_for_all(w, text, "CLUSTER NODES");
    }
}

void cluster_open(struct cluster_world *w)
{
    size_t at = (size_t)snprintf(w->url, sizeof w->url, "redis+cluster://");

    for (size_t i = 0; i < CLUSTER_SERVERS; i++) {
        start(&w->servers[i]);
        at += (size_t)snprintf(w->url + at, sizeof w->url - at, "%s127.0.0.1:%d",
                               i > 0 ? "," : "", w->servers[i].port);
    }
    join(w);
    add_replicas(w);
}

void cluster_close(struct cluster_world *w)
{
    for (size_t i = 0; i < CLUSTER_SERVERS; i++)
        fixture_redis_close(&w->servers[i].redis);
}

void cluster_kill(struct cluster_world *w, size_t server)
{
    fixture_redis_kill(&w->servers[server].redis);
}

/* ---- clients ---- */

struct rlock_options cluster_options(const char *url, const char *prefix)
{
    return (struct rlock_options){.size = sizeof(struct rlock_options),
                                  .url = url,
                                  .prefix = prefix,
                                  .reply_ms = 5000};
}

/* ---- slots ---- */

int cluster_slot(struct cluster_world *w, const char *key)
{
    return (int)cluster_ask(w, 1, "CLUSTER KEYSLOT %s", key);
}

/* The server says in CLUSTER SLOTS that this port is the slot's primary. */
static bool is_owner(struct cluster_world *w, size_t asked, int slot, size_t owner)
{
    redisReply *slots = command(w, asked, "CLUSTER SLOTS");
    bool is = false;

    for (size_t i = 0; slots != NULL && i < slots->elements; i++) {
        const redisReply *range = slots->element[i];

        if (range->element[0]->integer <= slot && range->element[1]->integer >= slot)
            is = range->element[2]->element[1]->integer == w->servers[owner].port;
    }
    if (slots != NULL)
        freeReplyObject(slots);
    return is;
}

static bool do_all_know(struct cluster_world *w, int slot, size_t owner)
{
    for (size_t i = 0; i < CLUSTER_SERVERS; i++) {
        if (w->servers[i].redis.pid != 0 &&
            (!is_owner(w, i, slot, owner) ||
             !says(w, i, "cluster_state:ok", "CLUSTER INFO")))
            return false;
    }
    return w->servers[owner].redis.pid != 0 &&
           says(w, owner, "role:master", "INFO replication");
}

/* CLUSTER_SERVERS: nobody yet. */
static size_t find_owner(struct cluster_world *w, int slot, size_t before)
{
    size_t i = 0;

    while (i < CLUSTER_SERVERS && (i == before || !do_all_know(w, slot, i)))
        i++;
    return i;
}

size_t cluster_wait_owner(struct cluster_world *w, int slot, size_t before)
{
    size_t owner;

    FIXTURE_AWAIT((owner = find_owner(w, slot, before)) < CLUSTER_SERVERS,
                  "nobody took slot %d over", slot);
    return owner;
}

size_t cluster_owner(struct cluster_world *w, int slot)
{
    return cluster_wait_owner(w, slot, CLUSTER_SERVERS);
}

void cluster_begin_move(struct cluster_world *w, int slot, size_t from, size_t to)
{
    must(w, to, "CLUSTER SETSLOT %d IMPORTING %s", slot, w->servers[from].id);
    must(w, from, "CLUSTER SETSLOT %d MIGRATING %s", slot, w->servers[to].id);
}

void cluster_move_keys(
    struct cluster_world *w, int slot, size_t from, size_t to, size_t each)
{
    char text[64];
    redisReply *keys;

    (void)snprintf(text, sizeof text, "CLUSTER GETKEYSINSLOT %d 1000", slot);
    keys = command(w, from, text);
    assert_non_null(keys);
    for (size_t i = 0; keys != NULL && i < keys->elements; i += each)
        must(w, from, "MIGRATE 127.0.0.1 %d %s 0 5000", w->servers[to].port,
             keys->element[i]->str);
    freeReplyObject(keys);
}

void cluster_end_move(struct cluster_world *w, int slot, size_t from, size_t to)
{
    must(w, to, "CLUSTER SETSLOT %d NODE %s", slot, w->servers[to].id);
    must(w, from, "CLUSTER SETSLOT %d NODE %s", slot, w->servers[to].id);
    (void)cluster_wait_owner(w, slot, from);
}
