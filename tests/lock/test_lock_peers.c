/* Scenarios of the tests of redsync (mutex_test.go), node-redlock (single.test.ts,
 * multi.test.ts) and bsm/redislock (redislock_test.go), as this library answers them.
 * common/lock/README.md counts them, and names those that are not here. */
#include "tests/lib/play.h"

/* A lease of more than a minute is too long for the quorum of the tests. */

/* ---- redsync ---- */

PLAY(redsync_extend_moves_the_end, "a take k 8000; a extend 60000; ttl k: 8001-60000");

PLAY(redsync_extend_after_the_end_fails,
     "a take k 50; await copies k: 0; a extend 500: lost; copies k: 0");

PLAY(redsync_unlock_after_the_end_says_so,
     "a take k 50; await copies k: 0; a release: gone");

PLAY_PLAIN(redsync_valid_while_held,
           "a take k 3600000; a valid; b try k: busy; a valid");

PLAY(redsync_try_lock_of_a_held_one_fails_at_once, "a take k; b try k: busy");

PLAY_QUORUM(redsync_no_node_is_taken, "a take k; copies k: 3; a release");
PLAY_QUORUM(redsync_one_node_is_taken,
            "redis0 SET @k foobar; a try k; a valid; a release; "
            "await copies k: 1");
PLAY_QUORUM(redsync_two_nodes_are_taken,
            "redis0 SET @k foobar; redis1 SET @k foobar; a try k: busy; "
            "await copies k: 2");
PLAY_QUORUM(redsync_all_nodes_are_taken, "set k; a try k: busy; copies k: 3");

PLAY_QUORUM(redsync_extend_sets_the_key_where_it_was_lost,
            "a take k; redis0 DEL @k; a extend; await copies k: 3; redis1 DEL @k; "
            "a extend; await copies k: 3; a release; await copies k: 0");

/* ---- node-redlock ---- */

PLAY_PLAIN(redlock_longest_lease_is_49_days,
           "a take k 4294967295; ttl k: 4294900000-4294967295; a extend 4294967295; "
           "a release; copies k: 0");

PLAY_PLAIN(
    redlock_several_resources_are_one_lock,
    "a all x,y 60000; a extend 180000; ttl x: 170000-180000; ttl y: 170000-180000; "
    "a release; copies x: 0; copies y: 0");

PLAY(redlock_locks_end_by_themselves,
     "a take k 200; await copies k: 0; b take k 60000; b release");

PLAY(redlock_overlap_is_refused_as_a_whole,
     "a all x,y; b all y,z: busy; copies z: 0; a verify");

PLAY(redlock_using_extends_until_it_is_over,
     "a take k 300; a renew; rest 900; a valid; a losses: 0; a verify; del k; "
     "await a losses: 1; a invalid; a loss: lost");

PLAY_QUORUM(redlock_minority_that_is_taken_stays,
            "redis2 SET @k other; a try k; a extend; redis2 GET @k: other; "
            "redis2 PTTL @k: -1; a release; redis2 GET @k: other");

PLAY_QUORUM(redlock_majority_that_is_taken_refuses,
            "redis1 SET @k one; redis2 SET @k two; a try k: busy; await copies k: 2");

/* ---- bsm/redislock ---- */

PLAY_PLAIN(
    redislock_obtain_once_and_again_after_release,
    "a take k 3600000; b try k: busy; a verify left: 3590000-3600000; a release; "
    "await b try k 60000");

PLAY_PLAIN(redislock_refresh_to_a_longer_time,
           "a take k 60000; a extend 3600000; a verify left: 3590000-3600000");

PLAY_PLAIN(redislock_refresh_to_a_shorter_time,
           "a take k 3600000; a shorten 5000; a verify left: 1-5000");

PLAY(redislock_release_of_somebody_elses,
     "a take k; set k 60000; a release: not_owner; redis EXISTS @k: 1");

PLAY(redislock_retry_gets_it_at_the_end, "set k 200; a wait k 60000; a release");

PLAY(redislock_metadata_is_in_the_value,
     "a text host-7; a take k; b look k text: host-7; a release");
