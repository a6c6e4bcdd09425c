/* pool: while it runs it gets a new configuration by HUP, refused or taken over, tells
 * systemd what it does over the socket of sd_notify(3), at which the test listens; and
 * a program to come migrates under it. */
#define _GNU_SOURCE /* SOCK_CLOEXEC */
#include <poll.h>
#include <sys/socket.h>
#include <sys/un.h>

#include "tests/lib/points.h"
#include "tests/lib/steps.h"

static const struct pool_work small = {
    .users = 200, .periods = 3, .orders = 60, .units = 40};

static char path[64];     /* of the configuration */
static int listener = -1; /* of systemd's words */
static char word[256];    /* the last one that came */

static void undo(void)
{
    (void)close(listener);
    listener = -1;
    (void)unlink(path);
}

WORLD(.poll_ms = 100, .work = &small, .undo = undo);

/* ---- the words of systemd ---- */

/* Listens at a path, or at an abstract name, which begins with @. */
static void listen_at(const char *name)
{
    struct sockaddr_un at = {.sun_family = AF_UNIX};
    socklen_t size = (socklen_t)(offsetof(struct sockaddr_un, sun_path) + strlen(name));

    (void)snprintf(at.sun_path, sizeof at.sun_path, "%s", name);
    if (name[0] == '@')
        at.sun_path[0] = '\0';
    listener = socket(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC, 0);
    assert_true(listener >= 0);
    assert_int_equal(bind(listener, (struct sockaddr *)&at, size), 0);
    fixture_env("NOTIFY_SOCKET", name);
}

/* The next word; false if none comes within ms. */
static bool hears(int ms)
{
    struct pollfd wait = {.fd = listener, .events = POLLIN};
    ssize_t n;

    if (poll(&wait, 1, ms) == 0)
        return false;
    n = recv(listener, word, sizeof word - 1, 0);
    assert_true(n > 0);
    word[n] = '\0';
    return true;
}

/* From now on the supervisor says so each time it goes round. */
static void hear_its_rounds(void)
{
    listen_at("@ledgerlock-test-rounds");
    fixture_env("WATCHDOG_USEC", "20000");
}

static void await_rounds(int n)
{
    while (hears(0)) /* what it had said before */
        continue;
    while (n > 0) {
        assert_true(hears(POOL_WAIT_MS));
        n -= strcmp(word, "WATCHDOG=1") == 0;
    }
}

/* ---- reload ---- */

static void write_config(const char *text)
{
    FILE *file = fopen(path, "w");

    assert_non_null(file);
    assert_true(fputs(text, file) >= 0);
    assert_int_equal(fclose(file), 0);
}

static void start_with_file(void)
{
    fixture_file(path, sizeof path, "pool: { jobs = \"billing\"; batch = 7; };\n",
                 0600);
    pool_start("run -w 3 --now %s -c %s", pool_work_now(), path);
    pool_work_wait((int64_t)small.users * small.periods);
    pool_wait_children(world.pool.pid, 3);
}

/* Guarantee: A broken file at HUP is refused in words, and the running pool keeps
 * its configuration. */
CASE(hup_with_broken_file_keeps_the_old_configuration)
{
    pid_t before[POOL_CHILDREN], after[POOL_CHILDREN];
    char where[128];

    start_with_file();
    (void)pool_children(world.pool.pid, before);
    write_config("pool: {\n  jobs = \"orders\";\n  workers = 300;\n};\n");
    (void)kill(world.pool.pid, SIGHUP);
    pool_log_wait(&world.pool, "event=pool.reload_refused");
    (void)snprintf(where, sizeof where, "%s:3: ", path);
    pool_log_wait(&world.pool, where);
    fixture_pause_ms(300);
    assert_int_equal(pool_children(world.pool.pid, after), 3);
    assert_memory_equal(before, after, 3 * sizeof before[0]);
    assert_int_equal(pool_work_done(), small.users * small.periods);
    pool_stop();
}

static int64_t largest_batch(void)
{
    return world_ask("SELECT max(n) FROM (SELECT count(*) AS n FROM charges GROUP BY"
                     " fence) AS batches");
}

