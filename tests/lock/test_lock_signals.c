/* The lock library in a process with timers, with servers that hang up, and with
 * children. */
#include "tests/lib/play.h"

#include <sys/time.h>

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

/* A busy machine may be late, never early; a limit that each signal begins anew never
 * ends. */
#define assert_took(start, ms)                                                         \
    assert_in_range(fixture_now_ms() - (start), (ms)-10, (ms) + LOCK_SOON_MS)

/* A check of the connection, once a second, may come before the command and be lost:
 * then it is tried again. */
static void timeouts_hold(void)
{
    int code = RLOCK_E_UNAVAILABLE;
    int64_t start = 0;

    play("p limits 1500 2500");
    for (int i = 0; i < 5 && code == RLOCK_E_UNAVAILABLE; i++) {
        play("proxy pass; await p connect; proxy swallow");
        start = fixture_now_ms();
        code = rlock_try(play_lock("p"), "j", 60000);
    }
    assert_int_equal(code, RLOCK_E_UNCERTAIN);
    assert_took(start, 2500 + 1500);
    start = fixture_now_ms();
    play("p connect: unavailable");
    assert_took(start, 2500);
    /* The command ran too late to be granted. */
    play("proxy let; await p connect; p release: gone");
}

/* The first write after the server hung up would raise SIGPIPE. */
#define HANG_UP "redis CLIENT KILL TYPE normal SKIPME yes; "

/* Guarantee: Time limits hold under a signal every millisecond, and servers that
 * hang up raise no SIGPIPE. */
PLAY_CASE(play_on_one, signals_and_sigpipe)
{
    int64_t start;

    (void)signal(SIGPIPE, SIG_DFL);
    ring(1000);
    timeouts_hold();
    play("a try k");
    start = fixture_now_ms();
    play("b wait k 1000: timeout");
    assert_took(start, 1000);
    play("a release");
    for (int i = 0; i < 50; i++)
        play(HANG_UP "a try k; " HANG_UP "a release");
    LOCK_AWAIT(ticks > 100);
    ring(0);
}

/* ---- fork ---- */

enum { CHILDREN = 8 };

/* The child may only free what it inherits. */
static bool is_all_refused(struct lock_world *w)
{
    const struct rlock_key key = {"user:3", 6};
    int64_t number;

    return rlock_connect(w->a) == RLOCK_E_FORKED &&
           rlock_acquire(w->lb, &key, 1, RLOCK_ALL, 1000) == RLOCK_E_FORKED &&
           rlock_acquire_wait(w->lb, &key, 1, RLOCK_ALL, 1000, 100, -1) ==
               RLOCK_E_FORKED &&
           rlock_extend(w->la, 90000) == RLOCK_E_FORKED &&
           rlock_verify(w->la, &number) == RLOCK_E_FORKED &&
           rlock_release(w->la) == RLOCK_E_FORKED &&
           rlock_list(w->a, NULL, NULL) == RLOCK_E_FORKED &&
           lock_force_any(w->a, "user:1") == RLOCK_E_FORKED && !rlock_valid(w->la, 0) &&
           rlock_left_ms(w->la) == 0;
}

static int be_child(struct lock_world *w, int i)
{
    struct rlock_client *own;
    struct rlock *l;
    char name[32];

    if (!is_all_refused(w))
        return 1;
    rlock_free(w->la);
    rlock_free(w->lb);
    rlock_close(w->a);
    rlock_close(w->b);
    own = lock_client(lock_server.url, 0);
    l = rlock_new(own);
    (void)snprintf(name, sizeof name, "child:%d", i);
    if (rlock_try(l, "user:1", 5000) != RLOCK_BUSY ||
        rlock_try(l, name, 60000) != RLOCK_OK)
        return 2;
    rlock_abandon(l); /* held: left for the parent to look at */
    rlock_free(l);
    rlock_close(own);
    return 0;
}

/* The first 32 characters of a value are the nonce. */
static void assert_nonces_differ(struct lock_world *w)
{
    redisReply *r = redisCommand(
        w->raw, "MGET lock:user:1 lock:child:0 lock:child:1 lock:child:2 lock:child:3 "
                "lock:child:4 lock:child:5 lock:child:6 lock:child:7");

    assert_int_equal(r->elements, CHILDREN + 1);
    for (size_t i = 0; i < r->elements; i++) {
        assert_int_equal(r->element[i]->type, REDIS_REPLY_STRING);
        for (size_t j = 0; j < i; j++)
            assert_int_not_equal(strncmp(r->element[i]->str, r->element[j]->str, 32),
                                 0);
    }
    freeReplyObject(r);
}

/* Guarantee: A forked child has no lock, releases nothing and draws other nonces. */
LOCK_CASE(fork_safety)
{
    int64_t left_ms;

    assert_int_equal(rlock_connect(w->b), RLOCK_OK);
    assert_int_equal(rlock_try(w->la, "user:1", 60000), RLOCK_OK);
    for (int i = 0; i < CHILDREN; i++) {
        pid_t pid = fork();

        if (pid == 0)
            _exit(be_child(w, i));
        assert_int_equal(fixture_reap(pid, 60), 0);
    }
    assert_int_equal(rlock_verify(w->la, &left_ms), RLOCK_OK);
    assert_nonces_differ(w);
    assert_int_equal(rlock_release(w->la), RLOCK_OK);
}
