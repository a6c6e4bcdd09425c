/* Permits: n keys, of which a holder wants a number, whichever are free. */
#include "tests/lib/play.h"

#include <pthread.h>
#include <stdatomic.h>

/* Guarantee: Several permits are granted together or not at all. */
PLAY(some_permits_are_granted_together_or_not_at_all,
     "a some2 p1,p2,p3; a granted: 2; b some2 p1,p2,p3: busy; await b one p1,p2,p3; "
     "b granted: 1; b2 one p1,p2,p3: busy; a release; await b2 some2 p1,p2,p3; "
     "b2 granted: 2; a some3 p1,p2,p3: busy; b2 release; b release; "
     "await a some3 p1,p2,p3; a extend; a verify; b one p1,p2,p3: busy");

/* Guarantee: More permits than there are, or none, are refused. */
PLAY(number_of_permits_that_cannot_be,
     "a some4 p1,p2,p3: inval; a error: 4 of 3 keys; a some1001 p1,p2,p3: inval");

/* Guarantee: The repeat of a command whose answer was lost holds the permits that it
 * took, and no more. */
PLAY_ONE(permits_of_a_lost_answer_are_the_same,
         "p try first; p release; proxy cut_after EVALSHA; p some2 q,r,s; keys: 2; "
         "p granted: 2; p valid; p2 some2 q,r,s: busy; keys: 2; p2 one q,r,s; "
         "proxy cuts: 1; p release; keys: 1");

/* A waiter for several of them is woken by the release of any of them. */
PLAY_PLAIN(wait_for_several_permits,
           "a some2 p1,p2,p3; b begin p1,p2,p3 60000 some2; await blocked: 1; "
           "a release; b end; b granted: 2");

enum { PERMITS = 3, HOLDERS = 8, USES = 40, TRIES = 50 };

static const struct rlock_key permits[PERMITS] = {{"p1", 2}, {"p2", 2}, {"p3", 2}};

/* The first permit that is held; -1: none, -2: not as many as that. */
static int permit_of(const struct rlock *l, size_t n)
{
    int which = -1;

    for (int i = PERMITS - 1; i >= 0; i--)
        if (rlock_key_code(l, (size_t)i) == RLOCK_OK)
            which = i;
    return rlock_granted(l) == n ? which : -2;
}

static int wanted; /* permits, of each holder */
static atomic_int inside, most, overlaps, holders_of[PERMITS];

static void *take_rounds(void *code)
{
    LONE *l = rlock_new(lock_client(lock_server.url, 0));

    for (int i = 0; i < USES && *(int *)code == RLOCK_OK; i++) {
        int now, which;

        *(int *)code = rlock_acquire_wait(l, permits, PERMITS, RLOCK_SOME(wanted),
                                          60000, 60000, -1);
        if (*(int *)code != RLOCK_OK)
            break;
        which = permit_of(l, (size_t)wanted);
        now = atomic_fetch_add(&inside, wanted) + wanted;
        overlaps += which < 0 || atomic_fetch_add(&holders_of[which], 1) != 0 ? 1 : 0;
        most = now > most ? now : most;
        fixture_pause_ms(1);
        holders_of[which < 0 ? 0 : which]--;
        inside -= wanted;
        *(int *)code = rlock_release(l);
    }
    return NULL;
}

static const struct {
    const char *name;
    int wanted, most;
} holders[] = {{"one_each", 1, 3}, {"two_each", 2, 2}};

/* Guarantee: `RLOCK_SOME(k)` of n keys: never are more than n held. */
CASE_ROWS_IN(lock_group,
             struct lock_world,
             never_are_more_permits_held_than_there_are,
             holders)
{
    pthread_t threads[HOLDERS];
    int codes[HOLDERS] = {0};

    wanted = row->wanted;
    most = overlaps = 0;
    for (size_t i = 0; i < HOLDERS; i++)
        assert_int_equal(pthread_create(&threads[i], NULL, take_rounds, &codes[i]), 0);
    for (size_t i = 0; i < HOLDERS; i++) {
        assert_int_equal(pthread_join(threads[i], NULL), 0);
        assert_int_equal(codes[i], RLOCK_OK);
    }
    promise_int_equal(overlaps, 0);
    promise_int_equal(most, row->most); /* and as many as can be were used */
}

/* A wake-up that the waiter took is not in the list any more. */
static bool is_woken_by_a_release(struct quorum_world *w)
{
    bool is_woken;

    play("a all p1,p2,p3; b begin p1,p2,p3 60000 one; await blocked: 1; "
         "redis CONFIG RESETSTAT; a force p2; b end");
    assert_int_equal(permit_of(play_lock("b"), 1), 1);
    is_woken = lock_info(w->raw[0], "commandstats", "cmdstat_lpush:calls=") == 1 &&
               quorum_ask(w, 0, "LLEN %s!wake:p2") == 0;
    play("b release; a release: gone; redis DEL @!wake:p1 @!wake:p2 @!wake:p3");
    return is_woken;
}

/* A waiter also looks by itself, five times a second: seen once is enough. */
PLAY_CASE(play_on_one, release_of_a_permit_wakes_a_waiter)
{
    bool is_woken = false;

    for (int n = 0; n < TRIES && !is_woken; n++)
        is_woken = is_woken_by_a_release(w);
    assert_true(is_woken);
}
