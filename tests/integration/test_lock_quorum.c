/* A lock over several independent servers: what it grants, what it refuses, and what it
 * leaves behind when answers are slow or lost. */
#include "tests/lib/quorum_world.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { LEASE_MS = 10000, NODE_MS = 200, SLACK_MS = 150 };

/* ---- all nodes well ---- */

static void majority_grants_and_release_frees_everywhere(void **state)
{
    struct quorum_world *w = *state;

    assert_int_equal(ll_try(w->la, "k", LEASE_MS), LL_OK);
    assert_int_equal(quorum_copies(w, "k"), 3);
    assert_true(ll_valid(w->la, LEASE_MS / 2));
    assert_true(ll_token(w->la) > quorum_now_us() - 60000000);
    assert_int_equal(ll_try(w->lb, "k", LEASE_MS), LL_BUSY);
    assert_true(ll_key_busy_ms(w->lb, 0) > LEASE_MS / 2);
    assert_int_equal(ll_extend(w->la, 2 * LEASE_MS), LL_OK);
    assert_int_equal(ll_release(w->la), LL_OK);
    assert_int_equal(ll_release(w->la), LL_OK);
    assert_int_equal(quorum_copies(w, "k"), 0);
    assert_int_equal(ll_try(w->lb, "k", LEASE_MS), LL_OK);
}

static long long scripts_run(struct quorum_world *w, size_t node)
{
    redisReply *info = redisCommand(w->raw[node], "INFO commandstats");
    const char *at = strstr(info->str, "cmdstat_evalsha:calls=");
    long long n = at == NULL ? 0 : strtoll(strchr(at, '=') + 1, NULL, 10);

    freeReplyObject(info);
    return n;
}

static void acquire_and_release_are_one_round_trip_each(void **state)
{
    struct quorum_world *w = *state;
    long long before;

    assert_int_equal(ll_connect(w->b), LL_OK);
    before = scripts_run(w, 0);
    for (int i = 0; i < 50; i++) {
        assert_int_equal(ll_try(w->lb, "k", LEASE_MS), LL_OK);
        assert_int_equal(ll_release(w->lb), LL_OK);
    }
    assert_in_range(scripts_run(w, 0) - before, 100, 102);
}

static void foreign_plain_lock_on_a_majority_excludes_us(void **state)
{
    struct quorum_world *w = *state;

    (void)quorum_ask(w, 0, "SET %sk other NX PX 60000");
    assert_int_equal(ll_try(w->la, "k", LEASE_MS), LL_OK); /* one node is no majority */
    assert_int_equal(ll_release(w->la), LL_OK);
    (void)quorum_ask(w, 1, "SET %sk other NX PX 60000");
    assert_int_equal(ll_try(w->la, "k", LEASE_MS), LL_BUSY);
    assert_int_equal(quorum_copies(w, "k"), 2); /* and the third is free again */
    assert_int_equal(quorum_ask(w, 2, "EXISTS %sk"), 0);
}

static void any_keeps_what_has_a_majority_and_gives_the_rest_back(void **state)
{
    struct quorum_world *w = *state;
    const struct ll_key keys[] = {{"x", 1}, {"y", 1}, {"z", 1}};

    (void)quorum_ask(w, 0, "SET %sy other NX PX 60000");
    (void)quorum_ask(w, 1, "SET %sy other NX PX 60000");
    assert_int_equal(ll_acquire(w->la, keys, 3, LL_ANY, LEASE_MS), LL_PARTIAL);
    assert_int_equal(ll_granted(w->la), 2);
    assert_int_equal(ll_key_code(w->la, 1), LL_BUSY);
    assert_int_equal(ll_key_token(w->la, 1), 0);
    assert_true(ll_key_token(w->la, 2) > 0);
    assert_int_equal(quorum_ask(w, 2, "EXISTS %sy"), 0);
    assert_int_equal(quorum_copies(w, "x"), 3);
    assert_int_equal(ll_release_some(w->la, (size_t[]){0}, 1), LL_OK);
    assert_int_equal(quorum_copies(w, "x"), 0);
    assert_int_equal(ll_release(w->la), LL_OK);
    assert_int_equal(quorum_copies(w, "z"), 0);
}

