/* audit: in a world where all holds it says so and counts right; every violation that
 * is planted breaks exactly the invariant that is meant. */
#include "tests/lib/fixture.h"

#include <jansson.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "audit_gen.h"
#include "common/clock.h"
#include "common/pg.h"
#include "tests/lib/audit_plants.h"
#include "tests/lib/audit_world.h"

/* Shared by all tests, which change copies only. loose: without constraints. */
static struct fixture world, loose;

enum { PLANTS = sizeof plants / sizeof plants[0] };

/* ---- helpers ---- */

/* A copy of another test's database, to be closed like any fixture. */
static void copy_world(struct fixture *copy, const struct fixture *from)
{
    static int n;
    char sql[256];

    *copy = *from;
    (void)snprintf(copy->database, sizeof copy->database, "%.50s_c%d", from->database,
                   ++n);
    (void)snprintf(sql, sizeof sql,
                   "CREATE DATABASE %s TEMPLATE %s OWNER ledgerlock_owner",
                   copy->database, from->database);
    fixture_exec(getenv("LEDGERLOCK_TEST_PG"), sql);
    fixture_become(copy, "ledgerlock_owner");
}

static void exec(const struct fixture *f, const char *sql)
{
    char text[4096];

    (void)snprintf(text, sizeof text, "SET search_path = ledgerlock; %s", sql);
    fixture_exec(f->url, text);
}

/* The document of an audit at AUDIT_NOW; code gets the exit code. */
static json_t *audit(const struct fixture *f, int *code)
{
    static struct fixture_output o;
    json_t *doc;

    *code = fixture_run(f, &o, "audit", "--json", "--now", AUDIT_NOW, NULL);
    doc = json_loads(o.out, 0, NULL);
    if (doc == NULL)
        fail_msg("no JSON, exit %d: %s%s", *code, o.out, o.err);
    return doc;
}

static bool is_broken(const json_t *row)
{
    return json_is_false(json_object_get(row, "holds")) &&
           json_integer_value(json_object_get(row, "violations")) > 0 &&
           json_array_size(json_object_get(row, "examples")) > 0;
}

static void assert_only_broken(json_t *doc, const char *invariant, const char *sql)
{
    size_t i;
    json_t *row;
    bool found = false;

    json_array_foreach(json_object_get(doc, "invariants"), i, row)
    {
        const char *name = json_string_value(json_object_get(row, "name"));

        if (strcmp(name, invariant) == 0)
            found = is_broken(row);
        else if (!json_is_true(json_object_get(row, "holds")))
            fail_msg(
                "%s broke %s too: %s", sql, name,
                json_string_value(json_array_get(json_object_get(row, "examples"), 0)));
    }
    if (!found)
        fail_msg("%s did not break %s", sql, invariant);
}

static int open_worlds(void **state)
{
    (void)state;
    fixture_open_migrated(&world);
    fixture_exec(world.url, audit_world[0]);
    fixture_exec(world.url, audit_world[1]);
    copy_world(&loose, &world);
    fixture_exec(
        loose.url,
        "DO $$ DECLARE c record; BEGIN"
        " FOR c IN SELECT conrelid::regclass AS tab, conname FROM pg_constraint"
        "  WHERE connamespace = 'ledgerlock'::regnamespace"
        "  AND conrelid <> 0 ORDER BY contype <> 'f' LOOP"
        "  EXECUTE format('ALTER TABLE %s DROP CONSTRAINT %I', c.tab, c.conname);"
        " END LOOP; END $$");
    return 0;
}

static int close_worlds(void **state)
{
    (void)state;
    fixture_close(&loose);
    fixture_close(&world);
    return 0;
}

/* ---- tests ---- */

static void audit_of_sound_world_holds_with_totals_as_counted(void **state)
{
    json_t *expected = json_loads(audit_world_totals, 0, NULL);
    int code;
    json_t *doc = audit(&world, &code);
    char *text = json_dumps(json_object_get(doc, "totals"), 0);

    (void)state;
    assert_non_null(expected);
    if (!json_equal(expected, json_object_get(doc, "totals")))
        fail_msg("totals are %s", text);
    assert_int_equal(code, 0);
    assert_true(json_is_true(json_object_get(doc, "ok")));
    assert_int_equal(json_array_size(json_object_get(doc, "invariants")), AUDIT_COUNT);
    free(text);
    json_decref(doc);
    json_decref(expected);
}

