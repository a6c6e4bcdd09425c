/* Tenures over many keys: any of them, all of them, more than a script takes, and
 * processes whose batches overlap. */
#define _DEFAULT_SOURCE /* MAP_ANONYMOUS */
#include "tests/lib/lock_remote.h"

#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

static void keys_of(struct ll_key *keys, char names[][16], size_t from, size_t n)
{
    for (size_t i = 0; i < n; i++) {
        keys[i].name = names[i];
        keys[i].len = (size_t)snprintf(names[i], 16, "k:%zu", from + i);
    }
}

/* ---- one script call ---- */

/* 40 of 300 keys are busy. The tokens of the others are above all that these keys have
 * seen, and it is one round trip. */
static void batch_any(void **state)
{
    struct lock_world *w = *state;
    struct lock_remote r = lock_remote_open(0, false);
    struct ll_key keys[300];
    char names[300][16];
    unsigned turns;
    int64_t before;

    keys_of(keys, names, 0, 300);
    assert_int_equal(ll_acquire(w->lb, keys, 300, LL_ALL, 5000), LL_OK);
    before = ll_token(w->lb);
    assert_int_equal(ll_release(w->lb), LL_OK);
    assert_int_equal(ll_acquire(w->lb, keys, 40, LL_ANY, 5000), LL_OK);
    turns = proxy_count(&r.proxy, PROXY_TURNS);
    assert_int_equal(ll_acquire(r.l, keys, 300, LL_ANY, 5000), LL_PARTIAL);
    assert_int_equal(proxy_count(&r.proxy, PROXY_TURNS) - turns, 1);
    assert_int_equal(ll_granted(r.l), 260);
    for (size_t i = 0; i < 300; i++) {
        assert_int_equal(ll_key_code(r.l, i), i < 40 ? LL_BUSY : LL_OK);
        assert_true(i < 40 ? ll_key_busy_ms(r.l, i) > 0
                           : ll_key_token(r.l, i) > before &&
                                 ll_key_token(r.l, i) != ll_token(w->lb));
    }
    assert_int_equal(ll_release(r.l), LL_OK);
    assert_int_equal(proxy_count(&r.proxy, PROXY_TURNS) - turns, 2);
    assert_int_equal(lock_raw_integer(w, "DBSIZE"), 41); /* 40 of b and the record */
    lock_remote_close(&r);
}

static void any_with_every_key_busy_is_busy_and_mints_no_token(void **state)
{
    struct lock_world *w = *state;
    struct ll_key keys[10];
    char names[10][16];
    long long before;

    keys_of(keys, names, 0, 10);
    assert_int_equal(ll_acquire(w->lb, keys, 10, LL_ANY, 5000), LL_OK);
    before = lock_raw_integer(w, "HINCRBY lock:!fence n 0");
    assert_int_equal(ll_acquire(w->la, keys, 10, LL_ANY, 5000), LL_BUSY);
    assert_int_equal(lock_raw_integer(w, "HINCRBY lock:!fence n 0"), before);
}

static void batch_all_or_nothing(void **state)
{
    struct lock_world *w = *state;
    struct lock_remote r = lock_remote_open(0, false);
    struct ll_key keys[300];
    char names[300][16];
    unsigned turns = proxy_count(&r.proxy, PROXY_TURNS);

    assert_int_equal(ll_try(w->lb, "k:299", 5000), LL_OK);
    keys_of(keys, names, 0, 300);
    assert_int_equal(ll_acquire(r.l, keys, 300, LL_ALL, 5000), LL_BUSY);
    assert_int_equal(proxy_count(&r.proxy, PROXY_TURNS) - turns, 1);
    assert_int_equal(ll_granted(r.l), 0);
    assert_int_equal(lock_raw_integer(w, "DBSIZE"), 2);
    lock_raw_do(w, "DEL lock:k:299");
    lock_raw_do(w, "RPUSH lock:k:150 x"); /* reads as nothing, still is not ours */
    assert_int_equal(ll_acquire(r.l, keys, 300, LL_ALL, 5000), LL_BUSY);
    assert_int_equal(lock_raw_integer(w, "DBSIZE"), 2);
    lock_raw_do(w, "DEL lock:k:150");
    assert_int_equal(ll_acquire(r.l, keys, 300, LL_ALL, 5000), LL_OK);
    assert_int_equal(proxy_count(&r.proxy, PROXY_TURNS) - turns, 3);
    lock_remote_close(&r);
}

