/* status: backlog, workers and incidents as they are in the database. */
#include "tests/lib/one_database.h"

#include "sql_gen.h"
#include "tests/lib/audit_world.h"
#include "tests/lib/gateway.h"

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
    fixture_exec(
        owner,
        "UPDATE ledgerlock.workers SET seen_at = clock_timestamp() WHERE slot = 0");
    runs(&f, 0, STATUS);
    said_are("due=7, future=0, parked=0, workers=1, counters/charged=5, "
             "rates_per_s/charged=0, oldest_due_ms>1000",
             "jobs/billing");
    said_are("due=1, workers=0, counters/fulfilled=3", "jobs/orders");
    said_are("workers=1, workers/0/pid=10, workers/0/charged=5", "%s", "");
    assert_string_equal(said_text("workers/0/host"), "host");
    assert_string_equal(said_text("incidents/0/resource"), "lock:user:1");
    assert_null(strstr(said.out, "burn_down_s")); /* nothing moves */
}

/* clang-format off */
static const struct {
    const char *name, *unit, *cancel_at, *at;
    int64_t periods;
} far_behind[] = {
    {"days",               "day",   "NULL",         "2024-01-10T12:00Z", 10},
    {"days_until_an_end",  "day",   "'2024-01-03Z'", "2024-01-10T12:00Z", 2},
    {"months",             "month", "NULL",         "2024-03-15Z",       3},
    {"nothing_yet",        "month", "NULL",         "2023-12-31Z",       0},
};

/* clang-format on */

/* Guarantee: `status` and the log of `run --once` tell from the rate and from all
 * periods that have begun how long the pool takes until nothing is due. */
CASE_ROWS(all_periods_count_of, far_behind)
{
    char sql[2048];

    (void)snprintf(
        sql, sizeof sql,
        "SET search_path = ledgerlock; CREATE TEMPORARY TABLE subscriptions AS"
        " SELECT 'active' AS state, 1 AS every, '%s' AS unit,"
        " timestamptz '2024-01-01Z' AS next_due_at, %s::timestamptz AS cancel_at;"
        " PREPARE p AS %s; EXECUTE p('%s')",
        row->unit, row->cancel_at, (const char *)SQL_BILLING_COUNT_PERIODS->text,
        row->at);
    assert_int_equal(fixture_query_int8(owner, sql), row->periods);
}

CASE(what_is_parked_or_lies_in_the_future_is_not_due)
{
    fixture_exec(
        owner,
        "UPDATE ledgerlock.orders SET state = 'parked' WHERE order_id = 6;"
        "UPDATE ledgerlock.subscriptions SET next_due_at = '2999-01-01' WHERE subscription_id = 7;"
        "UPDATE ledgerlock.subscriptions SET state = 'parked' WHERE subscription_id = 1");
    runs(&f, 0, STATUS);
    said_are("due=5, future=1, parked=1", "jobs/billing");
    said_are("due=0, oldest_due_ms=0, parked=1", "jobs/orders");
}

/* Guarantee: `status` tells of attempts at the payment gateway that are planned, sent
 * and unknown, since when, and when the next is asked again. */
CASE(status_tells_of_attempts_that_are_not_decided)
{
    gateway_attempts(owner);
    runs(&f, 0, STATUS);
    said_are("future=6, parked=4, planned=1, sent=2, unknown=3, unknown_ms>3599999,"
             " next_ms>500000",
             "jobs/payments");
    says(&f, 0, "  attempts: 1 planned, 2 sent, 3 unknown, since 1 h; asked again in",
         "status");
    fixture_exec(owner, "DELETE FROM ledgerlock.payments");
    runs(&f, 0, STATUS);
    said_are("planned=0, unknown_ms=0, next_ms=0", "jobs/payments");
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
    said_are("billing/rates_per_s/charged>0, billing/burn_down_s>0, "
             "billing/rates_per_s/busy=0, "
             "orders/rates_per_s/fulfilled=0",
             "jobs");
}

CASE(status_for_people_fits_80_columns)
{
    says(&f, 0, "\nJOB  ", "status");
    shows("\nbilling  ");
    shows("lock:user:1");
    fits_80_columns();
}
