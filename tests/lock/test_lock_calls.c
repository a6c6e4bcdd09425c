/* The answer of each call: over one server, over a quorum and in a cluster. */
#include "tests/lib/play.h"

/* ---- one key ---- */

/* Guarantee: A free key is granted, and its value and its end are set in one step. */
PLAY(try_free_key_is_granted_and_always_has_a_ttl,
     "a take k; ttl k: 1-60000; a valid 30000; a invalid 60000");

PLAY(try_held_key_is_busy_and_tells_the_time_left,
     "a take k; b try k: busy; b busy 0: 1-60000; a release; copies k: 0; b take k");

/* Guarantee: Three releases get one answer, whichever it is, and the next holder is
 * not touched. */
PLAY(release_idempotent,
     "a take k; a release; a release; a release; copies k: 0; b take k; a release; "
     "a release; b verify; a take gone 300; await copies gone: 0; a release: gone; "
     "a release: gone; a take theirs; set theirs 60000; a release: not_owner; "
     "a release: not_owner; del theirs; a release: not_owner");

/* Guarantee: A lock that expired and was taken by another is not released:
 * `RLOCK_NOT_OWNER`, and the other keeps it. */
PLAY(release_foreign_refused,
     "a take k 300; await copies k: 0; b take k; a release: not_owner; "
     "b verify left: 1-60000; b release");

/* Guarantee: A release after the lease is told `RLOCK_GONE`. */
PLAY(release_after_expiry_reports_gone,
     "a take k 300; await copies k: 0; a invalid; a release: gone");

/* Guarantee: A lease of 0 is refused. */
PLAY(zero_lease_and_reserved_name_are_refused,
     "a try k 0: inval; a try !last: inval; a all ,: inval; b force !last: inval");

PLAY(plain_set_nx_px_excludes_and_is_excluded,
     "set k 60000; a try k: busy; a take j; redis SET @j somebody NX PX 5000: -1");

PLAY(key_of_another_type_is_busy_and_left_alone,
     "redis HSET @k owner somebody; a try k: busy; a busy 0: -1; redis HLEN @k: 1");

/* Guarantee: A key that an operator deletes goes to another with a higher token, and
 * the first holder learns. */
PLAY(key_deleted_by_operator,
     "a take k; del k; b take k; a extend: lost; a invalid; a release: not_owner; "
     "b verify");

/* Guarantee: FLUSHALL is noticed as soon as the holder asks, and tokens rise. */
PLAY_PLAIN(flushall_while_held,
           "a take k; redis FLUSHALL; b take k; a verify: lost; a release: not_owner; "
           "b verify");

/* Guarantee: SCRIPT FLUSH before any call is not seen by the caller. */
PLAY(script_flush_midway,
     "a connect; b connect; redis SCRIPT FLUSH; a try k; redis SCRIPT FLUSH; a extend; "
     "redis SCRIPT FLUSH; a verify; redis SCRIPT FLUSH; b all k,j: busy; copies j: 0; "
     "redis SCRIPT FLUSH; b any k,j: partial; redis SCRIPT FLUSH; b release; "
     "redis SCRIPT FLUSH; b wait k 300: timeout; redis SCRIPT FLUSH; a release; "
     "copies k: 0");

/* Guarantee: Of a lease 1 % and 2 ms are not counted on, for the drift of clocks. */
PLAY(time_left_is_known_without_asking,
     "a left: 0; a take k; a left: 30000-59398; a valid 30000; a invalid 59400; "
     "a extend 120000; a left: 60000-118798; a release; a left: 0");

PLAY(second_acquire_of_a_held_lock_is_refused,
     "a take k; a try k: inval; a granted: 1; a valid; a release");

PLAY(same_client_with_another_lock_is_busy, "a take k; a2 try k: busy");

/* ---- extend, verify ---- */

PLAY(extend_lengthens_from_now_and_never_shortens,
     "a take k 20000; a extend; ttl k: 20001-60000; a valid 20000; a extend 100; "
     "ttl k: 20001-60000; a valid 20000; a extend 0: inval");

/* Guarantee: An extend of a lost lock is told so, and the key is not made again. */
PLAY(extend_after_loss,
     "a take k; del k; a extend: lost; copies k: 0; a invalid; a extend: lost; "
     "a release: gone; a take j 300; await copies j: 0; a extend: lost; copies j: 0");

/* Guarantee: An extend after another took the key says so and leaves the other
 * alone. */
PLAY(extend_after_takeover_leaves_the_new_holder_alone,
     "a take k 300; await copies k: 0; b take k 40000; a extend: lost; ttl k: 1-40000; "
     "a release: not_owner; b valid");

PLAY(lost_keys_are_told_one_by_one,
     "a all x,y,z; del y; a extend: lost; a key 0; a key 1: lost; a key 2; a invalid; "
     "a verify: lost; copies y: 0; a release: gone; a key 0; a key 1: gone; a key 2");

PLAY(what_is_not_held_is_neither_extended_nor_verified,
     "a extend: inval; a take k; a release; a extend: inval; a verify: inval; "
     "copies k: 0");

PLAY(verify_tells_the_shortest_time_left_and_changes_nothing,
     "a all x,y,z; redis PEXPIRE @y 30000; a verify left: 1-30000; ttl y: 1-30000; "
     "set z; a verify: lost; a invalid");