static void more_than_a_thousand_keys_are_taken_in_chunks(void **state)
{
    struct lock_world *w = *state;
    static struct ll_key keys[2 * LL_KEYS_MAX + 1];
    static char names[2 * LL_KEYS_MAX + 1][16];
    size_t n = 2 * LL_KEYS_MAX + 1;

    keys_of(keys, names, 0, n);
    assert_int_equal(ll_acquire(w->la, keys, n, LL_ALL, 5000), LL_OK);
    assert_int_equal(lock_raw_integer(w, "DBSIZE"), n + 1);
    assert_true(ll_key_token(w->la, n - 1) > ll_key_token(w->la, 0));
    assert_int_equal(ll_release(w->la), LL_OK);
    assert_int_equal(lock_raw_integer(w, "DBSIZE"), 1);
    assert_int_equal(ll_try(w->lb, "k:2000", 5000), LL_OK); /* in the last chunk */
    assert_int_equal(ll_acquire(w->la, keys, n, LL_ALL, 5000), LL_BUSY);
    assert_int_equal(lock_raw_integer(w, "DBSIZE"), 2);
    assert_int_equal(ll_acquire(w->la, keys, n, LL_ANY, 5000), LL_PARTIAL);
    assert_int_equal(ll_granted(w->la), n - 1);
}

/* One is gone, the next is somebody else's, wherever in the batch they stand. */
static void release_of_a_batch_tells_of_each_key(void **state)
{
    struct lock_world *w = *state;
    struct ll_key keys[5];
    char names[5][16];

    keys_of(keys, names, 0, 5);
    for (int at = 0; at < 4; at++) {
        assert_int_equal(ll_acquire(w->la, keys, 5, LL_ALL, 5000), LL_OK);
        lock_raw_do(w, "DEL lock:k:%d", at);
        lock_raw_do(w, "SET lock:k:%d theirs", at + 1);
        assert_int_equal(ll_release(w->la), LL_NOT_OWNER);
        for (int i = 0; i < 5; i++)
            assert_int_equal(ll_key_code(w->la, (size_t)i), i == at       ? LL_GONE
                                                            : i == at + 1 ? LL_NOT_OWNER
                                                                          : LL_OK);
        assert_int_equal(lock_raw_integer(w, "DBSIZE"), 2); /* theirs, the record */
        lock_raw_do(w, "DEL lock:k:%d", at + 1);
    }
}

/* ---- batches that overlap ---- */

enum { UNIVERSE = 24, BATCH = 10, PROCESSES = 8, TURNS = 40 };

