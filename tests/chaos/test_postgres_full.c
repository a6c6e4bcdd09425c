/* PostgreSQL has no room: no connection is left, or its disk is full. The workers stay,
 * say so once, and go on when there is room again. */
#define _GNU_SOURCE /* unshare */
#include <fcntl.h>
#include <libpq-fe.h>
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mount.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "tests/lib/chaos_world.h"
#include "tests/lib/private_pg.h"

enum { HOGS = 80 };

static struct private_pg postgres;
static PGconn *hogs[HOGS];
static char disk[64];     /* the small file system; "" when there is none */
static char log_path[80]; /* of PostgreSQL's log, which must not stand on it: a full
                             disk would keep back what is said of it */

static const char workers[] =
    "SELECT count(*) FROM pg_stat_activity WHERE application_name LIKE"
    " 'ledgerlock worker%'";

/* As the superuser, for whom three connections are kept. */
static int64_t done(void)
{
    char url[FIXTURE_URL];

    (void)snprintf(url, sizeof url, "postgresql:///%s?host=%s&user=postgres",
                   chaos.f.database, postgres.dir);
    return fixture_query_int8(
        url, "SELECT (SELECT count(*) FROM ledgerlock.charges) + (SELECT count(*)"
             " FROM ledgerlock.orders WHERE state <> 'pending')");
}

/* ---- connections ---- */

/* Takes every connection that is left to ordinary users; asserts that it was so. */
static void take_all_connections(void)
{
    char url[FIXTURE_URL];
    size_t n = 0;

    (void)snprintf(url, sizeof url,
                   "postgresql:///postgres?host=%s&user=ledgerlock_client",
                   postgres.dir);
    while (n < HOGS && hogs[n] != NULL)
        n++;
    for (; n < HOGS; n++) {
        hogs[n] = PQconnectdb(url);
        if (PQstatus(hogs[n]) == CONNECTION_OK)
            continue;
        assert_non_null(strstr(PQerrorMessage(hogs[n]), "connection slots"));
        PQfinish(hogs[n]);
        hogs[n] = NULL;
        return;
    }
    fail_msg("%d connections, and still no end", HOGS);
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
    size_t n = pool_children(chaos.pool.pid, pids);

    for (size_t i = 0; i < n; i++)
        assert_int_equal(kill(pids[i], SIGSTOP), 0);
    do {
        (void)fixture_query_int8(postgres.url,
                                 "SELECT count(pg_terminate_backend(pid, 1000)) FROM"
                                 " pg_stat_activity WHERE application_name LIKE"
                                 " 'ledgerlock worker%'");
        take_all_connections();
    } while (fixture_query_int8(postgres.url, workers) > 0);
    for (size_t i = 0; i < n; i++)
        assert_int_equal(kill(pids[i], SIGCONT), 0);
}

static void slots_exhausted_is_waited_for(void **state)
{
    unsigned lines;
    int64_t before;

    (void)state;
    chaos_slow_down();
    chaos_start_midway();
    crowd_out();
    pool_log_wait(&chaos.pool, "event=pool.postgres_down", 5);
    before = done();
    lines = pool_log_count(&chaos.pool, "\n");
    fixture_pause_ms(3000);
    assert_int_equal(done(), before);
    assert_true(pool_log_count(&chaos.pool, "\n") - lines <= 4);
    give_connections_back();
    chaos_assert_midway();
    chaos_full_speed();
    chaos_recovers(40);
    assert_int_equal(pool_log_count(&chaos.pool, "event=pool.worker_died"), 0);
    chaos_end();
}

static void slots_exhausted_at_start_says_so_and_exits_4(void **state)
{
    static struct fixture_output o;

    (void)state;
    take_all_connections();
    assert_int_equal(fixture_run(&chaos.f, &o, "run", "--once", NULL), 4);
    fixture_assert_contains(o.err, "slots");
    give_connections_back();
    assert_int_equal(pool_work_done(&chaos.f), 0);
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

static void disk_full_is_waited_for(void **state)
{
    char ballast[96];

    (void)state;
    if (disk[0] == '\0') {
        print_message("SKIPPED: disk_full: a small file system needs root, so nothing "
                      "is known of a full disk here\n");
        skip();
    }
    (void)snprintf(ballast, sizeof ballast, "%s/ballast", disk);
    chaos_slow_down();
    chaos_start_midway();
    fill_the_disk(ballast);
    for (int i = 0; !postgres_said("No space left on device"); i++) {
        assert_true(i < 500);
        chaos_assert_midway();
        fixture_pause_ms(20);
    }
    fixture_pause_ms(2000);
    assert_int_equal(unlink(ballast), 0);
    private_pg_start(&postgres); /* if it has given up meanwhile */
    chaos_assert_midway();
    chaos_full_speed();
    chaos_recovers(60);
    chaos_end();
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
           mount("ledgerlock-test", disk, "tmpfs", 0, "size=112m,mode=755") == 0;
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
    (void)snprintf(inside, sizeof inside, "%s/log", postgres.dir);
    private_pg_kill(&postgres);
    assert_int_equal(unlink(inside), 0);
    assert_int_equal(symlink(log_path, inside), 0);
    private_pg_start(&postgres);
}

static int open_servers(void **state)
{
    const char *tmp = getenv("LEDGERLOCK_TEST_TMP");
    char *kept = tmp != NULL ? strdup(tmp) : NULL;

    (void)state;
    if (mount_small_disk())
        (void)setenv("LEDGERLOCK_TEST_TMP", disk, 1);
    else
        disk[0] = '\0';
    private_pg_open(&postgres);
    if (kept != NULL)
        (void)setenv("LEDGERLOCK_TEST_TMP", kept, 1);
    else
        (void)unsetenv("LEDGERLOCK_TEST_TMP");
    free(kept);
    if (disk[0] != '\0')
        log_elsewhere();
    return 0;
}

static int close_servers(void **state)
{
    (void)state;
    private_pg_close(&postgres);
    if (disk[0] != '\0') {
        (void)umount2(disk, MNT_DETACH);
        (void)rmdir(disk);
        (void)unlink(log_path);
    }
    return 0;
}

static int close_world(void **state)
{
    give_connections_back();
    private_pg_start(&postgres);
    return chaos_close(state);
}

#define FULL_TEST(name) cmocka_unit_test_setup_teardown(name, chaos_open, close_world)

int main(void)
{
    const struct CMUnitTest tests[] = {
        FULL_TEST(slots_exhausted_is_waited_for),
        FULL_TEST(slots_exhausted_at_start_says_so_and_exits_4),
        FULL_TEST(disk_full_is_waited_for),
    };

    fixture_need_servers();
    return cmocka_run_group_tests(tests, open_servers, close_servers);
}