static void all_leaves_nothing_anywhere_when_one_key_is_busy(void **state)
{
    struct quorum_world *w = *state;
    const struct ll_key keys[] = {{"x", 1}, {"y", 1}, {"z", 1}};

    (void)quorum_ask(w, 0, "SET %sy other NX PX 60000");
    assert_int_equal(ll_acquire(w->la, keys, 3, LL_ALL, LEASE_MS), LL_OK);
    assert_int_equal(ll_release(w->la), LL_OK);
    (void)quorum_ask(w, 2, "SET %sy other NX PX 60000");
    assert_int_equal(ll_acquire(w->la, keys, 3, LL_ALL, LEASE_MS), LL_BUSY);
    assert_int_equal(quorum_copies(w, "x"), 0);
    assert_int_equal(quorum_copies(w, "y"), 2);
    assert_int_equal(quorum_copies(w, "z"), 0);
}

static void more_keys_than_a_script_takes_are_all_or_none(void **state)
{
    enum { KEYS = 2 * LL_KEYS_MAX + 5 };

    static char names[KEYS][8];
    static struct ll_key keys[KEYS];
    struct quorum_world *w = *state;

    for (size_t i = 0; i < KEYS; i++)
        keys[i] = (struct ll_key){
            names[i], (size_t)snprintf(names[i], sizeof names[i], "m%zu", i)};
    assert_int_equal(ll_acquire(w->la, keys, KEYS, LL_ALL, LEASE_MS), LL_OK);
    assert_int_equal(ll_granted(w->la), KEYS);
    assert_int_equal(ll_extend(w->la, LEASE_MS), LL_OK);
    assert_int_equal(ll_release(w->la), LL_OK);
    (void)quorum_ask(w, 0, "SET %sm2001 other NX PX 60000");
    (void)quorum_ask(w, 1, "SET %sm2001 other NX PX 60000");
    assert_int_equal(ll_acquire(w->la, keys, KEYS, LL_ALL, LEASE_MS), LL_BUSY);
    assert_int_equal(quorum_copies(w, "m0") + quorum_copies(w, "m1500"), 0);
    assert_int_equal(ll_acquire(w->la, keys, KEYS, LL_ANY, LEASE_MS), LL_PARTIAL);
    assert_int_equal(ll_granted(w->la), KEYS - 1);
    assert_int_equal(ll_release(w->la), LL_OK);
}

static void forgotten_scripts_are_not_seen_by_the_caller(void **state)
{
    struct quorum_world *w = *state;

    assert_int_equal(ll_connect(w->a), LL_OK);
    for (size_t i = 0; i < w->n; i++)
        (void)quorum_ask(w, i, "SCRIPT FLUSH");
    assert_int_equal(ll_try(w->la, "k", LEASE_MS), LL_OK);
    for (size_t i = 0; i < w->n; i++)
        (void)quorum_ask(w, i, "SCRIPT FLUSH");
    assert_int_equal(ll_extend(w->la, LEASE_MS), LL_OK);
    for (size_t i = 0; i < w->n; i++)
        (void)quorum_ask(w, i, "SCRIPT FLUSH");
    assert_int_equal(ll_release(w->la), LL_OK);
    assert_int_equal(quorum_copies(w, "k"), 0);
}

static void loss_on_a_minority_is_borne_and_on_a_majority_told(void **state)
{
    struct quorum_world *w = *state;
    int64_t left_ms;

    assert_int_equal(ll_try(w->la, "k", LEASE_MS), LL_OK);
    (void)quorum_ask(w, 0, "DEL %sk");
    assert_int_equal(ll_extend(w->la, LEASE_MS), LL_OK);
    assert_int_equal(quorum_ask(w, 0, "EXISTS %sk"), 0); /* never made again */
    assert_int_equal(ll_verify(w->la, &left_ms), LL_OK);
    assert_in_range(left_ms, LEASE_MS / 2, LEASE_MS);
    (void)quorum_ask(w, 1, "SET %sk other XX PX 60000");
    assert_int_equal(ll_extend(w->la, LEASE_MS), LL_LOST);
    assert_int_equal(ll_extend(w->la, LEASE_MS), LL_LOST);
    assert_false(ll_valid(w->la, 0));
    assert_int_equal(ll_release(w->la), LL_GONE);
    assert_int_equal(quorum_ask(w, 1, "EXISTS %sk"), 1);
}

