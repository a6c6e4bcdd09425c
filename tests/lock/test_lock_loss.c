/* Redis loses its keys: restarts, FLUSHALL, eviction, an operator, a holder that
 * dies. Tokens rise all the same, and the old holder learns. */
#include <stdatomic.h>
#include <sys/prctl.h>

#include "tests/lib/crowd.h"
#include "tests/lib/lock_waiters.h"
#include "tests/lib/play.h"

/* ---- all of it ---- */

/* The old holder is valid by its own clock until it asks. */
/* Guarantee: A Redis killed without a file gives a higher token at once, and the old
 * holder learns. */
PLAY_FRESH(redis_restart_empty,
           "a take k; server kill; server start; keys: 0; b take k; a valid; "
           "a extend: lost; a invalid; a release: not_owner; b release");

PLAY_FRESH(redis_restart_empty_tells_the_release_that_the_lock_was_gone,
           "a take k; server kill; server start; b take k; b release; a release: gone; "
           "a key 0: gone");

/* Guarantee: A Redis that restarts with its data keeps its locks and its last token. */
PLAY_FRESH(redis_restart_with_its_data,
           "a take k; redis SAVE; server kill; server start; minted: 0; b try k: busy; "
           "a valid; a verify left: 1-60000; a release; b take k");

/* The dump is three grants old: the last token goes back, the tokens do not. The lock
 * of that time comes back, too. */
/* Guarantee: A Redis that comes back from an older file gives no older token. */
PLAY_FRESH(redis_restart_old_snapshot,
           "b take old; redis SAVE; a take k; a release; a take k; a release; "
           "a take k; a release; minted: 0; server kill; server start; "
           "minted: -99999999-99999999; a take k; b2 try old: busy");

/* ---- some of it ---- */

#define EVICTING(policy)                                                               \
    "redis CONFIG SET maxmemory 8gb; redis CONFIG SET maxmemory-policy " policy        \
    "; a connect: evicting; a try k: evicting; "                                       \
    "redis CONFIG SET maxmemory-policy noeviction; redis CONFIG SET maxmemory 0; "     \
    "a error: " policy "; a error: noeviction; a try k; a release; a disconnect; "

/* Guarantee: A Redis that evicts is refused by name. */
PLAY_ONE(eviction_policy_detected,
         EVICTING("allkeys-lru") EVICTING("allkeys-lfu") EVICTING("allkeys-random")
             EVICTING("volatile-lru") EVICTING("volatile-lfu") EVICTING("volatile-ttl")
                 EVICTING("volatile-random"));

/* The policy was changed under our connection, and Redis threw everything away: the
 * next look, a second later at most, tells. */
/* Guarantee: A Redis that begins to evict is refused on a connection in use. */
PLAY_FRESH(eviction_policy_detected_on_a_connection_in_use,
           "a take k; b connect; redis CONFIG SET maxmemory-policy allkeys-random; "
           "redis CONFIG SET maxmemory 1; redis SET @other 1: O; "
           "redis CONFIG SET maxmemory 8gb; keys: 0; redis EXISTS @!last: 0; "
           "a verify: lost|evicting; rest 1100; b try j: evicting; "
           "a release: evicting|gone; redis CONFIG SET maxmemory-policy noeviction; "
           "await a release: gone; a take k");

/* A lock that is held there can be kept, and given back. */
/* Guarantee: A server that is full is never "busy". */
PLAY_FRESH(full_server_says_out_of_memory_not_busy,
           "a take k; redis CONFIG SET maxmemory 1; a extend 90000; a release; "
           "a try k: oom; a key 0: busy; a invalid; redis CONFIG SET maxmemory 0; "
           "a take k");

/* Guarantee: A replica is never "busy". */
PLAY_FRESH(replica_is_readonly_not_busy,
           "b take other; redis REPLICAOF 127.0.0.1 1; a try k: readonly; "
           "a connect: readonly; b2 try other: readonly; redis REPLICAOF NO ONE; "
           "a take k");

static void *flush_all_the_time(void *arg)
{
    redisContext *raw = lock_raw_connection(lock_server.url);
    atomic_bool *stop = arg;

    while (!atomic_load(stop))
        freeReplyObject(redisCommand(raw, "SCRIPT FLUSH"));
    redisFree(raw);
    return NULL;
}