CASE(hup_with_good_file_replaces_workers_one_by_one)
{
    pid_t before[POOL_CHILDREN], now[POOL_CHILDREN];
    size_t fewest = 3, old = 3;
    int64_t deadline = fixture_now_ms() + POOL_WAIT_MS;
    start_with_file();
    (void)pool_children(world.pool.pid, before);
    assert_in_range(largest_batch(), 1, 7);
    write_config("pool: { jobs = \"billing\"; batch = 500; };\n");
    (void)kill(world.pool.pid, SIGHUP);
    while (old > 0 && fixture_now_ms() < deadline) {
        size_t n = pool_children(world.pool.pid, now);

        if (n < 2) /* the list may leave one out while another ends */
            n = pool_children(world.pool.pid, now);
        fewest = n < fewest ? n : fewest;
        old = 0;
        for (size_t i = 0; i < n; i++)
            old += pool_has(before, 3, now[i]);
        fixture_pause_ms(1);
    }
    assert_int_equal(old, 0);
    assert_in_range(fewest, 2, 3);
    pool_logged(1, "event=pool.reloaded");
    pool_logged(0, "event=pool.worker_died");
    world_do(INTO_ANY_SUBSCRIPTIONS "SELECT user_id, 'more', 1, currency,"
                                    " '2020-01-01Z', 'year', '2020-01-01Z' FROM users");
    pool_work_wait((int64_t)small.users * (small.periods + 1));
    assert_in_range(largest_batch(), 8, 500);
    pool_stop();
}

/* The count of the first n workers of `before` that still run. */
static size_t count_left(const pid_t *before, size_t n)
{
    pid_t now[POOL_CHILDREN];
    size_t ct = pool_children(world.pool.pid, now), left = 0;

    for (size_t i = 0; i < n; i++)
        left += pool_has(now, ct, before[i]);
    return left;
}

/* Guarantee: A reload while a new worker gets no connection replaces that one alone;
 * the others follow when there are connections again. */
CASE(hup_while_there_is_no_connection_costs_one_worker)
{
    pid_t before[POOL_CHILDREN];

    hear_its_rounds();
    start_with_file();
    (void)pool_children(world.pool.pid, before);
    super_do("ALTER DATABASE %s CONNECTION LIMIT 0", world.f.database);
    (void)kill(world.pool.pid, SIGHUP);
    pool_log_wait(&world.pool, "event=pool.postgres_down");
    FIXTURE_AWAIT(count_left(before, 3) <= 2, "%zu are left", count_left(before, 3));
    await_rounds(5);
    assert_int_equal(count_left(before, 3), 2);
    super_do("ALTER DATABASE %s CONNECTION LIMIT -1", world.f.database);
    FIXTURE_AWAIT(count_left(before, 3) == 0, "%zu are left", count_left(before, 3));
    pool_stop();
    pool_logged(0, "event=pool.worker_died");
}

static void reload_with(const char *text)
{
    write_config(text);
    (void)kill(world.pool.pid, SIGHUP);
}

CASE(hup_takes_over_the_level_of_the_log_unless_refused)
{
    fixture_file(path, sizeof path, "log: { level = \"warn\"; };\n", 0600);
    pool_start("run -w 2 --now %s -c %s", pool_work_now(), path);
    pool_work_wait(pool_work_all());
    pool_logged(0, "level=info");
    reload_with("log: { level = \"info\"; };\n");
    pool_log_wait(&world.pool, "event=pool.reloaded");
    reload_with("log: { level = \"error\"; };\nimport: { currency = \"EUR\"; };");
    pool_log_wait(&world.pool, "event=pool.reload_refused");
    (void)kill(world.pool.pid, SIGTERM);
    pool_log_wait(&world.pool, "event=pool.draining");
    pool_assert_ends(&world.pool, 0);
}

/* ---- systemd ---- */

static void expect(const char *next)
{
    assert_true(hears(POOL_WAIT_MS));
    assert_string_equal(word, next);
}

static void run_and_listen(const char *name)
{
    listen_at(name);
    pool_start("run -w 3 --now %s", pool_work_now());
    expect("READY=1");
    pool_wait_children(world.pool.pid, 4);
    pool_work_wait(pool_work_all());
    pool_stop();
    expect("STOPPING=1");
    assert_false(hears(0));
}

/* Guarantee: A pool tells systemd READY=1 when its workers are up, and STOPPING=1 when
 * it drains, each once. */
CASE(service_hears_ready_and_stopping)
{
    fixture_temporary(path, sizeof path, "notify");
    (void)close(mkstemp(path));
    assert_int_equal(unlink(path), 0);
    run_and_listen(path);
}

