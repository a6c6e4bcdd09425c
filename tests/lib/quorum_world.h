/* quorum_world: several Redis servers, a proxy in front of each, clients over all of
 * them. Every test has a prefix of its own, with the nodes' records in place. */
#ifndef LEDGERLOCK_QUORUM_WORLD_H
#define LEDGERLOCK_QUORUM_WORLD_H

#include "tests/lib/lock_world.h"
#include "tests/lib/proxy.h"

enum { QUORUM_MAX_LEASE_MS = 20000 };

struct quorum_world {
    size_t n;
    struct fixture_redis servers[LL_NODES_MAX];
    struct proxy proxies[LL_NODES_MAX];
    redisContext *raw[LL_NODES_MAX]; /* past the proxy; NULL: not connected */
    char prefix[32];
    char url[LL_NODES_MAX * FIXTURE_URL];       /* through the proxies */
    char plain_url[LL_NODES_MAX * FIXTURE_URL]; /* to the servers */
    struct ll_client *a, *b;                    /* a: through the proxies; b: plain */
    struct ll_lock *la, *lb;
};

/* Three servers for the whole file, and set-up and end of one test on them. */
int quorum_start_servers(void **state);
int quorum_stop_servers(void **state);
int quorum_open_shared(void **state);
int quorum_close_shared(void **state);

#define QUORUM_TEST(test)                                                              \
    cmocka_unit_test_setup_teardown(test, quorum_open_shared, quorum_close_shared)

/* n servers of the test's own, with memory or (voting false) never used. */
void quorum_open(struct quorum_world *w, size_t n, bool voting);
void quorum_close(struct quorum_world *w);

/* A client; zero is the default. */
struct ll_client *quorum_client(const struct quorum_world *w,
                                const char *url,
                                uint32_t reply_ms,
                                uint32_t max_lease_ms);

/* Writes the record of a node: it votes, its counter is this. */
void quorum_plant(struct quorum_world *w, size_t node, int64_t counter);

/* Counters (4, 0, 1) above what it returns: an hour ahead of the clock, so that only
 * they make the tokens. */
int64_t quorum_plant_skew(struct quorum_world *w);

/* Connects raw[node] anew, after a restart. */
void quorum_reconnect(struct quorum_world *w, size_t node);

/* The server's end, and its begin without data. */
void quorum_kill(struct quorum_world *w, size_t node);
void quorum_restart(struct quorum_world *w, size_t node);

/* A command on one node, with %s replaced by the prefix: its integer, or its text as a
 * number; -1 for nil. */
long long quorum_ask(struct quorum_world *w, size_t node, const char *format);

/* On how many nodes the key exists. */
size_t quorum_copies(struct quorum_world *w, const char *name);

int64_t quorum_now_us(void); /* wall clock */
int64_t quorum_now_ms(void); /* monotonic */

#endif
