/* The form for event loops: what it tells and when, what it refuses, and that no step
 * waits. The tests of the blocking form also run in a loop: see form.c. */
#include "tests/lib/loop_world.h"

#include <sys/wait.h>

/* ---- many ---- */

enum { LOCKS = 200 };

PLAY_CASE(play_on_one, loop_works_many_locks_over_one_connection)
{
    struct loop loop = loop_of("a");
    struct rlock *locks[LOCKS];
    int64_t last = 0;
    char name[24];

    for (int i = 0; i < LOCKS; i++) {
        (void)snprintf(name, sizeof name, "user:%d", i);
        locks[i] = rlock_new(loop.c);
        assert_int_equal(loop_acquire(&loop, locks[i], name, 0), RLOCK_OK);
        assert_false(rlock_valid(locks[i], 0));
    }
    assert_int_equal(loop.told, 0);
    LOOP_AWAIT(&loop, loop.told == LOCKS);
    for (int i = 0; i < LOCKS; i++) {
        assert_true(rlock_valid(locks[i], 0));
        assert_true(rlock_token(locks[i]) > last); /* in the order of the calls */
        last = rlock_token(locks[i]);
        assert_int_equal(rlock_begin_release(locks[i], on_done, &loop), RLOCK_OK);
    }
    LOOP_AWAIT(&loop, loop.told == 2 * LOCKS);
    assert_int_equal(loop.code, RLOCK_OK);
    play("keys: 0");
    for (int i = 0; i < LOCKS; i++)
        rlock_free(locks[i]);
}

enum { OF_A_QUORUM = 50 };

/* The answers of each call come 20 ms late: one behind the other they would take longer
 * than a call has. */
/* Guarantee: Calls of an event loop are under way on a quorum side by side. */
PLAY_CASE(play_on_quorum, loop_works_many_locks_of_a_quorum_side_by_side)
{
    struct loop loop = loop_of("p");
    struct rlock *locks[OF_A_QUORUM];
    char name[24];

    play("p everywhere; p take k; proxy delay 20");
    loop.c->o.connect_ms = loop.c->o.reply_ms = 400;
    for (int i = 0; i < OF_A_QUORUM; i++) {
        (void)snprintf(name, sizeof name, "user:%d", i);
        locks[i] = rlock_new(loop.c);
        assert_int_equal(loop_acquire(&loop, locks[i], name, 0), RLOCK_OK);
    }
    loop.c->o.connect_ms = loop.c->o.reply_ms = LOCK_SOON_MS;
    LOOP_AWAIT(&loop, loop.told == OF_A_QUORUM);
    for (int i = 0; i < OF_A_QUORUM; i++) {
        assert_true(rlock_valid(locks[i], 0));
        rlock_abandon(locks[i]);
        rlock_free(locks[i]);
    }
    play("proxy delay 0; p list: 102-153");
}

/* Guarantee: Two waiters of one client in an event loop hear each its own wake-up, over
 * one connection more. */
PLAY_CASE(play_on_one, waiters_of_one_client_are_woken_over_one_connection)
{
    struct loop loop = loop_of("p");
    unsigned before;

    play("a take x; a2 take y; p connect");
    before = proxy_count(&w->proxies[0], PROXY_CONNECTIONS);
    assert_int_equal(loop_acquire(&loop, play_lock("p"), "x", LOCK_SOON_MS), RLOCK_OK);
    assert_int_equal(loop_acquire(&loop, play_lock("p2"), "y", LOCK_SOON_MS), RLOCK_OK);
    for (int i = 0; i < 20; i++)
        loop_step(&loop, 50);
    assert_int_equal(loop.told, 0);
    play("a2 release");
    LOOP_AWAIT(&loop, loop.told == 1);
    play("p2 valid; a release");
    LOOP_AWAIT(&loop, loop.told == 2);
    play("p valid");
    assert_int_equal(proxy_count(&w->proxies[0], PROXY_CONNECTIONS), before + 1);
}

/* A call of the other form while one is under way. */
PLAY_CASE(play_on_one, locks_are_listed_while_a_call_is_under_way)
{
    struct loop loop = loop_of("p");

    play("p try k; proxy delay 50");
    assert_int_equal(loop_acquire(&loop, play_lock("p2"), "j", 0), RLOCK_OK);
    play("p list: 2; proxy delay 0");
    LOOP_AWAIT(&loop, loop.told == 1);
    play("p2 valid");
}

/* ---- refusals ---- */

