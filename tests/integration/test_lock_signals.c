/* The lock library in a process with timers, with servers that hang up, and with
 * children. */
#include "tests/lib/lock_world.h"

#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/time.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "tests/lib/proxy.h"

static int64_t now_ms(void)
{
    struct timespec ts;

    (void)clock_gettime(CLOCK_MONOTONIC, &ts);
    return (int64_t)ts.tv_sec * 1000 + ts.tv_nsec / 1000000;
}

/* ---- signals ---- */

static volatile sig_atomic_t ticks;

static void tick(int signal)
{
    (void)signal;
    ticks++;
}

/* A signal every millisecond that interrupts whatever waits; 0: none. */
static void ring(long every_us)
{
    struct sigaction action = {.sa_handler = tick};
    struct itimerval timer = {{0, every_us}, {0, every_us}};

    assert_int_equal(sigaction(SIGALRM, &action, NULL), 0);
    assert_int_equal(setitimer(ITIMER_REAL, &timer, NULL), 0);
}

#define assert_took(start, ms)                                                         \
    assert_in_range(now_ms() - (start), (ms) - (ms) / 10, (ms) + (ms) / 10)

static struct ll_client *client_of(const char *url)
{
    struct ll_options o = {
        .size = sizeof o, .url = url, .connect_ms = 800, .reply_ms = 500};
    struct ll_client *c;

    assert_int_equal(ll_open(&c, &o, NULL, 0), LL_OK);
    return c;
}

static void timeouts_hold(struct ll_client *c, struct proxy *p)
{
    int64_t start, current;

    assert_int_equal(ll_connect(c), LL_OK);
    proxy_swallow(p, true);
    start = now_ms();
    assert_int_equal(ll_check_epoch(c, &current), LL_E_UNCERTAIN);
    assert_took(start, 500);
    start = now_ms();
    assert_int_equal(ll_connect(c), LL_E_UNAVAILABLE);
    assert_took(start, 800);
    proxy_swallow(p, false);
}

static void waiting_ends_in_time(struct lock_world *w)
{
    const struct ll_key key = {"user:1", 6};
    int64_t start;

    assert_int_equal(ll_try(w->la, "user:1", 60000), LL_OK);
    start = now_ms();
    assert_int_equal(ll_acquire_wait(w->lb, &key, 1, LL_ALL, 5000, 1000), LL_TIMEOUT);
    assert_took(start, 1000);
    assert_int_equal(ll_release(w->la), LL_OK);
}

/* The first write after the server hung up would raise SIGPIPE. */
static void hanging_up_is_survived(struct lock_world *w)
{
    for (int i = 0; i < 50; i++) {
        lock_raw_do(w, "CLIENT KILL TYPE normal SKIPME yes");
        assert_int_equal(ll_try(w->la, "user:1", 5000), LL_OK);
        lock_raw_do(w, "CLIENT KILL TYPE normal SKIPME yes");
        assert_int_equal(ll_release(w->la), LL_OK);
    }
}

static void signals_and_sigpipe(void **state)
{
    struct lock_world *w = *state;
    struct proxy p = {0};
    struct ll_client *c;

    (void)signal(SIGPIPE, SIG_DFL);
    proxy_open_redis(&p, lock_server.url);
    c = client_of(p.url);
    ring(1000);
    timeouts_hold(c, &p);
    waiting_ends_in_time(w);
    hanging_up_is_survived(w);
    ring(0);
    assert_true(ticks > 1000);
    ll_close(c);
    proxy_close(&p);
}

/* ---- fork ---- */

enum { CHILDREN = 8 };

/* What the child may do with what it inherits: nothing but free it. */
static bool is_all_refused(struct lock_world *w)
{
    const struct ll_key key = {"user:3", 6};
    const size_t first = 0;
    int64_t number;

    return ll_connect(w->a) == LL_E_FORKED &&
           ll_check_epoch(w->a, &number) == LL_E_FORKED &&
           ll_acquire(w->lb, &key, 1, LL_ALL, 1000) == LL_E_FORKED &&
           ll_acquire_wait(w->lb, &key, 1, LL_ALL, 1000, 100) == LL_E_FORKED &&
           ll_extend(w->la, 90000) == LL_E_FORKED &&
           ll_verify(w->la, &number) == LL_E_FORKED &&
           ll_release_some(w->la, &first, 1) == LL_E_FORKED &&
           ll_release(w->la) == LL_E_FORKED &&
           ll_list(w->a, NULL, NULL) == LL_E_FORKED &&
           ll_force_release(w->a, "user:1") == LL_E_FORKED;
}

static int be_child(struct lock_world *w, int i)
{
    struct ll_client *own;
    struct ll_lock *l;
    char name[32];

    if (!is_all_refused(w))
        return 1;
    ll_free(w->la);
    ll_free(w->lb);
    ll_close(w->a);
    ll_close(w->b);
    own = lock_client(lock_server.url, 0);
    l = ll_new(own);
    (void)snprintf(name, sizeof name, "child:%d", i);
    if (ll_try(l, "user:1", 5000) != LL_BUSY || ll_try(l, name, 60000) != LL_OK)
        return 2;
    ll_free(l); /* held: left for the parent to look at */
    ll_close(own);
    return 0;
}

static void read_value(struct lock_world *w, const char *name, char value[64])
{
    redisReply *reply = redisCommand(w->raw, "GET lock:%s", name);

    assert_int_equal(reply->type, REDIS_REPLY_STRING);
    (void)snprintf(value, 64, "%s", reply->str);
    freeReplyObject(reply);
}

static void fork_safety(void **state)
{
    struct lock_world *w = *state;
    char values[CHILDREN + 1][64];
    int64_t left_ms;

    assert_int_equal(ll_connect(w->b), LL_OK);
    assert_int_equal(ll_try(w->la, "user:1", 60000), LL_OK);
    for (int i = 0; i < CHILDREN; i++) {
        int status;
        pid_t pid = fork();

        if (pid == 0)
            _exit(be_child(w, i));
        assert_int_equal(waitpid(pid, &status, 0), pid);
        assert_int_equal(status, 0);
    }
    assert_int_equal(ll_verify(w->la, &left_ms), LL_OK);
    read_value(w, "user:1", values[CHILDREN]);
    for (int i = 0; i < CHILDREN; i++) {
        char name[32];

        (void)snprintf(name, sizeof name, "child:%d", i);
        read_value(w, name, values[i]);
        for (int j = 0; j < i; j++)
            assert_int_not_equal(strncmp(values[i], values[j], 32), 0);
        assert_int_not_equal(strncmp(values[i], values[CHILDREN], 32), 0);
    }
    assert_int_equal(ll_release(w->la), LL_OK);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        LOCK_TEST(signals_and_sigpipe),
        LOCK_TEST(fork_safety),
    };

    fixture_need_servers();
    return cmocka_run_group_tests(tests, lock_start_server, lock_stop_server);
}
