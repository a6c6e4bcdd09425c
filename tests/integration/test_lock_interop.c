/* Another language's lock on the same keys: python3-redis' redis.lock.Lock. */
#include "tests/lib/lock_world.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

/* The system's own: its packages are not seen by others that may come first in PATH. */
#define PYTHON "/usr/bin/python3"

enum { PROCESSES = 4, TURNS = 500 };

/* Runs a piece of Python with the socket's path and one more word. */
static pid_t start_python(const char *script, const char *word)
{
    const char *path = lock_server.url + strlen("unix://");
    pid_t pid;

    (void)fflush(NULL);
    pid = fork();
    if (pid == 0) {
        (void)execl(PYTHON, PYTHON, "-c", script, path, word, (char *)NULL);
        _exit(127);
    }
    assert_true(pid > 0);
    return pid;
}

static int run_python(const char *script, const char *word)
{
    return fixture_reap(start_python(script, word), 30);
}

#define HEAD                                                                           \
    "import sys, redis, redis.lock\n"                                                  \
    "r = redis.Redis(unix_socket_path=sys.argv[1])\n"                                  \
    "lock = redis.lock.Lock(r, 'lock:' + sys.argv[2], timeout=20, sleep=0.002)\n"

static const char try_once[] =
    HEAD "sys.exit(0 if lock.acquire(blocking=False, token='python') else 3)\n";

static const char release_own[] = HEAD "lock.local.token = b'python'\n"
                                       "try:\n"
                                       "    lock.release()\n"
                                       "except redis.exceptions.LockNotOwnedError:\n"
                                       "    sys.exit(4)\n";

static const char ask_locked[] = HEAD "sys.exit(0 if lock.locked() else 3)\n";

static const char count[] =
    HEAD "for i in range(500):\n"
         "    with lock:\n"
         "        r.set('counter', int(r.get('counter')) + 1)\n";

static void python_sees_our_lock_as_held(void **state)
{
    struct lock_world *w = *state;

    assert_int_equal(run_python(ask_locked, "x"), 3);
    assert_int_equal(ll_try(w->la, "x", 20000), LL_OK);
    assert_int_equal(run_python(ask_locked, "x"), 0);
    assert_int_equal(run_python(try_once, "x"), 3);
    assert_int_equal(run_python(release_own, "x"), 4);
    assert_true(ll_valid(w->la, 0));
    assert_int_equal(ll_release(w->la), LL_OK);
    assert_int_equal(run_python(try_once, "x"), 0);
}

static void pythons_lock_is_busy_for_us_and_left_alone(void **state)
{
    struct lock_world *w = *state;
    struct ll_key keys[] = {{"x", 1}, {"y", 1}};

    assert_int_equal(run_python(try_once, "x"), 0);
    assert_int_equal(ll_try(w->la, "x", 5000), LL_BUSY);
    assert_in_range(ll_key_busy_ms(w->la, 0), 10000, 20000);
    assert_int_equal(ll_acquire(w->la, keys, 2, LL_ALL, 5000), LL_BUSY);
    assert_int_equal(ll_acquire(w->la, keys, 2, LL_ANY, 5000), LL_PARTIAL);
    assert_int_equal(ll_release(w->la), LL_OK);
    assert_int_equal(run_python(release_own, "x"), 0);
    assert_int_equal(ll_try(w->la, "x", 5000), LL_OK);
}

static void lock_taken_over_from_us_by_python_is_not_released_by_us(void **state)
{
    struct lock_world *w = *state;

    assert_int_equal(ll_try(w->la, "x", 30), LL_OK);
    fixture_pause_ms(50);
    assert_int_equal(run_python(try_once, "x"), 0);
    assert_int_equal(ll_extend(w->la, 60000), LL_LOST);
    assert_int_equal(ll_release(w->la), LL_NOT_OWNER);
    assert_int_equal(run_python(release_own, "x"), 0);
}

/* ---- the counter ---- */

static int count_ours(void)
{
    struct ll_client *c = lock_client(lock_server.url, 0);
    struct ll_lock *l = ll_new(c);
    redisContext *raw = lock_raw_connection(lock_server.url);
    struct ll_key key = {"counted", 7};
    int code = LL_OK;

    for (int i = 0; i < TURNS && code == LL_OK; i++) {
        redisReply *reply;

        code = ll_acquire_wait(l, &key, 1, LL_ALL, 20000, 30000);
        if (code != LL_OK)
            break;
        reply = redisCommand(raw, "GET counter");
        freeReplyObject(
            redisCommand(raw, "SET counter %lld", strtoll(reply->str, NULL, 10) + 1));
        freeReplyObject(reply);
        code = ll_release(l);
    }
    redisFree(raw);
    ll_free(l);
    ll_close(c);
    return code == LL_OK ? 0 : 1;
}

static void counter_loses_nothing_between_both_languages(void **state)
{
    struct lock_world *w = *state;
    pid_t pids[2 * PROCESSES];

    lock_raw_do(w, "SET counter 0");
    (void)fflush(NULL);
    for (size_t i = 0; i < PROCESSES; i++) {
        pids[i] = start_python(count, "counted");
        pids[PROCESSES + i] = fork();
        if (pids[PROCESSES + i] == 0)
            _exit(count_ours());
    }
    for (size_t i = 0; i < 2 * (size_t)PROCESSES; i++)
        assert_int_equal(fixture_reap(pids[i], 60), 0);
    assert_int_equal(lock_raw_integer(w, "INCRBY counter 0"), 2 * PROCESSES * TURNS);
    /* minted tokens: our tenures, and only they */
    assert_int_equal(lock_raw_integer(w, "HINCRBY lock:!fence n 0"), PROCESSES * TURNS);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        LOCK_TEST(python_sees_our_lock_as_held),
        LOCK_TEST(pythons_lock_is_busy_for_us_and_left_alone),
        LOCK_TEST(lock_taken_over_from_us_by_python_is_not_released_by_us),
        LOCK_TEST(counter_loses_nothing_between_both_languages),
    };

    fixture_need_servers();
    if (system(PYTHON " -c 'import redis.lock' 2>/dev/null") != 0) {
        (void)printf("skipped: " PYTHON " has no redis module (python3-redis)\n");
        return 77;
    }
    return cmocka_run_group_tests(tests, lock_start_server, lock_stop_server);
}
