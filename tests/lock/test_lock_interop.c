/* Another language's lock on the same keys: python3-redis' redis.lock.Lock. */
#include "tests/lib/crowd.h"
#include "tests/lib/lock_world.h"

/* The system's own: its packages are not seen by others that may come first in PATH. */
#define PYTHON "/usr/bin/python3"

enum { PROCESSES = 4, ROUNDS = 100 };

/* Runs a piece of Python with the socket's path and one more word. */
static pid_t start_python(const char *script, const char *word)
{
    const char *path = lock_server.url + strlen("unix://");
    pid_t pid = fork();

    if (pid == 0) {
        (void)execl(PYTHON, PYTHON, "-c", script, path, word, (char *)NULL);
        _exit(127);
    }
    assert_true(pid > 0);
    return pid;
}

static int run_python(const char *script, const char *word)
{
    return fixture_reap(start_python(script, word), CROWD_SECONDS);
}

#define HEAD                                                                           \
    "import sys, redis, redis.lock\n"                                                  \
    "r = redis.Redis(unix_socket_path=sys.argv[1])\n"                                  \
    "lock = redis.lock.Lock(r, 'lock:' + sys.argv[2], timeout=120, sleep=0.002)\n"

static const char try_once[] =
    HEAD "sys.exit(0 if lock.acquire(blocking=False, token='python') else 3)\n";

static const char release_own[] = HEAD "lock.local.token = b'python'\n"
                                       "try:\n"
                                       "    lock.release()\n"
                                       "except redis.exceptions.LockNotOwnedError:\n"
                                       "    sys.exit(4)\n";

static const char ask_locked[] = HEAD "sys.exit(0 if lock.locked() else 3)\n";

static const char count[] =
    HEAD "for i in range(100):\n"
         "    with lock:\n"
         "        r.set('counter', int(r.get('counter')) + 1)\n";

static const char *lacks(void)
{
    if (system(PYTHON " -c 'import redis.lock' 2>/dev/null") != 0)
        return PYTHON " has no redis module (python3-redis)";
    return NULL;
}

GROUP(.missing = lacks);

LOCK_CASE(python_sees_our_lock_as_held)
{
    assert_int_equal(run_python(ask_locked, "x"), 3);
    assert_int_equal(rlock_try(w->la, "x", 120000), RLOCK_OK);
    assert_int_equal(run_python(ask_locked, "x"), 0);
    assert_int_equal(run_python(try_once, "x"), 3);
    assert_int_equal(run_python(release_own, "x"), 4);
    assert_true(rlock_valid(w->la, 0));
    assert_int_equal(rlock_release(w->la), RLOCK_OK);
    assert_int_equal(run_python(try_once, "x"), 0);
}

LOCK_CASE(pythons_lock_is_busy_for_us_and_left_alone)
{
    struct rlock_key keys[] = {{"x", 1}, {"y", 1}};

    assert_int_equal(run_python(try_once, "x"), 0);
    assert_int_equal(rlock_try(w->la, "x", 5000), RLOCK_BUSY);
    assert_in_range(rlock_key_busy_ms(w->la, 0), 60000, 120000);
    assert_int_equal(rlock_acquire(w->la, keys, 2, RLOCK_ALL, 60000), RLOCK_BUSY);
    assert_int_equal(rlock_acquire(w->la, keys, 2, RLOCK_ANY, 60000), RLOCK_PARTIAL);
    assert_int_equal(rlock_release(w->la), RLOCK_OK);
    assert_int_equal(run_python(release_own, "x"), 0);
    assert_int_equal(rlock_try(w->la, "x", 5000), RLOCK_OK);
}

LOCK_CASE(lock_taken_over_from_us_by_python_is_not_released_by_us)
{
    assert_int_equal(rlock_try(w->la, "x", 300), RLOCK_OK);
    fixture_pause_ms(350);
    assert_int_equal(run_python(try_once, "x"), 0);
    assert_int_equal(rlock_extend(w->la, 60000), RLOCK_LOST);
    assert_int_equal(rlock_release(w->la), RLOCK_NOT_OWNER);
    assert_int_equal(run_python(release_own, "x"), 0);
}

/* ---- the counter ---- */

static int count_ours(int id, void *arg)
{
    const struct rlock_key key = {"counted", 7};
    struct rlock *l = rlock_new(lock_client(lock_server.url, 0));
    redisContext *raw = lock_raw_connection(lock_server.url);

    (void)arg;
    for (int i = 0; i < ROUNDS; i++) {
        redisReply *reply;

        if (rlock_acquire_wait(l, &key, 1, RLOCK_ALL, 60000, 300000, -1) != RLOCK_OK)
            return id + 1;
        reply = redisCommand(raw, "GET counter");
        freeReplyObject(
            redisCommand(raw, "SET counter %lld", strtoll(reply->str, NULL, 10) + 1));
        freeReplyObject(reply);
        if (rlock_release(l) != RLOCK_OK)
            return id + 1;
    }
    return 0;
}

LOCK_CASE(counter_loses_nothing_between_both_languages)
{
    pid_t theirs[PROCESSES], ours[PROCESSES];

    lock_raw_do(w, "SET counter 0");
    for (int i = 0; i < PROCESSES; i++)
        theirs[i] = start_python(count, "counted");
    crowd_start(ours, PROCESSES, count_ours, NULL);
    crowd_join(theirs, PROCESSES);
    crowd_join(ours, PROCESSES);
    assert_int_equal(lock_raw_integer(w, "INCRBY counter 0"), 2 * PROCESSES * ROUNDS);
}
