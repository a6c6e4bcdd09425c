/* status: backlog, workers and incidents as they are in the database. */
#include "tests/lib/fixture.h"

#include <jansson.h>
#include <string.h>

#include "tests/lib/audit_world.h"

static struct fixture world;

static int open_world(void **state)
{
    (void)state;
    fixture_open_migrated(&world);
    fixture_exec(world.url, audit_world[0]);
    fixture_exec(world.url, audit_world[1]);
    fixture_become(&world, "ledgerlock_worker");
    return 0;
}

static int close_world(void **state)
{
    (void)state;
    fixture_close(&world);
    return 0;
}

static json_int_t number(json_t *doc, const char *a, const char *b)
{
    return json_integer_value(json_object_get(json_object_get(doc, a), b));
}

static void status_as_worker_tells_backlog_workers_and_incidents(void **state)
{
    static struct fixture_output o;
    json_t *doc, *worker, *incident;

    (void)state;
    fixture_exec(
        world.url,
        "UPDATE ledgerlock.workers SET seen_at = clock_timestamp() WHERE slot = 0");
    assert_int_equal(0, fixture_run(&world, &o, "status", "--json", NULL));
    doc = json_loads(o.out, 0, NULL);
    assert_non_null(doc);
    assert_int_equal(number(doc, "backlog", "due"), 5);
    assert_int_equal(number(doc, "backlog", "pending"), 1);
    assert_true(number(doc, "backlog", "oldest_due_s") > 0);
    assert_int_equal(number(doc, "rates_per_s", "charges"), 0);
    assert_int_equal(json_array_size(json_object_get(doc, "workers")), 1);
    worker = json_array_get(json_object_get(doc, "workers"), 0);
    assert_int_equal(json_integer_value(json_object_get(worker, "pid")), 10);
    assert_int_equal(json_integer_value(json_object_get(worker, "charged")), 5);
    assert_string_equal(json_string_value(json_object_get(worker, "host")), "host");
    assert_int_equal(number(doc, "incidents", "fenced"), 1);
    incident = json_array_get(json_object_get(doc, "last_incidents"), 0);
    assert_string_equal(json_string_value(json_object_get(incident, "resource")),
                        "lock:user:1");
    json_decref(doc);
}

static void status_for_people_fits_80_columns(void **state)
{
    static struct fixture_output o;

    (void)state;
    assert_int_equal(0, fixture_run(&world, &o, "status", NULL));
    fixture_assert_contains(o.out, "\nBACKLOG\n");
    fixture_assert_contains(o.out, "lock:user:1");
    for (char *line = strtok(o.out, "\n"); line != NULL; line = strtok(NULL, "\n"))
        assert_true(strlen(line) <= 80);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(status_as_worker_tells_backlog_workers_and_incidents),
        cmocka_unit_test(status_for_people_fits_80_columns),
    };

    fixture_need_servers();
    return cmocka_run_group_tests(tests, open_world, close_world);
}
