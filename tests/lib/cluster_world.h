/* cluster_world: a Redis Cluster of 127.0.0.1: three primaries, a replica of each, all
 * processes of the test's own. Servers 0 to 2 begin as primaries of equal thirds of the
 * slots, server i + 3 as the replica of server i. */
#ifndef LEDGERLOCK_CLUSTER_WORLD_H
#define LEDGERLOCK_CLUSTER_WORLD_H

#include "tests/lib/lock_world.h"

enum { CLUSTER_PRIMARIES = 3, CLUSTER_SERVERS = 2 * CLUSTER_PRIMARIES };

struct cluster_server {
    struct fixture_redis redis;
    int port, bus;
    char id[48];  /* its name in the cluster */
    char url[64]; /* redis://127.0.0.1:port */
};

struct cluster_world {
    struct cluster_server servers[CLUSTER_SERVERS];
    char url[256]; /* redis+cluster://, all of them */
};

/* Returns when every server takes commands and knows of all. */
void cluster_open(struct cluster_world *w);
void cluster_close(struct cluster_world *w);

/* Ends a server without a word. */
void cluster_kill(struct cluster_world *w, size_t server);

/* Of a client of the cluster; a test may change them. */
struct rlock_options cluster_options(const char *url, const char *prefix);

/* A command on one server, on a connection of its own: its integer, or its text as a
 * number; -1 for nil, -2 for an error. */
long long cluster_ask(struct cluster_world *w, size_t server, const char *format, ...)
    __attribute__((format(printf, 3, 4)));

/* The slot of a key, and the living primary that owns it. */
int cluster_slot(struct cluster_world *w, const char *key);
size_t cluster_owner(struct cluster_world *w, int slot);

/* Waits until somebody other than `before` owns the slot, and all who live know it. */
size_t cluster_wait_owner(struct cluster_world *w, int slot, size_t before);

/* Moves a slot: begin (ASK), its keys, or of those each of that many, end (MOVED). */
void cluster_begin_move(struct cluster_world *w, int slot, size_t from, size_t to);
void cluster_move_keys(
    struct cluster_world *w, int slot, size_t from, size_t to, size_t each);
void cluster_end_move(struct cluster_world *w, int slot, size_t from, size_t to);

#endif
