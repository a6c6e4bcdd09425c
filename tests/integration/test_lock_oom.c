/* The lock library when memory runs out: every allocation of it fails once, in turn. No
 * crash, no leak (under the sanitizer), no lock left behind, and the code says so. */
#include "tests/lib/lock_world.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* ---- allocations that fail (linked with --wrap) ---- */

void *__real_malloc(size_t size);
void *__real_calloc(size_t n, size_t size);
void *__real_realloc(void *p, size_t size);
char *__real_strdup(const char *s);
char *__real_strndup(const char *s, size_t n);
void *__wrap_malloc(size_t size);
void *__wrap_calloc(size_t n, size_t size);
void *__wrap_realloc(void *p, size_t size);
char *__wrap_strdup(const char *s);
char *__wrap_strndup(const char *s, size_t n);

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

void *__wrap_malloc(size_t size)
{
    return fails() ? NULL : __real_malloc(size);
}

void *__wrap_calloc(size_t n, size_t size)
{
    return fails() ? NULL : __real_calloc(n, size);
}

void *__wrap_realloc(void *p, size_t size)
{
    return fails() ? NULL : __real_realloc(p, size);
}

char *__wrap_strdup(const char *s)
{
    return fails() ? NULL : __real_strdup(s);
}

char *__wrap_strndup(const char *s, size_t n)
{
    return fails() ? NULL : __real_strndup(s, n);
}

/* ---- one life of a client, whatever fails on the way ---- */

enum { LEASE_MS = 2000, NAME = 32 };

/* Other names each time: where one node of a quorum could not be told of a release, its
 * key stays until the lease ends. */
static char names[3][NAME];

static int use_lock(struct ll_client *c, struct ll_lock *l, bool is_quorum)
{
    const struct ll_key keys[] = {{names[0], strlen(names[0])},
                                  {names[1], strlen(names[1])},
                                  {names[2], strlen(names[2])}};
    const size_t second = 1;
    int64_t number;
    int code = ll_connect(c);

    if (code == LL_OK && !is_quorum)
        code = ll_install_epoch(c, 1, &number);
    if (code == LL_OK)
        code = ll_try(l, names[0], LEASE_MS);
    if (code == LL_OK)
        code = ll_release(l);
    if (code == LL_OK)
        code = ll_acquire(l, keys, 3, LL_ALL, LEASE_MS);
    if (code == LL_OK)
        code = ll_extend(l, 2 * LEASE_MS);
    if (code == LL_OK)
        code = ll_verify(l, &number);
    if (code == LL_OK)
        code = ll_release_some(l, &second, 1);
    if (code == LL_OK)
        code = ll_release(l);
    if (code == LL_OK)
        code = ll_acquire_wait(l, keys, 2, LL_ANY, LEASE_MS, 1000);
    return code;
}

static int use_renewer(struct ll_client *c, struct ll_lock *l)
{
    struct ll_renew_options o = {.size = sizeof o};
    struct ll_renewer *r = NULL;
    int code = ll_renewer_open(&r, c, &o);

    if (code == LL_OK)
        code = ll_renew(r, l, 0, 0);
    if (code == LL_OK)
        ll_renew_stop(r, l);
    ll_renewer_close(r);
    return code;
}

static int live(struct ll_options *o)
{
    struct ll_client *c;
    struct ll_lock *l = NULL;
    char why[160];
    int code = ll_open(&c, o, why, sizeof why);

    if (code == LL_OK)
        l = ll_new(c);
    if (code == LL_OK && l == NULL)
        code = LL_E_NOMEM;
    if (code == LL_OK)
        code = use_lock(c, l, strchr(o->url, ',') != NULL);
    if (code == LL_OK)
        code = use_renewer(c, l);
    left = 0;
    if (l != NULL && ll_granted(l) > 0) /* it can always be given back afterwards */
        assert_int_equal(ll_release(l), LL_OK);
    ll_free(l);
    ll_close(c);
    return code;
}

