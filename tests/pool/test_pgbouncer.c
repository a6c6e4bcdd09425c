/* pgbouncer: the whole program behind a pooler that gives a session to a transaction
 * only, and the refusal when it was not told of one. */
#include <limits.h>

#include "common/pg/pg.h"
#include "tests/lib/gate.h"
#include "tests/lib/meet.h"
#include "tests/lib/private_pg.h"
#include "tests/lib/steps.h"

enum { WORKERS = 8, SESSIONS = 4 }; /* seven of billing */

static struct pgbouncer bouncer;

static const struct pool_work work = {
    .users = 200, .periods = 12, .orders = 200, .units = 120};

static void go_through(const char *role)
{
    pgbouncer_url(&bouncer, &world.f, role, world.f.url, sizeof world.f.url);
}

static void undo(void)
{
    pgbouncer_close(&bouncer);
}

static void open_behind(const char *mode, int sessions)
{
    static const struct world_plan plan = {.any = true,
                                           .lease_ms = 4000,
                                           .batch = 5,
                                           .poll_ms = 100,
                                           .work = &work,
                                           .undo = undo};

    world_open_as(&plan);
    pgbouncer_open(&bouncer, mode, sessions);
    fixture_env("LEDGERLOCK_POSTGRES_PASSWORD_FILE", bouncer.password_file);
    go_through("ledgerlock_worker");
}

static void open_world(void)
{
    open_behind("transaction", SESSIONS);
    fixture_env("LEDGERLOCK_POSTGRES_POOLING", "transaction");
}

static void open_lasting_world(void)
{
    open_behind("session", WORKERS + 4);
}

static const char *lacks(void)
{
    return !pgbouncer_is_there() ? "pgbouncer is not installed; scripts/setup does it"
                                 : NULL;
}

GROUP(.missing = lacks, .open = open_world, .end = world_end, .close = world_close);

static void start_pool(void)
{
    meet_begin();
    gate_shut("user_id % 2 = 0", 1); /* it has work until this is opened */
    pool_start("run -w 4 --now %s", pool_work_now());
}

static void finish_exactly(void)
{
    pool_work_finish();
    meet_assert_both();
}

/* Sessions of the workers' role, whatever they do. */
static int64_t sessions(void)
{
    return super_ask("SELECT count(*) FROM pg_stat_activity WHERE datname = '' ||"
                     " current_database() AND usename = 'ledgerlock_worker'");
}

/* ---- the pool ---- */

/* Guarantee: A pool behind PgBouncer in transaction mode is exact. */
CASE(pool_of_eight_shares_four_sessions_and_is_exact)
{
    pid_t pids[POOL_CHILDREN];
    int64_t most = 2;

    start_pool();
    FIXTURE_AWAIT(sessions() >= 2, "one session is enough for all workers");
    gate_open();
    for (int64_t n; pool_work_done() < pool_work_all(); fixture_pause_ms(5)) {
        n = sessions();
        most = n > most ? n : most;
    }
    assert_in_range(most, 2, SESSIONS);
    assert_int_equal(pool_children(world.pool.pid, pids), WORKERS);
    finish_exactly();
    pool_logged(0, "level=error");
    pool_logged(0, "event=pool.worker_died");
}

/* Guarantee: A worker killed behind PgBouncer leaves exact totals. */
CASE(worker_killed_behind_a_pooler_leaves_exact_totals)
{
    pid_t pids[POOL_CHILDREN];

    start_pool();
    for (unsigned n = 1; n <= 5; n++) {
        pool_work_wait(n * 100);
        assert_true(pool_children(world.pool.pid, pids) > 0);
        assert_int_equal(kill(pids[0], SIGKILL), 0);
        FIXTURE_AWAIT(pool_log_count(&world.pool, "event=pool.worker_died") >= n,
                      "death %u is not said", n);
    }
    finish_exactly();
}

/* Each batch takes its token in a transaction of its own, in any session. */
/* Guarantee: A pool without Redis locks behind PgBouncer is exact. */
CASE(database_only_behind_a_pooler_is_exact)
{
    fixture_env("LEDGERLOCK_LOCKS_MODE", "database-only");
    start_pool();
    finish_exactly();
    world_expect("1", "SELECT count(*) FROM lock_token WHERE last > 0");
}

/* ---- orders as they were placed ---- */

#define WORKED "FROM workers WHERE (counters ->> 'batches')::bigint > 0"

/* No session lasts behind a transaction pooler, so a lock says who serves. */
static void start_two(const struct fixture *first)
{
    fixture_env("LEDGERLOCK_POOL_ORDERS_ORDER", "placed");
    gate_shut("user_id % 2 = 0", 1);
    pool_start_in(first, "run --jobs orders --now %s", pool_work_now());
    world_wait("SELECT count(*) = 0 FROM ledgerlock.orders WHERE state = 'pending' AND"
               " user_id %% 2 = 1");
    starts(&world.f, &world.others, "run --jobs orders --now %s", pool_work_now());
    FIXTURE_AWAIT(world_ask("SELECT count(*) FROM workers") == 2, "nobody stands by");
    promise_int_equal(world_ask("SELECT count(*) " WORKED), 1);
}

static void finish_by_the_standby(void)
{
    gate_open();
    world_wait("SELECT count(*) = 0 FROM ledgerlock.orders WHERE state = 'pending'");
    pool_end(&world.others);
    assert_int_equal(world_ask("SELECT count(*) " WORKED), 2);
    world_runs(0, "run --once --now %s", pool_work_now()); /* subscriptions */
    pool_work_assert_exact();
}

/* Guarantee: Behind PgBouncer, too, one worker of all pools serves orders as placed,
 * and the next when its pool is killed. */
