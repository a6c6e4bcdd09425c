/* pool: workers stopped past their lease and killed, Redis flushed, restarted empty and
 * failed over to a replica that was cut off, all in one run. Every effect is there
 * once, the tokens of a row only grow in the order of the commits, and the journal
 * tells what the counters tell. */
#include <inttypes.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "tests/lib/ha_world.h"
#include "tests/lib/pool_world.h"

enum { WORKERS = 6, BATCH = 5, LEASE_MS = 1500, ROUNDS = 3 };

static struct fixture f;
static struct ha_server servers[2];
static char front[128]; /* a link to the socket of the server that is the primary */
static struct fixture_child pool;
static unsigned kills, seed;

static const struct pool_work work = {
    .users = 300, .periods = 45, .orders = 600, .units = 400};

/* Every committed change of a fence, in the order in which its row was changed: the row
 * locks make that the order of the commits. The pause makes the work outlast the chaos,
 * and lets it hit more transactions in the middle. */
static const char history[] =
    "CREATE TABLE public.history (seq bigint GENERATED ALWAYS AS IDENTITY, resource"
    " text, fence bigint); CREATE FUNCTION public.note() RETURNS trigger LANGUAGE"
    " plpgsql SECURITY DEFINER AS $$ BEGIN INSERT INTO public.history (resource, fence)"
    " VALUES (TG_TABLE_NAME || coalesce(to_jsonb(NEW) ->> 'user_id', to_jsonb(NEW) ->>"
    " 'sku_id'), NEW.fence);"
    " PERFORM pg_sleep(0.005); RETURN NULL; END $$; CREATE TRIGGER note AFTER UPDATE ON"
    " ledgerlock.users FOR EACH ROW EXECUTE FUNCTION public.note(); CREATE TRIGGER note"
    " AFTER UPDATE ON ledgerlock.stock FOR EACH ROW EXECUTE FUNCTION public.note()";

static int64_t ask(const char *sql)
{
    char url[FIXTURE_URL];

    fixture_url_as(&f, "postgres", url, sizeof url);
    return fixture_query_int8(url, sql);
}

/* New connections lead to this server from now on. */
static void lead_to(const struct ha_server *s)
{
    (void)unlink(front);
    assert_int_equal(symlink(s->redis.url + strlen("unix://"), front), 0);
}

static int open_world(void **state)
{
    char url[FIXTURE_URL];

    (void)state;
    fixture_open_migrated(&f);
    pool_work_put(&f, &work);
    fixture_url_as(&f, "postgres", url, sizeof url);
    fixture_exec(url, history);
    fixture_become(&f, "ledgerlock_worker");
    fixture_env("LEDGERLOCK_LOCKS_LEASE_MS", "1500");
    fixture_env("LEDGERLOCK_POOL_POLL_MS", "20");
    fixture_env("LEDGERLOCK_POOL_BATCH", "5");
    ha_start(&servers[0], 0);
    (void)snprintf(front, sizeof front, "%s/front", servers[0].redis.dir);
    (void)snprintf(f.redis_url, sizeof f.redis_url, "unix://%s", front);
    lead_to(&servers[0]);
    return 0;
}

static int close_world(void **state)
{
    (void)state;
    if (pool.pid > 0) {
        (void)kill(pool.pid, SIGKILL);
        (void)waitpid(pool.pid, NULL, 0);
    }
    ha_close(&servers[0]);
    ha_close(&servers[1]);
    fixture_close(&f);
    return 0;
}

/* ---- chaos ---- */

/* Signals one of the workers, of the first half or the second; returns which. */
static pid_t hit(int signal, bool second_half)
{
    pid_t workers[POOL_CHILDREN];
    size_t half = WORKERS / 2;
    pid_t pid;

    pool_wait_children(pool.pid, WORKERS, 5);
    assert_int_equal(pool_children(pool.pid, workers), WORKERS);
    pid = workers[(unsigned)rand_r(&seed) % half + (second_half ? half : 0)];
    assert_int_equal(kill(pid, signal), 0);
    kills += signal == SIGKILL ? 1 : 0;
    return pid;
}

/* The replica is cut off, falls behind and is made the primary. A worker goes there
 * while the others still work with the old one, until that dies. */
static void fail_over(struct ha_server *from, struct ha_server *to)
{
    ha_start(to, from->port);
    ha_wait_linked(to);
    ha_do(to, "REPLICAOF NO ONE");
    fixture_pause_ms(50);
    lead_to(to);
    (void)hit(SIGKILL, true);
    fixture_pause_ms(300);
    ha_kill(from);
}