CASE(service_is_told_at_an_abstract_name)
{
    char name[64];

    (void)snprintf(name, sizeof name, "@ledgerlock-test-%ld", (long)getpid());
    run_and_listen(name);
}

/* A worker that cannot connect is not up. */
CASE(service_is_not_ready_while_a_worker_has_no_connection)
{
    listen_at("@ledgerlock-test-unready");
    super_do("ALTER DATABASE %s CONNECTION LIMIT 4", world.f.database);
    pool_start("run -w 6 --now %s", pool_work_now());
    pool_log_wait(&world.pool, "event=pool.postgres_down");
    assert_false(hears(500));
    super_do("ALTER DATABASE %s CONNECTION LIMIT -1", world.f.database);
    expect("READY=1");
}

/* Guarantee: The watchdog of systemd is fed while the supervisor's loop runs, and only
 * then. */
CASE(watchdog_is_fed_while_the_loop_runs)
{
    listen_at("@ledgerlock-test-watchdog");
    fixture_env("WATCHDOG_USEC", "1000000");
    pool_start("run -w 3 --now %s", pool_work_now());
    do
        assert_true(hears(POOL_WAIT_MS));
    while (strcmp(word, "READY=1") != 0);
    for (int i = 0; i < 3; i++)
        expect("WATCHDOG=1");
    (void)kill(world.pool.pid, SIGSTOP);
    assert_int_equal(waitpid(world.pool.pid, NULL, WUNTRACED), world.pool.pid);
    while (hears(0)) /* what it had said before */
        continue;
    assert_false(hears(1500));
    (void)kill(world.pool.pid, SIGCONT);
    expect("WATCHDOG=1");
}

CASE(watchdog_of_another_process_is_not_fed)
{
    listen_at("@ledgerlock-test-other");
    fixture_env("WATCHDOG_USEC", "20000");
    fixture_env("WATCHDOG_PID", "1");
    pool_start("run -w 3 --now %s", pool_work_now());
    expect("READY=1");
    assert_false(hears(500));
    pool_stop();
    expect("STOPPING=1");
}

/* ---- a program to come ---- */

/* More than it lasts. */
static const struct pool_work much = {.users = 500, .periods = 800};

WORLD_OPEN(open_much, .batch = 5, .poll_ms = 50, .work = &much)

/* Starts the program to come, with the words of a run or of a migration. */
static void start_next(struct fixture_child *child, const char *role, const char *verb)
{
    const char *now = pool_work_now();
    bool is_run = strcmp(verb, "run") == 0;

    points_use(NEXT_PROGRAM);
    fixture_become(&world.f, role);
    fixture_spawn(&world.f, child, verb, is_run ? "--now" : NULL, now, "--jobs",
                  "billing", "-w", "2", NULL);
    fixture_become(&world.f, "ledgerlock_worker");
    points_as_shipped();
}

/* Guarantee: A migration that waits for a lock lets the pool by and tries again; old
 * and new program work side by side, and the totals are exact. */
CASE(upgrade_under_a_running_pool_stops_nothing, .open = open_much)
{
    struct fixture_child next = {0}, migration = {0};
    PGconn *reader = PQconnectdb(world.owner);
    int64_t done;

    pool_start("run --now %s --jobs billing -w 2", pool_work_now());
    pool_work_wait(1000);
    PQclear(PQexec(reader, "BEGIN; SELECT count(*) FROM ledgerlock.charges"));
    assert_int_equal(PQtransactionStatus(reader), PQTRANS_INTRANS);
    start_next(&migration, "ledgerlock_owner", "migrate");
    pool_log_wait(&migration, "another session holds, try ");
    done = pool_work_done();
    pool_work_wait(done + 1); /* nobody waits behind it for ever */
    PQfinish(reader);
    assert_int_equal(fixture_wait(&migration, 120, &said), 0);
    start_next(&next, "ledgerlock_worker", "run");
    world_wait("SELECT count(DISTINCT pool) = 2 FROM ledgerlock.workers WHERE "
               "(counters->>'charged')::int8 > 0");
    (void)kill(world.pool.pid, SIGTERM);
    (void)kill(next.pid, SIGTERM);
    pool_assert_ends(&world.pool, 0);
    pool_assert_ends(&next, 0);
    world_runs(0, "audit --lag 36500d");
    world_runs(0, "run --once --jobs orders"); /* the old one starts again */
}
