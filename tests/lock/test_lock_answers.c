/* Answers of Redis that get lost, commands that run late, answers that come late,
 * servers that are paused or are another one now. */
#include <pthread.h>

#include "tests/lib/play.h"

/* A call asks four times before it gives up. "p take first" makes the scripts known to
 * the server, so that the first answer is the one that counts. */
#define KNOWN "p take first; p release; "

/* ---- lost ---- */

/* Guarantee: An acquire whose answer is lost gets the same grant at once, with one
 * token. */
PLAY_ONE(acquire_reply_lost,
         KNOWN "proxy cut_after EVALSHA; p try k; proxy cuts: 1; minted: 0; p verify");

/* Guarantee: A release whose answer is lost asks again: `RLOCK_OK`, and the key is
 * gone. */
PLAY_ONE(release_reply_lost,
         KNOWN "p take k; proxy cut_after EVALSHA; p release; proxy cuts: 1; "
               "copies k: 0; p release");

/* Guarantee: A release that never heard an answer can be asked again by the caller. */
PLAY_ONE(release_reply_lost_until_the_call_gives_up,
         KNOWN "p take k; proxy cut_after EVALSHA 4; p release: uncertain; "
               "proxy cuts: 4; copies k: 0; p invalid; p release; p release");

/* The release may come to the server at any time, so nothing is promised of the lock
 * until the release was answered; it was ours until then. */
/* Guarantee: A lock whose release was not answered is neither valid nor
 * extended. */
PLAY_ONE(release_not_answered_leaves_nothing_to_count_on,
         "p limits 500; " KNOWN "p take k; proxy refuse; "
         "p release: unavailable; proxy welcome; copies k: 1; p invalid; "
         "p extend: inval; p verify: inval; "
         "proxy cut_after EVALSHA; await p release; proxy cuts: 1; copies k: 0");

/* Guarantee: A release of a thousand keys that fails can be asked again. */
PLAY_ONE(release_of_a_thousand_keys_is_asked_again,
         "p all k:0..999; proxy cut_before @k:999 9; p release: fault; "
         "proxy cuts_before: 2-9; keys: 1000; proxy pass; p release; keys: 0");

/* Guarantee: An acquire that never hears an answer is uncertain, and what it took is
 * given back. */
PLAY_ONE(answer_lost_every_time_is_uncertain_and_given_back,
         KNOWN "proxy cut_after EVALSHA 4; p try k: uncertain; proxy cuts: 4; "
               "p key 0: busy; copies k: 0; p release: gone");

/* The key could not be given back either: the caller asks again. */
PLAY_ONE(answer_lost_and_server_away_may_be_released_later,
         "p limits 500; " KNOWN "proxy swallow_after @k; p try k: uncertain; "
         "copies k: 1; proxy pass; await p release; copies k: 0");

PLAY_ONE(force_release_with_a_lost_answer_is_asked_again,
         "p force first: gone; a take k; p see k; proxy cut_after EVALSHA; p force k; "
         "proxy cuts: 1; copies k: 0");

PLAY_ONE(dead_holder_is_freed_although_the_answer_was_lost,
         "a take first; p dead a first: 1; b all x,y,z; proxy cut_after EVALSHA; "
         "p dead b x,y,z: 0-3; proxy cuts: 1; keys: 0");

PLAY_ONE(repeat_after_a_lost_answer_gives_the_same_permit,
         KNOWN
         "proxy cut_after EVALSHA; p one q,r,s; keys: 1; p valid; "
         "proxy cut_after EVALSHA; p2 one q,r,s; keys: 2; proxy cut_after EVALSHA; "
         "p3 one q,r,s; keys: 3; proxy cuts: 3; p4 one q,r,s: busy");

/* ---- commands that run late ---- */

/* The tries of the acquire come to the server long after the rollback, which goes over
 * another connection, and are run. */
/* Guarantee: An acquire that runs after its time grants nothing. */
PLAY_ONE(acquire_late_execution,
         "p limits 200; " KNOWN "redis CONFIG RESETSTAT; proxy late @k 4 5000; "
         "p try k: uncertain; proxy lates: 0; copies k: 0; await proxy lates: 4; "
         "await calls evalsha: 5-9; copies k: 0; minted: 0; b take k");

