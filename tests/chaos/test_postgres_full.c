/* PostgreSQL has no room: no connection is left, or its disk is full. The workers stay,
 * say so once, and go on when there is room again. And one whose COMMIT does not reach
 * the disk is refused at start by name, unless one says that one knows. */
#define _GNU_SOURCE /* unshare */
#include <fcntl.h>
#include <sched.h>
#include <sys/mount.h>
#include <sys/stat.h>

#include "tests/lib/fault.h"
#include "tests/lib/private_pg.h"
#include "tests/lib/steps.h"

/* Ordinary users' connections: PostgreSQL keeps three for the superuser. */
enum { HOGS = PRIVATE_PG_CONNECTIONS - 3 };

static const struct world_plan world_plan = {FAULT_PLAN, .load = &fault_usual};

static PGconn *hogs[HOGS];
static char disk[64];     /* the small file system; "" when there is none */
static char log_path[80]; /* of PostgreSQL's log, which must not stand on it: a full
                             disk would keep back what is said of it */

/* As the superuser, for whom three connections are kept. */
static int64_t done(void)
{
    return super_ask(
        "SELECT (SELECT count(*) FROM ledgerlock.charges) + (SELECT count(*)"
        " FROM ledgerlock.orders WHERE state <> 'pending')");
}

/* ---- connections ---- */

static bool take_connection(const char *url, PGconn **hog)
{
    *hog = PQconnectdb(url);
    if (PQstatus(*hog) == CONNECTION_OK)
        return true;
    assert_non_null(strstr(PQerrorMessage(*hog), "connection slots"));
    PQfinish(*hog);
    *hog = NULL;
    return false;
}

/* Takes every connection that ordinary users may have. The client waits for those of
 * sessions that are about to end: one that ended later would let a worker in. */
static void take_all_connections(void)
{
    char url[FIXTURE_URL];

    (void)snprintf(url, sizeof url,
                   "postgresql:///postgres?host=%s&user=ledgerlock_test_client",
                   private_pg.dir);
    fixture_exec(private_pg.url,
                 "SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE"
                 " application_name LIKE 'ledgerlock worker%'");
    for (size_t n = 0; n < HOGS - (gate_is_shut() ? 1 : 0); n++)
        FIXTURE_AWAIT(take_connection(url, &hogs[n]), "%zu connections of %d", n, HOGS);
}

static void give_connections_back(void)
{
    for (size_t i = 0; i < HOGS; i++) {
        PQfinish(hogs[i]);
        hogs[i] = NULL;
    }
}

/* Ends the workers' sessions and takes their places. Workers that run come back within
 * milliseconds and win that race again and again, so they stand still meanwhile. */
static void crowd_out(void)
{
    pid_t pids[POOL_CHILDREN];
    size_t n = pool_children(world.pool.pid, pids);

    for (size_t i = 0; i < n; i++)
        assert_int_equal(kill(pids[i], SIGSTOP), 0);
    take_all_connections();
    for (size_t i = 0; i < n; i++)
        assert_int_equal(kill(pids[i], SIGCONT), 0);
}

/* Guarantee: A PostgreSQL without a free connection is waited for. */
CASE(slots_exhausted_is_waited_for)
{
    unsigned lines;
    int64_t before;

    fault_as_shipped();
    world.has_no_clients = true; /* they would give a connection back */
    fault_slow_down();
    fault_start_midway();
    crowd_out();
    pool_log_wait(&world.pool, "event=pool.postgres_down");
    before = done();
    lines = pool_log_count(&world.pool, "\n");
    fixture_pause_ms(3000);
    assert_int_equal(done(), before);
    assert_true(pool_log_count(&world.pool, "\n") - lines <= 4);
    give_connections_back();
    fault_finish();
    pool_logged(0, "event=pool.worker_died");
}

/* Guarantee: A pool that starts and finds no free connection says so and exits 4. */
CASE(slots_exhausted_at_start_says_so_and_exits_4)
{
    take_all_connections();
    world_says(4, "slots", "run --once");
    give_connections_back();
    assert_int_equal(pool_work_done(), 0);
}

/* ---- disk ---- */

/* Writes until nothing more can be written. */
static void fill_the_disk(const char *path)
{
    static const char block[1 << 16];
    int fd = open(path, O_WRONLY | O_CREAT | O_CLOEXEC, 0600);

    assert_true(fd >= 0);
    while (write(fd, block, sizeof block) > 0)
        ;
    while (write(fd, block, 512) > 0)
        ;
    (void)close(fd);
}

static bool postgres_said(const char *text)
{
    static char log[1 << 18];
    ssize_t n;
    int fd = open(log_path, O_RDONLY | O_CLOEXEC);

    assert_true(fd >= 0);
    if (lseek(fd, 1 - (off_t)sizeof log, SEEK_END) < 0)
        (void)lseek(fd, 0, SEEK_SET);
    n = read(fd, log, sizeof log - 1);
    (void)close(fd);
    log[n > 0 ? n : 0] = '\0';
    return strstr(log, text) != NULL;
}

/* Guarantee: A PostgreSQL whose disk is full is waited for, and no order is there in
 * parts. */
