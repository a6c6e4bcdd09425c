/* A lock over several independent servers some of which are dead, stopped, or refuse
 * us. */
#include "tests/lib/quorum_world.h"

#include <signal.h>
#include <stdio.h>
#include <unistd.h>

enum { LEASE_MS = 10000, NODE_MS = 200, SLACK_MS = 150 };

static int64_t ms_of_acquire(struct ll_lock *l, int wanted)
{
    int64_t before = quorum_now_ms();

    assert_int_equal(ll_try(l, "k", LEASE_MS), wanted);
    return quorum_now_ms() - before;
}

static void quorum_1_of_3_down(void **state)
{
    struct quorum_world w;

    (void)state;
    quorum_open(&w, 3, true);
    assert_int_equal(ll_connect(w.a), LL_OK);
    quorum_kill(&w, 1);
    for (int i = 0; i < 5; i++) {
        int64_t before;

        assert_in_range(ms_of_acquire(w.la, LL_OK), 0, NODE_MS + SLACK_MS);
        before = quorum_now_ms();
        assert_int_equal(ll_extend(w.la, LEASE_MS), LL_OK);
        assert_int_equal(ll_release(w.la), LL_OK);
        assert_in_range(quorum_now_ms() - before, 0, 2 * NODE_MS);
    }
    assert_int_equal(ll_try(w.lb, "k", LEASE_MS), LL_OK);
    assert_int_equal(ll_try(w.la, "k", LEASE_MS), LL_BUSY);
    quorum_close(&w);
}

static void quorum_2_of_3_down(void **state)
{
    struct quorum_world w;

    (void)state;
    quorum_open(&w, 3, true);
    assert_int_equal(ll_connect(w.a), LL_OK);
    quorum_kill(&w, 0);
    quorum_kill(&w, 2);
    for (int i = 0; i < 5; i++) {
        assert_in_range(ms_of_acquire(w.la, LL_E_NO_QUORUM), 0, 2 * NODE_MS + SLACK_MS);
        assert_in_range(ms_of_acquire(w.lb, LL_E_NO_QUORUM), 0, 2 * NODE_MS + SLACK_MS);
        assert_int_equal(quorum_copies(&w, "k"), 0);
        assert_int_equal(ll_granted(w.la), 0);
    }
    assert_int_equal(ll_connect(w.a), LL_E_NO_QUORUM);
    quorum_close(&w);
}

static void five_nodes_bear_two_down_and_not_three(void **state)
{
    struct quorum_world w;

    (void)state;
    quorum_open(&w, 5, true);
    assert_int_equal(ll_try(w.la, "k", LEASE_MS), LL_OK);
    assert_int_equal(quorum_copies(&w, "k"), 5);
    quorum_kill(&w, 0);
    quorum_kill(&w, 1);
    assert_int_equal(ll_extend(w.la, LEASE_MS), LL_OK);
    assert_int_equal(ll_release(w.la), LL_OK);
    assert_int_equal(ll_try(w.lb, "k", LEASE_MS), LL_OK);
    quorum_kill(&w, 2);
    assert_int_equal(ll_extend(w.lb, LEASE_MS), LL_E_NO_QUORUM);
    assert_true(ll_valid(w.lb, 0)); /* until the lease that was granted ends */
    assert_int_equal(ll_try(w.la, "j", LEASE_MS), LL_E_NO_QUORUM);
    assert_int_equal(quorum_copies(&w, "j"), 0);
    quorum_close(&w);
}

