/* The clock of one node of three jumps, or the client's: who holds the lock, and that
 * tokens only grow. */
#include "tests/lib/quorum_world.h"

#include <signal.h>
#include <stdlib.h>
#include <string.h>

#include "tests/lib/clock_world.h"

enum { LEASE_MS = 10000, SHORT_MS = 300 };

/* Calls of scripts on a node since its figures were reset. */
static long long scripts_run(struct quorum_world *w, size_t node)
{
    redisReply *info = redisCommand(w->raw[node], "INFO commandstats");
    const char *at = strstr(info->str, "cmdstat_evalsha:calls=");
    long long n = at == NULL ? 0 : strtoll(strchr(at, '=') + 1, NULL, 10);

    freeReplyObject(info);
    return n;
}

static int open_world(void **state)
{
    int code = quorum_open_shared(state);
    struct quorum_world *w = *state;

    for (size_t i = 0; i < w->n; i++)
        clock_mend_server(&w->servers[i]);
    return code;
}

static int close_world(void **state)
{
    struct quorum_world *w = *state;

    (void)kill(w->servers[1].pid, SIGCONT); /* a test that failed may have left it so */
    clock_mend_own();
    return quorum_close_shared(state);
}

/* Takes and frees another key with both clients in turn; every token must be higher. */
static int64_t churn(struct quorum_world *w, int64_t last)
{
    struct ll_lock *locks[] = {ll_new(w->a), ll_new(w->b)};

    for (int i = 0; i < 6; i++) {
        struct ll_lock *l = locks[i % 2];

        assert_int_equal(ll_try(l, "churn", LEASE_MS), LL_OK);
        assert_true(ll_token(l) > last);
        last = ll_token(l);
        assert_int_equal(ll_release(l), LL_OK);
    }
    ll_free(locks[0]);
    ll_free(locks[1]);
    return last;
}

/* The node forgets the key early; the two others hold it. */
static void clock_jump_quorum_node_forward(void **state)
{
    struct quorum_world *w = *state;
    int64_t last = churn(w, 0);

    assert_int_equal(ll_try(w->la, "k", LEASE_MS), LL_OK);
    clock_jump_server(&w->servers[1], CLOCK_HOUR_MS);
    assert_int_equal(quorum_copies(w, "k"), 2);
    assert_int_equal(ll_try(w->lb, "k", LEASE_MS), LL_BUSY);
    assert_int_equal(quorum_copies(w, "k"), 2); /* what it granted was given back */
    assert_int_equal(ll_extend(w->la, LEASE_MS), LL_OK);
    assert_int_equal(ll_release(w->la), LL_OK);
    last = churn(w, last);
    assert_int_equal(ll_try(w->lb, "k", LEASE_MS), LL_OK);
    assert_true(ll_token(w->lb) > last);
    assert_int_equal(quorum_copies(w, "k"), 3); /* it votes, by its new clock */
}

/* The node keeps the key too long: it costs its vote, not the lock. */
static void clock_jump_quorum_node_back(void **state)
{
    struct quorum_world *w = *state;
    int64_t last = churn(w, 0);

    assert_int_equal(ll_try(w->la, "k", SHORT_MS), LL_OK);
    last = ll_token(w->la) > last ? ll_token(w->la) : last;
    clock_jump_server(&w->servers[1], -CLOCK_HOUR_MS);
    fixture_pause_ms(SHORT_MS + 50);
    assert_false(ll_valid(w->la, 0));
    assert_int_equal(quorum_copies(w, "k"), 1);
    assert_true(quorum_ask(w, 1, "PTTL %sk") > CLOCK_HOUR_MS - 10000);
    assert_int_equal(ll_try(w->lb, "k", LEASE_MS), LL_OK); /* the two others */
    assert_true(ll_token(w->lb) > last);
    assert_int_equal(ll_release(w->la), LL_NOT_OWNER);
    assert_int_equal(quorum_copies(w, "k"), 2); /* and the leftover is gone */
    assert_true(churn(w, ll_token(w->lb)) > last);
}

static void clock_jump_quorum_node_back_late_command_grants_nothing(void **state)
{
    struct quorum_world *w = *state;

    (void)churn(w, 0); /* connected */
    (void)quorum_ask(w, 1, "CONFIG RESETSTAT");
    clock_jump_server(&w->servers[1], -CLOCK_HOUR_MS);
    assert_int_equal(kill(w->servers[1].pid, SIGSTOP), 0);
    assert_int_equal(ll_try(w->lb, "k", LEASE_MS), LL_OK);
    fixture_pause_ms(SHORT_MS);
    assert_int_equal(kill(w->servers[1].pid, SIGCONT), 0);
    fixture_pause_ms(SHORT_MS);
    assert_true(scripts_run(w, 1) >= 1); /* it did run */
    assert_int_equal(quorum_copies(w, "k"), 2);
    assert_int_equal(quorum_ask(w, 1, "EXISTS %sk"), 0);
}