static void every_invariant_has_a_plant(void **state)
{
    (void)state;
    for (size_t i = 0; i < AUDIT_COUNT; i++) {
        bool found = false;

        for (size_t k = 0; k < PLANTS; k++)
            found = found || strcmp(plants[k].invariant, audit_texts[i].stem) == 0;
        if (!found)
            fail_msg("no test plants a violation of %s", audit_texts[i].path);
    }
}

static void every_plant_breaks_its_invariant_alone(void **state)
{
    (void)state;
    for (size_t i = 0; i < PLANTS; i++) {
        struct fixture copy;
        int code;
        json_t *doc;

        copy_world(&copy, &loose);
        exec(&copy, plants[i].sql);
        doc = audit(&copy, &code);
        assert_only_broken(doc, plants[i].invariant, plants[i].sql);
        assert_true(code == 1 && json_is_false(json_object_get(doc, "ok")));
        json_decref(doc);
        fixture_close(&copy);
    }
}

static void double_charge_and_overselling_are_counted(void **state)
{
    struct fixture copy;
    int code;
    json_t *doc, *totals;

    (void)state;
    copy_world(&copy, &loose);
    exec(
        &copy,
        "INSERT INTO charges SELECT * FROM charges WHERE subscription_id = 1;"
        "INSERT INTO transfers (kind, source, leg, user_id, debit, credit, amount_minor, currency, moved_at)"
        " SELECT kind, source, leg, user_id, debit, credit, amount_minor, currency, moved_at"
        " FROM transfers WHERE kind = 'charge' AND source IN (1, 2);"
        "UPDATE stock_movements SET qty = -5 WHERE sku_id = 2");
    doc = audit(&copy, &code);
    totals = json_object_get(doc, "totals");
    assert_int_equal(code, 1);
    /* three periods of 1, by charge and transfer; two of 2, by transfer alone */
    assert_int_equal(5, json_integer_value(json_object_get(
                            json_object_get(totals, "billing"), "charged_twice")));
    assert_int_equal(3, json_integer_value(json_object_get(
                            json_object_get(totals, "stock"), "oversold")));
    json_decref(doc);
    fixture_close(&copy);
}

/* The keys of the charges alone clear a declined one. */
static void next_period_behind_a_declined_charge_is_found(void **state)
{
    static struct fixture_output o;
    struct fixture copy;

    (void)state;
    copy_world(&copy, &world);
    exec(&copy,
         "UPDATE subscriptions SET next_period_no = 2 WHERE subscription_id = 3");
    assert_int_equal(1, fixture_run(&copy, &o, "audit", "--now", AUDIT_NOW, NULL));
    fixture_assert_contains(o.out, "next_period_right                     BROKEN 1");
    fixture_close(&copy);
}

static json_int_t charged_twice_after(const char *sql)
{
    struct fixture copy;
    int code;
    json_t *doc;
    json_int_t n = -1;

    copy_world(&copy, &loose);
    exec(&copy, sql);
    doc = audit(&copy, &code);
    (void)json_unpack(doc, "{s:{s:{s:I}}}", "totals", "billing", "charged_twice", &n);
    json_decref(doc);
    fixture_close(&copy);
    return n;
}

static void charged_twice_by_charge_or_by_transfer_alone_is_counted(void **state)
{
    (void)state;
    assert_int_equal(3, charged_twice_after("INSERT INTO charges SELECT * FROM charges"
                                            " WHERE subscription_id = 1"));
    assert_int_equal(2,
                     charged_twice_after("INSERT INTO transfers SELECT * FROM transfers"
                                         " WHERE kind = 'charge' AND source = 2"));
}

