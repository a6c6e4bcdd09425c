/* audit: in a world where all holds it says so and counts right. The violations that
 * each invariant finds are told in tests/sql/plants.sql. */
#include "tests/lib/runs.h"

#include <jansson.h>

#include "audit_gen.h"
#include "tests/lib/audit_world.h"

/* Shared by all cases, which change a copy only. loose: without constraints. */
static struct fixture world, loose, copy;
static json_t *doc; /* of the latest audit */

/* ---- helpers ---- */

static void forget(void)
{
    json_decref(doc);
    doc = NULL;
    if (copy.database[0] != '\0')
        fixture_close(&copy);
    memset(&copy, 0, sizeof copy);
}

static void audit(const struct fixture *f, int code)
{
    runs(f, code, "audit --sealed --json --now " AUDIT_NOW);
    json_decref(doc);
    doc = json_loads(said.out, 0, NULL);
    assert_non_null(doc);
    assert_int_equal(json_is_true(json_object_get(doc, "ok")), code == 0);
}

static void open_worlds(void)
{
    fixture_open_migrated(&world);
    audit_world_put(world.url, 4);
    fixture_copy(&loose, &world, "");
    fixture_unguard(&loose);
}

static void close_worlds(void)
{
    fixture_close(&loose);
    fixture_close(&world);
}

GROUP(.start = open_worlds, .stop = close_worlds, .close = forget);

/* ---- what it finds ---- */

CASE(audit_of_sound_world_holds_with_totals_as_counted)
{
    json_t *expected = json_loads(audit_world_totals, 0, NULL);

    audit(&world, 0);
    assert_non_null(expected);
    if (!json_equal(expected, json_object_get(doc, "totals")))
        fail_msg("totals are %s", said.out);
    assert_int_equal(json_array_size(json_object_get(doc, "invariants")), AUDIT_COUNT);
    json_decref(expected);
}

#define CHARGES_TWICE(which)                                                           \
    "INSERT INTO charges SELECT * FROM charges WHERE subscription_id IN (" which ");"

static const struct {
    const char *name;
    int charged_twice, oversold;
    const char *sql;
} doubles[] = {
    {"of_one", 3, 0, CHARGES_TWICE("1")},
    {"of_one_that_is_declined_too", 1, 0, CHARGES_TWICE("3")}, /* two periods */
    /* three periods of 1, two of 2; of B two units were there */
    {"of_two_and_oversold", 5, 3,
     CHARGES_TWICE(
         "1, 2") "UPDATE order_lines SET qty = 5 WHERE (order_id, sku_id) = (1, 2)"},
};

CASE_ROWS(charged_twice_is_counted, doubles)
{
    fixture_copy(&copy, &loose, row->sql);
    audit(&copy, 1);
    assert_int_equal(said_number("totals/billing/charged_twice"), row->charged_twice);
    assert_int_equal(said_number("totals/stock/oversold"), row->oversold);
}

/* ---- how it says it ---- */

CASE(sums_beyond_64_bits_are_exact)
{
    json_t *money = json_loads(audit_world_huge_money, 0, NULL), *found = NULL;
    const char *left = NULL;

    fixture_copy(&copy, &world, audit_world_huge);
    audit_world_run(copy.url, "", "events");
    audit(&copy, 0);
    assert_int_equal(json_unpack(doc, "{s:{s:{s:o}, s:{s:s}}}", "totals", "money",
                                 "BHD", &found, "stock", "left", &left),
                     0);
    assert_true(json_equal(money, found));
    assert_string_equal(left, "18000000000000000017");
    json_decref(money);
    runs(&copy, 0, "audit --now " AUDIT_NOW);
    shows(" 36,000,000,000,000,000.000\n");
    shows(" 27,000,000,000,000,000.000 BHD\n");
    shows(" 18,000,000,000,000,000,017\n");
}

CASE(report_for_people_fits_80_columns_without_colour)
{
    runs(&world, 1, "audit --now " AUDIT_NOW " --lag 1m");
    shows("  nothing_due_left                      BROKEN 2\n");
    shows("\naudit: 45 of 46 invariants hold\n");
    shows("\nMONEY in USD\n");
    shows("\n  declined, owed  ");
    assert_null(strchr(said.out, '\033'));
    fits_80_columns();
}

CASE(json_of_one_state_is_the_same_bytes)
{
    static struct fixture_output first;

    audit(&world, 0);
    first = said;
    audit(&world, 0);
    assert_string_equal(first.out, said.out);
}

CASE(bad_words_are_usage_errors)
{
    says(&world, 2, "--lag: \"soon\" is no duration", "audit --lag soon");
    runs(&world, 2, "audit --wait -5s");
    says(&world, 2, "someday", "audit --now someday");
    runs(&world, 2, "audit --now infinity");
    runs(&world, 2, "audit word");
}

/* ---- waiting ---- */

CASE(wait_over_says_what_is_left_and_breaks)
{
    says(&world, 1, "  nothing_due_left                      BROKEN 2\n",
         "audit --wait 1s --now " AUDIT_NOW);
    fixture_assert_contains(said.err, "after 1s still due: 1 subscriptions, 1 orders");
}

/* The audit has asked at least once, and did not end by that. */
CASE(wait_ends_when_the_last_work_is_done)
{
    struct fixture_child child;

    fixture_copy(&copy, &world, "");
    fixture_spawn(&copy, &child, "audit", "--wait", "200s", "--now", AUDIT_NOW, NULL);
    for (int i = 0;
         fixture_query_int8(copy.url, "SELECT count(*) FROM pg_stat_activity"
                                      " WHERE datname = current_database() AND"
                                      " application_name = 'ledgerlock audit' AND"
                                      " state = 'idle' AND query <> ''") == 0;
         i++) {
        assert_true(i < 6000);
        fixture_pause_ms(10);
    }
    assert_true(kill(child.pid, 0) == 0);
    audit_world_run(
        copy.url,
        "UPDATE ledgerlock.orders SET state = 'rejected', reason = 'insufficient_funds', decided_at = placed_at, fence = 1 WHERE order_id = 6;"
        "UPDATE ledgerlock.subscriptions SET state = 'cancelled', cancel_at = next_due_at WHERE subscription_id = 5;",
        "events");
    assert_int_equal(0, fixture_wait(&child, 120, &said));
    said_no_complaint();
}