struct shared {
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
take_all(struct shared *s, struct ll_lock *l, const struct ll_key *keys, size_t n)
{
    int code = ll_acquire(l, keys, n, LL_ALL, 20000);

    if (code != LL_BUSY)
        return code;
    (void)atomic_fetch_add(&s->busy, 1);
    return ll_acquire_wait(l, keys, n, LL_ALL, 20000, 60000);
}

static int take_batches(struct shared *s, unsigned seed)
{
    struct ll_lock *l = ll_new(lock_client(lock_server.url, 0));
    struct ll_key all[UNIVERSE], keys[BATCH];
    char names[UNIVERSE][16];
    size_t order[UNIVERSE];

    srand(seed);
    keys_of(all, names, 0, UNIVERSE);
    for (int turn = 0; turn < TURNS; turn++) {
        shuffle(order, UNIVERSE);
        for (size_t i = 0; i < BATCH; i++)
            keys[i] = all[order[i]];
        if (take_all(s, l, keys, BATCH) != LL_OK)
            return 1;
        for (size_t i = 0; i < BATCH; i++)
            s->overlaps += atomic_fetch_add(&s->inside[order[i]], 1) != 0 ? 1 : 0;
        for (size_t i = 0; i < BATCH; i++)
            (void)atomic_fetch_sub(&s->inside[order[i]], 1);
        if (ll_release(l) != LL_OK)
            return 1;
        (void)atomic_fetch_add(&s->done, 1);
    }
    return 0;
}

/* Two chunks of keys, one half of the processes in the other order: without giving the
 * first back each would wait for the other's. */
static int take_chunks(struct shared *s, unsigned seed)
{
    enum { KEYS = 2 * LL_KEYS_MAX };

    static struct ll_key keys[KEYS];
    static char names[KEYS][16];
    struct ll_lock *l = ll_new(lock_client(lock_server.url, 5000));

    for (size_t i = 0; i < KEYS; i++)
        keys_of(&keys[i], &names[i], (i + seed % 2 * LL_KEYS_MAX) % KEYS, 1);
    for (int turn = 0; turn < 5; turn++) {
        if (take_all(s, l, keys, KEYS) != LL_OK)
            return 1;
        s->overlaps += atomic_fetch_add(&s->inside[0], 1) != 0 ? 1 : 0;
        (void)atomic_fetch_sub(&s->inside[0], 1);
        if (ll_release(l) != LL_OK)
            return 1;
        (void)atomic_fetch_add(&s->done, 1);
    }
    return 0;
}

/* All finish, each alone on its keys, and they did meet. */
static void all_finish(int (*work)(struct shared *, unsigned), int processes, int turns)
{
    struct shared *s = mmap(NULL, sizeof *s, PROT_READ | PROT_WRITE,
                            MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    pid_t pids[PROCESSES];

    for (int i = 0; i < processes; i++) {
        pids[i] = fork();
        if (pids[i] == 0)
            _exit(work(s, (unsigned)i + 1));
    }
    for (int i = 0; i < processes; i++)
        assert_int_equal(fixture_reap(pids[i], 60), 0);
    assert_int_equal(s->done, processes * turns);
    assert_int_equal(s->overlaps, 0);
    print_message("%d of %d batches found a key busy\n", s->busy, s->done);
    assert_true(s->busy >= processes);
    (void)munmap(s, sizeof *s);
}

static void batch_deadlock_free(void **state)
{
    (void)state;
    all_finish(take_batches, PROCESSES, TURNS);
}

static void batch_deadlock_free_beyond_one_script_call(void **state)
{
    (void)state;
    all_finish(take_chunks, 4, 5);
}

/* One key is never granted twice by one call; with few keys, with many, and in chunks.
 */
static void name_given_twice_is_refused_and_nothing_is_held(void **state)
{
    static const size_t sizes[] = {2, 3, 300, 1500};
    static struct ll_key keys[1500];
    static char names[1500][16];
    struct lock_world *w = *state;

    for (size_t i = 0; i < sizeof sizes / sizeof sizes[0]; i++) {
        size_t n = sizes[i];

        keys_of(keys, names, 0, n);
        keys[n - 1] = keys[0];
        assert_int_equal(ll_acquire(w->la, keys, n, LL_ANY, 5000), LL_E_INVAL);
        assert_non_null(strstr(ll_error(w->a), "keys 0 and "));
        assert_int_equal(ll_granted(w->la), 0);
        assert_int_equal(ll_key_code(w->la, 0), LL_E_INVAL);
        assert_int_equal(ll_acquire(w->la, keys, n - 1, LL_ANY, 5000), LL_OK);
        assert_int_equal(ll_release(w->la), LL_OK);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        LOCK_TEST(batch_any),
        LOCK_TEST(any_with_every_key_busy_is_busy_and_mints_no_token),
        LOCK_TEST(batch_all_or_nothing),
        LOCK_TEST(more_than_a_thousand_keys_are_taken_in_chunks),
        LOCK_TEST(release_of_a_batch_tells_of_each_key),
        LOCK_TEST(name_given_twice_is_refused_and_nothing_is_held),
        LOCK_TEST(batch_deadlock_free),
        LOCK_TEST(batch_deadlock_free_beyond_one_script_call),
    };

    fixture_need_servers();
    return cmocka_run_group_tests(tests, lock_start_server, lock_stop_server);
}