PLAY_CASE(play_on_one, wrong_calls_are_refused_before_anything_is_sent)
{
    const struct rlock_key key = {"k", 1};
    struct loop loop = loop_of("a");
    struct rlock *l = play_lock("a");
    int64_t left_ms;

    assert_int_equal(rlock_begin_extend(l, 60000, on_done, &loop), RLOCK_E_INVAL);
    assert_int_equal(rlock_begin_acquire(l, &key, 1, RLOCK_ALL, 0, 0, on_done, &loop),
                     RLOCK_E_INVAL);
    assert_int_equal(
        rlock_begin_acquire(l, &key, 1, (enum rlock_mode)9, 60000, 0, on_done, &loop),
        RLOCK_E_INVAL);
    assert_int_equal(loop_acquire(&loop, l, "", 0), RLOCK_E_INVAL);
    assert_int_equal(loop_acquire(&loop, l, "k", 0), RLOCK_OK);
    assert_int_equal(loop_acquire(&loop, l, "k", 0), RLOCK_E_INVAL);
    assert_int_equal(rlock_begin_release(l, on_done, &loop), RLOCK_E_INVAL);
    assert_int_equal(rlock_acquire(l, &key, 1, RLOCK_ALL, 5000), RLOCK_E_INVAL);
    assert_int_equal(rlock_verify(l, &left_ms), RLOCK_E_INVAL);
    fixture_assert_contains(rlock_error(loop.c), "under way");
    LOOP_AWAIT(&loop, loop.told == 1);
    assert_int_equal(loop.code, RLOCK_OK);
    assert_int_equal(loop_acquire(&loop, l, "k", 0), RLOCK_E_INVAL);
    play("a release; a release");
    assert_int_equal(loop.told, 1);
}

PLAY_CASE(play_on_one, release_of_what_is_not_held_is_told_its_code)
{
    struct loop loop = loop_of("a");
    struct rlock *l = play_lock("a");

    assert_int_equal(rlock_begin_release(l, on_done, &loop), RLOCK_OK);
    assert_int_equal(loop.told, 0); /* never inside the call */
    LOOP_AWAIT(&loop, loop.told == 1);
    assert_int_equal(loop.code, RLOCK_GONE);
    loop_take(&loop, l, "k");
    play("del k");
    for (int i = 0; i < 2; i++) {
        assert_int_equal(rlock_begin_release(l, on_done, &loop), RLOCK_OK);
        LOOP_AWAIT(&loop, loop.told == 3 + i);
        assert_int_equal(loop.code, RLOCK_GONE);
    }
}

static void check_error(struct rlock *l, int code, void *arg)
{
    assert_string_equal(rlock_error(l->client), rlock_strerror(code));
    on_done(l, code, arg);
}

/* Both have their answers before the first is told. */
PLAY_CASE(play_on_one, error_is_that_of_the_call)
{
    const struct rlock_key key = {"k", 1};
    struct loop loop = loop_of("a");

    play("b take k; a2 take j; del j");
    assert_int_equal(rlock_begin_acquire(play_lock("a"), &key, 1, RLOCK_ALL, 60000, 0,
                                         check_error, &loop),
                     RLOCK_OK);
    assert_int_equal(rlock_begin_extend(play_lock("a2"), 60000, check_error, &loop),
                     RLOCK_OK);
    fixture_pause_ms(100);
    LOOP_AWAIT(&loop, loop.told == 2);
    assert_int_equal(loop.code, RLOCK_LOST);
}

/* ---- no step waits ---- */

/* Guarantee: No step of an event loop waits for a server, nor does a call that is
 * begun, whether it connects, has sent a command, or waits for a key. */
PLAY_CASE(play_on_one, no_step_waits_for_a_server_that_stands_still)
{
    struct loop loop = loop_of("a"), other = loop_of("c");
    int64_t began_ms;

    play("b take k; a limits 600000 600000; c limits 600000 600000; a connect");
    loop.c->o.reply_ms = loop.c->o.connect_ms = 600000;
    other.c->o.reply_ms = other.c->o.connect_ms = 600000;
    assert_int_equal(loop_acquire(&loop, play_lock("a2"), "k", 600000), RLOCK_OK);
    LOOP_AWAIT(&loop, loop.c->ears.is_asked);
    play("server stop");
    began_ms = fixture_now_ms();
    assert_int_equal(loop_acquire(&loop, play_lock("a"), "x", 0), RLOCK_OK);
    assert_int_equal(loop_acquire(&other, play_lock("c"), "y", 0), RLOCK_OK);
    for (int i = 0; i < 10; i++) {
        loop_step(&loop, 10);
        loop_step(&other, 10);
    }
    promise_true(fixture_now_ms() - began_ms < LOCK_SOON_MS);
    assert_int_equal(loop.told + other.told, 0);
    play("server cont");
    LOOP_AWAIT(&loop, loop.told == 1);
    LOOP_AWAIT(&other, other.told == 1);
    rlock_cancel(play_lock("a2"));
    LOOP_AWAIT(&loop, loop.told == 2);
    assert_int_equal(loop.code, RLOCK_CANCELLED);
}

