/* One server's clock jumps, or the client's, or the client's machine sleeps: what the
 * lock then still promises. */
#include "tests/lib/renew_world.h"

#include <signal.h>
#include <stdlib.h>
#include <string.h>

#include "tests/lib/clock_world.h"
#include "tests/lib/lock_waiters.h"

enum { LEASE_MS = 60000, SHORT_MS = 300, REPLY_MS = 1000, SLACK_MS = 500 };

static int open_world(void **state)
{
    clock_mend_server(&lock_server);
    return lock_open_world(state);
}

static int close_world(void **state)
{
    (void)kill(lock_server.pid, SIGCONT); /* a test that failed may have left it so */
    clock_mend_own();
    return lock_close_world(state);
}

/* ---- the server's clock jumps ahead ---- */

/* The holder cannot know by itself; the server tells it at the next question. */
static void clock_jump_server_forward(void **state)
{
    struct lock_world *w = *state;
    int64_t left_ms;

    assert_int_equal(ll_connect(w->b), LL_OK);
    assert_int_equal(ll_try(w->la, "k", LEASE_MS), LL_OK);
    clock_jump_server(&lock_server, CLOCK_HOUR_MS);
    assert_int_equal(lock_raw_integer(w, "EXISTS lock:k"), 0);
    assert_true(ll_valid(w->la, LEASE_MS / 2));
    assert_int_equal(ll_try(w->lb, "k", LEASE_MS), LL_OK);
    assert_true(ll_token(w->lb) > ll_token(w->la)); /* so the fence decides */
    assert_int_equal(ll_verify(w->la, &left_ms), LL_LOST);
    assert_false(ll_valid(w->la, 0));
    assert_int_equal(ll_release(w->la), LL_NOT_OWNER);
    assert_int_equal(ll_verify(w->lb, &left_ms), LL_OK);
    assert_in_range(left_ms, LEASE_MS / 2, LEASE_MS);
}

static void clock_jump_server_forward_extend_says_lost(void **state)
{
    struct lock_world *w = *state;

    assert_int_equal(ll_try(w->la, "k", LEASE_MS), LL_OK);
    clock_jump_server(&lock_server, CLOCK_HOUR_MS);
    assert_int_equal(ll_extend(w->la, LEASE_MS), LL_LOST);
    assert_false(ll_valid(w->la, 0));
    assert_int_equal(lock_raw_integer(w, "EXISTS lock:k"), 0); /* not made again */
}

static void clock_jump_server_forward_release_says_gone(void **state)
{
    struct lock_world *w = *state;

    assert_int_equal(ll_try(w->la, "k", LEASE_MS), LL_OK);
    clock_jump_server(&lock_server, CLOCK_HOUR_MS);
    assert_int_equal(ll_release(w->la), LL_GONE);
}

static void clock_jump_server_forward_renewer_tells_the_loss(void **state)
{
    struct lock_world *w = *state;
    struct told told = {0};
    struct ll_renewer *r = open_renewer(w->a, &told, 50);

    assert_int_equal(ll_try(w->la, "k", LEASE_MS), LL_OK);
    assert_int_equal(ll_renew(r, w->la, 0, 0), LL_OK);
    clock_jump_server(&lock_server, CLOCK_HOUR_MS);
    assert_int_equal(read_losses(r, 2000), 1);
    assert_int_equal(told.code, LL_LOST);
    assert_false(ll_valid(w->la, 0));
    ll_renewer_close(r);
}

/* Every command carries a time after which the server refuses it, so each connection
 * has to notice that the clock moved, and must not say "busy" or "lost" for it. */
static void clock_jump_server_forward_within_the_lease_keeps_the_lock(void **state)
{
    struct lock_world *w = *state;
    struct told told = {0};
    struct ll_renewer *r = open_renewer(w->a, &told, 50);
    uint64_t before;

    assert_int_equal(ll_connect(w->b), LL_OK);
    assert_int_equal(ll_try(w->la, "k", LEASE_MS), LL_OK);
    assert_int_equal(ll_renew(r, w->la, 0, 0), LL_OK);
    fixture_pause_ms(SHORT_MS);
    assert_true(figures_of(r).renewals > 0); /* its connection is from before, too */
    clock_jump_server(&lock_server, LEASE_MS / 2);
    before = figures_of(r).renewals;
    assert_int_equal(ll_try(w->lb, "k", LEASE_MS), LL_BUSY);
    assert_int_equal(ll_try(w->lb, "other", LEASE_MS), LL_OK);
    fixture_pause_ms(500);
    assert_true(figures_of(r).renewals > before);
    assert_in_range(lock_raw_integer(w, "PTTL lock:k"), LEASE_MS - 5000, LEASE_MS);
    assert_int_equal(told.times, 0);
    assert_int_equal(ll_release(w->la), LL_OK);
    ll_renewer_close(r);
}

