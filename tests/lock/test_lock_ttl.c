/* No code path of the library makes a lock key without an end: every command that the
 * servers run is watched while the library does all that it can, in every mode. */
#include "tests/lib/ha_world.h"
#include "tests/lib/lock_waiters.h"
#include "tests/lib/lock_watch.h"
#include "tests/lib/play_inside.h"

enum { MANY = RLOCK_KEYS_MAX };

/* All that client a can do. Leaves two keys held, so that there is something to look at
 * in the end. */
#define USE_ALL                                                                        \
    "a try x 5000; a2 try x 5000: busy; a2 wait x 150: timeout; a extend 10000; "      \
    "a verify; a release; a release; a try short 300; rest 350; a extend 5000: lost; " \
    "a release: gone; a2 try y 5000; a all x,y,z 5000: busy; "                         \
    "a any x,y,z 5000: partial; a release; a2 release; a all k:0..999 5000; "          \
    "a extend 10000; a2 any k:0..999 5000: busy; a release; a all x,y,z 5000; "        \
    "a renew 20; a renewed 2; a release; a try left 5000; a2 try left:too 5000"

/* Guarantee: Nothing that the library runs leaves a lock key without an end. */
PLAY_CASE(play_on_one, ttl_always_set)
{
    struct lock_watch watch;

    lock_watch_start(&watch, w->servers[0].url, w->prefix);
    play(USE_ALL "; a list: 2; a force left");
    lock_watch_stop(&watch, MANY + 10);
}

LOCK_CASE(ttl_always_set_while_many_wait)
{
    struct lock_watch watch;
    struct waiter *waiters;

    lock_watch_start(&watch, lock_server.url, "lock:");
    waiters = waiters_start(
        8, (struct waiter){.rounds = 5, .wait_ms = 10000, .hold_us = 2000});
    waiters_join(waiters, 8);
    free(waiters);
    assert_true(waiters_calls(w, "lpush") > 0); /* wake-ups were pushed */
    lock_watch_stop(&watch, 40);
}

/* The first that is free is set, the others are copies of it. */
PLAY_CASE(play_on_one, ttl_always_set_however_a_key_of_a_batch_is_taken)
{
    char command[24];

    play("redis SET @k:0 theirs; redis SET @k:20 theirs PX 9000; "
         "redis CONFIG RESETSTAT; a any k:0..39 5000: partial; calls copy: 38; "
         "a granted: 38; redis PTTL @k:0: -1"); /* as it was */
    for (int i = 1; i < 40; i++) {
        (void)snprintf(command, sizeof command, "PTTL %%sk:%d", i);
        assert_in_range(quorum_ask(w, 0, command), i == 20 ? 8000 : 4000,
                        i == 20 ? 9000 : 5000);
    }
}

/* Guarantee: No lock key is without an end when replicas are waited for. */
CASE(ttl_always_set_with_replicas)
{
    SERVER primary = {0}, replica = {0};
    struct lock_watch watch;

    ha_start(&primary, 0);
    ha_start(&replica, primary.port);
    ha_wait_replicas(&primary, 1);
    ha_play((struct ha_server *const[]){&primary, &replica}, 2);
    lock_watch_start(&watch, primary.redis.url, playing.w->prefix);
    play("a replicas 1; " USE_ALL "; redis1 PTTL @left: 1-5000");
    lock_watch_stop(&watch, MANY + 10);
    ha_play_end();
}

/* The first node is ahead, and the others have to be told. */
/* Guarantee: No lock key is without an end on a quorum. */
PLAY_CASE(play_on_quorum, ttl_always_set_over_a_quorum)
{
    struct lock_watch watches[3];

    play("redis0 SET @!last 4000000000000000; a everywhere");
    for (size_t i = 0; i < 3; i++)
        lock_watch_start(&watches[i], w->servers[i].url, w->prefix);
    play(USE_ALL);
    for (size_t i = 0; i < 3; i++)
        lock_watch_stop(&watches[i], MANY + 10);
}

/* Every other answer gets lost: what is repeated and what is given back. */
#define LOSE(times, acquired, extended, released)                                      \
    "proxy cut_after EVALSHA " times "; p all x,y,z 5000: " acquired                   \
    "; proxy cut_before EVALSHA; p extend 5000: " extended                             \
    "; proxy cut_after EVALSHA; p release: " released "; proxy pass; "

/* Guarantee: No lock key is without an end when answers are lost. */
PLAY_CASE(play_on_one, ttl_always_set_when_answers_are_lost)
{
    struct lock_watch watch;

    play("p take x; p extend; p release"); /* the scripts are known */
    lock_watch_start(&watch, w->servers[0].url, w->prefix);
    play(LOSE("1", "ok", "ok", "ok") LOSE("2", "ok", "ok", "ok")
             LOSE("3", "ok", "ok", "ok") LOSE("4", "uncertain", "inval", "gone"));
    play("proxy cuts: 10-99; proxy cuts_before: 1-99");
    lock_watch_stop(&watch, 6);
}
