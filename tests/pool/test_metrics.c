/* The value of each metric of a pool at work: what it counts is made to happen on real
 * servers, each fault as well, and the number on /metrics is the one that it must be.
 */
#include <math.h>
#include <time.h>

#include "tests/lib/cards.h"
#include "tests/lib/page.h"
#include "tests/lib/session.h"
#include "worker/jobs/job.h"

enum { DELAY_MS = 30 /* of each answer of a server */, LEASE_MS = 10000 };

static const struct pool_work small = {
    .users = 20, .periods = 3, .orders = 30, .units = 10};

WORLD(.poll_ms = 100,
      .lease_ms = LEASE_MS,
      .work = &small,
      .redis = true,
      .proxies = true);

static void start(const char *words)
{
    page_start("run -w 1 --now %s %s", pool_work_now(), words);
    page_await(200, "/metrics", "");
}

#define AWAIT_METRIC(condition)                                                        \
    FIXTURE_AWAIT((page_await(200, "/metrics", ""), condition), "never %s:\n%s",       \
                  #condition, page.body)

enum { OUTCOMES = 5 };

/* By the counters of each job, in their order. */
static const double outcomes[JOB_TYPE_CT][OUTCOMES] = {
    {61, 3, 2, 1, 1}, {10, 20, 1}, {4, 2, 1, 1}};

/* Users 21, who cannot pay, 22, whose subscription is over, and 23, who can pay for one
 * of three: the last is put off to the next batch, which declines it. Of the cards of
 * users 24 and 25 one is declined; the other pays for an order, too. */
static void add_outcomes(void)
{
    for (int64_t user = 21; user <= 25; user++)
        world_user(user, user == 21 ? 1 : 100);
    for (int64_t id = 21; id <= 27; id++)
        world_subscription(id, id < 23 ? id : id < 26 ? 23 : id - 2, 60, "2024-01-02Z");
    world_do("UPDATE subscriptions SET cancel_at = anchor_at WHERE user_id = 22");
    world_do("SELECT pay_with(24, 'card', 'cus_1', 'pm_1'), pay_with(25, 'card',"
             " 'cus_declines_hard', 'pm_2')");
    world_sku(1000, "Z", 1, 40);
    (void)world_order(24, "card", "[{\"sku\": \"Z\", \"qty\": 1}]");
    gateway_open();
    (void)gateway_use();
}

static void assert_outcomes(const struct job_type *job, const double *expected)
{
    for (int k = 0; job->counters[k].name != NULL; k++) {
        assert_true(k < OUTCOMES && expected[k] > 0); /* each one happens */
        AWAIT_METRIC(page_value("rows_total", "{job=\"%s\",outcome=\"%s\"}", job->name,
                                job->counters[k].name) == expected[k]);
    }
}

/* So many times or more, each longer than the answer of a server waits. */
static void assert_times(const char *of, const char *job, double least)
{
    char name[64];
    double n;

    (void)snprintf(name, sizeof name, "%s_seconds_count", of);
    AWAIT_METRIC(page_value(name, "{job=\"%s\"}", job) >=
                 least); /* noted after COMMIT */
    n = page_value(name, "{job=\"%s\"}", job);
    assert_true(n >= least); /* some met nothing to do */
    (void)snprintf(name, sizeof name, "%s_seconds_sum", of);
    assert_true(page_value(name, "{job=\"%s\"}", job) >= n * DELAY_MS / 1000);
    (void)snprintf(name, sizeof name, "%s_seconds_bucket", of);
    assert_true(page_value(name, "{job=\"%s\",le=\"+Inf\"}", job) == n);
    assert_true(page_value(name, "{job=\"%s\",le=\"0.025\"}", job) == 0);
}

static void assert_batches(const char *job)
{
    double batches =
        (double)world_ask("SELECT count(*) FROM batches WHERE job = '%s'", job);

    assert_true(batches > 0);
    assert_true(page_value("batches_total", "{job=\"%s\"}", job) == batches);
    assert_times("transaction", job, batches);
    assert_times("lock_acquire", job, batches);
}

static void assert_is_now(const char *name)
{
    assert_true(fabs(page_value(name, "%s", "") - (double)time(NULL)) < 600);
}

#define BUSY "{job=\"billing\",result=\"busy\"}"

/* Guarantee: /metrics counts rows by outcome, batches, lock keys and times as they
 * were, and what a whole audit found. */
CASE(metrics_of_work_are_what_was_done, .close = cards_close)
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
    world_wait("SELECT count(*) = 2 FROM ledgerlock.payments WHERE state = 'captured'");
    world_do("SELECT refund(24, 'payment', source, 0, 10, 'late', 'k') FROM payments"
             " WHERE kind = 'payment'");
    for (int j = 0; j < JOB_TYPE_CT; j++)
        assert_outcomes(job_types[j], outcomes[j]);
    for (int j = 0; j < JOB_TYPE_CT; j++) {
        if (job_types[j]->calls == NULL) /* answers are settled apart from batches */
            assert_batches(job_types[j]->name);
    }
    assert_true(page_value("lock_keys_total", "{job=\"billing\",result=\"granted\"}") >=
                64);
    busy = page_value("lock_keys_total", BUSY); /* those that the other job had */
    (void)redis_do("SET %suser:21 somebody PX 600000", world.f.prefix);
    world_subscription(36, 21, 100, "2024-01-02Z");
    AWAIT_METRIC(page_value("lock_keys_total", BUSY) > busy);
    assert_true(page_value("rows_locked_total", "{job=\"billing\"}") == 0);
    session_do(client, "BEGIN; SELECT FROM users WHERE user_id = 22 FOR NO "
                       "KEY UPDATE");
    world_subscription(37, 22, 100, "2024-01-02Z");
    AWAIT_METRIC(page_value("rows_locked_total", "{job=\"billing\"}") > 0);
    PQfinish(client);
    assert_true(page_value("build_info", "{version=\"" LEDGERLOCK_VERSION "\"}") == 1);
    proxy_pass(&world.to_postgres);
    AWAIT_METRIC(page_value("audit_broken_invariants", "%s", "") > 0);
    assert_true(page_value("audit_broken_invariants", "%s", "") ==
                (double)world_ask("SELECT cardinality(broken) FROM audits ORDER BY "
                                  "audit_id DESC LIMIT 1"));
    assert_is_now("audit_timestamp_seconds");
    assert_true(page_value("audit_seconds", "%s", "") * 1000 ==
                (double)world_ask("SELECT took_ms FROM audits ORDER BY audit_id DESC "
                                  "LIMIT 1"));
    assert_is_now("tables_read_timestamp_seconds");
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
    AWAIT_METRIC(page_value("rows_parked_total", "{job=\"orders\"}") == 2);
    AWAIT_METRIC(page_value("parked_rows", "{job=\"orders\"}") == 2);
    assert_true(page_value("backlog_rows", "{job=\"billing\"}") == small.users);
    assert_true(fabs(page_value("oldest_due_timestamp_seconds", "{job=\"billing\"}") -
                     since) < 120);
    (void)kill(world.pool.pid, SIGTERM);
    pool_assert_ends(&world.pool, 8); /* rows were parked */
}