/* ---- the server's clock jumps back ---- */

static void clock_jump_server_back(void **state)
{
    struct lock_world *w = *state;
    int64_t before;

    assert_int_equal(ll_connect(w->b), LL_OK);
    assert_int_equal(ll_try(w->la, "k", SHORT_MS), LL_OK);
    before = ll_token(w->la);
    clock_jump_server(&lock_server, -CLOCK_HOUR_MS);
    fixture_pause_ms(SHORT_MS);
    assert_false(ll_valid(w->la, 0)); /* our end of the lease does not move */
    assert_int_equal(ll_try(w->lb, "k", SHORT_MS), LL_BUSY);
    assert_true(ll_key_busy_ms(w->lb, 0) >
                CLOCK_HOUR_MS - 10000); /* the server's did */
    assert_int_equal(ll_release(w->la), LL_OK);
    assert_int_equal(ll_try(w->lb, "k", SHORT_MS), LL_OK);
    assert_true(ll_token(w->lb) > before);
}

/* Its holder died: nobody releases it for an hour, but an operator can. */
static void clock_jump_server_back_leftover_can_be_forced(void **state)
{
    struct lock_world *w = *state;
    int64_t before;

    assert_int_equal(ll_try(w->la, "k", SHORT_MS), LL_OK);
    before = ll_token(w->la);
    ll_abandon(w->la);
    clock_jump_server(&lock_server, -CLOCK_HOUR_MS);
    fixture_pause_ms(SHORT_MS);
    assert_int_equal(ll_try(w->lb, "k", SHORT_MS), LL_BUSY);
    assert_int_equal(ll_force_release(w->b, "k"), LL_OK);
    assert_int_equal(ll_try(w->lb, "k", SHORT_MS), LL_OK);
    assert_true(ll_token(w->lb) > before);
}

/* A connection compares the clocks when it is made. One that went back since would let
 * a command run an hour after its time. */
static void clock_jump_server_back_late_command_grants_nothing(void **state)
{
    struct lock_world *w = *state;
    struct ll_client *c = lock_client(lock_server.url, 200);
    struct ll_lock *l = ll_new(c);

    assert_int_equal(ll_connect(c), LL_OK);
    lock_raw_do(w, "CONFIG RESETSTAT");
    clock_jump_server(&lock_server, -CLOCK_HOUR_MS);
    assert_int_equal(kill(lock_server.pid, SIGSTOP), 0);
    assert_int_equal(ll_try(l, "k", LEASE_MS), LL_E_UNCERTAIN);
    fixture_pause_ms(SLACK_MS);
    assert_int_equal(kill(lock_server.pid, SIGCONT), 0);
    fixture_pause_ms(SLACK_MS);
    assert_true(waiters_calls(w, "evalsha") >= 1); /* it did run */
    assert_int_equal(lock_raw_integer(w, "EXISTS lock:k"), 0);
    ll_free(l);
    ll_close(c);
}

static void clock_jump_server_back_late_renewal_lengthens_nothing(void **state)
{
    struct lock_world *w = *state;
    struct told told = {0};
    struct ll_renewer *r = open_renewer(w->a, &told, 50);

    assert_int_equal(ll_try(w->la, "old", LEASE_MS), LL_OK);
    assert_int_equal(ll_renew(r, w->la, 0, 0), LL_OK);
    fixture_pause_ms(SHORT_MS); /* the renewer's connection knows the clock of before */
    clock_jump_server(&lock_server, -CLOCK_HOUR_MS);
    ll_renew_stop(r, w->la);
    assert_int_equal(ll_try(w->lb, "k", 4000), LL_OK);
    assert_int_equal(ll_renew(r, w->lb, 0, 0), LL_OK);
    assert_int_equal(kill(lock_server.pid, SIGSTOP), 0);
    assert_int_equal(read_losses(r, 5000), 1);
    assert_int_equal(kill(lock_server.pid, SIGCONT), 0);
    assert_true(lock_raw_integer(w, "PTTL lock:k") < 1500); /* of 4000 ms */
    ll_renewer_close(r);
}

