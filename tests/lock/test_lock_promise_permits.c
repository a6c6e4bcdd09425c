/* LL_ONE: n keys are n permits. */
#include "tests/lib/lock_waiters.h"

#include <stdatomic.h>

#include "common/lock/internal.h"

enum { PERMITS = 3, HOLDERS = 8, ROUNDS = 40, TRIES = 50 };

static const struct ll_key permits[PERMITS] = {{"p1", 2}, {"p2", 2}, {"p3", 2}};

/* The permit that is held; -1: none, -2: several. */
static int permit_of(const struct ll_lock *l)
{
    int which = -1;

    for (int i = 0; i < PERMITS; i++)
        if (ll_key_code(l, (size_t)i) == LL_OK)
            which = which == -1 ? i : -2;
    return which;
}

static atomic_int inside, most, overlaps, holders_of[PERMITS];

static int take_one(struct ll_lock *l)
{
    return ll_acquire_wait(l, permits, PERMITS, LL_ONE, 60000, 60000, -1);
}

static void *take_rounds(void *code)
{
    CLIENT *c = lock_client(lock_server.url, 0);
    LOCK *l = ll_new(c);

    for (int i = 0; i < ROUNDS && *(int *)code == LL_OK; i++) {
        int now, which;

        *(int *)code = take_one(l);
        if (*(int *)code != LL_OK)
            break;
        which = permit_of(l);
        now = atomic_fetch_add(&inside, 1) + 1;
        overlaps += which < 0 || atomic_fetch_add(&holders_of[which], 1) != 0 ? 1 : 0;
        most = now > most ? now : most;
        fixture_pause_ms(1);
        holders_of[which < 0 ? 0 : which]--;
        inside--;
        *(int *)code = ll_release(l);
    }
    return NULL;
}

/* Guarantee: `LL_ONE` of n keys has n holders at most. */
LOCK_CASE(never_are_there_more_holders_than_permits)
{
    pthread_t threads[HOLDERS];
    int codes[HOLDERS] = {0};

    for (size_t i = 0; i < HOLDERS; i++)
        assert_int_equal(pthread_create(&threads[i], NULL, take_rounds, &codes[i]), 0);
    for (size_t i = 0; i < HOLDERS; i++) {
        assert_int_equal(pthread_join(threads[i], NULL), 0);
        assert_int_equal(codes[i], LL_OK);
    }
    promise_int_equal(overlaps, 0);
    assert_int_equal(most, PERMITS); /* and all of them were used */
}

static void *wait_for_a_permit(void *arg)
{
    struct lock_world *w = arg;
    static int code;

    code = take_one(w->lb);
    return &code;
}

/* A wake-up that the waiter took is not in the list any more. */
static bool is_woken_by_a_release(struct lock_world *w)
{
    pthread_t thread;
    void *code;
    bool is_woken;

    assert_int_equal(ll_acquire(w->la, permits, PERMITS, LL_ALL, 60000), LL_OK);
    assert_int_equal(pthread_create(&thread, NULL, wait_for_a_permit, w), 0);
    LOCK_AWAIT(waiters_blocked(w) == 1);
    lock_raw_do(w, "CONFIG RESETSTAT");
    assert_int_equal(ll_release_some(w->la, (size_t[]){1}, 1), LL_OK);
    assert_int_equal(pthread_join(thread, &code), 0);
    assert_int_equal(*(int *)code, LL_OK);
    assert_int_equal(permit_of(w->lb), 1);
    is_woken = waiters_calls(w, "lpush") == 1 &&
               lock_raw_integer(w, "LLEN lock:!wake:p2") == 0;
    assert_int_equal(ll_release(w->lb), LL_OK);
    assert_int_equal(ll_release(w->la), LL_OK);
    lock_raw_do(w, "DEL lock:!wake:p1 lock:!wake:p2 lock:!wake:p3");
    return is_woken;
}

/* A waiter also looks by itself, five times a second: seen once is enough. */
LOCK_CASE(release_of_a_permit_wakes_a_waiter)
{
    bool is_woken = false;

    for (int n = 0; n < TRIES && !is_woken; n++)
        is_woken = is_woken_by_a_release(w);
    assert_true(is_woken);
}
