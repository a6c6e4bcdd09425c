/* ha_world: a primary, its replicas and Sentinels of 127.0.0.1, each a process of the
 * test's own. */
#ifndef LEDGERLOCK_HA_WORLD_H
#define LEDGERLOCK_HA_WORLD_H

#include "tests/lib/lock_world.h"

/* A redis-server that listens on TCP too. */
struct ha_server {
    struct fixture_redis redis;
    int port;
    char url[64]; /* redis://127.0.0.1:port */
};

/* The name of the primary at the Sentinels. */
#define HA_NAME "ledger"

struct ha_sentinel {
    struct fixture_redis redis;
    int port;
};

/* Starts a server; primary_port 0: a primary, else a replica of that port of 127.0.0.1.
 */
void ha_start(struct ha_server *s, int primary_port);

/* Kills it without a word; ends it and removes its folder. Both accept a dead one. */
void ha_kill(struct ha_server *s);
void ha_close(struct ha_server *s);
#define SERVER OWNED(ha_close) struct ha_server

/* One command on the server: its effect, or its integer. */
void ha_do(struct ha_server *s, const char *command);
long long ha_integer(struct ha_server *s, const char *command);

/* Waits until the command answers that integer. */
void ha_wait_integer(struct ha_server *s, const char *command, long long wanted);

/* Waits until a replica is connected to its primary and has what it has. */
void ha_wait_linked(struct ha_server *replica);

/* Waits until so many replicas confirm writes at once, again and again. */
void ha_wait_replicas(struct ha_server *primary, int n);

/* Waits until INFO of the server contains the text. */
void ha_wait_info(struct ha_server *s, const char *text);

/* The steps of play.h go to these servers from here on, and clients a to o to the
 * first of them, until the end. */
void ha_play(struct ha_server *const *servers, size_t n);
void ha_play_end(void);

/* A becomes the replica of b, which is a primary. */
void ha_follow(struct ha_server *a, const struct ha_server *b);

/* Starts a Sentinel that alone decides on a failover, and waits until it knows as many
 * replicas. */
void ha_sentinel_start(struct ha_sentinel *s, int primary_port, size_t replicas);
void ha_sentinel_close(struct ha_sentinel *s);

#endif
