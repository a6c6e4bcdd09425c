/* Answers that come late, over a slow link or from a slow server: a try or a wait that
 * has ended leaves no key that nobody holds. */
#include "tests/lib/play_inside.h"

enum { WAIT_MS = 200, STEP_MS = 10 };

static const struct rlock_key one_key = {"k", 1};

static const struct {
    const char *name;
    unsigned ms;
} trips[] = {{"40_ms", 40}, {"50_ms", 50}, {"60_ms", 60}, {"80_ms", 80}};

static int wait_for(struct rlock *l, uint32_t wait_ms)
{
    return rlock_acquire_wait(l, &one_key, 1, RLOCK_ALL, 60000, wait_ms, -1);
}

/* ---- a wait of 0 ms ---- */

/* Guarantee: A wait of 0 ms is a try, however long a round trip takes: a free key is
 * granted, a held one is not, and neither is a fault. */
CASE_ROWS_IN(play_on_one,
             struct quorum_world,
             wait_of_zero_is_a_try_over_a_round_trip_of,
             trips)
{
    static const char *const connections[] = {"p connect", "p disconnect"};

    for (size_t i = 0; i < 2; i++) {
        int code;

        play(connections[i]);
        proxy_delay(&w->proxies[0], row->ms);
        promise_int_equal(wait_for(play_lock("p"), 0), RLOCK_OK);
        play("p valid; p release; b take k");
        play(connections[i]);
        code = wait_for(play_lock("p"), 0);
        promise_true(code == RLOCK_TIMEOUT || code == RLOCK_BUSY);
        play("b valid; b release; copies k: 0; proxy pass");
    }
}

PLAY_CASE(play_on_quorum, wait_of_zero_over_a_slow_quorum_is_a_try)
{
    play("p limits 5000; p everywhere; proxy delay 60");
    promise_int_equal(wait_for(play_lock("p"), 0), RLOCK_OK);
    play("p valid; p release; await b take k");
    promise_int_equal(wait_for(play_lock("p"), 0), RLOCK_TIMEOUT);
    play("b valid; b release; copies k: 0");
}

/* ---- a wait that ends while its last try is under way ---- */

/* The key was somebody's until shortly before the wait is over, or shortly after. */
static void wait_to_the_end(struct quorum_world *w, unsigned trip_ms, unsigned held_ms)
{
    struct rlock *l = play_lock("p");
    char step[32];
    int code;

    (void)snprintf(step, sizeof step, "set k %u", held_ms);
    play("await p connect");
    proxy_delay(&w->proxies[0], trip_ms);
    play(step);
    code = wait_for(l, WAIT_MS);
    proxy_delay(&w->proxies[0], 0);
    if (code == RLOCK_OK) {
        play("p valid; copies k: 1; p release; copies k: 0");
        return;
    }
    for (int left = LOCK_SOON_MS / 5; quorum_copies(w, "k") > 0; left--) {
        if (left == 0)
            promise_broken("held for %u of %d ms: \"%s\", and nobody has the key",
                           held_ms, WAIT_MS, rlock_strerror(code));
        fixture_pause_ms(5);
    }
    rlock_abandon(l);
}

/* The answer to the last try comes up to so much after the end of the wait. */
/* Guarantee: A wait that ends without the lock leaves its key free, at whatever moment
 * the key had become free. */
CASE_ROWS_IN(play_on_one,
             struct quorum_world,
             wait_that_ends_leaves_no_key_over_a_round_trip_of,
             trips)
{
    for (unsigned held_ms = WAIT_MS - 2 * row->ms; held_ms < WAIT_MS + 20;
         held_ms += STEP_MS)
        wait_to_the_end(w, row->ms, held_ms);
}

PLAY_CASE(play_on_quorum, wait_that_ends_leaves_no_key_on_a_slow_quorum)
{
    play("p limits 5000; p everywhere; proxy delay 60");
    for (unsigned held_ms = WAIT_MS - 80; held_ms < WAIT_MS + 20; held_ms += STEP_MS) {
        char step[32];

        (void)snprintf(step, sizeof step, "set k %u", held_ms);
        play(step);
        if (wait_for(play_lock("p"), WAIT_MS) == RLOCK_OK)
            play("p release");
        play("promise copies k: 0; p abandon");
    }
}

/* ---- a release that comes late ---- */

/* The first try comes to the server when the call has been granted the key by another
 * connection, and what was written into the first one comes behind it. */
/* Guarantee: No release of a try that was given up takes the key of a later try of the
 * same call. */
PLAY_ONE(late_release_takes_no_later_grant,
         "p limits 500 5000; await p try first; await p release; p connect; "
         "proxy late @k 1 3000; p try k; proxy lates: 0; await proxy lates: 1; "
         "rest 300; promise copies k: 1; promise p verify; p release; copies k: 0");
