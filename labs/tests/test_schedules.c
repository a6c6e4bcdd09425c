/* lab: what the laboratory takes for right, and that its table of expectations says
 * something of every strategy and every fault. */
#include "tests/lib/test.h"

#include "labs/lab/lab.h"

static size_t find_strategy(const char *name)
{
    size_t i = 0;

    while (strcmp(lab_strategies[i].name, name) != 0)
        i++;
    return i;
}

/* A cell of this strategy that came out as it must: twice by the schedule and at the
 * end, keys stuck and periods missed behind them; the workers of orders of the shipped
 * pool met busy keys. */
static struct lab_result cell(const char *strategy, int64_t twice, int64_t stuck)
{
    return (struct lab_result){
        .strategy = &lab_strategies[find_strategy(strategy)],
        .fault = &lab_faults[0],
        .expected = {.twice = twice, .stuck = stuck, .races = ""},
        .forced = twice,
        .figures = {.twice = twice,
                    .oversold = twice,
                    .stuck = stuck,
                    .missed = 3 * stuck},
        .races = {{.name = LAB_FREE_ORDERS, .ct = 1}, {.name = "busy_orders", .ct = 1}},
        .race_ct = 2,
        .free_run.count[LAB_AWAY] = 1,
    };
}

static bool is_right(struct lab_result r)
{
    lab_judge(&r);
    assert_true(r.is_right == (r.why[0] == '\0'));
    return r.is_right;
}

CASE(judge_accepts_what_was_expected)
{
    assert_true(is_right(cell("everything", 0, 0)));
    assert_true(is_right(cell("blind-del", 2, 0)));
    assert_true(is_right(cell("setnx", 1, 1)));
}

/* Guarantee: The laboratory fails when a failure that must come does not. */
CASE(judge_refuses_a_failure_that_did_not_come)
{
    struct lab_result once = cell("blind-del", 2, 0), free_keys = cell("setnx", 0, 2);

    once.forced = once.figures.twice = once.figures.oversold = 1;
    assert_false(is_right(once));
    free_keys.figures.stuck = 1;
    assert_false(is_right(free_keys));
    free_keys = cell("setnx", 0, 2);
    free_keys.figures.missed = 0;
    assert_false(is_right(free_keys));
}

/* Guarantee: The laboratory fails when a failure comes that must not. */
CASE(judge_refuses_a_failure_that_must_not_come)
{
    struct lab_result r = cell("token-lua", 0, 0);

    r.figures.twice = r.figures.oversold = 1; /* not in the schedule: in the flow */
    assert_false(is_right(r));
    r = cell("everything", 0, 0);
    r.figures.oversold = 1;
    assert_false(is_right(r));
    r = cell("everything", 0, 0);
    r.figures.missed = 1;
    assert_false(is_right(r));
}

/* A way without exclusion fails by itself too, as often as it likes; the schedule's
 * part must be there all the same. */
CASE(judge_counts_the_schedule_alone_where_everybody_is_let_in)
{
    struct lab_result r = cell("none", 1, 0);

    r.figures.twice = r.figures.oversold = 99;
    assert_true(is_right(r));
    r.forced = 0;
    assert_false(is_right(r));
}

/* A schedule that met nothing has shown nothing. */
CASE(judge_refuses_a_cell_without_its_races)
{
    static const struct {
        const char *letter;
        enum lab_count what;
    } races[] = {{"a", LAB_AWAY},
                 {"w", LAB_BLOCKED},
                 {"r", LAB_REFUSED},
                 {"l", LAB_LOST},
                 {"u", LAB_UNANSWERED}};

    for (size_t i = 0; i < sizeof races / sizeof races[0]; i++) {
        struct lab_result r = cell("token-lua", 0, 0);

        r.expected.races = races[i].letter;
        assert_false(is_right(r));
        r.met[races[i].what] = 1;
        assert_true(is_right(r));
    }
}

CASE(judge_refuses_a_pool_that_met_nothing)
{
    struct lab_result r = cell("everything", 0, 0);

    r.race_ct = 0;
    assert_false(is_right(r));
    for (size_t i = 0; i < 2; i++) {
        r = cell("everything", 0, 0);
        (void)strcpy(r.races[i].name, "busy_billing");
        assert_false(is_right(r));
    }
}

/* Guarantee: The laboratory fails when workers left to themselves never wanted the same
 * item. */
CASE(judge_refuses_a_free_run_that_did_not_meet)
{
    static const enum lab_count met[] = {LAB_AWAY, LAB_REFUSED, LAB_LATE};
    struct lab_result r = cell("token-lua", 0, 0);

    r.free_run.count[LAB_AWAY] = 0;
    assert_false(is_right(r));
    for (size_t i = 0; i < sizeof met / sizeof met[0]; i++) {
        r.free_run.count[met[i]] = 1;
        assert_true(is_right(r));
        r.free_run.count[met[i]] = 0;
    }
}

/* So that no cell is right for want of something to meet; where a majority cannot be
 * had, nobody meets anybody. */
CASE(every_cell_that_holds_must_meet_something)
{
    for (size_t s = 0; s < LAB_STRATEGIES; s++) {
        for (size_t f = 0; f < LAB_FAULTS; f++) {
            struct lab_expect x = lab_expected(s, f);

            if (lab_is(&lab_strategies[s], LAB_SHIPPED))
                assert_true(lab_faults[f].pool_race[0] != '\0');
            else if (x.twice + x.stuck == 0)
                assert_true(strpbrk(x.races, "awrlu") != NULL);
        }
    }
}

CASE(shipped_strategy_is_expected_to_hold_everywhere)
{
    size_t shipped = find_strategy("everything");

    for (size_t f = 0; f < LAB_FAULTS; f++) {
        assert_int_equal(lab_expected(shipped, f).twice, 0);
        assert_int_equal(lab_expected(shipped, f).stuck, 0);
    }
}

CASE(every_fault_fells_somebody_who_holds_when_it_is_calm)
{
    for (size_t f = 1; f < LAB_FAULTS; f++) {
        bool any = false;

        for (size_t s = 0; s < LAB_STRATEGIES; s++) {
            struct lab_expect x = lab_expected(s, f);

            any = any || (lab_expected(s, 0).twice == 0 && x.twice + x.stuck > 0);
        }
        assert_true(any);
    }
}
