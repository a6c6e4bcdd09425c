/* The value of each metric of a pool at work: what it counts is made to happen on real
 * servers, and the number on /metrics is the one that it must be. */
#include <math.h>
#include <time.h>

#include "tests/lib/metrics.h"
#include "tests/lib/session.h"
#include "tests/lib/steps.h"
#include "worker/jobs/job.h"

enum { DELAY_MS = 30 }; /* of each answer of a server */

static const struct pool_work small = {
    .users = 20, .periods = 3, .orders = 30, .units = 10};

WORLD(.poll_ms = 100,
      .lease_ms = 10000,
      .work = &small,
      .redis = true,
      .proxies = true);

static void start(const char *words)
{
    metrics_start("run -w 1 --now %s %s", pool_work_now(&small), words);
}

/* Guarantee: Each metric that /metrics has is in the table of this test, and has its
 * value asserted by a case. */
CASE(each_metric_has_a_test_of_its_value)
{
    start("");
    metrics_assert_known();
    pool_stop();
}

enum { OUTCOMES = 4 };

/* By the counters of each job, in their order. */
static const double outcomes[JOB_TYPE_CT][OUTCOMES] = {{61, 3, 1, 1}, {10, 20}};

/* Users 21, who cannot pay, 22, whose subscription is over, and 23, who can pay for one
 * of three: the last is put off to the next batch, which declines it. */
static void add_outcomes(void)
{
    for (int64_t user = 21; user <= 23; user++)
        world_user(user, user == 21 ? 1 : 100);
    for (int64_t id = 21; id <= 25; id++)
        world_subscription(id, id < 23 ? id : 23, 60, "2024-01-02Z");
    world_do("UPDATE subscriptions SET cancel_at = anchor_at WHERE user_id = 22");
}

static void assert_outcomes(const struct job_type *job, const double *expected)
{
    for (int k = 0; job->counters[k].name != NULL; k++) {
        assert_true(k < OUTCOMES && expected[k] > 0); /* each one happens */
        AWAIT_METRIC(value("rows_total", "{job=\"%s\",outcome=\"%s\"}", job->name,
                           job->counters[k].name) == expected[k]);
    }
}

/* So many times or more, each longer than the answer of a server waits. */
static void assert_times(const char *of, const char *job, double least)
{
    char name[64];
    double n;

    (void)snprintf(name, sizeof name, "%s_seconds_count", of);
    AWAIT_METRIC(value(name, "{job=\"%s\"}", job) >= least); /* noted after COMMIT */
    n = value(name, "{job=\"%s\"}", job);
    assert_true(n >= least); /* some met nothing to do */
    (void)snprintf(name, sizeof name, "%s_seconds_sum", of);
    assert_true(value(name, "{job=\"%s\"}", job) >= n * DELAY_MS / 1000);
    (void)snprintf(name, sizeof name, "%s_seconds_bucket", of);
    assert_true(value(name, "{job=\"%s\",le=\"+Inf\"}", job) == n);
    assert_true(value(name, "{job=\"%s\",le=\"0.025\"}", job) == 0);
}

static void assert_batches(const char *job)
{
    double batches =
        (double)world_ask("SELECT count(*) FROM batches WHERE job = '%s'", job);

    assert_true(batches > 0);
    assert_true(value("batches_total", "{job=\"%s\"}", job) == batches);
    assert_times("transaction", job, batches);
    assert_times("lock_acquire", job, batches);
}

static void assert_is_now(const char *name)
{
    assert_true(fabs(plain_value(name) - (double)time(NULL)) < 600);
}

#define BUSY "{job=\"billing\",result=\"busy\"}"

/* Guarantee: /metrics counts rows by outcome, batches, lock keys and times as they
 * were, and what a whole audit found. */
CASE(metrics_of_work_are_what_was_done)
{
    PGconn *client = session_open(world.owner);
    double busy;

    add_outcomes();
    /* Broken from the first audit on: the next one waits 200 times as long as that
     * took. */
    super_do("INSERT INTO ledgerlock.users (user_id, currency, balance_minor) VALUES"
             " (999999, 'USD', 5)");
    proxy_delay(&world.to_postgres, DELAY_MS);
    proxy_delay(&world.to_redis, DELAY_MS);
    start("--http-audit-every-s 1");
    for (int j = 0; j < JOB_TYPE_CT; j++)
        assert_outcomes(job_types[j], outcomes[j]);
    for (int j = 0; j < JOB_TYPE_CT; j++)
        assert_batches(job_types[j]->name);
    assert_true(value("lock_keys_total", "{job=\"billing\",result=\"granted\"}") >= 64);
    busy = value("lock_keys_total", BUSY); /* those that the other job had */
    (void)redis_do("SET %suser:21 somebody PX 600000", world.f.prefix);
    world_subscription(26, 21, 100, "2024-01-02Z");
    AWAIT_METRIC(value("lock_keys_total", BUSY) > busy);
    assert_true(value("rows_locked_total", "{job=\"billing\"}") == 0);
    session_do(client, "BEGIN; SELECT FROM users WHERE user_id = 22 FOR NO "
                       "KEY UPDATE");
    world_subscription(27, 22, 100, "2024-01-02Z");
    AWAIT_METRIC(value("rows_locked_total", "{job=\"billing\"}") > 0);
    PQfinish(client);
    assert_true(value("build_info", "{version=\"" LEDGERLOCK_VERSION "\"}") == 1);
    proxy_pass(&world.to_postgres);
    AWAIT_METRIC(strstr(metrics_read_last.body,
                        "\nledgerlock_audit_broken_invariants ") != NULL &&
                 plain_value("audit_broken_invariants") > 0);
    assert_true(plain_value("audit_broken_invariants") ==
                (double)world_ask("SELECT cardinality(broken) FROM audits ORDER BY "
                                  "audit_id DESC LIMIT 1"));
    assert_is_now("audit_timestamp_seconds");
    assert_true(plain_value("audit_seconds") * 1000 ==
                (double)world_ask("SELECT took_ms FROM audits ORDER BY audit_id DESC "
                                  "LIMIT 1"));
    assert_is_now("tables_read_timestamp_seconds");
    metrics_end("work");
    pool_stop();
}

/* Guarantee: /metrics counts rows that are due, since when, and rows that are parked.
 */
CASE(metrics_of_rows_that_wait_and_rows_that_are_parked)
{
    double since = (double)time(NULL) - (small.periods - 1) * 86400 - 43200;

    world_do("SELECT pause_job('billing')");
    super_do("SET session_replication_role = replica; DELETE FROM ledgerlock.users "
             "WHERE user_id = 7");
    start("");
    AWAIT_METRIC(value("rows_parked_total", "{job=\"orders\"}") == 2);
    AWAIT_METRIC(strstr(metrics_read_last.body, "ledgerlock_parked_rows{") != NULL &&
                 value("parked_rows", "{job=\"orders\"}") == 2);
    assert_true(value("backlog_rows", "{job=\"billing\"}") == small.users);
    assert_true(
        fabs(value("oldest_due_timestamp_seconds", "{job=\"billing\"}") - since) < 120);
    metrics_end("backlog");
    (void)kill(world.pool.pid, SIGTERM);
    pool_assert_ends(&world.pool, 8); /* rows were parked */
}