/* Guarantee: /metrics counts attempts at the payment gateway that are not decided, and
 * tells since when the oldest is unknown. */
CASE(metrics_of_attempts_that_are_not_decided)
{
    double since = (double)time(NULL) - 3600;

    gateway_attempts(world.owner);
    start("");
    AWAIT_METRIC(page_value("payments", "{state=\"parked\"}") == 4);
    assert_true(page_value("payments", "{state=\"planned\"}") == 1);
    assert_true(page_value("payments", "{state=\"sent\"}") == 2);
    assert_true(page_value("payments", "{state=\"unknown\"}") == 3);
    assert_true(fabs(page_value("payment_unknown_since_timestamp_seconds", "%s", "") -
                     since) < 60);
}

/* ---- faults ---- */

static const char user_key[] = "user:";

#define BILLING "{job=\"billing\"}"
#define WORKS "{job=\"billing\",state=\"works\"}"

/* Guarantee: /metrics counts a lost lease and a worker that died, and a worker by its
 * state. */
CASE(metrics_of_a_worker_that_stands_still_and_dies)
{
    pid_t pid;

    proxy_hold(&world.to_postgres, PROXY_AT_APPLY, 1);
    start("--jobs billing");
    assert_true(proxy_wait(&world.to_postgres, PROXY_HELD, 1, 60));
    pid = pool_child(world.pool.pid, "billing:0");
    assert_int_equal(kill(pid, SIGSTOP), 0);
    proxy_let_go(&world.to_postgres);
    page_await(200, "/metrics", "");
    assert_true(page_value("workers", "{job=\"billing\",state=\"connected\"}") == 1);
    fixture_pause_ms(LEASE_MS + 1000);
    assert_int_equal(kill(pid, SIGCONT), 0);
    AWAIT_METRIC(page_value("leases_lost_total", BILLING) == 1);
    AWAIT_METRIC(page_value("workers", WORKS) == 1);
    assert_true(page_value("worker_restarts_total", BILLING) == 0);
    assert_int_equal(kill(pool_child(world.pool.pid, "billing:0"), SIGKILL), 0);
    AWAIT_METRIC(page_value("worker_restarts_total", BILLING) == 1);
    AWAIT_METRIC(page_value("workers", WORKS) == 1);
}

/* Guarantee: /metrics says which server is down, and that it is up again. */
CASE(metrics_of_servers_that_are_down)
{
    start("");
    pool_work_wait(pool_work_all());
    AWAIT_METRIC(page_value("redis_up", "%s", "") == 1 &&
                 page_value("pg_up", "%s", "") == 1);
    fixture_redis_kill(&world.redis);
    AWAIT_METRIC(page_value("redis_up", "%s", "") == 0);
    assert_true(page_value("pg_up", "%s", "") == 1);
    pool_redis_start(&world.redis);
    AWAIT_METRIC(page_value("redis_up", "%s", "") == 1);
    proxy_refuse(&world.to_postgres, true);
    AWAIT_METRIC(page_value("pg_up", "%s", "") == 0);
    AWAIT_METRIC(page_value("workers", "{job=\"billing\",state=\"postgres_down\"}") ==
                 1);
    assert_true(page_value("redis_up", "%s", "") == 1);
    proxy_refuse(&world.to_postgres, false);
    AWAIT_METRIC(page_value("pg_up", "%s", "") == 1);
}

