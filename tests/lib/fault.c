/* fault: the pool, the fault, and the checks at the end. */
#include "tests/lib/fault.h"

#include "tests/lib/meet.h"
#include "tests/lib/points.h"
#include "tests/lib/secrets.h"
#include "tests/lib/steps.h"

enum {
    CLIENTS_MS = 4000, /* over which the clients make their calls */
    PORTIONS = 24
};

const struct load_size fault_usual = {
    .users = 200, .subscriptions = 280, .orders = 300, .periods = 22};
const struct load_size fault_small = {
    .users = 60, .subscriptions = 60, .orders = 60, .periods = 8};

bool fault_is_full(void)
{
    const char *which = getenv("LL_TEST_CHAOS");

    return which != NULL && strcmp(which, "full") == 0;
}

bool fault_is_meant(void)
{
    const struct fault *row = test_row;

    return !row->is_rare || fault_is_full();
}

void fault_as_shipped(void)
{
    points_as_shipped();
    fixture_env("LL_TEST_HISTORY", NULL);
    checker_close();
    world.checker.dir[0] = '\0';
}

/* ---- asking ---- */

void fault_redis(char *reply, size_t size, const char *command)
{
    if (strcmp(command, "FLUSHALL") == 0 ||
        strcmp(command, "CONFIG SET maxmemory 1") == 0)
        checker_mark("forgot", 0, 0);
    pool_redis(world.redis.url, reply, size, command);
}

void fault_redis_ok(const char *command)
{
    char reply[128];

    fault_redis(reply, sizeof reply, command);
    assert_string_equal(reply, "OK");
}

void fault_redis_start(const char *name, const char *value)
{
    char reply[128];

    checker_mark("forgot", 0, 0);
    fixture_redis_start(&world.redis, "--requirepass", SECRET_OF_REDIS, name, value,
                        NULL);
    FIXTURE_AWAIT(
        (fault_redis(reply, sizeof reply, "PING"), strcmp(reply, "PONG") == 0),
        "it is still loading");
}

void fault_slow_down(void)
{
    world.is_slow = true;
    super_do(
        "CREATE FUNCTION public.slow() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN"
        " PERFORM pg_sleep(0.03); RETURN NULL; END $$; CREATE TRIGGER slow AFTER INSERT"
        " ON ledgerlock.charges FOR EACH STATEMENT EXECUTE FUNCTION public.slow()");
}

/* ---- the pool ---- */

static bool is_crowded; /* four workers of each job: they must have met */

static void start_clients(void)
{
    if (world.clients == 0 && !world.has_no_clients && world.load.call_ct > 0)
        load_clients_start(CLIENTS_MS);
}

/* Four workers of each job begin together. */
void fault_start(const char *workers)
{
    is_crowded = strcmp(workers, "4") == 0;
    if (is_crowded)
        meet_begin();
    pool_start_in(&world.through, "run -w %s", workers);
    start_clients();
}

void fault_start_one(void)
{
    pool_start_in(&world.through, "run -w 1 --jobs billing");
    world.is_one = true;
    start_clients();
}

/* True if a client has a call that must lock this user. */
static bool is_called(int64_t user_id)
{
    for (size_t i = 0; i < world.load.call_ct; i++) {
        const struct load_call *c = &world.load.calls[i];
        bool is_user = c->verb == LOAD_DEPOSIT || c->verb == LOAD_RESUME;

        if (is_user && (int64_t)c->index + 1 == user_id)
            return true;
        if ((c->verb == LOAD_CANCEL || c->verb == LOAD_TERMS) &&
            world.load.subscriptions[c->index].user_id == user_id)
            return true;
    }
    return false;
}

/* Users with money for all, whom no client waits for: the work of a third of all, and
 * more. */
void fault_hold_back(int portions)
{
    char ids[1 << 12] = "user_id IN (0";
    size_t n = strlen(ids);

    for (size_t i = 0; i < world.load.size.users; i++)
        if ((world.load.users[i].kind == LOAD_RICH ||
             world.load.users[i].kind == LOAD_CARD) &&
            !is_called((int64_t)i + 1))
            n += (size_t)snprintf(ids + n, sizeof ids - n, ",%zu", i + 1);
    assert_in_range(n, 1, sizeof ids - 2);
    (void)strcpy(ids + n, ")");
    gate_shut(ids, portions);
}

void fault_start_midway(void)
{
    fault_hold_back(PORTIONS);
    fault_start("4");
    pool_work_wait(100);
}

void fault_work_wait(int64_t more)
{
    int64_t done = pool_work_done();

    for (int64_t i = 0; i < more; i += 100)
        gate_feed();
    pool_work_wait(done + more);
}

/* A gate that ended with its server was shut as the fault began. */
void fault_assert_midway(void)
{
    if (gate_is_shut() && !gate_holds())
        return;
    if (load_left() == 0)
        fail_msg("the fault met no work: all was done");
}

