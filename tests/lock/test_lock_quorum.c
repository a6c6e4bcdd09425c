/* Only a quorum does this: it goes on without a minority, tells of a lost majority, and
 * is renewed, waited for and listed while nodes are away. */
#include "tests/lib/lock_counts.h"
#include "tests/lib/play.h"

/* ---- all are well ---- */

/* So that it outlives one of them, also one that is not much slower than the others. */
PLAY_CASE(play_on_quorum, first_acquire_of_a_client_reaches_all_nodes)
{
    size_t n = 0;

    for (size_t i = 0; i < 3; i++)
        proxy_delay(&w->proxies[i], i == 2 ? 25 : 20);
    for (int i = 0; i < 20 && n < 3; i++) { /* a busy machine keeps it away */
        LONE *l = rlock_new(quorum_client(w, w->url, QUORUM_REPLY_MS));

        assert_int_equal(rlock_try(l, "first", 60000), RLOCK_OK);
        for (int k = 0; k < 10 && (n = quorum_copies(w, "first")) < 3; k++)
            fixture_pause_ms(2);
        assert_int_equal(rlock_release(l), RLOCK_OK);
        quorum_wait_copies(w, "first", 0);
    }
    assert_int_equal(n, 3);
}

/* Besides them there are looks at the servers once a second, and what is asked again of
 * a node that a majority did not wait for: fewer than a second trip each. */
PLAY_CASE(play_on_quorum, acquire_and_release_are_one_round_trip_each)
{
    uint64_t trips;

    play("a take k; a release");
    trips = lock_trips(play_client("a"));
    for (int i = 0; i < 50; i++)
        play("a try k; a release");
    assert_in_range(lock_trips(play_client("a")) - trips, 100, 150);
}

#define FIRST "a take first; a release; copies first: 0; "

/* One node is no majority; with two, the third is free again. */
PLAY_QUORUM(foreign_plain_lock_on_a_majority_excludes_us,
            FIRST "redis0 SET @k other PX 60000; a try k; a release; copies k: 1; "
                  "redis1 SET @k other PX 60000; a try k: busy; copies k: 2; "
                  "redis2 EXISTS @k: 0");

PLAY_QUORUM(any_keeps_what_has_a_majority_and_gives_the_rest_back,
            FIRST "redis0 SET @y other PX 60000; redis1 SET @y other PX 60000; "
                  "a any x,y,z: partial; a granted: 2; a key 1: busy; "
                  "copies y: 2; redis2 EXISTS @y: 0; a release; "
                  "copies x: 0; copies z: 0");

/* Guarantee: A refused attempt on a quorum gives back what it took on every server. */
PLAY_QUORUM(all_needs_a_majority_for_each_key,
            FIRST "redis0 SET @y other PX 60000; a all x,y,z; a release; copies y: 1; "
                  "redis2 SET @y other PX 60000; a all x,y,z: busy; copies x: 0; "
                  "copies y: 2; copies z: 0");

PLAY_QUORUM(lease_longer_than_the_longest_is_refused,
            "a try k 120001: inval; a take k; a extend 120001: inval; "
            "a extend 120000; a release; a try k 120000");

/* ---- losses ---- */

/* A key that a majority has lost is never made again. */
/* Guarantee: An extend puts a key back on a server of a quorum that lost it, while a
 * majority has it; a loss on a majority is told. */
PLAY_QUORUM(loss_on_a_minority_is_made_good_and_on_a_majority_told,
            "a take k; redis0 DEL @k; a extend; await redis0 EXISTS @k: 1; "
            "a verify left: 1-60000; redis1 SET @k other XX PX 60000; a extend; "
            "redis1 GET @k: other; redis2 DEL @k; redis0 DEL @k; a extend: lost; "
            "a extend: lost; a key 0: lost; a invalid; redis0 EXISTS @k: 0; "
            "a release: gone; redis1 EXISTS @k: 1");

PLAY_QUORUM(
    renewal_tells_a_loss_on_a_majority,
    "a take k; a renew 200; redis0 SET @k other XX PX 60000; a renewed 4; "
    "a losses: 0; redis2 SET @k other XX PX 60000; a loss: lost; a losses: 1; a key 0: lost");

PLAY_QUORUM(renewal_tells_before_the_lease_ends_that_no_majority_answers,
            "p take k 4000; p renew; proxy0 refuse; proxy1 swallow; "
            "p loss: no_quorum; p losses: 1");

/* The lease ends a key that the release does not reach. */
PLAY_QUORUM(renewal_goes_on_while_a_node_is_away,
            "p take k 15000; p renew 300; proxy1 refuse; p renewed 5; p valid; "
            "b try k: busy; p renewed 5; p losses: 0; p release; proxy1 welcome; "
            "await b try k");

/* ---- waiting ---- */

/* The grant of the minority is given back. */
PLAY_QUORUM(wait_goes_on_through_a_majority_that_is_away,
            "p take j; proxy0 refuse; proxy1 refuse; p2 try k: no_quorum; copies k: 0; "
            "p release: no_quorum; p begin k 60000; rest 500; proxy0 welcome; p end");

PLAY_QUORUM(wait_tells_of_a_majority_that_stays_away,
            "proxy0 refuse; proxy1 refuse; p wait k 300: no_quorum");

/* ---- for operators ---- */