static void sums_beyond_64_bits_are_exact(void **state)
{
    json_t *money = json_loads(audit_world_huge_money, 0, NULL);
    struct fixture copy;
    int code;
    json_t *doc, *totals;

    (void)state;
    copy_world(&copy, &world);
    exec(&copy, audit_world_huge);
    doc = audit(&copy, &code);
    totals = json_object_get(doc, "totals");
    assert_int_equal(code, 0);
    assert_true(
        json_equal(money, json_object_get(json_object_get(totals, "money"), "BHD")));
    assert_string_equal(
        json_string_value(json_object_get(json_object_get(totals, "stock"), "left")),
        "18000000000000000017");
    json_decref(doc);
    json_decref(money);
    fixture_close(&copy);
}

static void report_of_sums_beyond_64_bits_groups_them(void **state)
{
    static struct fixture_output o;
    struct fixture copy;

    (void)state;
    copy_world(&copy, &world);
    exec(&copy, audit_world_huge);
    assert_int_equal(0, fixture_run(&copy, &o, "audit", "--now", AUDIT_NOW, NULL));
    fixture_assert_contains(o.out, " 36,000,000,000,000,000.000\n");
    fixture_assert_contains(o.out, " 27,000,000,000,000,000.000 BHD\n");
    fixture_assert_contains(o.out, " 18,000,000,000,000,000,017\n");
    fixture_close(&copy);
}

/* A line whose product passes 2^63 is a broken order, not the end of the audit. */
static void order_line_beyond_64_bits_breaks_its_order(void **state)
{
    struct fixture copy;
    int code;
    json_t *doc;

    (void)state;
    copy_world(&copy, &loose);
    exec(&copy, "UPDATE order_lines SET qty = 4000000000, unit_price_minor = 4000000000"
                " WHERE order_id = 2");
    doc = audit(&copy, &code);
    assert_only_broken(doc, "order_total_is_its_lines", "a huge line");
    json_decref(doc);
    fixture_close(&copy);
}

static void report_for_people_fits_80_columns_without_colour(void **state)
{
    static struct fixture_output o;

    (void)state;
    assert_int_equal(
        1, fixture_run(&world, &o, "audit", "--now", AUDIT_NOW, "--lag", "1m", NULL));
    fixture_assert_contains(o.out,
                            "  nothing_due_left                      BROKEN 2\n");
    fixture_assert_contains(o.out, "\naudit: 36 of 37 invariants hold\n");
    fixture_assert_contains(o.out, "\nMONEY in USD\n");
    fixture_assert_contains(o.out, "\n  declined, owed  ");
    assert_null(strchr(o.out, '\033'));
    for (char *line = strtok(o.out, "\n"); line != NULL; line = strtok(NULL, "\n")) {
        if (strlen(line) > 80)
            fail_msg("too wide: %s", line);
    }
}

static void json_of_one_state_is_the_same_bytes(void **state)
{
    static struct fixture_output a, b;

    (void)state;
    assert_int_equal(
        0, fixture_run(&world, &a, "audit", "--json", "--now", AUDIT_NOW, NULL));
    assert_int_equal(
        0, fixture_run(&world, &b, "audit", "--json", "--now", AUDIT_NOW, NULL));
    assert_string_equal(a.out, b.out);
}

static void worker_role_may_audit(void **state)
{
    struct fixture f = world;
    int code;

    (void)state;
    fixture_become(&f, "ledgerlock_worker");
    json_decref(audit(&f, &code));
    assert_int_equal(code, 0);
}

/* Moves money in transactions of two statements, in between which nothing adds up. */
static void keep_depositing(const char *url)
{
    struct pg_options options = {.url = url, .name = "depositor", .answer_ms = 10000};
    struct err e = {0};
    struct pg *pg;

    if (pg_open(&pg, &options, &e) != 0)
        _exit(1);
    for (;;) {
        if (pg_exec_text(
                pg,
                "BEGIN; UPDATE ledgerlock.users SET balance_minor = balance_minor + 1 WHERE user_id = 1;"
                "SELECT pg_sleep(0.001);"
                "UPDATE ledgerlock.transfers SET amount_minor = amount_minor + 1"
                " WHERE (kind, source, leg) = ('deposit', 1, 1); COMMIT",
                NULL, &e) != 0)
            _exit(1);
    }
}