static void one_round(struct ha_server *primary, struct ha_server *spare)
{
    pid_t stopped = hit(SIGSTOP, false);
    int64_t until_ms = pool_now_ms() + LEASE_MS * 4 / 3;

    fixture_pause_ms(200);
    ha_do(primary, "FLUSHALL");
    fixture_pause_ms(100);
    (void)hit(SIGKILL, true);
    fixture_pause_ms(100);
    fail_over(primary, spare);
    while (pool_now_ms() < until_ms)
        fixture_pause_ms(10);
    assert_int_equal(kill(stopped, SIGCONT), 0);
    fixture_pause_ms(200);
    ha_kill(spare); /* what it knew is gone */
    ha_start(spare, 0);
    fixture_pause_ms(200);
    assert_true(pool_work_done(&f) < pool_work_all(&work)); /* all that was midway */
}

static void run_through_chaos(void)
{
    seed = 20261121;
    kills = 0;
    fixture_spawn(&f, &pool, "run", "-w", "6", "--now", pool_work_now(&work), NULL);
    pool_work_wait(&f, 100, 10);
    for (int i = 0; i < ROUNDS; i++)
        one_round(&servers[i % 2], &servers[(i + 1) % 2]);
    pool_work_wait(&f, pool_work_done(&f) + 1, (2 * LEASE_MS + 2000) / 1000);
    pool_work_wait(&f, pool_work_all(&work), 90);
    (void)kill(pool.pid, SIGTERM);
    pool_assert_ends(&pool, 0, 15);
}

/* ---- reconciliation ---- */

/* What was counted is in the journal, also what happened while the worker's session was
 * gone: it is written on the next one. A worker that was killed between the two may
 * have left one out, or what it had kept. */
static void assert_journaled(const char *kind)
{
    int64_t counted = pool_counter(&f, kind), written = pool_incidents(&f, kind, "");

    print_message("%s: %" PRId64 " counted, %" PRId64 " in the journal\n", kind,
                  counted, written);
    assert_true(llabs(counted - written) <= (int64_t)kills);
}

static void assert_tokens_grow_in_commit_order(void)
{
    assert_true(ask("SELECT count(*) FROM public.history") >=
                work.users * work.periods);
    assert_true(ask("SELECT count(DISTINCT fence >> 40) FROM public.history") > ROUNDS);
    assert_int_equal(
        ask("SELECT count(*) FROM (SELECT fence, lag(fence) OVER (PARTITION"
            " BY resource ORDER BY seq) AS before FROM public.history) AS h"
            " WHERE fence < before"),
        0);
}

/* A worker killed between its COMMIT and its count leaves one batch out. */
static void assert_counted(void)
{
    int64_t counted = pool_counter(&f, "charged") + pool_counter(&f, "fulfilled") +
                      pool_counter(&f, "rejected");

    assert_in_range(pool_work_all(&work) - counted, 0, kills * BATCH);
}

/* Each flush, failover and restart raised it. */
static void assert_epochs_journaled(void)
{
    int64_t raised = ask("SELECT epoch - 1 FROM ledgerlock.lock_epoch");

    assert_true(raised >= 3 * ROUNDS);
    assert_in_range(raised - pool_incidents(&f, "epoch_bump", ""), 0, kills);
}

static void journal_reconciles_after_stops_kills_flushes_and_failovers(void **state)
{
    (void)state;
    run_through_chaos();
    assert_int_equal(kills, 2 * ROUNDS);
    pool_work_assert_exact(&f, &work);
    assert_tokens_grow_in_commit_order();
    assert_counted();
    assert_epochs_journaled();
    assert_int_equal(pool_log_count(&pool, "event=journal.not_written"), 0);
    assert_journaled("lost");
    assert_journaled("commit_unknown");
    assert_journaled("uncertain");
    assert_true(pool_incidents(&f, "lost", "") + pool_incidents(&f, "fenced", "") > 0);
    assert_int_equal(pool_incidents(&f, "commit_unknown", ""),
                     pool_incidents(&f, "commit_unknown", "settled: "));
    assert_int_equal(pool_incidents(&f, "parked", ""), 0);
}

#define CHAOS_TEST(name) cmocka_unit_test_setup_teardown(name, open_world, close_world)

int main(void)
{
    const struct CMUnitTest tests[] = {
        CHAOS_TEST(journal_reconciles_after_stops_kills_flushes_and_failovers),
    };

    fixture_need_servers();
    return cmocka_run_group_tests(tests, NULL, NULL);
}