/* The same nonce granted again after its lease had run out: somebody else may have had
 * the key in between. */
static void grant_made_again_is_not_the_one_we_counted(void **state)
{
    struct quorum_world *w = *state;

    assert_int_equal(ll_try(w->la, "k", LEASE_MS), LL_OK);
    for (size_t i = 0; i < 2; i++)
        (void)quorum_ask(w, i, "APPEND %sk 0");
    assert_int_equal(ll_extend(w->la, LEASE_MS), LL_LOST);
    assert_int_equal(ll_release(w->la), LL_OK); /* and yet given back */
    assert_int_equal(quorum_copies(w, "k"), 0);
}

static void release_tells_gone_from_not_owner(void **state)
{
    struct quorum_world *w = *state;

    assert_int_equal(ll_try(w->la, "k", 100), LL_OK);
    fixture_pause_ms(150);
    assert_int_equal(ll_release(w->la), LL_GONE);
    assert_int_equal(ll_try(w->la, "k", 100), LL_OK);
    fixture_pause_ms(150);
    assert_int_equal(ll_try(w->lb, "k", LEASE_MS), LL_OK);
    assert_int_equal(ll_release(w->la), LL_NOT_OWNER);
    assert_int_equal(quorum_copies(w, "k"), 3);
}

static void lease_longer_than_the_longest_is_refused(void **state)
{
    struct quorum_world *w = *state;

    assert_int_equal(ll_try(w->la, "k", QUORUM_MAX_LEASE_MS + 1), LL_E_INVAL);
    assert_int_equal(ll_try(w->la, "k", LEASE_MS), LL_OK);
    assert_int_equal(ll_extend(w->la, QUORUM_MAX_LEASE_MS + 1), LL_E_INVAL);
}

static void waiter_gets_it_when_the_lease_ends(void **state)
{
    struct quorum_world *w = *state;
    const struct ll_key key = {"k", 1};
    int64_t before = quorum_now_ms();

    assert_int_equal(ll_try(w->la, "k", 500), LL_OK);
    assert_int_equal(ll_acquire_wait(w->lb, &key, 1, LL_ALL, LEASE_MS, 100),
                     LL_TIMEOUT);
    assert_int_equal(ll_acquire_wait(w->lb, &key, 1, LL_ALL, LEASE_MS, 5000), LL_OK);
    assert_in_range(quorum_now_ms() - before, 400, 900);
    assert_true(ll_token(w->lb) > ll_token(w->la));
}

static void renewal_keeps_it_while_a_node_is_gone(void **state)
{
    struct quorum_world *w = *state;
    struct ll_renew_options o = {.size = sizeof o};
    struct ll_renewer *r;

    assert_int_equal(ll_renewer_open(&r, w->a, &o), LL_OK);
    assert_int_equal(ll_try(w->la, "k", 600), LL_OK);
    assert_int_equal(ll_renew(r, w->la, 0, 0), LL_OK);
    fixture_pause_ms(300);
    proxy_refuse(&w->proxies[1], true);
    fixture_pause_ms(1200);
    assert_true(ll_valid(w->la, 0));
    assert_int_equal(ll_try(w->lb, "k", 600), LL_BUSY);
    assert_int_equal(ll_release(w->la), LL_OK);
    fixture_pause_ms(50);
    assert_int_equal(quorum_copies(w, "k"), 0);
    ll_renewer_close(r);
}

/* ---- answers that do not come ---- */

static void lost_answers_of_a_majority_are_asked_for_again(void **state)
{
    struct quorum_world *w = *state;

    assert_int_equal(ll_connect(w->a), LL_OK);
    proxy_cut_after(&w->proxies[0], "EVALSHA", 7, 1);
    proxy_cut_after(&w->proxies[1], "EVALSHA", 7, 1);
    assert_int_equal(ll_try(w->la, "k", LEASE_MS), LL_OK);
    assert_int_equal(proxy_count(&w->proxies[0], PROXY_CUTS_AFTER), 1);
    proxy_cut_after(&w->proxies[0], "EVALSHA", 7, 1);
    proxy_cut_after(&w->proxies[1], "EVALSHA", 7, 1);
    assert_int_equal(ll_release(w->la), LL_OK); /* deleted by the try that was lost */
    assert_int_equal(quorum_copies(w, "k"), 0);
}