/* Guarantee: /metrics counts rows that another had worked before we had their locks,
 * and rows whose fence refused an old token. */
CASE(metrics_of_duplicates_that_were_prevented)
{
    proxy_hold(&world.to_postgres, PROXY_AT_BEGIN, 1);
    start("--jobs billing");
    assert_true(proxy_wait(&world.to_postgres, PROXY_HELD, 1, 60));
    world_do("UPDATE subscriptions SET next_due_at = '2030-01-01Z' WHERE "
             "subscription_id <= 5");
    proxy_let_go(&world.to_postgres);
    AWAIT_METRIC(page_value("duplicates_prevented_total",
                            "{job=\"billing\",guard=\"reread\"}") == 5);
    assert_true(page_value("duplicates_prevented_total",
                           "{job=\"billing\",guard=\"fence\"}") == 0);
    world_user(21, 1000);
    world_do("UPDATE users SET fence = ((extract(epoch FROM clock_timestamp()) + 3600) "
             "* 1000000)::bigint WHERE user_id = 21");
    world_subscription(21, 21, 100, "2024-01-02Z");
    AWAIT_METRIC(page_value("duplicates_prevented_total",
                            "{job=\"billing\",guard=\"fence\"}") == 1);
}

#define DOUBT(resolution)                                                              \
    page_value("commits_in_doubt_total",                                               \
               "{job=\"billing\",resolution=\"" resolution "\"}")

static void give_work(int64_t user)
{
    world_user(user, 1000);
    world_subscription(user, user, 100, "2024-01-02Z");
}

#define LOST_COMMITS page_value("commit_answers_lost_total", BILLING)

/* Guarantee: /metrics counts COMMITs whose answer was lost, and what became of them. */
CASE(metrics_of_commits_in_doubt)
{
    proxy_cut_after(&world.to_postgres, PROXY_AT_COMMIT, 1);
    start("--jobs billing");
    AWAIT_METRIC(DOUBT("committed") == 1);
    pool_work_wait((int64_t)small.users * small.periods);
    proxy_cut_before(&world.to_postgres, PROXY_AT_COMMIT, 1);
    give_work(21);
    AWAIT_METRIC(DOUBT("rolled_back") == 1);
    assert_true(DOUBT("committed") == 1 && LOST_COMMITS == 2);
    pool_work_wait((int64_t)small.users * small.periods + 1);
    proxy_swallow_at(&world.to_postgres, PROXY_AT_COMMIT);
    give_work(22);
    AWAIT_METRIC(LOST_COMMITS == 3);
    assert_true(DOUBT("committed") + DOUBT("rolled_back") == 2);
    proxy_pass(&world.to_postgres);
    AWAIT_METRIC(DOUBT("committed") + DOUBT("rolled_back") == 3);
    assert_true(LOST_COMMITS == 3);
}

/* Guarantee: /metrics counts a lock call whose answer is lost. */
CASE(metrics_of_a_lock_answer_that_is_lost)
{
    proxy_swallow_after(&world.to_redis, user_key, strlen(user_key));
    start("--jobs billing");
    AWAIT_METRIC(page_value("lock_answers_lost_total", BILLING) == 1);
    proxy_pass(&world.to_redis);
    pool_work_wait((int64_t)small.users * small.periods);
}

static const char collide[] =
    "CREATE SEQUENCE public.met; GRANT USAGE ON SEQUENCE public.met TO PUBLIC; CREATE "
    "FUNCTION public.collide() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN IF "
    "nextval('public.met') <= 3 THEN RAISE EXCEPTION 'made' USING ERRCODE = '40001'; "
    "END IF; RETURN NULL; END $$; CREATE TRIGGER collide AFTER INSERT ON "
    "ledgerlock.charges EXECUTE FUNCTION public.collide()";

/* Guarantee: /metrics counts batches that were rolled back for a collision. */
CASE(metrics_of_collisions)
{
    super_do("%s", collide);
    start("--jobs billing");
    pool_work_wait((int64_t)small.users * small.periods);
    AWAIT_METRIC(page_value("conflicts_total", BILLING) == 3);
}

static bool is_whole(void)
{
    return getenv("LL_TEST_ONLY") == NULL;
}

/* Guarantee: Each metric that /metrics has has its value asserted by a case. */
CASE(each_metric_has_a_test_of_its_value, .when = is_whole)
{
    static const char head[] = "# TYPE ledgerlock_";
    size_t n = 0;

    start("");
    for (const char *p = page.body; (p = strstr(p, head)) != NULL; n++) {
        size_t length = strcspn(p += sizeof head - 1, " ");

        if (!page_is_asserted(p, length, "") && !page_is_asserted(p, length, "_sum"))
            fail_msg("no case asserts the value of %.*s", (int)length, p);
    }
    assert_true(n > 20);
}