/* Guarantee: An acquire that a frozen server runs when it wakes grants nothing. */
PLAY_ONE(acquire_late_execution_on_a_frozen_server,
         "a limits 1000; a take first; a release; redis CONFIG RESETSTAT; "
         "a stopped_try k: uncertain; rest 400; server cont; await calls evalsha: 1-9; "
         "copies k: 0; await a try k");

/* ---- answers after the lease ---- */

/* Guarantee: A grant that is heard after its lease is no lock, and is given back. */
PLAY_ONE(grant_that_is_heard_after_its_lease_is_no_lock,
         KNOWN "proxy delay 400; p try k 100: unavailable; proxy delayed: 1-99; "
               "proxy delay 0; copies k: 0");

/* The key was gone when the release came, so the answer that was lost told nothing of a
 * key that was ours. */
/* Guarantee: A release after the lease whose answer is lost is told `RLOCK_GONE`. */
PLAY_ONE(release_after_the_lease_whose_answer_is_lost_tells_that_it_was_gone,
         KNOWN "p take k 50; await copies k: 0; proxy cut_after EVALSHA; "
               "p release: gone; proxy cuts: 1");

/* Guarantee: A wait that ends while the server is gone is uncertain if the answer to an
 * earlier try was lost. */
PLAY_ONE(wait_is_uncertain_if_an_earlier_try_was,
         KNOWN "proxy swallow_after EVALSHA; p begin k 2000; await proxy swallowed: 1; "
               "proxy refuse; p end: uncertain");

/* Guarantee: A majority that answers after the lease is a failure, and is released
 * everywhere. */
PLAY_QUORUM(grant_of_a_quorum_after_its_lease_is_no_lock,
            KNOWN "proxy delay 900; p try k 300: unavailable; copies k: 0");

/* ---- others act between a lost answer and the next attempt ---- */

/* Takes keys with a script that is known and gives them back; the answer is swallowed,
 * and nobody is heard until AGAIN. */
#define RELEASE_UNHEARD                                                                \
    KNOWN "p take k; proxy swallow_after EVALSHA; p begin_release; "                   \
          "await proxy swallowed: 1; "
#define AGAIN "proxy cut; proxy pass; "

/* The server that is asked again is a new process: it cannot know what the old one did.
 */
PLAY_FRESH(release_vouches_for_nothing_that_another_process_did,
           RELEASE_UNHEARD "server kill; " AGAIN
                           "p end: fault; p invalid; server start; p release: gone");

PLAY_ONE(release_in_time_is_told_as_such_though_another_has_the_key,
         RELEASE_UNHEARD "b try k; " AGAIN "p end; b granted: 1; p release; b valid; "
                         "copies k: 1");

/* An operator frees x, and somebody has it for a moment. */
PLAY_ONE(repeat_grants_no_key_that_had_a_higher_token_meanwhile,
         KNOWN "proxy swallow_after EVALSHA; p begin x,y 0; await proxy swallowed: 1; "
               "b force x; b try x 5000; b release; " AGAIN
               "p end: busy; copies x: 0; copies y: 0");

PLAY_ONE(lock_is_not_valid_once_a_release_was_sent,
         "p limits 500; p take k; proxy swallow; p release: fault; p invalid; "
         "p left: 0; proxy pass; await p release");

/* ---- the server is another one now ---- */

/* Idle connections, before and after the check of once a second; the server goes on
 * with what it has. */
#define DEMOTE "redis REPLICAOF 127.0.0.1 1; "
#define PROMOTE "redis REPLICAOF NO ONE; "

/* Guarantee: A demoted primary tells nothing that only the new primary knows. */
PLAY_FRESH(demoted_primary_vouches_for_nothing,
           "a take k; " DEMOTE "a verify: readonly; a extend 30000: readonly; "
           "rest 1100; a verify: readonly; a extend 90000: readonly; "
           "a release: readonly; redis EXISTS @k: 1");