/* A batch that began before the fault may still commit. */
void fault_assert_still(void)
{
    fixture_pause_ms(FAULT_LEASE_MS);
    world_wait("SELECT count(*) = 0 FROM pg_stat_activity WHERE usename ="
               " 'ledgerlock_worker' AND datname = current_database() AND backend_xid"
               " IS NOT NULL");
    pool_assert_stands_still(600);
}

bool fault_kill(pid_t pid, int signal)
{
    if (kill(pid, signal) != 0)
        return false;
    while (signal == SIGKILL && pool_is_alive(pid))
        fixture_pause_ms(1);
    if (signal == SIGKILL || signal == SIGSTOP)
        checker_mark("killed", pid, 0);
    return true;
}

static void await_work(void)
{
    int64_t since = fixture_now_ms(), done = pool_work_done();

    if (load_left() == 0)
        return;
    checker_mark("healed", 0, since);
    while (pool_work_done() == done && load_left() > 0) {
        if (fixture_now_ms() - since > world.bound_ms)
            fail_msg("nothing was done within %d ms of the end of the fault",
                     world.bound_ms);
        fixture_pause_ms(5);
    }
    print_message("at work again after %" PRId64 " ms\n", fixture_now_ms() - since);
}

void fault_recovers(void)
{
    if (world.is_slow)
        super_do("DROP TRIGGER slow ON ledgerlock.charges");
    world.is_slow = false;
    gate_open();
    await_work();
    if (world.is_one)
        starts(&world.f, &world.others, "run -w 4 --jobs orders");
    world.is_one = false;
    load_clients_finish();
    world.has_no_clients = true;
}

void fault_end(void)
{
    pool_stop();
    if (world.others.pid > 0) {
        pool_end(&world.others);
    }
    fault_check();
}

void fault_finish(void)
{
    fault_assert_midway();
    fault_recovers();
    fault_end();
}

static void set_fault(const struct fault *fault, bool on)
{
    char commands[256];
    char *next = commands;

    if (fault->set != NULL) {
        fault->set(on);
        return;
    }
    (void)snprintf(commands, sizeof commands, "%s", on ? fault->on : fault->off);
    for (char *end; next != NULL; next = end) {
        end = strstr(next, "; ");
        if (end != NULL) {
            *end = '\0';
            end += 2;
        }
        fault_redis_ok(next);
    }
}

/* Nobody died: what the workers counted stands in the journal, also what they met while
 * their session was away. */
static void assert_journaled(const char *kind)
{
    promise_int_equal(pool_incidents(kind, ""), pool_counter(kind));
}

void fault_happens(const struct fault *fault)
{
    pid_t before[POOL_CHILDREN], after[POOL_CHILDREN];
    size_t n;

    if (fault->is_shipped)
        fault_as_shipped();
    fault_start_midway();
    n = pool_children(world.pool.pid, before);
    set_fault(fault, true);
    gate_feed();
    if (fault->down != NULL)
        pool_log_wait(&world.pool, fault->down);
    if (fault->words != NULL)
        pool_log_wait(&world.pool, fault->words);
    if (fault->is_still)
        fault_assert_still();
    if (fault->done > 0)
        fault_work_wait(fault->done);
    set_fault(fault, false);
    fault_assert_midway(); /* PostgreSQL may have been away until now */
    fault_recovers();
    if (fault->up != NULL)
        pool_log_wait(&world.pool, fault->up);
    assert_int_equal(pool_log_count(&world.pool, "event=pool.worker_died"), 0);
    assert_int_equal(pool_children(world.pool.pid, after), n);
    assert_memory_equal(after, before, n * sizeof before[0]); /* nobody ended either */
    fault_end();
    assert_journaled("lost");
    assert_journaled("commit_unknown");
}

/* ---- the check ---- */

void fault_check(void)
{
    for (int i = 0; world.redis.pid > 0 && pool_lock_keys() > 0; i++) {
        if (i == POOL_WAIT_MS / 20) /* every lock ends by itself, after its lease */
            promise_broken("%" PRId64 " lock keys stay", pool_lock_keys());
        fixture_pause_ms(20);
    }
    promise_int_equal(pool_incidents("commit_unknown", ""),
                      pool_incidents("commit_unknown", "settled: "));
    promise_int_equal(pool_incidents("parked", ""), 0);
    load_assert_exact();
    if (is_crowded) {
        meet_assert_both();
    }
    is_crowded = false;
    fault_check_rows("now");
}

void fault_check_rows(const char *now)
{
    char options[96];

    (void)snprintf(options, sizeof options, "--bound-ms %d --lease-ms %d%s%s%s",
                   world.bound_ms, world.lease_ms,
                   world.load.size.cards ? " --gateway $GATEWAY_DIR/journal" : "",
                   strchr(world.f.redis_url, ',') != NULL ? " --quorum" : "",
                   world.in_parts ? " --in-parts" : "");
    checker_assert_holds(now, options);
    print_message("%s", world.checker.out);
}
