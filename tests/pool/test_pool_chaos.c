/* pool: workers stopped past their lease and killed, Redis flushed, restarted empty and
 * failed over to a replica that was cut off, all in one run. Every effect is there
 * once, the tokens of a row only grow in the order of the commits, and the journal
 * tells what the counters tell. */
#include "tests/lib/fault.h"
#include "tests/lib/gate.h"
#include "tests/lib/ha_world.h"
#include "tests/lib/load.h"
#include "tests/lib/meet.h"
#include "tests/lib/steps.h"

enum {
    WORKERS = 8, /* four of each job */
    BATCH = 5,
    LEASE_MS = 1500,
    ROUNDS = 3,
    PORTIONS = 40,
    CLIENTS_MS = 8000
};

static struct ha_server servers[2];
static char front[128]; /* a link to the socket of the server that is the primary */
static unsigned kills, seed;
static struct proxy proxy;

/* Every committed change of a fence, in the order in which its row was changed: the row
 * locks make that the order of the commits. The pause lets the chaos hit more
 * transactions in the middle. */
static const char history[] =
    "CREATE TABLE public.history (seq bigint GENERATED ALWAYS AS IDENTITY, resource"
    " text, fence bigint); CREATE FUNCTION public.note() RETURNS trigger LANGUAGE"
    " plpgsql SECURITY DEFINER AS $$ BEGIN INSERT INTO public.history (resource, fence)"
    " VALUES (TG_TABLE_NAME || coalesce(to_jsonb(NEW) ->> 'user_id', to_jsonb(NEW) ->>"
    " 'sku_id'), NEW.fence);"
    " PERFORM pg_sleep(0.005); RETURN NULL; END $$; CREATE TRIGGER note AFTER UPDATE ON"
    " ledgerlock.users FOR EACH ROW EXECUTE FUNCTION public.note(); CREATE TRIGGER note"
    " AFTER UPDATE ON ledgerlock.stock FOR EACH ROW EXECUTE FUNCTION public.note()";

/* New connections lead to this server from now on. */
static void lead_to(const struct ha_server *s)
{
    (void)unlink(front);
    assert_int_equal(symlink(s->redis.url + strlen("unix://"), front), 0);
}

static const struct load_size size = {
    .users = 300, .subscriptions = 450, .orders = 400, .periods = 20};

static void prepare(void)
{
    super_do("%s", history);
    ha_start(&servers[0], 0);
    (void)snprintf(front, sizeof front, "%s/front", servers[0].redis.dir);
    (void)snprintf(world.f.redis_url, sizeof world.f.redis_url, "unix://%s", front);
    lead_to(&servers[0]);
}

static void undo(void)
{
    ha_close(&servers[0]);
    ha_close(&servers[1]);
    proxy_close(&proxy);
}

WORLD(.any = true,
      .lease_ms = 1500,
      .poll_ms = 20,
      .batch = 5,
      .load = &size,
      .also = prepare,
      .undo = undo);

/* ---- chaos ---- */

/* Signals one of the workers, of the first half or the second; returns which. */
static pid_t hit(int signal, bool second_half)
{
    pid_t workers[POOL_CHILDREN];
    size_t half = WORKERS / 2;
    pid_t pid;

    gate_feed();
    FIXTURE_AWAIT(pool_children(world.pool.pid, workers) == WORKERS,
                  "the pool never has %d workers", WORKERS);
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
    int64_t until_ms = fixture_now_ms() + LEASE_MS * 4 / 3;

    fixture_pause_ms(200);
    gate_feed();
    ha_do(primary, "FLUSHALL");
    fixture_pause_ms(100);
    (void)hit(SIGKILL, true);
    fixture_pause_ms(100);
    fail_over(primary, spare);
    while (fixture_now_ms() < until_ms)
        fixture_pause_ms(10);
    assert_int_equal(kill(stopped, SIGCONT), 0);
    fixture_pause_ms(200);
    ha_kill(spare); /* what it knew is gone */
    ha_start(spare, 0);
    fixture_pause_ms(200);
}