/* Lets the first, second, ... allocation fail until there is none left to fail. */
static int fail_in_turn(struct lock_world *w, struct ll_options *o, int good)
{
    for (int nth = 1; nth < 1000; nth++) {
        char exists[4 * NAME];
        int code;

        for (int i = 0; i < 3; i++)
            (void)snprintf(names[i], NAME, "user:%d:%03d", i, nth);
        (void)snprintf(exists, sizeof exists, "EXISTS lock:%s lock:%s lock:%s",
                       names[0], names[1], names[2]);
        left = nth;
        has_failed = false;
        code = live(o);
        if (code != good && (code != LL_E_NOMEM || !has_failed))
            fail_msg("allocation %d: %s", nth, ll_strerror(code));
        assert_int_equal(lock_raw_integer(w, exists), 0);
        if (!has_failed)
            return nth;
    }
    fail_msg("it never ends");
    return 0;
}

static void oom_and_leaks_on_one_server(void **state)
{
    struct ll_options o = {.size = sizeof o, .url = lock_server.url};

    assert_true(fail_in_turn(*state, &o, LL_OK) > 10);
}

static void oom_and_leaks_without_scripts(void **state)
{
    struct ll_options o = {
        .size = sizeof o, .url = lock_server.url, .no_scripts = true};

    assert_true(fail_in_turn(*state, &o, LL_OK) > 10);
}

static void oom_and_leaks_with_every_option_and_nobody_there(void **state)
{
    struct ll_options o = {.size = sizeof o,
                           .url = "redis+sentinel://u:p@127.0.0.1:1,[::1]:1/name/3",
                           .password = "p",
                           .prefix = "p:",
                           .tls_ca = "/nowhere"};

    assert_true(fail_in_turn(*state, &o, LL_E_UNAVAILABLE) > 7);
}

static void oom_and_leaks_on_a_quorum_with_nobody_there(void **state)
{
    struct ll_options o = {
        .size = sizeof o, .url = "unix:///nowhere/1,unix:///nowhere/2,redis://[::1]:1"};

    assert_true(fail_in_turn(*state, &o, LL_E_NO_QUORUM) > 4);
}

static void seed(const char *url)
{
    struct ll_options o = {.size = sizeof o, .url = url, .max_lease_ms = 2 * LEASE_MS};
    struct ll_client *c;
    int64_t wait_ms;

    assert_int_equal(ll_open(&c, &o, NULL, 0), LL_OK);
    for (int i = 0; i < 100 && ll_seed(c, 0, &wait_ms) == LL_E_AMNESIA; i++)
        fixture_pause_ms(100);
    assert_int_equal(ll_seed(c, 0, &wait_ms), LL_OK);
    ll_close(c);
}

static void oom_and_leaks_on_a_quorum(void **state)
{
    static struct fixture_redis servers[3];
    char url[3 * FIXTURE_URL];
    struct ll_options o = {.size = sizeof o, .url = url, .max_lease_ms = 2 * LEASE_MS};

    for (size_t i = 0; i < 3; i++)
        fixture_redis_start(&servers[i], NULL);
    (void)snprintf(url, sizeof url, "%s,%s,%s", servers[0].url, servers[1].url,
                   servers[2].url);
    seed(url);
    assert_true(fail_in_turn(*state, &o, LL_OK) > 10);
    for (size_t i = 0; i < 3; i++)
        fixture_redis_close(&servers[i]);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        LOCK_TEST(oom_and_leaks_on_one_server),
        LOCK_TEST(oom_and_leaks_without_scripts),
        LOCK_TEST(oom_and_leaks_with_every_option_and_nobody_there),
        LOCK_TEST(oom_and_leaks_on_a_quorum),
        LOCK_TEST(oom_and_leaks_on_a_quorum_with_nobody_there),
    };

    fixture_need_servers();
    return cmocka_run_group_tests(tests, lock_start_server, lock_stop_server);
}