CASE(disk_full_is_waited_for)
{
    char ballast[96];

    if (disk[0] == '\0') {
        print_message("SKIPPED: disk_full: a small file system needs root, so nothing "
                      "is known of a full disk here\n");
        skip();
    }
    (void)snprintf(ballast, sizeof ballast, "%s/ballast", disk);
    world.in_parts = true; /* an error may be of one row */
    fault_slow_down();
    fault_start_midway();
    fill_the_disk(ballast);
    for (int i = 0; !postgres_said("No space left on device"); i++) {
        assert_true(i < 6000);
        fault_assert_midway();
        if (i % 50 == 0)
            gate_feed(); /* who writes meets the end of the disk */
        fixture_pause_ms(20);
    }
    fixture_pause_ms(2000);
    assert_int_equal(unlink(ballast), 0);
    private_pg_start(&private_pg); /* if it has given up meanwhile */
    fault_finish();
}

/* ---- servers ---- */

/* A file system of this process and its children, gone with them. */
static bool mount_small_disk(void)
{
    if (geteuid() != 0 || unshare(CLONE_NEWNS) != 0 ||
        mount("none", "/", NULL, MS_REC | MS_PRIVATE, NULL) != 0)
        return false;
    fixture_temporary(disk, sizeof disk, "disk");
    return mkdtemp(disk) != NULL &&
           mount("ledgerlock-test", disk, "tmpfs", 0, "size=256m,mode=755") == 0;
}

static void log_elsewhere(void)
{
    char inside[128];
    int fd;

    (void)snprintf(log_path, sizeof log_path, "%s.log", disk);
    fd = open(log_path, O_WRONLY | O_CREAT | O_CLOEXEC, 0666);
    assert_true(fd >= 0);
    assert_int_equal(fchmod(fd, 0666), 0); /* the server is another user's */
    (void)close(fd);
    (void)snprintf(inside, sizeof inside, "%s/log", private_pg.dir);
    private_pg_kill(&private_pg);
    assert_int_equal(unlink(inside), 0);
    assert_int_equal(symlink(log_path, inside), 0);
    private_pg_start(&private_pg);
}

static void open_servers(void)
{
    const char *tmp = getenv("LL_TEST_TMP");
    char *kept = tmp != NULL ? strdup(tmp) : NULL;

    if (mount_small_disk())
        (void)setenv("LL_TEST_TMP", disk, 1);
    else
        disk[0] = '\0';
    private_pg_open(&private_pg);
    if (kept != NULL)
        (void)setenv("LL_TEST_TMP", kept, 1);
    else
        (void)unsetenv("LL_TEST_TMP");
    free(kept);
    if (disk[0] != '\0')
        log_elsewhere();
}

static void close_servers(void)
{
    private_pg_close(&private_pg);
    if (disk[0] != '\0') {
        (void)umount2(disk, MNT_DETACH);
        (void)rmdir(disk);
        (void)unlink(log_path);
    }
}

static void close_world(void)
{
    give_connections_back();
    private_pg_start(&private_pg);
    world_close();
}

GROUP(.plan = &world_plan,
      .start = open_servers,
      .stop = close_servers,
      .open = world_open,
      .close = close_world);

/* ---- what is not safe ---- */

WORLD_OPEN(open_small, FAULT_PLAN, .load = &fault_small)

/* A setting of the whole server; returns when new sessions have it. */
static void set(const char *setting, const char *value)
{
    char sql[128], answer[16] = "";

    (void)snprintf(sql, sizeof sql, "ALTER SYSTEM SET %s = %s", setting, value);
    fixture_exec(private_pg.url, sql);
    fixture_exec(private_pg.url, "SELECT pg_reload_conf()");
    (void)snprintf(sql, sizeof sql, "SHOW %s", setting);
    FIXTURE_AWAIT((fixture_query_text(private_pg.url, sql, answer, sizeof answer),
                   strcmp(answer, value) == 0),
                  "%s is %s", setting, answer);
}

static void assert_refused_without(const char *setting)
{
    char words[64];

    set(setting, "off");
    (void)snprintf(words, sizeof words, "PostgreSQL has %s=off:", setting);
    world_says(6, words, "run --once");
    fixture_assert_contains(said.err, "postgres.durability");
    assert_int_equal(pool_work_done(), 0);
    set(setting, "on");
}

/* Guarantee: A PostgreSQL without fsync, full_page_writes or synchronous_commit is
 * refused by name with exit code 6. */
CASE(unsafe_postgres_is_refused_by_name, .open = open_small)
{
    assert_refused_without("fsync");
    assert_refused_without("full_page_writes");
    assert_refused_without("synchronous_commit");
}

/* Guarantee: A PostgreSQL without fsync is worked on when `postgres.durability` is
 * `any`. */
CASE(unsafe_postgres_is_worked_on_when_one_says_so, .open = open_small)
{
    fault_as_shipped();
    set("synchronous_commit", "off");
    fixture_env("LEDGERLOCK_POSTGRES_DURABILITY", "any");
    fault_start("4");
    fault_recovers();
    fault_end();
}