/* More locks are lost than workers were killed. */
static void lose_locks(struct ha_server *primary)
{
    for (int i = 0; pool_incidents(&world.f, "lost", "") <= (int64_t)kills; i++) {
        assert_true(i < PORTIONS / 2);
        gate_feed();
        fixture_pause_ms(50);
        ha_do(primary, "FLUSHALL");
        fixture_pause_ms(200);
    }
}

/* Answers to COMMIT are lost, more often than a worker was killed. */
static void lose_answers(void)
{
    for (unsigned i = 1; i <= kills + 1; i++) {
        proxy_cut_after(&proxy, PROXY_COMMIT, PROXY_COMMIT_SIZE, 1);
        gate_feed();
        assert_true(proxy_wait(&proxy, PROXY_CUTS_AFTER, i, 60));
        fixture_pause_ms(50);
    }
}

static void run_through_chaos(void)
{
    struct fixture through = world.f;
    pid_t clients;

    seed = (unsigned)world.load.seed;
    kills = 0;
    proxy_open_postgres(&proxy, &through);
    meet_begin();
    fault_hold_back(PORTIONS);
    pool_start_in(&through, "run -w 4");
    clients = load_clients_start(&world.load, &world.f, NULL, CLIENTS_MS);
    pool_work_wait(&world.f, 100);
    for (int i = 0; i < ROUNDS; i++)
        one_round(&servers[i % 2], &servers[(i + 1) % 2]);
    lose_locks(&servers[ROUNDS % 2]);
    lose_answers();
    gate_open();
    pool_work_wait(&world.f, pool_work_done(&world.f) + 1);
    load_clients_finish(&world.load, &world.f, NULL, clients);
    pool_stop();
}

/* ---- reconciliation ---- */

/* All that was counted is in the journal, also what happened while the worker's session
 * was gone: it is written on the next one. A worker that was killed between the two may
 * have left one out, or what it had kept, so there must be more than were killed. */
static void assert_journaled(const char *kind)
{
    int64_t counted = pool_counter(&world.f, kind),
            written = pool_incidents(&world.f, kind, "");

    print_message("%s: %" PRId64 " counted, %" PRId64 " in the journal\n", kind,
                  counted, written);
    assert_true(written > (int64_t)kills);
    assert_true(llabs(counted - written) <= (int64_t)kills);
}

static void assert_tokens_grow_in_commit_order(void)
{
    assert_true(super_ask("SELECT count(*) FROM public.history") > 1000);
    promise_int_equal(
        super_ask("SELECT count(*) FROM (SELECT fence, lag(fence) OVER (PARTITION BY"
                  " resource ORDER BY seq) AS before FROM public.history) AS h WHERE"
                  " fence < before"),
        0);
}

/* A worker killed between its COMMIT and its count leaves one batch out. */
static void assert_counted(void)
{
    int64_t counted = pool_counter(&world.f, "charged") +
                      pool_counter(&world.f, "fulfilled") +
                      pool_counter(&world.f, "rejected");
    int64_t rows = world_ask("SELECT (SELECT count(*) FROM charges WHERE state ="
                             " 'captured') + (SELECT count(*) FROM orders)");

    assert_in_range(rows - counted, 0, kills * BATCH);
}

/* Guarantee: Through stops, kills, flushes and failovers totals are exact, tokens
 * rise with the commits, and incidents tell what the counters tell. */
CASE(journal_reconciles_after_stops_kills_flushes_and_failovers)
{
    run_through_chaos();
    assert_int_equal(kills, 2 * ROUNDS);
    meet_assert("billing");
    meet_assert("orders");
    load_assert_exact(&world.load, &world.f);
    assert_tokens_grow_in_commit_order();
    assert_counted();
    pool_logged(0, "event=journal.not_written");
    assert_journaled("lost");
    assert_journaled("commit_unknown");
    assert_true(pool_incidents(&world.f, "lost", "") +
                    pool_incidents(&world.f, "fenced", "") >
                0);
    promise_int_equal(pool_incidents(&world.f, "commit_unknown", ""),
                      pool_incidents(&world.f, "commit_unknown", "settled: "));
    promise_int_equal(pool_incidents(&world.f, "parked", ""), 0);
}
