/* lock_world: two clients of the lock library, a raw connection, a Redis of the file's
 * own. */
#ifndef LEDGERLOCK_LOCK_WORLD_H
#define LEDGERLOCK_LOCK_WORLD_H

#include "tests/lib/fixture.h"

#include <hiredis/hiredis.h>

#include "common/lock/internal.h"
#include "common/lock/lock_held.h"
#include "tests/lib/proxy.h"
#include "tests/testkit/fake_redis.h"

/* One Redis for the whole file, flushed before every test. */
extern struct fixture_redis lock_server;

struct lock_world {
    struct rlock_client *a, *b;
    struct rlock *la, *lb;
    redisContext *raw;
};

/* A group of cases on this server: LOCK_CASE(name) has the struct lock_world as w. */
void lock_start_server(void);
void lock_stop_server(void);
void lock_open_world(void);
void lock_close_world(void);
extern const struct test_group lock_group;
#define LOCK_CASE(...) CASE_IN(lock_group, struct lock_world, __VA_ARGS__)

/* Clients, locks, connections and servers that are closed at the end of their block. */
void lock_drop_client(struct rlock_client **c);
void lock_drop_lock(struct rlock **l);
void lock_drop_lone(struct rlock **l);
void lock_drop_renewer(struct rlock_renewer **r);
void lock_drop_connection(redisContext **raw);
#define CLIENT OWNED(lock_drop_client) struct rlock_client
#define LOCK OWNED(lock_drop_lock) struct rlock
#define LONE OWNED(lock_drop_lone) struct rlock /* and its client */
#define RENEWER OWNED(lock_drop_renewer) struct rlock_renewer
#define CONTEXT OWNED(lock_drop_connection) redisContext
#define FAKE OWNED(fake_redis_close) struct fake_redis
#define REDIS OWNED(fixture_redis_close) struct fixture_redis

/* A server that answers so to the commands that begin with the word. */
struct fake_redis fake_saying(const char *word, const char *answer);

/* Another Redis, of the test's own. */
struct fixture_redis lock_own_server(void);

/* A client of these options; of this server, with reply_ms (0: so much that a busy
 * machine does not reach it). */
struct rlock_client *lock_open(const struct rlock_options *o);
struct rlock_client *lock_client(const char *url, uint32_t reply_ms);
#define LOCK_OPEN(...)                                                                 \
    lock_open(                                                                         \
        &(struct rlock_options){.size = sizeof(struct rlock_options), __VA_ARGS__})

redisContext *lock_raw_connection(const char *url);

/* The integer of an answer, or its text as a number; -1 for nil. An error fails the
 * test. Frees the answer. */
long long lock_number(redisReply *reply);

/* The number behind a name ("blocked_clients:") in a section of INFO; 0: it is not
 * there. */
long long lock_info(redisContext *raw, const char *section, const char *name);

/* A command on the raw connection: its effect, or its integer. */
void lock_raw_do(struct lock_world *w, const char *command, ...);
long long lock_raw_integer(struct lock_world *w, const char *command, ...);

/* Everything that happens at last does so within this time, on the slowest machine too.
 */
enum { LOCK_SOON_MS = 30000 };

/* Waits until it is so; fails after LOCK_SOON_MS, by no clock that a test may move. */
#define LOCK_AWAIT(condition)                                                          \
    do {                                                                               \
        for (int left_ = LOCK_SOON_MS; !(condition); left_--) {                        \
            assert_true(left_ > 0);                                                    \
            fixture_pause_ms(1);                                                       \
        }                                                                              \
    } while (0)

/* n keys "k:0", "k:1" and so on, their numbers of so many digits at least; they stay
 * until the next call. At most RLOCK_KEYS_MAX. */
const struct rlock_key *lock_keys(size_t n, int digits);

/* The holder of a name, as rlock_list told; in a quorum the last node that did. */
struct lock_holder {
    const char *name;
    char value[256];
    size_t len;
    bool is_there, has_text;
};

int lock_see(struct rlock_client *c, const char *name, struct lock_holder *h);
int lock_force(struct rlock_client *c, const struct lock_holder *h);

/* Both, one after the other; RLOCK_GONE when nobody holds it. */
int lock_force_any(struct rlock_client *c, const char *name);

/* rlock_acquire_wait of keys that somebody holds. On a busy machine the answer to its
 * last attempt may come too late, which is a fault; then it waits once more. */
int lock_wait_in_vain(struct rlock *l,
                      const struct rlock_key *keys,
                      size_t n,
                      uint32_t lease_ms,
                      uint32_t wait_ms);

/* A key without the prefix that may have no end: the last token, and what all clients
 * of a quorum agree on. All others under the prefix have one. */
bool lock_may_stay(const char *name);
void lock_assert_ends(redisContext *raw, const char *prefix);

/* The last token that the server gave; 0: none, or it has forgotten. */
int64_t lock_last_token(struct lock_world *w);

#endif
