/* Every call ends in time, and nothing that comes late acts. test_lock_promise_limits
 * has the limits to the millisecond. */
#include "tests/lib/play.h"

#include <sys/resource.h>

/* A busy machine may stop the test itself: the best of so many tries counts. */
enum { TRIES = 3, OVER_MS = 1000 };

static struct rlock_client *hasty_client(const char *url, uint32_t limit_ms)
{
    return LOCK_OPEN(.url = url, .connect_ms = limit_ms, .reply_ms = limit_ms);
}

/* ---- bytes ---- */

/* Milliseconds of a try, which must fail. */
static int64_t time_try(const char *url)
{
    LONE *l = rlock_new(hasty_client(url, 100));
    int64_t began_ms = rlock_now_ms(), ended_ms;

    assert_true(rlock_try(l, "one", 10000) < 0);
    ended_ms = rlock_now_ms();
    assert_false(rlock_valid(l, 0));
    return ended_ms - began_ms;
}

static void assert_in_time(const char *url, const char *what)
{
    int64_t best_ms = INT64_MAX;

    for (int i = 0; i < TRIES && best_ms > 200 + OVER_MS; i++) {
        int64_t ms = time_try(url);

        best_ms = ms < best_ms ? ms : best_ms;
    }
    if (best_ms > 200 + OVER_MS)
        fail_msg("%s: %lld ms", what, (long long)best_ms);
}

/* A server that answers so to the commands that begin with the word. */
static void assert_harmless(const char *word, const char *answer)
{
    FAKE fake = fake_saying(word, answer);

    assert_in_time(fake.url, answer != NULL ? answer : "nothing");
}

/* Guarantee: A call ends in time whatever a server sends or does not send. */
LOCK_CASE(no_bytes_hold_a_call_beyond_its_limits)
{
    static const char *const answers[] = {
        /* clang-format off */
        "*2147483647\r\n", "*4294967295\r\n", "*500000000\r\n", "*65536\r\n",
        "$536870912\r\n", "$9223372036854775807\r\n", "*9223372036854775807\r\n",
        "*-9\r\n", "$-9\r\n", "*2\r\n*1000000000\r\n", "*1\r\n*-1\r\n", ":\r\n",
        "*1\r\n*1\r\n*1\r\n*1\r\n*1\r\n*1\r\n*1\r\n*1\r\n*1\r\n*1\r\n*1\r\n*1\r\n:1\r\n",
        "%1\r\n+a\r\n:1\r\n", ">1\r\n+a\r\n", "_\r\n", ",1.5\r\n", "+o", NULL
        /* clang-format on */
    };

    for (size_t i = 0; i < sizeof answers / sizeof answers[0]; i++)
        assert_harmless("EVALSHA", answers[i]);
}

LOCK_CASE(no_handshake_holds_a_call_beyond_its_limits)
{
    static const char *const words[] = {"INFO", "GET", "TIME"};
    static const char *const answers[] = {"*2147483647\r\n", "$536870912\r\n", "+",
                                          NULL};

    for (size_t i = 0; i < 3; i++)
        for (size_t k = 0; k < 4; k++)
            assert_harmless(words[i], answers[k]);
}

/* An array that is only announced costs no memory. */
LOCK_CASE(huge_array_costs_no_memory)
{
    struct rusage before, after;

    (void)getrusage(RUSAGE_SELF, &before);
    assert_harmless("EVALSHA", "*500000000\r\n");
    (void)getrusage(RUSAGE_SELF, &after);
    assert_true(after.ru_maxrss - before.ru_maxrss < 50000); /* KiB */
}

/* ---- waits ---- */

static int64_t time_wait(struct rlock_client *c, uint32_t wait_ms, int *code)
{
    const struct rlock_key key = {"one", 3};
    LOCK *l = rlock_new(c);
    int64_t began_ms = rlock_now_ms();

    *code = rlock_acquire_wait(l, &key, 1, RLOCK_ALL, 10000, wait_ms, -1);
    return rlock_now_ms() - began_ms;
}

/* Waits until the answer; the code is that of the quickest wait. */
static int assert_waits(struct rlock_client *c, uint32_t wait_ms)
{
    int64_t best_ms = INT64_MAX;
    int code = RLOCK_OK;

    for (int i = 0; i < TRIES && best_ms > wait_ms + OVER_MS; i++) {
        int64_t ms = time_wait(c, wait_ms, &code);

        best_ms = ms < best_ms ? ms : best_ms;
    }
    assert_in_range(best_ms, wait_ms, wait_ms + OVER_MS);
    return code;
}

/* Not the ten seconds of an answer. */
LOCK_CASE(wait_ends_in_time_though_the_server_stands_still)
{
    CLIENT *c = hasty_client(lock_server.url, 10000);
    int code;

    assert_int_equal(rlock_try(w->la, "one", 60000), RLOCK_OK);
    assert_int_equal(rlock_connect(c), RLOCK_OK);
    assert_int_equal(kill(lock_server.pid, SIGSTOP), 0);
    code = assert_waits(c, 100);
    assert_int_equal(kill(lock_server.pid, SIGCONT), 0);
    assert_true(code < 0);
}

/* ---- late commands ---- */

/* All commands but the first come to the server too late, and while it has the key.
 * Their window is a second, and another where the clocks were compared by a slow
 * answer. Each case has proxies of its own, so no late command comes from another. */
#define ALL_LATE                                                                       \
    "p limits 1000; p take k 10000; p extend 10000; proxy late EVAL 1000 3500; "

PLAY_FRESH(late_extend_does_not_lengthen,
           ALL_LATE "p extend 60000: fault; p abandon; await proxy lates: 1-1000; "
                    "rest 100; redis PTTL @k: -2-10000");

/* Guarantee: A renewal that runs after its time lengthens nothing. */
PLAY_FRESH(late_renewal_does_not_lengthen,
           ALL_LATE "p renew; await proxy lates: 1-1000; rest 100; "
                    "redis PTTL @k: -2-6000; await copies k: 0; p invalid");

PLAY_FRESH(late_acquire_takes_nothing,
           ALL_LATE "p abandon; p try other: fault; await proxy lates: 1-1000; "
                    "rest 100; copies other: 0");