static void audit_beside_running_transactions_holds(void **state)
{
    struct fixture copy;
    int64_t before;
    pid_t pid;

    (void)state;
    copy_world(&copy, &world);
    before = fixture_query_int8(
        copy.url, "SELECT balance_minor FROM ledgerlock.users WHERE user_id = 1");
    pid = fork();
    if (pid == 0)
        keep_depositing(copy.url);
    for (int i = 0; i < 10; i++) {
        int code;

        json_decref(audit(&copy, &code));
        assert_int_equal(code, 0);
    }
    assert_int_equal(kill(pid, SIGKILL), 0);
    (void)waitpid(pid, NULL, 0);
    assert_true(
        before <
        fixture_query_int8(
            copy.url, "SELECT balance_minor FROM ledgerlock.users WHERE user_id = 1"));
    fixture_close(&copy);
}

static void wait_over_says_what_is_left_and_breaks(void **state)
{
    static struct fixture_output o;

    (void)state;
    assert_int_equal(
        1, fixture_run(&world, &o, "audit", "--wait", "1s", "--now", AUDIT_NOW, NULL));
    fixture_assert_contains(o.err, "after 1s still due: 1 subscriptions, 1 orders");
    fixture_assert_contains(o.out,
                            "  nothing_due_left                      BROKEN 2\n");
}

static void wait_ends_when_the_last_work_is_done(void **state)
{
    static struct fixture_output o;
    struct fixture copy;
    struct fixture_child child;

    (void)state;
    copy_world(&copy, &world);
    fixture_spawn(&copy, &child, "audit", "--wait", "50s", "--now", AUDIT_NOW, NULL);
    clk_pause_ms(700);
    exec(
        &copy,
        "UPDATE orders SET state = 'rejected', reason = 'insufficient_funds' WHERE order_id = 6;"
        "UPDATE subscriptions SET state = 'cancelled', cancel_at = next_due_at WHERE subscription_id = 5");
    assert_int_equal(0, fixture_wait(&child, 20, &o));
    assert_string_equal(o.err, "");
    fixture_close(&copy);
}

static void bad_words_are_usage_errors(void **state)
{
    static struct fixture_output o;

    (void)state;
    assert_int_equal(2, fixture_run(&world, &o, "audit", "--lag", "soon", NULL));
    fixture_assert_contains(o.err, "--lag: \"soon\" is no duration");
    assert_int_equal(2, fixture_run(&world, &o, "audit", "--wait", "-5s", NULL));
    assert_int_equal(2, fixture_run(&world, &o, "audit", "--now", "someday", NULL));
    fixture_assert_contains(o.err, "someday");
    assert_int_equal(2, fixture_run(&world, &o, "audit", "--now", "infinity", NULL));
    assert_int_equal(2, fixture_run(&world, &o, "audit", "word", NULL));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(audit_of_sound_world_holds_with_totals_as_counted),
        cmocka_unit_test(every_invariant_has_a_plant),
        cmocka_unit_test(every_plant_breaks_its_invariant_alone),
        cmocka_unit_test(double_charge_and_overselling_are_counted),
        cmocka_unit_test(next_period_behind_a_declined_charge_is_found),
        cmocka_unit_test(charged_twice_by_charge_or_by_transfer_alone_is_counted),
        cmocka_unit_test(sums_beyond_64_bits_are_exact),
        cmocka_unit_test(report_of_sums_beyond_64_bits_groups_them),
        cmocka_unit_test(order_line_beyond_64_bits_breaks_its_order),
        cmocka_unit_test(report_for_people_fits_80_columns_without_colour),
        cmocka_unit_test(json_of_one_state_is_the_same_bytes),
        cmocka_unit_test(worker_role_may_audit),
        cmocka_unit_test(audit_beside_running_transactions_holds),
        cmocka_unit_test(wait_over_says_what_is_left_and_breaks),
        cmocka_unit_test(wait_ends_when_the_last_work_is_done),
        cmocka_unit_test(bad_words_are_usage_errors),
    };

    fixture_need_servers();
    return cmocka_run_group_tests(tests, open_worlds, close_worlds);
}