/* PEXPIRE 0 is a deletion: to see a key that has no end must not come to that. */
PLAY(verify_of_a_key_without_an_end_leaves_it_alone,
     "a take k; redis PERSIST @k; a verify left: 1-60000; redis EXISTS @k: 1; "
     "b try k: busy; b busy 0: -1; a extend; ttl k: 1-60000");

/* ---- several keys ---- */

/* A value of another type reads as nothing, and still is not ours. */
PLAY(all_leaves_nothing_when_one_key_is_busy,
     "set y 60000; a all x,y,z: busy; copies x: 0; copies z: 0; del y; "
     "redis RPUSH @y v; a all x,y,z: busy; copies x: 0; copies z: 0; del y; "
     "a all x,y,z");

PLAY(any_of_only_busy_keys_is_busy,
     "b all x,y; a any x,y: busy; a busy 1: 1-60000; a key 0: busy");

PLAY(any_takes_what_is_free,
     "b take y; a any x,y,z: partial; a granted: 2; a key 1: busy; "
     "a key 2; a release; copies x: 0; b verify");

/* Guarantee: A thousand keys are taken or refused together, and more are refused. */
PLAY(thousand_keys_are_all_or_none_and_more_are_refused,
     "a all k:0..999; a granted: 1000; a extend; a release; keys: 0; b take k:900; "
     "a all k:0..999: busy; keys: 1; a any k:0..999: partial; a granted: 999; "
     "a release; keys: 1; a any k:0..1000: inval; a error: 1 to 1000 keys; keys: 1");

/* Wherever in the batch they stand. */
PLAY(release_of_a_batch_tells_of_each_key,
     "a all v,w,x,y,z; del v; set w; a release: not_owner; a key 0: gone; "
     "a key 1: not_owner; a key 2; a key 4; keys: 1; del w; a all v,w,x,y,z; del y; "
     "set z; a release: not_owner; a key 0; a key 2; a key 3: gone; "
     "a key 4: not_owner; keys: 1");

PLAY(part_that_had_run_out_is_told_key_by_key,
     "a all x,y; del y; b take y; a release: not_owner; a key 0; a key 1: not_owner; "
     "b valid");

PLAY(abandon_leaves_the_keys_to_their_lease,
     "a take k; a abandon; a granted: 0; a token: 0; a invalid; a release: gone; "
     "a try k: busy; del k; a take k 300; a abandon; await copies k: 0; a take k");

/* ---- permits ---- */

PLAY(each_permit_is_given_once_and_no_more,
     "a one p,q,r; a granted: 1; a2 one p,q,r; b one p,q,r; ttl p: 1-60000; "
     "ttl q: 1-60000; ttl r: 1-60000; b2 one p,q,r: busy; a2 release; "
     "await b2 one p,q,r; b2 granted: 1");

PLAY(permit_is_kept_and_verified_like_any_lock,
     "a one p,q,r 20000; a extend; a verify left: 20001-60000; a release; keys: 0");

/* ---- waiting ---- */

/* By its own clock the first does not hold it any more. */
PLAY(waiter_gets_it_when_the_lease_ends,
     "a take k; b wait k 50: timeout; b granted: 0; a release; a take k 500; "
     "b wait k 60000; a invalid");

PLAY(waiter_gets_it_when_it_is_released,
     "a take k; b begin k 60000; rest 300; a release; b end");

/* ---- operators ---- */

PLAY_PLAIN(locks_are_listed, "b list: 0; a take k; b list: 1");

/* Guarantee: An operator can free a key, whoever holds it. */
PLAY(force_release_frees_whoever_holds_it,
     "a everywhere; b everywhere; a take k; copies k: all; b force k; copies k: 0; "
     "b force k: gone; a extend: lost; b take k; a release: not_owner");

/* Guarantee: A forced release leaves a lock that somebody else took since the operator
 * saw its holder. */
PLAY(force_release_leaves_who_took_it_since,
     "a everywhere; b everywhere; a take k; b see k; a release; a2 take k; "
     "b force k: not_owner; a2 extend; a2 release; b take k; b see k; b release; "
     "b force k: gone");

/* Guarantee: A dead holder's nonce frees exactly its keys. */
PLAY(dead_holder_is_freed_of_its_keys_and_nobody_else,
     "a everywhere; c everywhere; a all x,y; copies x: all; copies y: all; b take z; "
     "c dead a x,y,z: 2; copies x: 0; copies y: 0; b verify; c dead a x,y,z: 0");

/* ---- renewal ---- */

/* Guarantee: A key that an operator deletes is told once. */
PLAY(key_deleted_by_operator_is_told_once,
     "a take k; a2 take other; a renew 200; a2 renew; del k; a loss: lost; "
     "a renew: lost; a renewed 2; a losses: 1; copies k: 0; a2 valid; a release: gone; "
     "a take k; a renew; del k; await a losses: 2");

/* Guarantee: A key of another holder is never lengthened. */
PLAY(key_of_another_holder_is_never_lengthened,
     "a take k; a renew 100; set k 30000; a loss: lost; ttl k: 1-30000; "
     "a release: not_owner");

PLAY(lock_that_cannot_be_renewed_is_refused,
     "a renew: inval; a take k; a renew; a renew: inval; a release; "
     "a renew: inval; a2 take j 300; await a2 invalid; a2 renew: lost");