/* Guarantee: The descriptor of a loop at rest is not readable, also after a connection
 * has ended of which a child of fork has a copy. */
PLAY_CASE(play_on_one, loop_at_rest_does_not_spin)
{
    struct loop loop = loop_of("p");
    struct pollfd p = {.fd = rlock_loop_fd(loop.c), .events = POLLIN};
    int fds[2], steps = 0;
    pid_t pid;

    loop_take(&loop, play_lock("p"), "k");
    assert_int_equal(pipe(fds), 0);
    pid = fork();
    if (pid == 0) { /* until the parent is through */
        char byte;

        (void)close(fds[1]);
        _exit(read(fds[0], &byte, 1) == 0 ? 0 : 1);
    }
    (void)close(fds[0]);
    play("proxy cut_after EVALSHA");
    assert_int_equal(rlock_begin_extend(play_lock("p"), 60000, on_done, &loop),
                     RLOCK_OK);
    LOOP_AWAIT(&loop, loop.told == 2);
    assert_int_equal(loop.code, RLOCK_OK); /* asked again over another connection */
    for (int i = 0; i < 20; i++) {
        steps += poll(&p, 1, 10) > 0 ? 1 : 0;
        assert_int_equal(rlock_loop_step(loop.c), RLOCK_OK);
    }
    assert_in_range(steps, 0, 3);
    (void)close(fds[1]);
    assert_int_equal(fixture_reap(pid, LOCK_SOON_MS / 1000), 0);
}

/* ---- the end of an acquire ---- */

/* Guarantee: An acquire whose answer has not come is cancelled at the next step, and
 * leaves no key. */
PLAY_CASE(play_on_one, acquire_under_way_is_cancelled)
{
    struct loop loop = loop_of("p");

    play("p try first; p release; proxy delay 100");
    assert_int_equal(loop_acquire(&loop, play_lock("p"), "k", 0), RLOCK_OK);
    rlock_cancel(play_lock("p"));
    LOOP_AWAIT(&loop, loop.told == 1);
    promise_int_equal(loop.code, RLOCK_CANCELLED);
    play("p granted: 0; proxy delay 0; p try j; copies k: 0; b try k");
}

PLAY_CASE(play_on_one, cancelled_wait_is_told_by_the_next_step)
{
    struct loop loop = loop_of("a");

    play("b take k");
    rlock_cancel(play_lock("a")); /* nothing is under way */
    assert_int_equal(loop_acquire(&loop, play_lock("a"), "k", 600000), RLOCK_OK);
    LOOP_AWAIT(&loop, loop.c->ears.is_asked);
    rlock_cancel(play_lock("a"));
    LOOP_AWAIT(&loop, loop.told == 1);
    assert_int_equal(loop.code, RLOCK_CANCELLED);
    play("b release; a try k");
}

/* ---- fork ---- */

static int child_of_a_loop(struct rlock_client *c, struct rlock *l)
{
    bool ok = rlock_loop_fd(c) == -1 && rlock_loop_step(c) == RLOCK_E_FORKED &&
              rlock_begin_release(l, on_done, NULL) == RLOCK_E_FORKED;

    rlock_cancel(l);
    rlock_disconnect(c);
    rlock_free(l);
    rlock_close(c);
    return ok ? 0 : 1;
}

/* Guarantee: A child of fork that frees its copies leaves the loop of its parent alone.
 */
LOCK_CASE(child_of_fork_does_not_disturb_the_loop)
{
    struct loop loop = {.c = lock_client(lock_server.url, 0)};
    LOCK *l = rlock_new(loop.c);
    pid_t pid;

    loop_take(&loop, l, "k");
    assert_int_equal(rlock_begin_release(l, on_done, &loop), RLOCK_OK);
    pid = fork();
    if (pid == 0)
        _exit(child_of_a_loop(loop.c, l));
    assert_int_equal(fixture_reap(pid, LOCK_SOON_MS / 1000), 0);
    LOOP_AWAIT(&loop, loop.told == 2);
    assert_int_equal(loop.code, RLOCK_OK);
    rlock_free(l);
    l = NULL;
    rlock_close(loop.c);
}