static long long blocked_clients(struct lock_world *w)
{
    redisReply *reply = redisCommand(w->raw, "INFO clients");
    const char *at = strstr(reply->str, "blocked_clients:");
    long long n = strtoll(at + strlen("blocked_clients:"), NULL, 10);

    freeReplyObject(reply);
    return n;
}

/* Starts a waiter, and moves the clock back while the server holds it in a blocked pop,
 * which then lasts an hour longer by the server's clock. */
static struct waiter *jump_back_under_a_waiter(struct lock_world *w, unsigned wait_ms)
{
    int64_t deadline_ms = clock_real_ms() + 2000;
    struct waiter *waiter =
        waiters_start(1, (struct waiter){.turns = 1, .wait_ms = wait_ms});

    while (blocked_clients(w) == 0 && clock_real_ms() < deadline_ms)
        ;
    clock_jump_server(&lock_server, -CLOCK_HOUR_MS);
    fixture_pause_ms(2 * SHORT_MS); /* longer than a pop lasts */
    assert_int_equal(blocked_clients(w), 1);
    return waiter;
}

static void clock_jump_server_back_waiter_ends_one_answer_late(void **state)
{
    struct lock_world *w = *state;
    struct waiter *waiter;

    assert_int_equal(ll_try(w->la, "one", LEASE_MS), LL_OK);
    waiter = jump_back_under_a_waiter(w, SHORT_MS);
    waiters_join(waiter, 1);
    assert_int_equal(waiter->code, LL_TIMEOUT);
    assert_in_range(waiter->slowest_ms, SHORT_MS, SHORT_MS + REPLY_MS + SLACK_MS);
    free(waiter);
}

static void clock_jump_server_back_release_wakes_the_waiter(void **state)
{
    struct lock_world *w = *state;
    struct waiter *waiter;
    int64_t released_ms;

    assert_int_equal(ll_try(w->la, "one", LEASE_MS), LL_OK);
    waiter = jump_back_under_a_waiter(w, LEASE_MS);
    assert_int_equal(ll_release(w->la), LL_OK);
    released_ms = clock_real_ms();
    waiters_join(waiter, 1);
    assert_int_equal(waiter->code, LL_OK);
    assert_int_equal(waiter->granted, 1);
    assert_true(clock_real_ms() - released_ms < SLACK_MS);
    free(waiter);
}

/* A waiter that nobody wakes gives the pop up when its answer is overdue, and looks. */
static void clock_jump_server_back_waiter_sees_a_key_that_is_free(void **state)
{
    struct lock_world *w = *state;
    struct waiter *waiter;

    assert_int_equal(ll_try(w->la, "one", LEASE_MS), LL_OK);
    waiter = jump_back_under_a_waiter(w, LEASE_MS);
    lock_raw_do(w, "DEL lock:one"); /* as another client frees it, without a wake-up */
    waiters_join(waiter, 1);
    assert_int_equal(waiter->code, LL_OK);
    assert_in_range(waiter->slowest_ms, 2 * SHORT_MS, 2 * SHORT_MS + REPLY_MS);
    free(waiter);
}

/* ---- the client's clocks ---- */

static void hold_with_a_wall_clock_off_by(struct lock_world *w, int64_t ms)
{
    const struct ll_key key = {"k", 1};
    int64_t left_ms, began_ms;

    assert_int_equal(ll_try(w->la, "k", 10000), LL_OK);
    assert_int_equal(ll_try(w->lb, "short", SHORT_MS), LL_OK);
    clock_jump_wall(ms);
    assert_true(ll_valid(w->la, 9000));
    assert_false(ll_valid(w->la, 10000));
    assert_true(ll_valid(w->lb, 0));
    fixture_pause_ms(SHORT_MS);
    assert_false(ll_valid(w->lb, 0));
    assert_int_equal(ll_verify(w->la, &left_ms), LL_OK);
    assert_int_equal(ll_extend(w->la, 10000), LL_OK);
    began_ms = clock_real_ms();
    assert_int_equal(ll_acquire_wait(w->lb, &key, 1, LL_ALL, 1000, 400), LL_TIMEOUT);
    assert_in_range(clock_real_ms() - began_ms, 400, 400 + SLACK_MS);
    assert_int_equal(ll_release(w->la), LL_OK);
    ll_disconnect(w->a); /* and a connection made by the wrong clock */
    assert_int_equal(ll_try(w->la, "k", 10000), LL_OK);
    assert_true(ll_valid(w->la, 9000));
    assert_int_equal(ll_release(w->la), LL_OK);
}

