/* The lock library when memory runs out: every allocation of it fails once, in turn. No
 * crash, no leak (under the sanitizer), no lock left behind, and the code says so. */
#include "tests/lib/play.h"

#include <errno.h>

/* ---- allocations that fail (linked with --wrap) ---- */

static _Thread_local int left; /* the one that takes it to 0 fails; 0: none does */

static _Thread_local bool has_failed;

static bool fails(void)
{
    if (left == 0 || --left > 0)
        return false;
    has_failed = true;
    errno = ENOMEM;
    return true;
}

#define FAILING(type, name, parameters, words)                                         \
    type __real_##name parameters;                                                     \
    type __wrap_##name parameters;                                                     \
    type __wrap_##name parameters                                                      \
    {                                                                                  \
        return fails() ? NULL : __real_##name words;                                   \
    }

FAILING(void *, malloc, (size_t size), (size))
FAILING(void *, calloc, (size_t n, size_t size), (n, size))
FAILING(void *, realloc, (void *p, size_t size), (p, size))
FAILING(char *, strdup, (const char *s), (s))
FAILING(char *, strndup, (const char *s, size_t n), (s, n))

/* ---- one life of a client, whatever fails on the way ---- */

enum { LEASE_MS = 20000, REPLY_MS = 10000, NAME = 32 };

/* Other names each time: where one node of a quorum could not be told of a release, its
 * key stays until the lease ends. */
static char names[3][NAME];

static int use_lock(struct rlock_client *c, struct rlock *l)
{
    const struct rlock_key keys[] = {{names[0], strlen(names[0])},
                                     {names[1], strlen(names[1])},
                                     {names[2], strlen(names[2])}};
    int64_t number;
    int code;

    if ((code = rlock_connect(c)) != RLOCK_OK ||
        (code = rlock_try(l, names[0], LEASE_MS)) != RLOCK_OK ||
        (code = rlock_release(l)) != RLOCK_OK ||
        (code = rlock_acquire(l, keys, 3, RLOCK_ALL, LEASE_MS)) != RLOCK_OK ||
        (code = rlock_extend(l, 2 * LEASE_MS)) != RLOCK_OK ||
        (code = rlock_verify(l, &number)) != RLOCK_OK ||
        (code = rlock_release(l)) != RLOCK_OK)
        return code;
    return rlock_acquire_wait(l, keys, 2, RLOCK_ANY, LEASE_MS, 1000, -1);
}

static int use_renewer(struct rlock_client *c, struct rlock *l)
{
    struct rlock_renew_options o = {.size = sizeof o};
    struct rlock_renewer *r = NULL;
    int code = rlock_renewer_open(&r, c, &o);

    if (code == RLOCK_OK)
        code = rlock_renew(r, l, 0, 0);
    if (code == RLOCK_OK)
        rlock_renew_stop(r, l);
    rlock_renewer_close(r);
    return code;
}

static int live(const struct rlock_options *o)
{
    struct rlock_client *c;
    struct rlock *l = NULL;
    char why[160];
    int code = rlock_open(&c, o, why, sizeof why);

    if (code == RLOCK_OK && (l = rlock_new(c)) == NULL)
        code = RLOCK_E_NOMEM;
    if (code == RLOCK_OK)
        code = use_lock(c, l);
    if (code == RLOCK_OK)
        code = use_renewer(c, l);
    left = 0;
    if (l != NULL && rlock_granted(l) > 0) /* it can always be given back afterwards */
        assert_int_equal(rlock_release(l), RLOCK_OK);
    rlock_free(l);
    rlock_close(c);
    return code;
}

/* No name is held by a majority. A node that was cut off by the failed allocation may
 * not have been told of the release: its key stays until the lease ends, and holds up
 * nobody.
 */
static void assert_free(redisContext *const *raw, int nodes)
{
    for (int i = 0; i < 3; i++) {
        long long holders = 0;

        for (int node = 0; node < nodes; node++) {
            redisReply *found = redisCommand(raw[node], "EXISTS lock:%s", names[i]);

            assert_non_null(found);
            holders += found->integer;
            freeReplyObject(found);
        }
        assert_in_range(holders, 0, (nodes - 1) / 2);
    }
}

/* Lets the first, second, ... allocation fail until there is none left to fail. */
static int
fail_each(redisContext *const *raw, int nodes, const struct rlock_options *o, int good)
{
    for (int nth = 1; nth < 1000; nth++) {
        int code;

        for (int i = 0; i < 3; i++)
            (void)snprintf(names[i], NAME, "user:%d:%03d", i, nth);
        left = nth;
        has_failed = false;
        code = live(o);
        if (code != good && (code != RLOCK_E_NOMEM || !has_failed))
            fail_msg("allocation %d: %s", nth, rlock_strerror(code));
        assert_free(raw, nodes);
        if (!has_failed)
            return nth;
    }
    fail_msg("it never ends");
    return 0;
}

static const struct {
    const char *name;
    struct rlock_options o;
    int good, least;
} clients[] = {{"on_one_server", {.url = lock_server.url}, RLOCK_OK, 10},
               {"with_every_option_and_nobody_there",
                {.url = "redis+sentinel://u:p@127.0.0.1:1,[::1]:1/name/3",
                 .password = "p",
                 .prefix = "p:",
                 .tls_ca = "/nowhere"},
                RLOCK_E_UNAVAILABLE,
                7},
               {"on_a_quorum_with_nobody_there",
                {.url = "unix:///nowhere/1,unix:///nowhere/2,redis://[::1]:1"},
                RLOCK_E_NO_QUORUM,
                4}};

/* Guarantee: Every allocation fails once on one server: no leak, no lock left. */
CASE_ROWS_IN(lock_group, struct lock_world, oom_and_leaks, clients)
{
    struct rlock_options o = row->o;

    o.size = sizeof o;
    assert_true(fail_each(&w->raw, 1, &o, row->good) > row->least);
}

/* Guarantee: Every allocation fails once on a quorum: no leak, no lock left. */
PLAY_CASE(play_on_quorum, oom_and_leaks_on_a_quorum)
{
    const struct rlock_options o = {.size = sizeof o,
                                    .url = w->plain_url,
                                    .reply_ms = REPLY_MS,
                                    .max_lease_ms = w->max_lease_ms};

    assert_true(fail_each(w->raw, 3, &o, RLOCK_OK) > 10);
}
