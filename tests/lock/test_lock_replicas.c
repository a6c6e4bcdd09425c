/* The lock library on a primary with replicas: WAIT, promotion of a replica that lags,
 * demotion. */
#include "tests/lib/ha_world.h"
#include "tests/lib/loop_world.h"

/* Nodes 0, 1 and 2 of the steps: a primary and two replicas; the first replicates
 * through a link that can be cut. Client r is one of the first replica. */
struct replica_world {
    struct ha_server primary, cut, near;
    struct proxy link;
};

static void open_world(void)
{
    static struct replica_world w;
    char address[32];

    memset(&w, 0, sizeof w);
    ha_start(&w.primary, 0);
    (void)snprintf(address, sizeof address, "127.0.0.1:%d", w.primary.port);
    proxy_open(&w.link, address, NULL);
    ha_start(&w.cut, w.link.port);
    ha_start(&w.near, w.primary.port);
    ha_wait_replicas(&w.primary, 2);
    ha_play((struct ha_server *const[]){&w.primary, &w.cut, &w.near}, 3);
    PLAY_OPEN("r", .url = w.cut.url, .prefix = playing.w->prefix,
              .reply_ms = LOCK_SOON_MS);
    test_state = &w;
}

static void close_world(void)
{
    struct replica_world *w = test_state;

    ha_play_end();
    ha_close(&w->near);
    ha_close(&w->cut);
    proxy_close(&w->link);
    ha_close(&w->primary);
}

GROUP(.open = open_world, .close = close_world);
#define REPLICA_CASE(...) CASE_IN(test_group, struct replica_world, __VA_ARGS__)

/* ---- WAIT ---- */

/* Guarantee: A lock that too few replicas confirm is no lock, and is given back. */
REPLICA_CASE(wait_one_of_two_replicas)
{
    play("b limits 2000; b replicas 2; c replicas 1; b try k; redis1 EXISTS @k: 1; "
         "b release; server2 stop; b try k: not_replicated; redis0 EXISTS @k: 0; "
         "c try k; redis1 EXISTS @k: 1; server2 cont; c release; b try k");
}

REPLICA_CASE(busy_key_costs_no_wait_for_replicas)
{
    play("b limits 1000; b replicas 3; a try k; b try k: busy; " /* there are 2 */
         "b try other: not_replicated");
}

/* In a loop a call may read the answer to another one, and end the connection; on a new
 * connection WAIT would count every replica. */
/* Guarantee: The replicas of a lock are counted by the connection that took it, or the
 * lock does not count. */
REPLICA_CASE(replicas_are_counted_by_the_connection_that_took_the_lock)
{
    struct loop loop;
    struct pollfd p;

    (void)w;
    play("c replicas 1; c try first; c release");
    loop = loop_of("c");
    assert_int_equal(loop_acquire(&loop, play_lock("c"), "k", 0), RLOCK_OK);
    p = (struct pollfd){.fd = loop.c->nodes[0].conn->fd, .events = POLLIN};
    assert_int_equal(poll(&p, 1, LOCK_SOON_MS), 1);
    rlock_io(loop.c);
    rlock_disconnect(loop.c);
    LOOP_AWAIT(&loop, loop.told == 1);
    promise_int_equal(loop.code, RLOCK_E_UNCERTAIN);
    play("c granted: 0; await redis0 EXISTS @k: 0");
}

/* ---- promotion ---- */

/* Two primaries: both grant, the tokens tell who came later as far as their clocks
 * agree. The first cannot know: that is what the token is for. */
/* Guarantee: A replica without the key is promoted: both hold, and the tokens are
 * ordered as far as the clocks agree. */
REPLICA_CASE(failover_without_key)
{
    proxy_swallow(&w->link, true);
    play("a try k; r try k: readonly; redis1 REPLICAOF NO ONE; r try k; a valid");
}

/* The last token came over, but it is not the last one: the clock carries on. */
/* Guarantee: A replica with an older last token is promoted: the clock carries on. */
REPLICA_CASE(failover_token_behind)
{
    play("a try first; await redis1 EXISTS @first: 1");
    proxy_swallow(&w->link, true);
    for (int i = 0; i < 20; i++)
        play("a release; a try k");
    play("redis1 REPLICAOF NO ONE; r try k");
}

/* ---- demotion ---- */

/* Once it waits for a replica; the server ends the WAIT with UNBLOCKED. */
REPLICA_CASE(wait_goes_on_when_the_primary_is_demoted_before_its_replicas_confirm)
{
    int64_t start = fixture_now_ms();

    play("b limits 20000; b replicas 2; server2 stop; b begin k 3000; "
         "await blocked: 1; redis0 REPLICAOF 127.0.0.1 1; b end: readonly; "
         "server2 cont");
    assert_in_range(fixture_now_ms() - start, 3000 - 50, LOCK_SOON_MS);
}

/* The near replica becomes the primary of its primary. An answer of the old primary is
 * out of date, so it must not say busy either. */
/* Guarantee: A demoted primary answers `RLOCK_E_READONLY` to every call, never busy,
 * kept or listed. */
REPLICA_CASE(readonly_after_demotion)
{
    play("a try k; b try k: busy; a list: 1; await redis2 EXISTS @k: 1; "
         "redis2 REPLICAOF NO ONE");
    ha_follow(&w->primary, &w->near);
    play("promise a list: readonly; promise b force k: readonly; "
         "promise b dead a k: readonly; b try k: readonly; b try other: readonly; "
         "a verify: readonly; a extend: readonly; a release: readonly");
    ha_wait_linked(&w->primary);
    play("b try k: readonly");
}