/* Calls of EVALSHA that failed, as the server counts them. */
static int scripts_missed(struct lock_world *w)
{
    redisReply *info = redisCommand(w->raw, "INFO commandstats");
    const char *at = strstr(info->str, "cmdstat_evalsha:");
    int n;

    assert_non_null(at);
    n = atoi(strstr(at, "failed_calls=") + strlen("failed_calls="));
    freeReplyObject(info);
    return n;
}

/* Also between the loading of a script and its call, and inside the renewer's pipe. */
/* Guarantee: SCRIPT FLUSH at any moment is not seen by the caller. */
LOCK_CASE(script_flush_midway_at_any_moment)
{
    atomic_bool stop = false;
    pthread_t flusher;

    assert_int_equal(rlock_connect(w->a), RLOCK_OK);
    lock_raw_do(w, "CONFIG RESETSTAT");
    assert_int_equal(pthread_create(&flusher, NULL, flush_all_the_time, &stop), 0);
    for (int i = 0; i < 100 || scripts_missed(w) <= 100; i++) {
        assert_true(i < 20000); /* the flusher did not get its rounds */
        assert_int_equal(rlock_try(w->la, "user:1", 5000), RLOCK_OK);
        assert_int_equal(rlock_extend(w->la, 6000), RLOCK_OK);
        assert_int_equal(rlock_release(w->la), RLOCK_OK);
    }
    atomic_store(&stop, true);
    (void)pthread_join(flusher, NULL);
}

/* ---- the holder ---- */

/* A process that holds "user:1" and renews it. */
static int hold(int i, void *lease_ms)
{
    struct rlock_renew_options o = {.size = sizeof o};
    struct rlock_client *c = lock_client(lock_server.url, 0);
    struct rlock *l = rlock_new(c);
    struct rlock_renewer *r;

    (void)prctl(PR_SET_PDEATHSIG, SIGKILL);
    if (rlock_try(l, "user:1", *(uint32_t *)lease_ms) != RLOCK_OK ||
        rlock_renewer_open(&r, c, &o) != RLOCK_OK ||
        rlock_renew(r, l, 0, 600000) != RLOCK_OK)
        return i + 1;
    for (;;)
        (void)pause();
}

static pid_t start_holder(struct lock_world *w, uint32_t lease_ms)
{
    pid_t pid;

    crowd_start(&pid, 1, hold, &lease_ms);
    LOCK_AWAIT(lock_raw_integer(w, "EXISTS lock:user:1") == 1);
    return pid;
}

static void kill_holder(pid_t pid)
{
    assert_int_equal(kill(pid, SIGKILL), 0);
    assert_int_equal(fixture_reap(pid, CROWD_SECONDS), 128 + SIGKILL);
}

/* Guarantee: A killed holder's key is free when its lease ends. */
LOCK_CASE(crash_releases_by_ttl)
{
    enum { LEASE_MS = 4000 };

    int64_t before;
    pid_t pid = start_holder(w, LEASE_MS);

    fixture_pause_ms(LEASE_MS + 500);
    assert_int_equal(rlock_try(w->la, "user:1", 60000), RLOCK_BUSY); /* it is renewed */
    before = lock_last_token(w);
    assert_true(before > 0);
    kill_holder(pid);
    assert_in_range(lock_raw_integer(w, "PTTL lock:user:1"), 1, LEASE_MS);
    LOCK_AWAIT(lock_raw_integer(w, "EXISTS lock:user:1") == 0);
    assert_int_equal(rlock_try(w->la, "user:1", 60000), RLOCK_OK);
    assert_true(rlock_token(w->la) > before);
}

static int take_once(int i, void *arg)
{
    const struct rlock_key key = {"user:1", 6};
    struct rlock *l = rlock_new(lock_client(lock_server.url, 0));

    (void)arg;
    if (rlock_acquire_wait(l, &key, 1, RLOCK_ALL, 60000, 300000, -1) != RLOCK_OK)
        return i + 1;
    return rlock_release(l) == RLOCK_OK ? 0 : i + 1;
}

/* Eight processes wait for the dead one's key: each has it once, one after the other.
 */
/* Guarantee: A killed holder's key goes to one waiter at a time. */
LOCK_CASE(crash_releases_by_ttl_to_one_waiter_at_a_time)
{
    pid_t holder = start_holder(w, 2000), pids[8];

    crowd_start(pids, 8, take_once, NULL);
    LOCK_AWAIT(waiters_blocked(w) > 0);
    kill_holder(holder);
    crowd_join(pids, 8);
}
