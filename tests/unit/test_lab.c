/* lab: what the laboratory takes for right, and that its table of expectations says
 * something of every strategy and every fault. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <string.h>

#include "worker/lab.h"

static size_t find_strategy(const char *name)
{
    size_t i = 0;

    while (strcmp(lab_strategies[i].name, name) != 0)
        i++;
    return i;
}

/* A cell of this strategy that came out as it must: twice by the schedule and at the
 * end, keys stuck and periods missed behind them. */
static struct lab_result cell(const char *strategy, int64_t twice, int64_t stuck)
{
    return (struct lab_result){
        .strategy = &lab_strategies[find_strategy(strategy)],
        .expected = {.twice = twice, .stuck = stuck},
        .forced = twice,
        .figures = {.twice = twice,
                    .oversold = twice,
                    .stuck = stuck,
                    .missed = 3 * stuck},
    };
}

static bool is_right(struct lab_result r)
{
    lab_judge(&r);
    assert_true(r.is_right == (r.why[0] == '\0'));
    return r.is_right;
}

static void judge_accepts_what_was_expected(void **state)
{
    (void)state;
    assert_true(is_right(cell("everything", 0, 0)));
    assert_true(is_right(cell("blind-del", 2, 0)));
    assert_true(is_right(cell("setnx", 1, 1)));
}

static void judge_refuses_a_failure_that_did_not_come(void **state)
{
    struct lab_result once = cell("blind-del", 2, 0), free_keys = cell("setnx", 0, 2);

    (void)state;
    once.forced = once.figures.twice = once.figures.oversold = 1;
    assert_false(is_right(once));
    free_keys.figures.stuck = 1;
    assert_false(is_right(free_keys));
    free_keys = cell("setnx", 0, 2);
    free_keys.figures.missed = 0;
    assert_false(is_right(free_keys));
}

static void judge_refuses_a_failure_that_must_not_come(void **state)
{
    struct lab_result r = cell("token-lua", 0, 0);

    (void)state;
    r.figures.twice = r.figures.oversold = 1; /* not in the schedule: in the flow */
    assert_false(is_right(r));
    r = cell("everything", 0, 0);
    r.figures.oversold = 1;
    assert_false(is_right(r));
    r = cell("everything", 0, 0);
    r.figures.missed = 1;
    assert_false(is_right(r));
}

/* What has no exclusion fails by itself too, as often as it likes; the schedule's part
 * must be there all the same. */
static void judge_counts_the_schedule_alone_where_everybody_is_let_in(void **state)
{
    struct lab_result r = cell("none", 1, 0);

    (void)state;
    r.figures.twice = r.figures.oversold = 99;
    assert_true(is_right(r));
    r.forced = 0;
    assert_false(is_right(r));
}

static void shipped_strategy_is_expected_to_hold_everywhere(void **state)
{
    size_t shipped = find_strategy("everything");

    (void)state;
    for (size_t f = 0; f < LAB_FAULTS; f++) {
        assert_int_equal(lab_expected(shipped, f).twice, 0);
        assert_int_equal(lab_expected(shipped, f).stuck, 0);
    }
}

static void every_fault_fells_somebody_who_holds_when_it_is_calm(void **state)
{
    (void)state;
    for (size_t f = 1; f < LAB_FAULTS; f++) {
        bool any = false;

        for (size_t s = 0; s < LAB_STRATEGIES; s++) {
            struct lab_expect x = lab_expected(s, f);

            any = any || (lab_expected(s, 0).twice == 0 && x.twice + x.stuck > 0);
        }
        assert_true(any);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(judge_accepts_what_was_expected),
        cmocka_unit_test(judge_refuses_a_failure_that_did_not_come),
        cmocka_unit_test(judge_refuses_a_failure_that_must_not_come),
        cmocka_unit_test(judge_counts_the_schedule_alone_where_everybody_is_let_in),
        cmocka_unit_test(shipped_strategy_is_expected_to_hold_everywhere),
        cmocka_unit_test(every_fault_fells_somebody_who_holds_when_it_is_calm),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
