/* status: backlog, workers and incidents as they are in the database. */
#include "tests/lib/one_database.h"

#include "tests/lib/audit_world.h"

static char owner[FIXTURE_URL];

static void open_world(void)
{
    one_open();
    audit_world_put(f.url, 3);
    fixture_url_as(&f, "ledgerlock_owner", owner, sizeof owner);
    fixture_become(&f, "ledgerlock_worker");
}

GROUP(.start = open_world, .stop = one_close);

#define STATUS "status --json"

CASE(status_as_worker_tells_backlog_workers_and_incidents)
{
    /* clang-format off */
    static const struct {
        const char *path;
        int number;
    } figures[] = {
        {"jobs/billing/due", 7}, {"jobs/billing/future", 0}, {"jobs/billing/parked", 0}, {"jobs/billing/workers", 1},
        {"jobs/orders/due", 1}, {"jobs/orders/workers", 0},
        {"jobs/billing/counters/charged", 5}, {"jobs/orders/counters/fulfilled", 3}, {"jobs/billing/rates_per_s/charged", 0},
        {"workers", 1}, {"workers/0/pid", 10}, {"workers/0/charged", 5}, {"incidents/fenced", 1},
    };

    /* clang-format on */

    fixture_exec(
        owner,
        "UPDATE ledgerlock.workers SET seen_at = clock_timestamp() WHERE slot = 0");
    runs(&f, 0, STATUS);
    for (size_t i = 0; i < sizeof figures / sizeof figures[0]; i++)
        assert_int_equal(said_number(figures[i].path), figures[i].number);
    assert_true(said_number("jobs/billing/oldest_due_ms") > 1000);
    assert_string_equal(said_text("workers/0/host"), "host");
    assert_string_equal(said_text("last_incidents/0/resource"), "lock:user:1");
}

CASE(what_is_parked_or_lies_in_the_future_is_not_due)
{
    fixture_exec(
        owner,
        "UPDATE ledgerlock.orders SET state = 'parked' WHERE order_id = 6;"
        "UPDATE ledgerlock.subscriptions SET next_due_at = '2999-01-01' WHERE subscription_id = 7;"
        "UPDATE ledgerlock.subscriptions SET state = 'parked' WHERE subscription_id = 1");
    runs(&f, 0, STATUS);
    assert_int_equal(said_number("jobs/billing/due"), 5);
    assert_int_equal(said_number("jobs/billing/future"), 1);
    assert_int_equal(said_number("jobs/billing/parked"), 1);
    assert_int_equal(said_number("jobs/orders/due"), 0);
    assert_int_equal(said_number("jobs/orders/oldest_due_ms"), 0);
    assert_int_equal(said_number("jobs/orders/parked"), 1);
}

static void keep_counting(const char *url)
{
    for (;;)
        fixture_exec(
            url,
            "UPDATE ledgerlock.workers SET counters = counters ||"
            " jsonb_build_object('charged', (counters ->> 'charged')::bigint + 100) WHERE slot = 0");
}

CASE(rates_are_what_the_counters_of_a_job_grew_by)
{
    pid_t pid = fork();

    if (pid == 0)
        keep_counting(owner);
    runs(&f, 0, STATUS);
    assert_int_equal(kill(pid, SIGKILL), 0);
    assert_int_equal(waitpid(pid, NULL, 0), pid);
    assert_true(said_number("jobs/billing/rates_per_s/charged") > 0);
    assert_int_equal(said_number("jobs/billing/rates_per_s/busy"), 0);
    assert_int_equal(said_number("jobs/orders/rates_per_s/fulfilled"), 0);
}

CASE(status_for_people_fits_80_columns)
{
    says(&f, 0, "\nJOB billing\n", "status");
    shows("lock:user:1");
    fits_80_columns();
}
