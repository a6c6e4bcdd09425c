/* Locks over many keys: any of them, all of them, and processes whose batches overlap.
 */
#include "tests/lib/crowd.h"
#include "tests/lib/play.h"

#include <stdatomic.h>

/* ---- one script call ---- */

/* 40 of 300 keys are busy. The tokens of the others are above all that these keys have
 * seen. */
/* Guarantee: 40 busy keys of 300: 260 are granted under one token in one round trip,
 * and each key has its answer. */
PLAY_CASE(play_on_one, batch_any)
{
    struct rlock *l = play_lock("p"), *of_b = play_lock("b");
    unsigned trips;
    int64_t before;

    play("p connect; b all k:0..299");
    before = rlock_token(of_b);
    play("b release; b any k:0..39; redis CONFIG RESETSTAT");
    trips = proxy_count(&w->proxies[0], PROXY_TRIPS);
    play("p any k:0..299: partial; calls evalsha: 1; p granted: 260");
    for (size_t i = 0; i < 300; i++) {
        assert_int_equal(rlock_key_code(l, i), i < 40 ? RLOCK_BUSY : RLOCK_OK);
        assert_true(i < 40 ? rlock_key_busy_ms(l, i) > 0
                           : rlock_key_busy_ms(l, i) == 0);
    }
    assert_true(rlock_token(l) > before && rlock_token(l) != rlock_token(of_b));
    play("p release; calls evalsha: 2; keys: 40");
    assert_in_range(proxy_count(&w->proxies[0], PROXY_TRIPS) - trips, 2, 4); /* looks */
}

/* Guarantee: One busy key of 300 that are all wanted: none is taken, in one round
 * trip. */
PLAY_CASE(play_on_one, batch_all_or_nothing)
{
    unsigned trips;

    play("p take first; p release; b take k:299");
    trips = proxy_count(&w->proxies[0], PROXY_TRIPS);
    play("p all k:0..299: busy; keys: 1; b release; p all k:0..299; keys: 300");
    assert_in_range(proxy_count(&w->proxies[0], PROXY_TRIPS) - trips, 2, 4); /* looks */
}

PLAY_ONE(any_with_every_key_busy_is_busy_and_mints_no_token,
         "b any k:0..9; a any k:0..9: busy; minted: 0");

/* ---- batches that overlap ---- */

enum { UNIVERSE = 24, BATCH = 10, ROUNDS = 40, PROCESSES = 8 };

struct shared {
    int rounds; /* for each process */
    atomic_int inside[UNIVERSE];
    atomic_int overlaps, busy, done;
};

static void shuffle(size_t *order, size_t n)
{
    for (size_t i = 0; i < n; i++)
        order[i] = i;
    for (size_t i = n - 1; i > 0; i--) {
        size_t j = (size_t)rand() % (i + 1), swap = order[i];

        order[i] = order[j];
        order[j] = swap;
    }
}

/* Asks for all keys at once, then waits for them. */
static int
take_all(struct shared *s, struct rlock *l, const struct rlock_key *keys, size_t n)
{
    int code = rlock_acquire(l, keys, n, RLOCK_ALL, 60000);

    if (code != RLOCK_BUSY)
        return code;
    (void)atomic_fetch_add(&s->busy, 1);
    return rlock_acquire_wait(l, keys, n, RLOCK_ALL, 60000, 300000, -1);
}

static int take_batches(int i, void *shared)
{
    struct shared *s = shared;
    struct rlock *l = rlock_new(lock_client(lock_server.url, 0));
    const struct rlock_key *all = lock_keys(UNIVERSE, 1);
    struct rlock_key keys[BATCH];
    size_t order[UNIVERSE];

    srand((unsigned)i + 1);
    for (int round = 0; round < s->rounds; round++) {
        shuffle(order, UNIVERSE);
        for (size_t k = 0; k < BATCH; k++)
            keys[k] = all[order[k]];
        if (take_all(s, l, keys, BATCH) != RLOCK_OK)
            return 1;
        for (size_t k = 0; k < BATCH; k++)
            s->overlaps += atomic_fetch_add(&s->inside[order[k]], 1) != 0 ? 1 : 0;
        for (size_t k = 0; k < BATCH; k++)
            (void)atomic_fetch_sub(&s->inside[order[k]], 1);
        if (rlock_release(l) != RLOCK_OK)
            return 1;
        (void)atomic_fetch_add(&s->done, 1);
    }
    return 0;
}

/* Returns how often they met. */
static int meet(int processes, int rounds)
{
    struct shared *s = crowd_memory(sizeof *s);

    s->rounds = rounds;
    crowd_run(processes, take_batches, s);
    promise_int_equal(s->done, processes * rounds);
    promise_int_equal(s->overlaps, 0);
    print_message("%d of %d batches found a key busy\n", s->busy, s->done);
    return s->busy;
}

/* Guarantee: Eight processes that want overlapping batches in any order all finish,
 * alone on their keys. */
LOCK_CASE(batch_deadlock_free)
{
    int rounds = ROUNDS, met = 0;

    for (int again = 0; again < 5 && met < PROCESSES; again++, rounds *= 2)
        met = meet(PROCESSES, rounds);
    assert_true(met >= PROCESSES);
}

/* One key is never granted twice by one call, with few keys or with many. */
LOCK_CASE(name_given_twice_is_refused_and_nothing_is_held)
{
    static const size_t sizes[] = {2, 3, 300, 1000};
    static struct rlock_key keys[1000];

    for (size_t i = 0; i < sizeof sizes / sizeof sizes[0]; i++) {
        size_t n = sizes[i];

        memcpy(keys, lock_keys(n, 1), n * sizeof keys[0]);
        keys[n - 1] = keys[0];
        assert_int_equal(rlock_acquire(w->la, keys, n, RLOCK_ANY, 60000),
                         RLOCK_E_INVAL);
        assert_non_null(strstr(rlock_error(w->a), "keys 0 and "));
        assert_int_equal(rlock_granted(w->la), 0);
        assert_int_equal(rlock_key_code(w->la, 0), RLOCK_E_INVAL);
        assert_int_equal(rlock_acquire(w->la, keys, n - 1, RLOCK_ANY, 60000), RLOCK_OK);
        assert_int_equal(rlock_release(w->la), RLOCK_OK);
    }
}
