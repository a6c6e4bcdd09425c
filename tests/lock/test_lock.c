/* Tokens of one server, and its scripts themselves. */
#include "tests/lib/play.h"

#include <time.h>

#include "lua_gen.h"

/* The steps want each token to be above all before. */
#define FIVE "a try k; a release; b try k; b release; a try k; a release; b try k; "
#define TEN                                                                            \
    FIVE "b release; a try k; a release; " FIVE "b release; a try k; a release; "

/* Guarantee: Tokens of successive holders strictly rise. */
PLAY_ONE(token_unique_and_increasing, TEN TEN TEN TEN TEN);

static int64_t wall_us(void)
{
    struct timespec ts;

    (void)clock_gettime(CLOCK_REALTIME, &ts);
    return (int64_t)ts.tv_sec * 1000000 + ts.tv_nsec / 1000;
}

/* The servers of the tests have our clock. */
/* Guarantee: A token is the server's time in microseconds, or the last one and one. */
LOCK_CASE(token_is_the_server_time_or_the_last_and_one)
{
    enum { SLACK_US = 10000 };

    int64_t before = wall_us();

    assert_int_equal(rlock_try(w->la, "user:1", 60000), RLOCK_OK);
    assert_in_range(rlock_token(w->la), before - SLACK_US, wall_us() + SLACK_US);
    lock_raw_do(w, "SET lock:!last 5000000000000000");
    assert_int_equal(rlock_try(w->lb, "user:2", 60000), RLOCK_OK);
    assert_int_equal(rlock_token(w->lb), INT64_C(5000000000000001));
    assert_int_equal(rlock_release(w->lb), RLOCK_OK);
    lock_raw_do(w, "SET lock:!last nonsense");
    assert_int_equal(rlock_try(w->lb, "user:2", 60000), RLOCK_E_PROTO);
    assert_non_null(strstr(rlock_error(w->b), "lock:!last"));
    assert_int_equal(lock_raw_integer(w, "EXISTS lock:user:2"), 0);
}

/* ---- the scripts themselves ---- */

/* Takes any of these keys with one nonce; the window is "FROM TO" in milliseconds. */
static redisReply *
run_acquire(struct lock_world *w, const char *keys, const char *window)
{
    char command[160];
    redisReply *reply;

    (void)snprintf(command, sizeof command,
                   "EVAL %%s %d lock:!last %s n1 60000 %s any 0 0 %%s 7",
                   strchr(keys, ' ') != NULL ? 3 : 2, keys, window);
    reply =
        redisCommand(w->raw, command, (const char *)lua_texts[LUA_ACQUIRE].text, "");
    assert_true(rlock_cut_id(reply, 7));
    return reply;
}

LOCK_CASE(same_nonce_again_gets_the_same_grant)
{
    for (int i = 0; i < 2; i++) {
        static char token[32];
        redisReply *reply = run_acquire(w, "lock:a lock:b", "0 9999999999999");

        assert_string_equal(reply->element[0]->str, "ok");
        if (i == 0)
            (void)snprintf(token, sizeof token, "%s", reply->element[1]->str);
        assert_string_equal(reply->element[1]->str, token);
        assert_int_equal(lock_last_token(w), strtoll(token, NULL, 10));
        freeReplyObject(reply);
    }
}

static const struct {
    const char *name, *window;
} windows[] = {{"that_is_over", "0 1000"},
               {"that_has_not_begun", "9999999999998 9999999999999"}};

CASE_ROWS_IN(lock_group, struct lock_world, nothing_is_granted_in_a_window, windows)
{
    redisReply *reply = run_acquire(w, "lock:a", row->window);

    assert_string_equal(reply->element[0]->str, "late");
    freeReplyObject(reply);
    assert_int_equal(lock_raw_integer(w, "DBSIZE"), 0);
}

/* The keys that somebody else held and gave back between the two runs of one command
 * may have seen a higher token since: they stay out of the lock. */
LOCK_CASE(repeated_any_batch_adds_no_key_under_its_old_token)
{
    assert_int_equal(rlock_try(w->lb, "b", 60000), RLOCK_OK);
    for (int i = 0; i < 2; i++) { /* first busy, then free but too late */
        redisReply *reply = run_acquire(w, "lock:a lock:b", "0 9999999999999");

        assert_string_equal(reply->element[0]->str, "ok");
        assert_int_equal(reply->elements, 4);
        assert_int_equal(reply->element[2]->integer, 2);
        freeReplyObject(reply);
        lock_raw_do(w, "DEL lock:b");
    }
    assert_int_equal(lock_raw_integer(w, "EXISTS lock:b"), 0);
}