PLAY_QUORUM(listing_tells_of_a_key_once_for_each_node,
            "b list: 0; a take k; redis1 SET @other foreign; b list: 4");

PLAY_QUORUM(listing_bears_a_node_that_does_not_answer,
            "b take k; p limits 500; await p list: 3; proxy0 swallow; p list: 2; "
            "proxy1 swallow; p list: fault");

/* The silent node owes an answer already. A node that is not connected at that moment
 * keeps its copy for the lease, here and in the next but one. */
PLAY_QUORUM(forced_release_of_a_key_that_one_node_has_is_told,
            "a everywhere; redis1 SET @k other PX 60000; a force k; copies k: 0; "
            "a force k: gone");

PLAY_QUORUM(forced_release_is_not_held_up_by_a_slow_node,
            "b take k; p connect; proxy1 delay 300; p try other; p force k; "
            "copies k: 0-1; c take k");

/* ---- nodes that are away, or late ---- */

/* The silent one hears of it late. */
PLAY_QUORUM(release_goes_on_while_one_node_is_silent,
            "p take k; proxy1 swallow; p release; p release; redis1 EXISTS @k: 1; "
            "proxy1 let; copies k: 0");

/* The first node deletes it at once, unheard. */
PLAY_QUORUM(release_without_a_majority_can_be_asked_again,
            "p take first; p release; p take k; proxy0 cut_after EVALSHA; "
            "proxy1 cut_before EVALSHA; p release: no_quorum; p invalid; p release; "
            "copies k: 0-1; c take k");

PLAY_QUORUM(renewal_that_runs_late_lengthens_nothing,
            "p limits 200; p take k 30000; await p extend 30000; "
            "proxy late EVALSHA 1 1500; p extend 120000: no_quorum; "
            "await proxy lates: 1; rest 100; redis PTTL @k: 0-30000");

PLAY_QUORUM(request_that_runs_late_grants_nothing,
            "b take first; b release; redis CONFIG RESETSTAT; a limits 1000; "
            "a connect; server stop; a try k: no_quorum; rest 1500; server cont; "
            "copies k: 0; b take k");

/* Guarantee: A majority that stands still grants nothing and keeps nothing. */
PLAY_QUORUM(stopped_majority_grants_nothing_and_leaves_nothing,
            "a limits 200; a take other; server0 stop; server1 stop; "
            "a2 try k: no_quorum; await redis2 EXISTS @k: 0; server0 cont; "
            "server1 cont; b take k; b release; copies k: 0");

/* A node that takes no writes is one node less, also for a client that is new. */
PLAY_QUORUM(full_node_is_one_node_less,
            "b connect; redis2 DEL @!max_lease; redis2 CONFIG SET maxmemory 1; "
            "a try k; a release; rest 20; a try k; a release; rest 20; a try k; "
            "a release; redis2 CONFIG SET maxmemory 0; a take k");

/* Not a number where the last token should be: the node is one node less. */
PLAY_QUORUM(node_with_a_damaged_last_token_is_one_node_less,
            "redis1 SET @!last 12abc; await a try k; copies k: 2; "
            "redis1 EXISTS @k: 0; a release; redis2 SET @!last 12abc; "
            "a try k: proto; copies k: 0");

/* Two of three answer late: nothing can be granted in time, and nothing may be left in
 * the way of the next. */
PLAY_QUORUM(late_majority_grants_nothing_and_leaves_nothing,
            "p limits 100; p take k; await p release; copies k: 0; proxy0 delay 900; "
            "proxy1 delay 900; p try k: no_quorum; p granted: 0; copies k: 0; "
            "proxy pass; b try k");

/* A node of two that can answer has forgotten the scripts, and says so late: it is
 * asked again, and the other's answer counts all the while. */
PLAY_QUORUM(answer_is_kept_while_another_node_is_asked_again,
            "p take k; proxy2 refuse; proxy0 delay 450; redis0 SCRIPT FLUSH; "
            "p verify; redis0 SCRIPT FLUSH; p verify; redis0 SCRIPT FLUSH; "
            "p verify left: 1-60000");

PLAY_QUORUM(release_reaches_a_node_whose_grant_is_not_known,
            "p connect; proxy2 delay 900; p try k; copies k: 3; p release; "
            "copies k: 0");

/* ---- nodes that died ---- */

/* Guarantee: Two of three servers dead: no grant, told in time, and the partial
 * grant is given back. */
PLAY_FRESH_QUORUM(two_of_three_dead_are_no_quorum,
                  "p connect; b connect; server0 kill; server2 kill; "
                  "p try k: no_quorum; b try k: no_quorum; copies k: 0; "
                  "p try k: no_quorum; b try k: no_quorum; copies k: 0; "
                  "p connect: no_quorum; p error: 1 of 3 nodes");

/* A node that started less than the longest lease ago may have forgotten locks: it
 * grants nothing, but it may well be renewed, asked and released. */
/* First node 0 still has it and node 1 forgot it, then two forgot it. */
PLAY_FRESH_QUORUM(renewal_and_release_count_a_node_that_may_not_grant,
                  "b take k; server1 kill; server1 start; server2 kill; "
                  "await b verify: no_quorum; b valid; server2 start; "
                  "await b verify: lost; b release: gone; copies k: 0");

PLAY_FRESH_QUORUM(refused_password_is_its_own_answer,
                  "redis CONFIG SET requirepass right; a connect: auth; "
                  "a try k: auth");
