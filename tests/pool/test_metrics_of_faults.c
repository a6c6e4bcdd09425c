/* The value of each metric of what goes wrong: each fault is made on real servers, and
 * counted as often as it was made. */
#include <unistd.h>

#include "tests/lib/metrics.h"
#include "tests/lib/steps.h"

enum { LEASE_MS = 10000 };

static const struct pool_work small = {
    .users = 20, .periods = 3, .orders = 30, .units = 10};

WORLD(.poll_ms = 100,
      .lease_ms = LEASE_MS,
      .work = &small,
      .redis = true,
      .proxies = true);

static void start(const char *words)
{
    metrics_start("run -w 1 --now %s %s", pool_work_now(&small), words);
}

/* The bytes of statements, with the name between an empty portal and the rest. */
static const char apply[] = "\0billing_apply_charges";
static const char begin[] = "BEGIN ISOLATION LEVEL READ COMMITTED";
static const char user_key[] = "user:";

#define BILLING "{job=\"billing\"}"
#define WORKS "{job=\"billing\",state=\"works\"}"

static pid_t worker(void)
{
    pid_t pids[POOL_CHILDREN];

    assert_int_equal(pool_children(world.pool.pid, pids), 2);
    return pids[0] == pool_page() ? pids[1] : pids[0];
}

/* Guarantee: /metrics counts a lost lease and a worker that died, and a worker by its
 * state. */
CASE(metrics_of_a_worker_that_stands_still_and_dies)
{
    pid_t pid;

    proxy_hold(&world.to_postgres, apply, sizeof apply, 1);
    start("--jobs billing");
    assert_true(proxy_wait(&world.to_postgres, PROXY_HELD, 1, 60));
    pid = worker();
    assert_int_equal(kill(pid, SIGSTOP), 0);
    proxy_let_go(&world.to_postgres);
    metrics_read();
    assert_true(value("workers", "{job=\"billing\",state=\"connected\"}") == 1);
    fixture_pause_ms(LEASE_MS + 1000);
    assert_int_equal(kill(pid, SIGCONT), 0);
    AWAIT_METRIC(value("leases_lost_total", BILLING) == 1);
    AWAIT_METRIC(value("workers", WORKS) == 1);
    assert_true(value("worker_restarts_total", BILLING) == 0);
    assert_int_equal(kill(worker(), SIGKILL), 0);
    AWAIT_METRIC(value("worker_restarts_total", BILLING) == 1);
    AWAIT_METRIC(value("workers", WORKS) == 1);
    metrics_end("lease");
    pool_stop();
}

/* Guarantee: /metrics says which server is down, and that it is up again. */
CASE(metrics_of_servers_that_are_down)
{
    start("");
    pool_work_wait(&world.f, pool_work_all(&small));
    AWAIT_METRIC(plain_value("redis_up") == 1 && plain_value("pg_up") == 1);
    fixture_redis_kill(&world.redis);
    AWAIT_METRIC(plain_value("redis_up") == 0);
    assert_true(plain_value("pg_up") == 1);
    pool_redis_start(&world.redis);
    AWAIT_METRIC(plain_value("redis_up") == 1);
    proxy_refuse(&world.to_postgres, true);
    AWAIT_METRIC(plain_value("pg_up") == 0);
    AWAIT_METRIC(value("workers", "{job=\"billing\",state=\"postgres_down\"}") == 1);
    assert_true(plain_value("redis_up") == 1);
    proxy_refuse(&world.to_postgres, false);
    AWAIT_METRIC(plain_value("pg_up") == 1);
    metrics_end("outage");
    pool_stop();
}

/* Guarantee: /metrics counts rows that another had worked before we had their locks,
 * and rows whose fence refused an old token. */
CASE(metrics_of_duplicates_that_were_prevented)
{
    proxy_hold(&world.to_postgres, begin, strlen(begin), 1);
    start("--jobs billing");
    assert_true(proxy_wait(&world.to_postgres, PROXY_HELD, 1, 60));
    world_do("UPDATE subscriptions SET next_due_at = '2030-01-01Z' WHERE "
             "subscription_id <= 5");
    proxy_let_go(&world.to_postgres);
    AWAIT_METRIC(
        value("duplicates_prevented_total", "{job=\"billing\",guard=\"reread\"}") == 5);
    assert_true(
        value("duplicates_prevented_total", "{job=\"billing\",guard=\"fence\"}") == 0);
    world_user(21, 1000);
    world_do("UPDATE users SET fence = ((extract(epoch FROM clock_timestamp()) + 3600) "
             "* 1000000)::bigint WHERE user_id = 21");
    world_subscription(21, 21, 100, "2024-01-02Z");
    AWAIT_METRIC(
        value("duplicates_prevented_total", "{job=\"billing\",guard=\"fence\"}") == 1);
    metrics_end("guards");
    pool_stop();
}

#define DOUBT(resolution)                                                              \
    value("commits_in_doubt_total", "{job=\"billing\",resolution=\"" resolution "\"}")

static void give_work(int64_t user)
{
    world_user(user, 1000);
    world_subscription(user, user, 100, "2024-01-02Z");
}

#define LOST_COMMITS value("commit_answers_lost_total", BILLING)

/* Guarantee: /metrics counts COMMITs whose answer was lost, and what became of them. */
CASE(metrics_of_commits_in_doubt)
{
    proxy_cut_after(&world.to_postgres, PROXY_COMMIT, PROXY_COMMIT_SIZE, 1);
    start("--jobs billing");
    AWAIT_METRIC(DOUBT("committed") == 1);
    pool_work_wait(&world.f, (int64_t)small.users * small.periods);
    proxy_cut_before(&world.to_postgres, PROXY_COMMIT, PROXY_COMMIT_SIZE, 1);
    give_work(21);
    AWAIT_METRIC(DOUBT("rolled_back") == 1);
    assert_true(DOUBT("committed") == 1 && LOST_COMMITS == 2);
    pool_work_wait(&world.f, (int64_t)small.users * small.periods + 1);
    proxy_swallow_at(&world.to_postgres, PROXY_COMMIT, PROXY_COMMIT_SIZE);
    give_work(22);
    AWAIT_METRIC(LOST_COMMITS == 3);
    assert_true(DOUBT("committed") + DOUBT("rolled_back") == 2);
    proxy_pass(&world.to_postgres);
    AWAIT_METRIC(DOUBT("committed") + DOUBT("rolled_back") == 3);
    assert_true(LOST_COMMITS == 3);
    metrics_end("doubt");
    pool_stop();
}

/* Guarantee: /metrics counts a lock call whose answer is lost. */
CASE(metrics_of_a_lock_answer_that_is_lost)
{
    proxy_swallow_after(&world.to_redis, user_key, strlen(user_key));
    start("--jobs billing");
    AWAIT_METRIC(value("lock_answers_lost_total", BILLING) == 1);
    proxy_pass(&world.to_redis);
    pool_work_wait(&world.f, (int64_t)small.users * small.periods);
    metrics_end("answers");
    pool_stop();
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
    pool_work_wait(&world.f, (int64_t)small.users * small.periods);
    AWAIT_METRIC(value("conflicts_total", BILLING) == 3);
    metrics_end("conflict");
    pool_stop();
}
