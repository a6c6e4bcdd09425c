/* quorum_world: several Redis servers, a proxy in front of each, clients over all of
 * them. Every test has a prefix of its own. The servers' clocks are far ahead, so that
 * they count as up for long and grant at once; one that is restarted does not. */
#ifndef LEDGERLOCK_QUORUM_WORLD_H
#define LEDGERLOCK_QUORUM_WORLD_H

#include "tests/lib/lock_world.h"
#include "tests/lib/proxy.h"

/* The longest lease of the shared servers; and what a node gets to answer, so much that
 * a busy machine does not matter: a test that waits for its end has its own. */
enum { QUORUM_MAX_LEASE_MS = 20000, QUORUM_REPLY_MS = 5000 };

struct quorum_world {
    size_t n;
    uint32_t max_lease_ms;
    struct fixture_redis servers[RLOCK_NODES_MAX];
    struct proxy proxies[RLOCK_NODES_MAX];
    redisContext *raw[RLOCK_NODES_MAX]; /* past the proxy; NULL: not connected */
    char prefix[32];
    char url[RLOCK_NODES_MAX * FIXTURE_URL];       /* through the proxies */
    char plain_url[RLOCK_NODES_MAX * FIXTURE_URL]; /* to the servers */
};

/* n servers and proxies; their end. */
void quorum_start(struct quorum_world *w, size_t n, uint32_t max_lease_ms);
void quorum_stop(struct quorum_world *w);

/* A client of the world's prefix. */
struct rlock_client *
quorum_client(const struct quorum_world *w, const char *url, uint32_t reply_ms);

/* Connects the client to every node, all of which are there: a call waits for a
 * majority only, and asks nobody to whom it is not connected yet. */
void quorum_connect(struct quorum_world *w, struct rlock_client *c);

/* Connects raw[node] anew, after a restart. */
void quorum_reconnect(struct quorum_world *w, size_t node);

/* The server's end, and its begin without data, a moment ago. */
void quorum_kill(struct quorum_world *w, size_t node);
void quorum_restart(struct quorum_world *w, size_t node);

/* The server counts as up for long. */
void quorum_age(struct quorum_world *w, size_t node);

/* A command on one node, with %s replaced by the prefix: its integer, or its text as a
 * number; -1 for nil. */
long long quorum_ask(struct quorum_world *w, size_t node, const char *format);

/* The last token of a node: is set, is asked. */
void quorum_set_last(struct quorum_world *w, size_t node, int64_t token);
int64_t quorum_last(struct quorum_world *w, size_t node);

/* The token in the key of a node; 0: the value is not exactly "nonce|token" of nonce
 * characters, or there is none. */
int64_t quorum_token(struct quorum_world *w, size_t node, const char *name);

/* On how many nodes the key exists; waits until it is on exactly n. */
size_t quorum_copies(struct quorum_world *w, const char *name);
void quorum_wait_copies(struct quorum_world *w, const char *name, size_t n);

/* Tries until the lock is granted; fails after two minutes. */
void quorum_take(struct rlock *l, const char *name, uint32_t lease_ms);

/* The same until all nodes have granted it. */
void quorum_take_everywhere(struct quorum_world *w,
                            struct rlock *l,
                            const char *name,
                            uint32_t lease_ms);

/* Ahead of all clocks: only last tokens from here on make the next. */
int64_t quorum_ahead_us(void);

int64_t quorum_now_ms(void); /* monotonic */

#endif
