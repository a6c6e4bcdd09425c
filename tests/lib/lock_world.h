/* lock_world: two clients of the lock library, a raw connection, a Redis of the file's
 * own. */
#ifndef LEDGERLOCK_LOCK_WORLD_H
#define LEDGERLOCK_LOCK_WORLD_H

#include "tests/lib/fixture.h"

#include <hiredis/hiredis.h>

#include "common/lock/lock.h"

/* One Redis for the whole file, flushed before every test. */
extern struct fixture_redis lock_server;

struct lock_world {
    struct ll_client *a, *b;
    struct ll_lock *la, *lb;
    redisContext *raw;
};

/* Group and test set-ups; *state is the struct lock_world. */
int lock_start_server(void **state);
int lock_stop_server(void **state);
int lock_open_world(void **state);
int lock_close_world(void **state);

#define LOCK_TEST(test)                                                                \
    cmocka_unit_test_setup_teardown(test, lock_open_world, lock_close_world)

/* The same on a server where scripts are forbidden, with clients that do without. */
int lock_start_plain_server(void **state);
int lock_open_plain_world(void **state);

#define PLAIN_TEST(test)                                                               \
    cmocka_unit_test_setup_teardown(test, lock_open_plain_world, lock_close_world)

/* A client of its own; reply_ms 0: the default. plain: without scripts. */
struct ll_client *lock_client(const char *url, uint32_t reply_ms);
struct ll_client *lock_plain_client(const char *url, uint32_t reply_ms);
void lock_install_epoch(struct ll_client *c, int64_t epoch);
redisContext *lock_raw_connection(const char *url);

/* A command on the raw connection: its effect, or its integer. */
void lock_raw_do(struct lock_world *w, const char *command, ...);
long long lock_raw_integer(struct lock_world *w, const char *command, ...);

#endif