/* Two tenures that share only the node that jumped: both are granted, and the counter
 * of that node puts the later one above the earlier one. Counters are planted so that
 * the nodes disagree, and neither clock makes the token. */
static void clock_jump_quorum_shared_node_forward(void **state)
{
    struct quorum_world *w = *state;

    (void)quorum_plant_skew(w);
    proxy_refuse(&w->proxies[2], true); /* a sees nodes 0 and 1 */
    assert_int_equal(ll_try(w->la, "k", LEASE_MS), LL_OK);
    assert_int_equal(quorum_copies(w, "k"), 2);
    clock_jump_server(&w->servers[1], CLOCK_HOUR_MS);
    assert_int_equal(ll_try(w->lb, "k", LEASE_MS), LL_OK); /* nodes 1 and 2 */
    assert_int_equal(quorum_copies(w, "k"), 3);
    assert_true(ll_valid(w->la, 0)); /* two holders: the fence decides */
    assert_true(ll_token(w->lb) > ll_token(w->la));
    assert_int_equal(ll_extend(w->la, LEASE_MS), LL_LOST);
    assert_false(ll_valid(w->la, 0));
    assert_int_equal(ll_extend(w->lb, LEASE_MS), LL_OK);
}

/* A node that forgot has to wait until the leases of before are over, by its own clock:
 * twenty seconds here. It then begins at the others' highest counter all the same. */
static void clock_jump_quorum_wait_is_cut_short(void **state)
{
    struct quorum_world *w = *state;
    int64_t base = quorum_plant_skew(w); /* ahead of all clocks */
    int64_t last = churn(w, base);

    (void)quorum_ask(w, 1, "FLUSHALL");
    last = churn(w, last);
    assert_int_equal(quorum_ask(w, 1, "EXISTS %s!node"), 0);
    clock_jump_server(&w->servers[1], CLOCK_HOUR_MS);
    assert_int_equal(ll_try(w->la, "k", LEASE_MS), LL_OK); /* and lets it in */
    assert_true(ll_token(w->la) > last);
    assert_int_equal(quorum_copies(w, "k"), 2);
    assert_int_equal(quorum_ask(w, 1, "EXISTS %s!node"), 1);
    assert_true(quorum_ask(w, 1, "HGET %s!node c") >= ll_token(w->la));
}

/* Tokens follow the client's clock only as far as the nodes' own allow. */
static void clock_jump_quorum_client_wall(void **state)
{
    struct quorum_world *w = *state;
    int64_t right_us = quorum_now_us();
    int64_t last = churn(w, 0);

    assert_int_equal(ll_try(w->la, "k", LEASE_MS), LL_OK);
    clock_jump_wall(CLOCK_HOUR_MS);
    assert_true(ll_valid(w->la, LEASE_MS / 2));
    assert_int_equal(ll_extend(w->la, LEASE_MS), LL_OK);
    last = churn(w, last);
    assert_true(last < right_us + INT64_C(60000000)); /* not an hour ahead */
    clock_jump_wall(-2 * CLOCK_HOUR_MS);
    assert_true(ll_valid(w->la, LEASE_MS / 2));
    assert_int_equal(ll_try(w->lb, "k", LEASE_MS), LL_BUSY);
    last = churn(w, last);
    clock_mend_own();
    assert_int_equal(ll_release(w->la), LL_OK);
    assert_true(churn(w, last) > last);
}

static void clock_jump_quorum_suspend(void **state)
{
    struct quorum_world *w = *state;

    assert_int_equal(ll_try(w->la, "k", LEASE_MS), LL_OK);
    clock_jump_boot(2 * LEASE_MS);
    assert_false(ll_valid(w->la, 0));
    for (size_t i = 0; i < w->n; i++)
        clock_jump_server(&w->servers[i], 2 * LEASE_MS);
    assert_int_equal(ll_try(w->lb, "k", LEASE_MS), LL_OK);
    assert_true(ll_token(w->lb) > ll_token(w->la));
    assert_int_equal(ll_release(w->la), LL_NOT_OWNER);
}

#define CLOCK_TEST(test) cmocka_unit_test_setup_teardown(test, open_world, close_world)

int main(void)
{
    const struct CMUnitTest tests[] = {
        CLOCK_TEST(clock_jump_quorum_node_forward),
        CLOCK_TEST(clock_jump_quorum_node_back),
        CLOCK_TEST(clock_jump_quorum_node_back_late_command_grants_nothing),
        CLOCK_TEST(clock_jump_quorum_shared_node_forward),
        CLOCK_TEST(clock_jump_quorum_wait_is_cut_short),
        CLOCK_TEST(clock_jump_quorum_client_wall),
        CLOCK_TEST(clock_jump_quorum_suspend),
    };

    fixture_need_servers();
    fixture_movable_clocks = true;
    return cmocka_run_group_tests(tests, quorum_start_servers, quorum_stop_servers);
}