/* Each of them as the first that the demoted server hears of us; the last is a release
 * of what is not there. */
PLAY_FRESH(demoted_primary_refuses_each_call_by_itself,
           "a take k; " DEMOTE "a verify: readonly; " PROMOTE "a release; "
           "a take k; " DEMOTE "a extend: readonly; " PROMOTE "a release; "
           "a take k; " DEMOTE "a release: readonly; " PROMOTE "a release; "
           "a take k; del k; " DEMOTE "a release: readonly; " PROMOTE
           "a release: gone");

/* ---- CLIENT PAUSE ---- */

/* Such a server answers nobody for longer than a client waits: that is a fault, never
 * busy, and nothing is granted when the pause is over. */
/* Guarantee: A server under CLIENT PAUSE leaves an acquire uncertain and nothing
 * behind. */
PLAY_ONE(client_pause_is_uncertain_and_leaves_nothing,
         "a limits 500; a take first; a release; redis CLIENT PAUSE 60000 WRITE; "
         "a try k: uncertain; a try k: fault; redis CLIENT UNPAUSE; rest 1000; "
         "copies k: 0; await a try k; a release");

/* The server is not even asked where it was not checked for a second. */
PLAY_ONE(client_pause_of_all_leaves_nothing,
         "a limits 500; a take first; a release; redis CLIENT PAUSE 4000 ALL; "
         "a try k: uncertain|unavailable; redis SET @!probe 1; rest 1000; copies k: 0; "
         "await a try k");

/* A proxy keeps the connection that the client gave up, so the server, which has the
 * command already, runs it when the pause is over. */
PLAY_ONE(client_pause_command_that_runs_late_grants_nothing,
         "p limits 500; p take first; p release; redis CONFIG RESETSTAT; "
         "redis CLIENT PAUSE 60000 WRITE; p begin k 1500; await blocked: 1; "
         "proxy swallow; p end: fault; redis CLIENT UNPAUSE; await calls evalsha: 1-9; "
         "copies k: 0; b take k");

PLAY_ONE(client_pause_shorter_than_the_answer_time_is_not_seen,
         "a connect; redis CLIENT PAUSE 300 ALL; a try k; redis CLIENT PAUSE 300 ALL; "
         "a release");

/* Guarantee: A pause beyond the lease ends it, and the holder learns. */
PLAY_ONE(client_pause_beyond_the_lease_ends_the_hold,
         "a take k 1000; redis CLIENT PAUSE 2000 ALL; redis SET @!probe 1; a invalid; "
         "b take k; a release: not_owner");

/* ---- answers that come late ---- */

static unsigned delayed_ct; /* answers that were late before */

/* Every answer is late until one was. */
static void *let_one_be_late(void *arg)
{
    struct quorum_world *w = arg;

    (void)proxy_wait(&w->proxies[0], PROXY_DELAYED, delayed_ct + 1, 60);
    proxy_delay(&w->proxies[0], 0);
    return NULL;
}

/* Plays these steps while the next answer is late, and those behind it are not. */
static void play_late(struct quorum_world *w, const char *steps)
{
    pthread_t thread;

    delayed_ct = proxy_count(&w->proxies[0], PROXY_DELAYED);
    proxy_delay(&w->proxies[0], 800);
    assert_int_equal(pthread_create(&thread, NULL, let_one_be_late, w), 0);
    play(steps);
    (void)pthread_join(thread, NULL);
    assert_true(proxy_count(&w->proxies[0], PROXY_DELAYED) > delayed_ct);
}

/* "held" is busy and "free" is not, the lock is whole: an answer that is taken for the
 * next one is seen. */
/* Guarantee: A late answer is never taken for the next one's. */
PLAY_CASE(play_on_one, stale_reply_never_matched)
{
    play("b take held; p limits 600; p connect");
    for (int i = 0; i < 3; i++) {
        play_late(w, "p try held: busy; p try free");
        play_late(w, "p verify; p force nobody: gone");
        fixture_pause_ms(i * 400); /* the late answer has come, or has not */
        play("p release");
    }
    play("keys: 1; b release");
}
