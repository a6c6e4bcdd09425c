/* checker: it holds over what the pool does, also when workers are killed at every
 * named point; and it finds each kind of lie that is planted in the rows or in the
 * histories.
 */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "tests/lib/checker.h"
#include "tests/lib/points.h"
#include "tests/lib/pool_world.h"
#include "tests/lib/world.h"

static struct checker checker;
static const struct pool_work work = {
    .users = 6, .periods = 3, .orders = 12, .units = 8};

static int open_empty(void **state)
{
    world_open(state);
    checker_open(&checker);
    return 0;
}

/* A world that was worked, and true. */
static int open_worked(void **state)
{
    open_empty(state);
    pool_work_put(&world.f, &work);
    world_run_pool("2", pool_work_now(&work));
    checker_assert_holds(&checker, &world.f, pool_work_now(&work), "--bound-ms 60000");
    return 0;
}

static int close_all(void **state)
{
    checker_close(&checker);
    return world_close(state);
}

static void assert_finds_with(const char *rule, const char *options)
{
    char words[64];

    (void)snprintf(words, sizeof words, "broken: %s: ", rule);
    assert_int_equal(checker_run(&checker, &world.f, pool_work_now(&work), options), 1);
    fixture_assert_contains(checker.out, words);
}

static void assert_finds(const char *rule)
{
    assert_finds_with(rule, "");
}

static void assert_holds_with(const char *options)
{
    checker_assert_holds(&checker, &world.f, pool_work_now(&work), options);
}

/* ---- lies in the rows ---- */

static void charge_there_twice_is_found(void **state)
{
    (void)state;
    world_do("ALTER TABLE charges DROP CONSTRAINT one_charge_per_period; INSERT INTO"
             " charges SELECT * FROM charges LIMIT 1");
    assert_finds("charged_once");
}

static void transfer_and_movement_there_twice_are_found(void **state)
{
    (void)state;
    world_do("ALTER TABLE stock_movements DROP CONSTRAINT one_movement_per_source;"
             " INSERT INTO stock_movements (sku_id, kind, source, qty, fence, moved_at)"
             " SELECT sku_id, kind, source, qty, fence, moved_at FROM stock_movements"
             " LIMIT 1");
    assert_finds("charged_once");
    assert_finds("sums");
}

static void period_that_nobody_charged_is_found(void **state)
{
    (void)state;
    world_subscription(99, 1, 5, "2024-01-02Z");
    assert_finds("nothing_missed");
    world_do("UPDATE subscriptions SET cancel_at = anchor_at WHERE subscription_id ="
             " 99");
    assert_holds_with("");
}

static void period_lost_in_the_middle_is_found(void **state)
{
    (void)state;
    world_do("DELETE FROM charges WHERE subscription_id = 2 AND period_no = 1");
    assert_finds("nothing_missed");
    assert_finds("ok_in_tables");
    assert_finds("in_pairs");
}

/* The last day of a month, a leap day, several units at a time. */
static void periods_of_every_unit_are_reckoned_as_the_pool_does(void **state)
{
    static const char now[] = "2029-03-01T00:00:00Z";

    (void)state;
    world_user(1, 1000000);
    world_do("INSERT INTO subscriptions (user_id, plan, amount_minor, currency,"
             " anchor_at, unit, every, next_due_at) SELECT 1, unit || every, 1, 'USD',"
             " at, unit, every, at FROM unnest(ARRAY['day', 'week', 'month', 'year'])"
             " AS unit, unnest(ARRAY[1, 3, 14]) AS every, unnest(ARRAY['2023-12-31"
             " 23:59:59.5Z', '2024-02-29Z', '2024-01-31Z', '2028-03-01Z'"
             "]::timestamptz[]) AS at WHERE unit <> 'day' OR at > '2028-01-01Z'");
    world_run(now);
    checker_assert_holds(&checker, &world.f, now, "");
    assert_int_equal(checker_run(&checker, &world.f, "2029-02-28T23:59:59Z", ""), 1);
    fixture_assert_contains(checker.out, "broken: nothing_early: ");
}

