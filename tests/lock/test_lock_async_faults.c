/* The event-loop form of the lock library: lost answers, late ones, servers that will
 * not do. */
#include "tests/lib/loop_world.h"

#ifdef HAVE_LIBEVENT

/* The connection that lost an answer has ended: the caller attaches another one. */
PLAY_ONE(lost_answer_is_uncertain_and_the_release_can_be_asked_again,
         "p attach; p try first; p release; proxy cut_after EVALSHA; "
         "p try k: uncertain; p error: connection; p granted: 0; p invalid; "
         "copies k: 1; p attached: 0; p send release: unavailable; p attach; "
         "p release; copies k: 0; p try k; proxy cut_after EVALSHA; "
         "p extend 120000: uncertain; p left: 30000-60000; p attach; "
         "p extend 120000; proxy cut_after EVALSHA; p release: uncertain; p invalid; "
         "p attach; p release"); /* it was the first try that did it */

PLAY_ONE(
    lock_that_is_being_released_or_was_lost_is_not_extended,
    "p attach; p try k; proxy cut_after EVALSHA; p release: uncertain; p attach; "
    "p send extend 120000: inval; p release; p try k; del k; p extend 120000: lost; "
    "p send extend 120000: lost; p error: not ours; p told: 5");

PLAY_ONE(call_that_was_never_sent_is_unavailable,
         "p attach; proxy cut_before EVAL\r\n; p try k: unavailable; "
         "p send release: inval; p send try k: unavailable; p told: 1");

static bool is_slow; /* the server may have been asked how it is, and nothing sent */

static void attach_next(struct ll_lock *l, int code, void *arg)
{
    struct loop *loop = arg;

    if (loop->told++ == 1)
        loop_attach(loop, playing.w->plain_url);
    assert_true(code == LL_E_UNCERTAIN || (is_slow && code == LL_E_UNAVAILABLE));
    assert_false(ll_valid(l, 0));
}

PLAY_CASE(play_on_one, all_calls_are_told_when_the_connection_ends)
{
    struct loop *loop = loop_of("p");
    int64_t began_ms = fixture_now_ms();

    play("p attach; p try k; proxy swallow");
    assert_int_equal(loop_acquire(loop, play_lock("p2"), "x", attach_next), LL_OK);
    assert_int_equal(loop_acquire(loop, play_lock("p3"), "y", attach_next), LL_OK);
    assert_int_equal(loop_acquire(loop, play_lock("p4"), "z", attach_next), LL_OK);
    play("p told: 1");
    is_slow = fixture_now_ms() - began_ms > 900;
    play("proxy cut; await p told: 4; p release"); /* over the next one */
}

/* It is given back although the server has forgotten the scripts. */
PLAY_ONE(grant_that_comes_after_its_lease_is_given_back,
         "p attach; p try k; p release; proxy delay 1500; "
         "p send try k 100; p told: 2; redis SCRIPT FLUSH; await p told: 3; "
         "p code: unavailable; p error: after the lease; p granted: 0; p token: 0; "
         "p key 0: busy; p told: 3; await copies k: 0");

/* The loop stands still, and the command with it. */
PLAY_ONE(late_command_is_sent_again_after_a_check_of_the_clock,
         "p limits 1000; p attach; p try first; p release; p send try k; rest 2000; "
         "await p told: 3; p code: ok; p left: 30000-59398; p release; "
         "proxy late EVALSHA 50 1500; p try j: unavailable; copies j: 0; "
         "p send release: inval");

PLAY_ONE(script_that_fails_grants_nothing,
         "l attach; redis SET @!last nonsense; l try k: proto; "
         "l error: holds no token; l granted: 0; redis DEL @!last; l try k");

/* ---- servers that will not do ---- */

PLAY_FRESH(server_that_evicts_is_refused_within_a_second,
           "l attach; l try k; l release; "
           "redis CONFIG SET maxmemory-policy allkeys-lru; rest 1100; "
           "l try k: evicting; l error: allkeys-lru; copies k: 0; "
           "redis CONFIG SET maxmemory-policy noeviction; l try k");

/* A held lock stays valid. */
PLAY_FRESH(replica_is_refused_and_a_demoted_primary_at_once,
           "l attach; l try k; redis REPLICAOF 127.0.0.1 1; l extend: readonly; "
           "l extend: readonly; l error: is a replica; l valid; "
           "redis REPLICAOF NO ONE; l release");

LOCK_CASE(server_that_is_not_there_is_unavailable)
{
    const struct ll_options o = {.size = sizeof o};
    struct loop *loop = loop_open(&o);
    redisAsyncContext *ac = redisAsyncConnectUnix("/nowhere/redis.sock");

    assert_int_equal(ll_async_attach(loop->c, ac), LL_E_UNAVAILABLE);
    redisAsyncFree(ac);
    ac = redisAsyncConnect("127.0.0.1", 1);
    assert_int_equal(redisLibeventAttach(ac, loop->base), REDIS_OK);
    assert_int_equal(ll_async_attach(loop->c, ac), LL_OK);
    assert_int_equal(loop_acquire(loop, loop->l, "k", on_done), LL_OK);
    loop_run_until(loop, 1);
    assert_int_equal(loop->code, LL_E_UNAVAILABLE);
    assert_int_equal(loop_acquire(loop, loop->l, "k", on_done), LL_E_UNAVAILABLE);
    assert_int_equal(loop->told, 1); /* the second was refused at once */
    fixture_assert_contains(ll_error(loop->c), "attached to no connection");
    loop_close(loop);
}
#endif