static void clock_jump_client_wall(void **state)
{
    hold_with_a_wall_clock_off_by(*state, CLOCK_HOUR_MS);
    clock_mend_own();
    hold_with_a_wall_clock_off_by(*state, -CLOCK_HOUR_MS);
}

static void clock_jump_client_wall_renewal_goes_on(void **state)
{
    struct lock_world *w = *state;
    struct told told = {0};
    struct ll_renewer *r = open_renewer(w->a, &told, 0);

    assert_int_equal(ll_try(w->la, "k", SHORT_MS), LL_OK);
    assert_int_equal(ll_renew(r, w->la, 0, LEASE_MS), LL_OK);
    clock_jump_wall(CLOCK_HOUR_MS);
    fixture_pause_ms(2 * SHORT_MS);
    clock_jump_wall(-2 * CLOCK_HOUR_MS);
    fixture_pause_ms(2 * SHORT_MS);
    assert_int_equal(told.times, 0);
    assert_true(ll_valid(w->la, 0));
    assert_int_equal(ll_release(w->la), LL_OK);
    ll_renewer_close(r);
}

/* The machine of the client sleeps: its clock since boot goes on and the one that only
 * counts waking time does not; everybody else's time passes. */
static void sleep_through(int64_t ms)
{
    clock_jump_boot(ms);
    clock_jump_server(&lock_server, ms);
}

static void clock_jump_suspend(void **state)
{
    struct lock_world *w = *state;

    assert_int_equal(ll_try(w->la, "k", 5000), LL_OK);
    assert_true(ll_valid(w->la, 4000));
    sleep_through(6000);
    assert_false(ll_valid(w->la, 0)); /* at once, without asking anybody */
    assert_int_equal(ll_try(w->lb, "k", 5000), LL_OK);
    assert_true(ll_token(w->lb) > ll_token(w->la));
    assert_int_equal(ll_release(w->la), LL_NOT_OWNER);
}

static void clock_jump_suspend_renewer_tells_the_loss(void **state)
{
    struct lock_world *w = *state;
    struct told told = {0};
    struct ll_renewer *r = open_renewer(w->a, &told, 100);

    assert_int_equal(ll_try(w->la, "k", 5000), LL_OK);
    assert_int_equal(ll_renew(r, w->la, 0, LEASE_MS), LL_OK);
    sleep_through(6000);
    assert_false(ll_valid(w->la, 0));
    assert_int_equal(read_losses(r, 2000), 1);
    assert_int_equal(told.code, LL_GONE); /* not renewed behind the caller's back */
    assert_int_equal(lock_raw_integer(w, "EXISTS lock:k"), 0);
    ll_renewer_close(r);
}

#define CLOCK_TEST(test) cmocka_unit_test_setup_teardown(test, open_world, close_world)

int main(void)
{
    const struct CMUnitTest tests[] = {
        CLOCK_TEST(clock_jump_server_forward),
        CLOCK_TEST(clock_jump_server_forward_extend_says_lost),
        CLOCK_TEST(clock_jump_server_forward_release_says_gone),
        CLOCK_TEST(clock_jump_server_forward_renewer_tells_the_loss),
        CLOCK_TEST(clock_jump_server_forward_within_the_lease_keeps_the_lock),
        CLOCK_TEST(clock_jump_server_back),
        CLOCK_TEST(clock_jump_server_back_leftover_can_be_forced),
        CLOCK_TEST(clock_jump_server_back_late_command_grants_nothing),
        CLOCK_TEST(clock_jump_server_back_late_renewal_lengthens_nothing),
        CLOCK_TEST(clock_jump_server_back_waiter_ends_one_answer_late),
        CLOCK_TEST(clock_jump_server_back_release_wakes_the_waiter),
        CLOCK_TEST(clock_jump_server_back_waiter_sees_a_key_that_is_free),
        CLOCK_TEST(clock_jump_client_wall),
        CLOCK_TEST(clock_jump_client_wall_renewal_goes_on),
        CLOCK_TEST(clock_jump_suspend),
        CLOCK_TEST(clock_jump_suspend_renewer_tells_the_loss),
    };

    fixture_need_servers();
    fixture_movable_clocks = true;
    return cmocka_run_group_tests(tests, lock_start_server, lock_stop_server);
}