/* Two nodes grant, but too late to be counted: the next attempt must not find that. */
static void quorum_self_block(void **state)
{
    struct quorum_world *w = *state;
    int64_t before;

    assert_int_equal(ll_connect(w->a), LL_OK);
    proxy_delay(&w->proxies[0], 2 * NODE_MS);
    proxy_delay(&w->proxies[1], 2 * NODE_MS);
    before = quorum_now_ms();
    assert_int_equal(ll_try(w->la, "k", LEASE_MS), LL_E_NO_QUORUM);
    assert_in_range(quorum_now_ms() - before, 0, NODE_MS + SLACK_MS);
    assert_false(ll_valid(w->la, 0));
    fixture_pause_ms(50);
    assert_int_equal(quorum_copies(w, "k"), 0);
    proxy_pass(&w->proxies[0]);
    proxy_pass(&w->proxies[1]);
    assert_int_equal(ll_try(w->la, "k", LEASE_MS), LL_OK);
}

static void quorum_slow_majority(void **state)
{
    struct quorum_world *w = *state;
    struct ll_client *c = quorum_client(w, w->url, 2000, 0);
    struct ll_lock *l = ll_new(c);

    assert_int_equal(ll_connect(c), LL_OK);
    for (size_t i = 0; i < 3; i++)
        proxy_delay(&w->proxies[i], 300);
    assert_int_equal(ll_try(l, "k", 200), LL_E_NO_QUORUM);
    assert_false(ll_valid(l, 0));
    assert_int_equal(ll_granted(l), 0);
    assert_int_equal(quorum_copies(w, "k"), 0);
    ll_free(l);
    ll_close(c);
}

/* One node's grant is not known to us: it is given back like the others. */
static void release_reaches_a_node_whose_grant_is_not_known(void **state)
{
    struct quorum_world *w = *state;

    assert_int_equal(ll_connect(w->a), LL_OK);
    proxy_delay(&w->proxies[2], 2 * NODE_MS);
    assert_int_equal(ll_try(w->la, "k", LEASE_MS), LL_OK);
    assert_int_equal(quorum_copies(w, "k"), 3);
    assert_int_equal(ll_release(w->la), LL_OK);
    fixture_pause_ms(50);
    assert_int_equal(quorum_copies(w, "k"), 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        QUORUM_TEST(majority_grants_and_release_frees_everywhere),
        QUORUM_TEST(acquire_and_release_are_one_round_trip_each),
        QUORUM_TEST(foreign_plain_lock_on_a_majority_excludes_us),
        QUORUM_TEST(any_keeps_what_has_a_majority_and_gives_the_rest_back),
        QUORUM_TEST(all_leaves_nothing_anywhere_when_one_key_is_busy),
        QUORUM_TEST(more_keys_than_a_script_takes_are_all_or_none),
        QUORUM_TEST(forgotten_scripts_are_not_seen_by_the_caller),
        QUORUM_TEST(loss_on_a_minority_is_borne_and_on_a_majority_told),
        QUORUM_TEST(grant_made_again_is_not_the_one_we_counted),
        QUORUM_TEST(release_tells_gone_from_not_owner),
        QUORUM_TEST(lease_longer_than_the_longest_is_refused),
        QUORUM_TEST(waiter_gets_it_when_the_lease_ends),
        QUORUM_TEST(renewal_keeps_it_while_a_node_is_gone),
        QUORUM_TEST(lost_answers_of_a_majority_are_asked_for_again),
        QUORUM_TEST(quorum_self_block),
        QUORUM_TEST(quorum_slow_majority),
        QUORUM_TEST(release_reaches_a_node_whose_grant_is_not_known),
    };

    fixture_need_servers();
    return cmocka_run_group_tests(tests, quorum_start_servers, quorum_stop_servers);
}
