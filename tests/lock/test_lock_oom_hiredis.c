/* The lock library when memory runs out inside hiredis, which says so from 1.0 on and
 * ends the program before: every allocation of it fails, in turn. Each call is either
 * right or out of memory, and never says that Redis is gone. */
#include "tests/lib/lock_world.h"

#if HIREDIS_MAJOR >= 1
#include <hiredis/alloc.h>
#endif

/* ---- allocations that fail ---- */

/* Until so many have gone by; 0: none fails. Which of them fail then. */
static _Thread_local int left;
static _Thread_local bool fails_for_good, has_failed;

#if HIREDIS_MAJOR >= 1

static const char *lacks_allocators(void)
{
    return NULL;
}

static bool fails(void)
{
    if (left == 0 || --left > 0)
        return false;
    left = fails_for_good ? 1 : 0;
    has_failed = true;
    return true;
}

static void *may_malloc(size_t size)
{
    return fails() ? NULL : malloc(size);
}

static void *may_calloc(size_t n, size_t size)
{
    return fails() ? NULL : calloc(n, size);
}

static void *may_realloc(void *p, size_t size)
{
    return fails() ? NULL : realloc(p, size);
}

static char *may_strdup(const char *s)
{
    return fails() ? NULL : strdup(s);
}

static void open_failing(void)
{
    hiredisAllocFuncs functions = {.mallocFn = may_malloc,
                                   .callocFn = may_calloc,
                                   .reallocFn = may_realloc,
                                   .strdupFn = may_strdup,
                                   .freeFn = free};

    (void)hiredisSetAllocators(&functions);
    lock_open_world();
}

static void close_failing(void)
{
    left = 0;
    lock_close_world();
    hiredisResetAllocators();
}

#else

static const char *lacks_allocators(void)
{
    return "this hiredis is older than 1.0, and ends the program when memory runs out";
}

static void open_failing(void)
{
    lock_open_world();
}

static void close_failing(void)
{
    lock_close_world();
}

#endif

static const struct test_group failing = {.missing = lacks_allocators,
                                          .start = lock_start_server,
                                          .stop = lock_stop_server,
                                          .open = open_failing,
                                          .close = close_failing};

/* ---- one life of a client ---- */

enum { LEASE_MS = 20000, KEYS = 3, LEAST = 20 };

static void ignore(const struct rlock_held *held, void *arg)
{
    (void)held;
    (void)arg;
}

static int use(struct rlock_client *c, struct rlock *l)
{
    const struct rlock_key *keys = lock_keys(KEYS, 1);
    int64_t ms;
    int code;

    if ((code = rlock_connect(c)) != RLOCK_OK ||
        (code = rlock_try(l, "one", LEASE_MS)) != RLOCK_OK ||
        (code = rlock_release(l)) != RLOCK_OK ||
        (code = rlock_acquire(l, keys, KEYS, RLOCK_ALL, LEASE_MS)) != RLOCK_OK ||
        (code = rlock_extend(l, 2 * LEASE_MS)) != RLOCK_OK ||
        (code = rlock_verify(l, &ms)) != RLOCK_OK ||
        (code = rlock_list(c, ignore, NULL)) != RLOCK_OK ||
        (code = rlock_release(l)) != RLOCK_OK ||
        (code = rlock_acquire_wait(l, keys, KEYS, RLOCK_ANY, LEASE_MS, 1000, -1)) !=
            RLOCK_OK)
        return code;
    return rlock_release(l);
}

static int live(int nth, bool for_good)
{
    LONE *l = rlock_new(lock_client(lock_server.url, 0));
    int code;

    left = nth;
    fails_for_good = for_good;
    has_failed = false;
    code = use(l->client, l);
    left = 0;
    if (code != RLOCK_OK) /* it can always be given back afterwards */
        assert_true(rlock_release(l) >= RLOCK_OK);
    return code;
}

static const struct {
    const char *name;
    bool for_good;
} ways[] = {{"fails_once", false}, {"fails_from_then_on", true}};

/* Guarantee: An allocation that fails in hiredis 1.0 or newer is `RLOCK_E_NOMEM` or of
 * no consequence, and leaves no lock. */
CASE_ROWS_IN(failing, struct lock_world, allocation_of_hiredis, ways)
{
    int nth = 0;

    do {
        int code = live(++nth, row->for_good);

        if (code != RLOCK_OK && (code != RLOCK_E_NOMEM || !has_failed))
            fail_msg("allocation %d: %s", nth, rlock_strerror(code));
        assert_true(code != RLOCK_OK || !has_failed || !row->for_good);
        promise_int_equal(lock_raw_integer(w, "EXISTS lock:one lock:k:0"), 0);
    } while (has_failed);
    assert_true(nth > LEAST);
}