static void order_left_pending_is_found(void **state)
{
    (void)state;
    world_do("SELECT place_order(1, 'late', '[{\"sku\":\"hot\",\"qty\":1}]',"
             " '2024-01-01Z')");
    assert_finds("nothing_missed");
}

static void charge_before_its_time_is_found(void **state)
{
    (void)state;
    world_do("UPDATE charges SET period_no = 7 WHERE subscription_id = 2 AND period_no"
             " = 2");
    assert_finds("nothing_early");
}

static void payment_of_another_amount_is_found(void **state)
{
    (void)state;
    world_do("UPDATE transfers SET amount_minor = 1 WHERE kind = 'payment'");
    assert_finds("in_pairs");
    assert_finds("sums");
}

static void older_token_after_a_newer_one_is_found(void **state)
{
    (void)state;
    world_do("UPDATE charges AS c SET fence = o.fence FROM charges AS o WHERE"
             " c.subscription_id = 3 AND o.subscription_id = 3 AND c.period_no +"
             " o.period_no = 2");
    assert_finds("tokens_rise");
}

static void one_token_for_two_transactions_of_a_key_is_found(void **state)
{
    (void)state;
    world_do("UPDATE charges SET fence = (SELECT max(fence) FROM charges WHERE"
             " subscription_id = 3) WHERE subscription_id = 3");
    assert_finds("tokens_rise");
}

static void wallet_that_is_not_its_transfers_is_found(void **state)
{
    (void)state;
    world_do("UPDATE users SET balance_minor = balance_minor + 1 WHERE user_id = 4");
    assert_finds("sums");
}

static void row_set_aside_is_found_unless_it_may_be(void **state)
{
    (void)state;
    world_subscription(98, 1, 5, "2030-01-01Z");
    world_do("UPDATE subscriptions SET state = 'parked' WHERE subscription_id = 98");
    assert_finds("set_aside");
    assert_holds_with("--set-aside 1");
}

/* ---- lies in the histories ---- */

#define INVOKE                                                                         \
    "{\"event\":\"invoke\",\"worker\":\"liar\",\"pid\":1,\"seq\":1,\"t\":%d,"          \
    "\"job\":\"billing\",\"token\":%" PRId64 ",\"keys\":[\"user:2\"],\"items\":[2]}\n"
#define END                                                                            \
    "{\"event\":\"%s\",\"worker\":\"liar\",\"pid\":1,\"seq\":1,\"t\":5,"               \
    "\"job\":\"billing\",\"token\":77,\"xid\":9,\"charged\":1,\"declined\":0,"         \
    "\"fulfilled\":0,\"rejected\":0,\"items\":[2]}\n"
#define KILLED "{\"event\":\"killed\",\"pid\":%d,\"t\":%d}\n"
#define HEALED "{\"event\":\"healed\",\"t\":%d}\n"
#define LOST "{\"event\":\"lost\",\"t\":%d}\n"

static int64_t some_token(void)
{
    return world_ask("SELECT fence FROM charges WHERE subscription_id = 2 AND"
                     " period_no = 0");
}

static void charge_that_nobody_invoked_is_found(void **state)
{
    (void)state;
    world_do("UPDATE charges SET fence = fence + 1000000 WHERE subscription_id = 2 AND"
             " period_no = 2");
    assert_finds("nothing_unasked");
}

static void order_with_the_token_of_another_batch_is_found(void **state)
{
    (void)state;
    world_do("UPDATE orders SET fence = %" PRId64 " WHERE order_id = 1", some_token());
    assert_finds("nothing_unasked");
}

static void token_of_two_holders_is_found(void **state)
{
    (void)state;
    checker_plant(&checker, "liar", INVOKE, 1, some_token());
    assert_finds_with("one_holder", "--kills");
}

