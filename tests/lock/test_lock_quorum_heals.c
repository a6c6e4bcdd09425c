/* A lock of a quorum whose key is lost on some of the servers: an extend or a renewal
 * that a majority confirms puts the key back, so a lock that is renewed outlives a
 * restart of every server, one after the other. */
#include "tests/lib/play.h"

/* ---- a rolling restart ---- */

/* The restarted server counts as up for longer than the longest lease; or it does not
 * yet, and grants nothing to anybody. */
static const struct {
    const char *name;
    bool is_aged;
} restarts[] = {{"that_are_up_for_long", true}, {"that_have_just_started", false}};

/* Guarantee: A lock of a quorum that is renewed all the time survives a restart of all
 * servers, one after the other, each of them empty. */
CASE_ROWS_IN(play_on_fresh_quorum,
             struct quorum_world,
             renewed_lock_survives_a_rolling_restart_of_servers,
             restarts)
{
    char steps[160];

    play("p everywhere; p take k 20000; p renew 300");
    for (size_t i = 0; i < w->n; i++) {
        (void)snprintf(steps, sizeof steps, "server%zu kill; server%zu start", i, i);
        play(steps);
        if (row->is_aged)
            quorum_age(w, i);
        play("await copies k: 3; promise p valid; promise p losses: 0; "
             "ttl k: 5000-20000");
    }
    play("b try k: busy|no_quorum; p extend 20000; p verify; p release; copies k: 0; "
         "promise p losses: 0");
}

/* ---- an extend ---- */

/* "tokens" are the nonce and the token of the lock, the last token lifted to it. */
/* Guarantee: An extend that a majority confirms puts the key back where it is lost,
 * with the nonce and the token of the lock and no more time than the others have. */
PLAY_QUORUM(extend_puts_a_lost_key_back,
            "p everywhere; p take k; redis0 DEL @k; p extend 20000; "
            "await copies k: 3; tokens k: 3; ttl k: 1-60000; "
            "redis1 DEL @k; p extend; await copies k: 3; tokens k: 3; "
            "ttl k: 30000-60000; p verify; p release; copies k: 0; rest 200; "
            "copies k: 0");

PLAY_QUORUM(extend_puts_some_lost_keys_of_many_back,
            "p everywhere; p all k:0..9; redis2 DEL @k:7; redis2 DEL @k:8; p extend; "
            "await copies k:7: 3; await copies k:8: 3; keys: 10; p release; keys: 0");

/* The renewer's own connections, and no thread: the key comes back in the same round.
 */
PLAY_QUORUM(renewal_puts_a_lost_key_back,
            "p everywhere; p stepped; p take k; p renew 0 0 600000; time 20000; "
            "p round: 0; redis1 DEL @k; time 20000; p round: 0; await copies k: 3; "
            "ttl k: 30000-60000; p release; copies k: 0");

/* ---- what stays as it is ---- */

/* Guarantee: A key that somebody else took on a server of a quorum stays theirs. */
PLAY_QUORUM(extend_leaves_a_key_of_somebody_else,
            "p everywhere; p take k; redis0 SET @k somebody PX 50000; p extend; "
            "p extend 90000; rest 200; promise redis0 GET @k: somebody; "
            "redis0 PTTL @k: 1-50000; p release; redis0 GET @k: somebody; "
            "redis1 EXISTS @k: 0; redis2 EXISTS @k: 0");

/* Guarantee: An extend that no majority confirms puts no key back. */
PLAY_QUORUM(extend_without_a_majority_puts_nothing_back,
            "p everywhere; p take k; redis1 DEL @k; redis2 DEL @k; p extend: lost; "
            "p invalid; rest 200; promise redis1 EXISTS @k: 0; "
            "promise redis2 EXISTS @k: 0; p release: gone");

/* A renewal of which one server gets its part late; the lock was given back meanwhile.
 */
PLAY_QUORUM(key_that_was_released_does_not_come_back,
            "p limits 3000; p everywhere; p take k; redis0 DEL @k; "
            "proxy0 late EVALSHA 1 1500; p extend; p release; "
            "await proxy0 lates: 1; rest 300; copies k: 0");