static void stopped_node_costs_its_timeout_and_then_nothing(void **state)
{
    struct quorum_world w;
    int64_t before;

    (void)state;
    quorum_open(&w, 3, true);
    assert_int_equal(ll_connect(w.b), LL_OK);
    assert_int_equal(kill(w.servers[1].pid, SIGSTOP), 0);
    assert_in_range(ms_of_acquire(w.lb, LL_OK), NODE_MS / 2, NODE_MS + SLACK_MS);
    before = quorum_now_ms();
    assert_int_equal(ll_release(w.lb), LL_OK);
    assert_in_range(quorum_now_ms() - before, 0, NODE_MS + SLACK_MS);
    assert_in_range(ms_of_acquire(w.lb, LL_OK), 0, NODE_MS + SLACK_MS);
    assert_int_equal(ll_release(w.lb), LL_OK);
    before = quorum_now_ms(); /* it is left alone for a second now */
    for (int i = 0; i < 10; i++) {
        assert_int_equal(ll_try(w.lb, "k", LEASE_MS), LL_OK);
        assert_int_equal(ll_release(w.lb), LL_OK);
    }
    assert_in_range(quorum_now_ms() - before, 0, NODE_MS);
    assert_int_equal(kill(w.servers[1].pid, SIGCONT), 0);
    fixture_pause_ms(100);
    assert_int_equal(quorum_copies(&w, "k"), 0); /* nothing granted late stays */
    quorum_close(&w);
}

static void stopped_majority_grants_nothing_and_leaves_nothing(void **state)
{
    struct quorum_world w;

    (void)state;
    quorum_open(&w, 3, true);
    assert_int_equal(ll_connect(w.b), LL_OK);
    assert_int_equal(kill(w.servers[0].pid, SIGSTOP), 0);
    assert_int_equal(kill(w.servers[1].pid, SIGSTOP), 0);
    assert_int_equal(ll_try(w.lb, "k", LEASE_MS), LL_E_NO_QUORUM);
    assert_int_equal(kill(w.servers[0].pid, SIGCONT), 0);
    assert_int_equal(kill(w.servers[1].pid, SIGCONT), 0);
    fixture_pause_ms(100);
    assert_int_equal(quorum_copies(&w, "k"), 0);
    assert_int_equal(ll_try(w.la, "k", LEASE_MS), LL_OK);
    quorum_close(&w);
}

/* A client that dies while its requests wait: they run after their time and grant
 * nothing. */
static void request_that_runs_late_grants_nothing(void **state)
{
    struct quorum_world w;
    pid_t pid;

    (void)state;
    quorum_open(&w, 3, true);
    (void)fflush(NULL);
    pid = fork();
    if (pid == 0) {
        struct ll_client *c = quorum_client(&w, w.plain_url, 1000, 0);

        if (ll_connect(c) != LL_OK)
            _exit(1);
        for (size_t i = 0; i < 3; i++)
            (void)kill(w.servers[i].pid, SIGSTOP);
        _exit(ll_try(ll_new(c), "k", LEASE_MS));
    }
    fixture_pause_ms(500);
    assert_int_equal(kill(pid, SIGKILL), 0);
    assert_int_equal(fixture_reap(pid, 5), 128 + SIGKILL);
    fixture_pause_ms(1000);
    for (size_t i = 0; i < 3; i++)
        assert_int_equal(kill(w.servers[i].pid, SIGCONT), 0);
    fixture_pause_ms(50);
    assert_int_equal(quorum_copies(&w, "k"), 0);
    for (size_t i = 0; i < 3; i++)
        assert_int_equal(quorum_ask(&w, i, "HGET %s!node c"), 0);
    quorum_close(&w);
}

static void refused_password_is_its_own_answer(void **state)
{
    struct quorum_world w;

    (void)state;
    quorum_open(&w, 3, true);
    for (size_t i = 0; i < 3; i++)
        (void)quorum_ask(&w, i, "CONFIG SET requirepass right");
    assert_int_equal(ll_connect(w.a), LL_E_AUTH);
    assert_int_equal(ll_try(w.la, "k", LEASE_MS), LL_E_AUTH);
    quorum_close(&w);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(quorum_1_of_3_down),
        cmocka_unit_test(quorum_2_of_3_down),
        cmocka_unit_test(five_nodes_bear_two_down_and_not_three),
        cmocka_unit_test(stopped_node_costs_its_timeout_and_then_nothing),
        cmocka_unit_test(stopped_majority_grants_nothing_and_leaves_nothing),
        cmocka_unit_test(request_that_runs_late_grants_nothing),
        cmocka_unit_test(refused_password_is_its_own_answer),
    };

    fixture_need_servers();
    return cmocka_run_group_tests(tests, NULL, NULL);
}