static void ok_without_its_rows_is_found(void **state)
{
    (void)state;
    checker_plant(&checker, "liar", INVOKE, 1, INT64_C(77));
    checker_plant(&checker, "liar", END, "ok");
    assert_finds("ok_in_tables");
}

static void fail_that_left_rows_is_found(void **state)
{
    (void)state;
    checker_forge(&checker, "\"charged\":", "\"nothing\":");
    assert_finds("fail_without_effect");
}

static void invoke_without_an_end_needs_a_kill(void **state)
{
    (void)state;
    checker_plant(&checker, "liar", INVOKE, 1, INT64_C(77));
    assert_finds("invoke_ends");
    assert_holds_with("--kills");
}

static void invoke_without_an_end_is_the_killed_workers_own(void **state)
{
    (void)state;
    checker_plant(&checker, "liar", INVOKE, 1, INT64_C(77));
    checker_plant(&checker, "faults", KILLED, 2, 5);
    assert_finds("invoke_ends");
    checker_plant(&checker, "faults", KILLED, 1, 0);
    assert_finds("invoke_ends"); /* it lived on */
    checker_plant(&checker, "faults", KILLED, 1, 5);
    assert_holds_with("");
}

/* Only what was begun before. */
static void ok_may_be_lost_with_its_server(void **state)
{
    (void)state;
    checker_plant(&checker, "liar", INVOKE, 2, INT64_C(77));
    checker_plant(&checker, "liar", END, "ok");
    checker_plant(&checker, "faults", LOST, 2);
    assert_finds("ok_in_tables");
    checker_plant(&checker, "faults", LOST, 3);
    assert_holds_with("");
}

static void unknown_that_was_never_settled_is_found(void **state)
{
    (void)state;
    checker_plant(&checker, "liar", INVOKE, 1, INT64_C(77));
    checker_plant(&checker, "liar", END, "unknown");
    assert_finds("unknown_settled");
    checker_plant(&checker, "liar", END, "fail");
    assert_holds_with("");
}

static void unknown_that_was_passed_over_is_found_whatever_was_killed(void **state)
{
    (void)state;
    checker_plant(&checker, "liar", INVOKE, 1, INT64_C(77));
    checker_plant(&checker, "liar", END, "unknown");
    checker_plant(&checker, "liar", INVOKE, 9, INT64_C(78));
    assert_finds_with("unknown_settled", "--kills");
}

static void work_taken_up_too_late_is_found(void **state)
{
    (void)state;
    checker_plant(&checker, "liar", INVOKE, 1, INT64_C(77));
    assert_holds_with("--kills");
    assert_finds_with("recovery_bounded", "--kills --bound-ms 1000");
}

/* It died in the middle of a fault: its work waits for the end of that. */
static void work_of_the_dead_is_timed_from_the_end_of_the_fault(void **state)
{
    (void)state;
    checker_plant(&checker, "liar", INVOKE, 1, INT64_C(77));
    checker_plant(&checker, "faults", KILLED, 1, 5);
    assert_finds_with("recovery_bounded", "--bound-ms 1000");
    checker_healed(&checker);
    assert_holds_with("--bound-ms 1000");
}

static void pool_that_comes_back_too_late_is_found(void **state)
{
    (void)state;
    checker_plant(&checker, "faults", HEALED, 1);
    assert_finds_with("recovery_bounded", "--bound-ms 1000");
}

static void torn_last_line_is_forgiven_and_a_broken_one_refused(void **state)
{
    (void)state;
    checker_plant(&checker, "liar", INVOKE "{\"event\":\"o", 1, INT64_C(77));
    assert_holds_with("--kills");
    fixture_assert_contains(checker.out, "1 lines torn");
    checker_plant(&checker, "liar", "\n");
    assert_int_equal(checker_run(&checker, &world.f, pool_work_now(&work), ""), 3);
    fixture_assert_contains(checker.out, "liar.jsonl:2");
}

