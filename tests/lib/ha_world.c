/* ha_world: starts and ends the servers of the tests on high availability. */
#define _XOPEN_SOURCE 700
#include "tests/lib/ha_world.h"

#include "tests/lib/play_inside.h"

/* ---- servers ---- */

void ha_start(struct ha_server *s, int primary_port)
{
    char port[8], primary[8];

    s->port = fixture_free_port();
    (void)snprintf(port, sizeof port, "%d", s->port);
    (void)snprintf(primary, sizeof primary, "%d", primary_port);
    (void)snprintf(s->url, sizeof s->url, "redis://127.0.0.1:%d", s->port);
    /* The words of a primary end with the delay. */
    fixture_redis_start(
        &s->redis, "--port", port, "--bind", "127.0.0.1", "--repl-diskless-sync-delay",
        "0", primary_port == 0 ? NULL : "--replicaof", "127.0.0.1", primary, NULL);
}

void ha_kill(struct ha_server *s)
{
    fixture_redis_kill(&s->redis);
}

void ha_close(struct ha_server *s)
{
    fixture_redis_close(&s->redis);
}

/* On a connection of its own: a failover closes those of all clients, and may close
 * this one too while it waits for its answer. */
static redisReply *command(struct ha_server *s, const char *text)
{
    redisContext *raw = lock_raw_connection(s->redis.url);
    redisReply *reply;

    for (int i = 0; (reply = redisCommand(raw, text)) == NULL && i < 3; i++) {
        redisFree(raw);
        raw = lock_raw_connection(s->redis.url);
    }
    if (reply == NULL)
        fail_msg("%s: %s", text, raw->errstr);
    if (reply->type == REDIS_REPLY_ERROR)
        fail_msg("%s: %s", text, reply->str);
    redisFree(raw);
    return reply;
}

void ha_do(struct ha_server *s, const char *text)
{
    freeReplyObject(command(s, text));
}

long long ha_integer(struct ha_server *s, const char *text)
{
    return lock_number(command(s, text));
}

void ha_wait_integer(struct ha_server *s, const char *text, long long wanted)
{
    FIXTURE_AWAIT(ha_integer(s, text) == wanted, "%s: %s is not %lld", s->url, text,
                  wanted);
}

static bool is_in_info(struct ha_server *s, const char *text)
{
    redisReply *reply = command(s, "INFO");
    bool is_there = strstr(reply->str, text) != NULL;

    freeReplyObject(reply);
    return is_there;
}

void ha_wait_info(struct ha_server *s, const char *text)
{
    FIXTURE_AWAIT(is_in_info(s, text), "%s: no %s", s->url, text);
}

/* For a second after its first synchronisation a replica may leave a question for its
 * acknowledgement unanswered: it must confirm at once for longer than that. */
void ha_wait_replicas(struct ha_server *primary, int n)
{
    redisContext *raw = lock_raw_connection(primary->redis.url);
    int in_a_row = 0;

    for (int i = 0; i < 300 && in_a_row < 24; i++) {
        redisReply *reply;

        freeReplyObject(redisCommand(raw, "SET mark 1"));
        reply = redisCommand(raw, "WAIT %d 100", n);
        in_a_row = reply->integer >= n ? in_a_row + 1 : 0;
        freeReplyObject(reply);
        fixture_pause_ms(50);
    }
    redisFree(raw);
    assert_int_equal(in_a_row, 24);
}

void ha_wait_linked(struct ha_server *replica)
{
    ha_wait_info(replica, "master_link_status:up");
}

void ha_follow(struct ha_server *a, const struct ha_server *b)
{
    char command[64];

    (void)snprintf(command, sizeof command, "REPLICAOF 127.0.0.1 %d", b->port);
    ha_do(a, command);
}

/* ---- steps ---- */

static struct quorum_world played;

void ha_play(struct ha_server *const *servers, size_t n)
{
    memset(&played, 0, sizeof played);
    play_begin(&played);
    played.n = n;
    for (size_t i = 0; i < n; i++) {
        played.servers[i] = servers[i]->redis;
        quorum_reconnect(&played, i);
    }
    (void)snprintf(played.plain_url, sizeof played.plain_url, "%s", servers[0]->url);
}

void ha_play_end(void)
{
    play_end_calls();
    for (size_t i = 0; i < played.n; i++)
        redisFree(played.raw[i]);
}

/* ---- Sentinels ---- */

static void exec_sentinel(const struct ha_sentinel *s, int primary_port)
{
    const char *bin = fixture_redis_program();
    char path[96];
    FILE *f;

    (void)snprintf(path, sizeof path, "%s/sentinel.conf", s->redis.dir);
    f = fopen(path, "w");
    if (f == NULL)
        _exit(127);
    (void)fprintf(f,
                  "port %d\nbind 127.0.0.1\ndir %s\nlogfile redis.log\n"
                  "sentinel monitor " HA_NAME " 127.0.0.1 %d 1\n"
                  "sentinel down-after-milliseconds " HA_NAME " 3000\n"
                  "sentinel failover-timeout " HA_NAME " 5000\n",
                  s->port, s->redis.dir, primary_port);
    (void)fclose(f);
    (void)execlp(bin, bin, path, "--sentinel", (char *)NULL);
    _exit(127);
}

/* Number of replicas that the Sentinel knows and finds usable; -1: it does not answer.
 */
static long known_replicas(const struct ha_sentinel *s)
{
    redisContext *raw = redisConnect("127.0.0.1", s->port);
    redisReply *reply = NULL;
    long n = -1;

    if (raw != NULL && raw->err == 0)
        reply = redisCommand(raw, "SENTINEL REPLICAS " HA_NAME);
    if (reply != NULL && reply->type == REDIS_REPLY_ARRAY)
        n = (long)reply->elements;
    if (reply != NULL)
        freeReplyObject(reply);
    if (raw != NULL)
        redisFree(raw);
    return n;
}

void ha_sentinel_start(struct ha_sentinel *s, int primary_port, size_t replicas)
{
    fixture_folder(s->redis.dir, sizeof s->redis.dir, "sentinel");
    s->port = fixture_free_port();
    s->redis.pid = fixture_fork();
    if (s->redis.pid == 0)
        exec_sentinel(s, primary_port);
    FIXTURE_AWAIT(known_replicas(s) >= (long)replicas,
                  "the Sentinel in %s does not know %zu replicas", s->redis.dir,
                  replicas);
}

void ha_sentinel_close(struct ha_sentinel *s)
{
    fixture_redis_close(&s->redis);
}