CASE(standby_behind_a_pooler_goes_on_when_the_first_is_killed)
{
    pid_t worker;

    start_two(&world.f);
    worker = pool_workers(1);
    world_kill(&world.pool);
    (void)kill(worker, SIGKILL); /* it may have ended with its pool */
    finish_by_the_standby();
}

/* Guarantee: Behind PgBouncer, too, a pool that cannot work lets the next serve the
 * orders, also when it could still lengthen the lease of its place. */
CASE(standby_behind_a_pooler_goes_on_when_the_first_gets_no_keys)
{
    PROXY way = proxy_before(world.f.redis_url);
    struct fixture first = world.f;

    (void)memcpy(first.redis_url, way.url, sizeof way.url);
    start_two(&first);
    proxy_cut_before(&way, PROXY_BYTES("user:") - 1, UINT_MAX);
    finish_by_the_standby();
}

/* ---- settings ---- */

/* The settings that a session has now. */
static const char *settings_of(struct pg *pg)
{
    static char text[64];
    struct pg_result *res;
    struct err e = {0};

    if (pg_exec_text(
            pg,
            "SELECT concat_ws(' ', current_setting('lock_timeout'),"
            " current_setting('enable_seqscan'),"
            " current_setting('enable_indexonlyscan'),"
            " current_setting('plan_cache_mode'), current_setting('TimeZone'))",
            &res, &e) != 0)
        fail_msg("%s", e.msg);
    (void)snprintf(text, sizeof text, "%s", pg_get_text(res, 0, 0));
    pg_result_free(res);
    return text;
}

static struct pg *open_pg(bool transaction_pooling)
{
    char url[FIXTURE_URL];
    const struct pg_options options = {.url = url,
                                       .password_file = bouncer.password_file,
                                       .name = "test",
                                       .schema = "ledgerlock",
                                       .answer_ms = 5000,
                                       .lock_ms = 1234,
                                       .plans_once = true,
                                       .transaction_pooling = transaction_pooling};
    struct err e = {0};
    struct pg *pg;

    if (transaction_pooling)
        pgbouncer_url(&bouncer, &world.f, "ledgerlock_worker", url, sizeof url);
    else
        fixture_url_as(&world.f, "ledgerlock_worker", url, sizeof url);
    if (pg_open(&pg, &options, &e) != 0)
        fail_msg("%s", e.msg);
    return pg;
}

#define OURS "1234ms off off force_generic_plan UTC"

CASE(settings_behind_a_pooler_last_for_the_transaction)
{
    struct pg *pg = open_pg(true);
    struct err e = {0};

    assert_int_equal(pg_begin(pg, &e), 0);
    assert_string_equal(settings_of(pg), OURS);
    assert_int_equal(pg_commit(pg, &e), 0);
    assert_null(strstr(settings_of(pg), "1234ms off"));
    pg_close(pg);
}

CASE(settings_of_a_session_of_our_own_last)
{
    struct pg *pg = open_pg(false);
    struct err e = {0};

    assert_int_equal(pg_begin(pg, &e), 0);
    assert_int_equal(pg_commit(pg, &e), 0);
    assert_string_equal(settings_of(pg), OURS);
    pg_close(pg);
}

/* ---- the other verbs ---- */

CASE(every_verb_works_behind_a_pooler)
{
    char csv[64];

    world_do("DROP SCHEMA ledgerlock CASCADE");
    go_through("ledgerlock_owner");
    world_runs(0, "migrate");
    world_runs(0, "migrate");
    world_runs(0, "seed --users 50 --subscriptions 0 --skus 0 --orders 0");
    world_do("DROP SCHEMA ledgerlock CASCADE"); /* and again in the same session */
    world_runs(0, "migrate");
    world_runs(0, "seed --users 50 --subscriptions 100 --skus 20 --orders 200");
    fixture_file(csv, sizeof csv, "sku,quantity,unit_price\nnew,5,1.50\n", 0600);
    world_runs(0, "import --stock %s", csv);
    (void)unlink(csv);
    go_through("ledgerlock_worker");
    world_runs(0, "run --once");
    world_runs(0, "audit");
    world_runs(0, "status");
    world_runs(0, "locks");
}

CASE(migrate_ten_at_once_behind_a_pooler_applies_once)
{
    struct fixture_child children[10];
    int applied = 0;

    fixture_exec(world.owner, "DROP SCHEMA ledgerlock CASCADE");
    go_through("ledgerlock_owner");
    for (size_t i = 0; i < 10; i++)
        starts(&world.f, &children[i], "migrate --verbose");
    for (size_t i = 0; i < 10; i++) {
        if (fixture_wait(&children[i], 90, &said) != 0)
            fail_msg("exit %d: %s", said.code, said.err);
        applied += strstr(said.out, "applied migration 001_schema") != NULL;
    }
    assert_int_equal(applied, 1);
}

/* ---- told nothing ---- */

static void assert_refused(void)
{
    world_says(3, "set postgres.pooling to transaction",
               "run --once --pooling session");
}

/* Guarantee: A pooler of transactions that the settings do not name is refused. */
CASE(pooler_that_nobody_told_of_is_refused)
{
    go_through("ledgerlock_worker");
    assert_refused();
    world_says(3, "set postgres.pooling to transaction", "status --pooling session");
}

CASE(pooler_that_is_busy_is_refused_too)
{
    start_pool();
    pool_work_wait(100);
    assert_refused();
    assert_true(pool_work_done() < pool_work_all()); /* it was busy */
    finish_exactly();
}

CASE(pooler_of_whole_sessions_is_as_good_as_none, .open = open_lasting_world)
{
    start_pool();
    finish_exactly();
}