/* ---- the real thing ---- */

/* A worker of three is killed the first time that one comes to the point. */
static void kill_at(const char *point)
{
    char order[64], once[160];

    (void)snprintf(order, sizeof order, "%s=kill", point);
    (void)snprintf(once, sizeof once, "%s/%s", checker.dir, point);
    fixture_env("LEDGERLOCK_TEST_POINT", order);
    fixture_env("LEDGERLOCK_TEST_POINT_ONCE", once);
    world_run_pool("3", pool_work_now(&work));
    fixture_assert_contains(world.o.err, "signal=9");
    assert_int_equal(unlink(once), 0); /* it was there: the point was reached */
    pool_work_assert_exact(&world.f, &work);
    assert_holds_with("--kills --bound-ms 2500"); /* lease + 1 s */
}

#define KILL_TEST(point)                                                               \
    static void killed_at_##point##_is_made_good_within_the_lease(void **state)        \
    {                                                                                  \
        (void)state;                                                                   \
        kill_at(#point);                                                               \
    }

KILL_TEST(before_lock)
KILL_TEST(after_lock)
KILL_TEST(before_begin)
KILL_TEST(after_claim)
KILL_TEST(before_commit)
KILL_TEST(after_commit)
KILL_TEST(before_release)

static int open_to_kill(void **state)
{
    open_empty(state);
    pool_work_put(&world.f, &work);
    fixture_env("LEDGERLOCK_LOCKS_LEASE_MS", "1500");
    fixture_env("LEDGERLOCK_POOL_POLL_MS", "50");
    fixture_env("LEDGERLOCK_POOL_BATCH", "4");
    return 0;
}

#define LIE(name) cmocka_unit_test_setup_teardown(name, open_worked, close_all)
#define KILL(point)                                                                    \
    cmocka_unit_test_setup_teardown(killed_at_##point##_is_made_good_within_the_lease, \
                                    open_to_kill, close_all)

int main(void)
{
    const struct CMUnitTest tests[] = {
        LIE(charge_there_twice_is_found),
        LIE(transfer_and_movement_there_twice_are_found),
        LIE(period_that_nobody_charged_is_found),
        LIE(period_lost_in_the_middle_is_found),
        LIE(order_left_pending_is_found),
        cmocka_unit_test_setup_teardown(
            periods_of_every_unit_are_reckoned_as_the_pool_does, open_empty, close_all),
        LIE(charge_before_its_time_is_found),
        LIE(payment_of_another_amount_is_found),
        LIE(older_token_after_a_newer_one_is_found),
        LIE(one_token_for_two_transactions_of_a_key_is_found),
        LIE(wallet_that_is_not_its_transfers_is_found),
        LIE(row_set_aside_is_found_unless_it_may_be),
        LIE(charge_that_nobody_invoked_is_found),
        LIE(order_with_the_token_of_another_batch_is_found),
        LIE(token_of_two_holders_is_found),
        LIE(ok_without_its_rows_is_found),
        LIE(fail_that_left_rows_is_found),
        LIE(invoke_without_an_end_needs_a_kill),
        LIE(invoke_without_an_end_is_the_killed_workers_own),
        LIE(ok_may_be_lost_with_its_server),
        LIE(unknown_that_was_never_settled_is_found),
        LIE(unknown_that_was_passed_over_is_found_whatever_was_killed),
        LIE(work_taken_up_too_late_is_found),
        LIE(work_of_the_dead_is_timed_from_the_end_of_the_fault),
        LIE(pool_that_comes_back_too_late_is_found),
        LIE(torn_last_line_is_forgiven_and_a_broken_one_refused),
        KILL(before_lock),
        KILL(after_lock),
        KILL(before_begin),
        KILL(after_claim),
        KILL(before_commit),
        KILL(after_commit),
        KILL(before_release),
    };

    fixture_need_servers();
    points_program();
    return cmocka_run_group_tests(tests, NULL, NULL);
}
