/* pool: how it behaves towards its machine: the log is one record a line and a line a
 * write, no password is in it, the workers are small and an idle pool is quiet. */
#define _GNU_SOURCE /* pipe2, O_DIRECT, F_SETPIPE_SZ */
#include <ctype.h>
#include <fcntl.h>
#include <inttypes.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include "tests/lib/pool_world.h"
#include "tests/lib/proxy.h"

#define CANARY "canary-b7Fq9"

enum { PIPE_PAGES = 16 };

static struct fixture f;
static struct fixture_child pool;
static struct fixture_redis redis;
static struct proxy to_postgres, to_redis;

static int open_world(void **state)
{
    (void)state;
    fixture_open_migrated(&f);
    fixture_become(&f, "ledgerlock_worker");
    return 0;
}

static int close_world(void **state)
{
    (void)state;
    if (pool.pid > 0) {
        (void)kill(pool.pid, SIGKILL);
        (void)waitpid(pool.pid, NULL, 0);
    }
    memset(&pool, 0, sizeof pool);
    proxy_close(&to_postgres);
    proxy_close(&to_redis);
    fixture_redis_close(&redis);
    fixture_close(&f);
    return 0;
}

/* ---- the log ---- */

static const char *skip_value(const char *p)
{
    if (*p != '"') {
        while (isgraph((unsigned char)*p) && *p != '"' && *p != '=')
            p++;
        return p;
    }
    for (p++; *p != '"'; p++) {
        if ((unsigned char)*p < 0x20)
            return NULL;
        if (*p == '\\' && *++p != '"' && *p != '\\')
            return NULL;
    }
    return p + 1;
}

/* key=value key="quoted \" value" ..., one blank between, a newline at the end. */
static bool is_logfmt(const char *line)
{
    const char *p = line;

    for (;;) {
        size_t key = strspn(p, "abcdefghijklmnopqrstuvwxyz0123456789_");

        if (key == 0 || p[key] != '=')
            return false;
        p = skip_value(p + key + 1);
        if (p == NULL)
            return false;
        if (strcmp(p, "\n") == 0)
            return true;
        if (*p++ != ' ')
            return false;
    }
}

static void assert_good_line(const char *line)
{
    if (strncmp(line, "ts=20", 5) != 0 || !is_logfmt(line))
        fail_msg("no logfmt record: %s", line);
    if (strstr(line, " level=") == NULL || strstr(line, " event=") == NULL ||
        strstr(line, " pid=") == NULL)
        fail_msg("level, event or pid is missing: %s", line);
    if (strstr(line, CANARY) != NULL)
        fail_msg("a password is in the log: %s", line);
}

/* Starts a run whose standard error is a pipe in packet mode: one read gets what one
 * write wrote. `full`: so many packets lie in it before. Returns the reading end. */
static int spawn_with_packets(const char *now, int full)
{
    int fds[2];

    assert_int_equal(pipe2(fds, O_DIRECT | O_CLOEXEC), 0);
    assert_int_equal(fcntl(fds[1], F_SETPIPE_SZ, PIPE_PAGES * 4096), PIPE_PAGES * 4096);
    for (int i = 0; i < full; i++)
        assert_int_equal(write(fds[1], ".", 1), 1);
    (void)fflush(NULL);
    pool.pid = fork();
    assert_true(pool.pid >= 0);
    if (pool.pid == 0) {
        (void)setenv("LEDGERLOCK_POSTGRES_URL", f.url, 1);
        (void)setenv("LEDGERLOCK_REDIS_URL", f.redis_url, 1);
        (void)setenv("LEDGERLOCK_LOCKS_PREFIX", f.prefix, 1);
        (void)setenv("LEDGERLOCK_LOCKS_LEASE_MS", "2000", 1);
        (void)dup2(fds[1], STDERR_FILENO);
        (void)execl(fixture_program(), "ledgerlock", "run", "--once", "-w", "8",
                    "--now", now, "--batch", "5", "--log-level", "debug", NULL);
        _exit(127);
    }
    (void)close(fds[1]);
    return fds[0];
}

/* Checks every line until the run closes its end; returns how many there were. */
static unsigned check_packets(int fd, int seconds)
{
    int64_t deadline = pool_now_ms() + seconds * 1000;
    struct pollfd p = {.fd = fd, .events = POLLIN};
    char line[4096 + 1];
    unsigned lines = 0;
    ssize_t n;

    while (pool_now_ms() < deadline) {
        if (poll(&p, 1, 100) <= 0)
            continue;
        n = read(fd, line, sizeof line - 1);
        if (n <= 0)
            return lines;
        line[n] = '\0';
        if (memchr(line, '\n', (size_t)n) != line + n - 1)
            fail_msg("a write that is not one line: %s", line);
        assert_good_line(line);
        lines++;
    }
    fail_msg("the run did not end within %d s", seconds);
    return 0;
}

static void plant_canaries(void)
{
    char url[FIXTURE_URL], listener[FIXTURE_URL];

    (void)snprintf(url, sizeof url, "%.*s&password=" CANARY,
                   (int)(sizeof url - sizeof "&password=" CANARY), f.url);
    (void)snprintf(f.url, sizeof f.url, "%s", url);
    proxy_open_postgres(&to_postgres, &f);
    memset(&redis, 0, sizeof redis);
    fixture_redis_start(&redis, "--requirepass", CANARY, NULL);
    proxy_open(&to_redis, redis.url + strlen("unix://"), NULL);
    (void)snprintf(listener, sizeof listener, "redis://:" CANARY "@127.0.0.1:%d",
                   to_redis.port);
    (void)snprintf(f.redis_url, sizeof f.redis_url, "%s", listener);
}

static void log_of_eight_troubled_workers_is_one_record_a_write(void **state)
{
    static const struct pool_work work = {
        .users = 200, .periods = 4, .orders = 100, .units = 50};
    unsigned lines;
    int fd;

    (void)state;
    pool_work_put(&f, &work);
    plant_canaries();
    proxy_cut_before(&to_postgres, PROXY_COMMIT, PROXY_COMMIT_SIZE, 40);
    proxy_cut_after(&to_redis, "EVALSHA", 7, 15);
    fd = spawn_with_packets(pool_work_now(&work), 0);
    lines = check_packets(fd, 40);
    (void)close(fd);
    assert_int_equal(fixture_reap(pool.pid, 5), 0);
    pool.pid = 0;
    assert_int_equal(proxy_count(&to_postgres, PROXY_CUTS_BEFORE), 40);
    assert_int_equal(proxy_count(&to_redis, PROXY_CUTS_AFTER), 15);
    assert_true(lines >= 40);
    pool_work_assert_exact(&f, &work);
}

static void pool_whose_log_nobody_reads_works_to_the_end(void **state)
{
    static const struct pool_work work = {
        .users = 200, .periods = 4, .orders = 100, .units = 50};
    int bytes = 0, fd;

    (void)state;
    pool_work_put(&f, &work);
    fd = spawn_with_packets(pool_work_now(&work), PIPE_PAGES);
    assert_int_equal(fixture_reap(pool.pid, 20), 0);
    pool.pid = 0;
    assert_int_equal(ioctl(fd, FIONREAD, &bytes), 0);
    assert_int_equal(bytes, PIPE_PAGES); /* it was full to the end */
    (void)close(fd);
    pool_work_assert_exact(&f, &work);
}

static void assert_no_canary(const struct fixture_output *o)
{
    if (strstr(o->out, CANARY) != NULL || strstr(o->err, CANARY) != NULL)
        fail_msg("a password is shown: %s%s", o->out, o->err);
}

static void password_in_a_url_is_in_no_message(void **state)
{
    static struct fixture_output o;
    char good[FIXTURE_URL];

    (void)state;
    plant_canaries();
    (void)snprintf(good, sizeof good, "%s", f.url);
    (void)snprintf(f.url, sizeof f.url,
                   "postgresql://u:" CANARY "@127.0.0.1:1/nothing?connect_timeout=2");
    assert_int_equal(fixture_run(&f, &o, "run", "--once", NULL), 4);
    assert_no_canary(&o);
    (void)snprintf(f.url, sizeof f.url, "postgresql://u:" CANARY "@[broken/nothing");
    assert_int_not_equal(fixture_run(&f, &o, "run", "--once", NULL), 0);
    assert_no_canary(&o);
    (void)snprintf(f.url, sizeof f.url, "%s", good);
    (void)snprintf(f.redis_url, sizeof f.redis_url, "redis://:" CANARY "x@127.0.0.1:%d",
                   to_redis.port);
    assert_int_not_equal(fixture_run(&f, &o, "run", "--once", NULL), 0);
    assert_no_canary(&o);
    (void)snprintf(f.redis_url, sizeof f.redis_url, "redis://:" CANARY "@127.0.0.1:x");
    assert_int_not_equal(fixture_run(&f, &o, "run", "--once", NULL), 0);
    assert_no_canary(&o);
    assert_int_equal(fixture_run(&f, &o, "config", "show", NULL), 0);
    assert_no_canary(&o);
}

/* ---- memory ---- */

/* Largest resident set that a process ever had, in KiB; 0 when it is gone. */
static long high_water_kib(pid_t pid)
{
    char path[64], line[256];
    long kib = 0;
    FILE *file;

    (void)snprintf(path, sizeof path, "/proc/%ld/status", (long)pid);
    file = fopen(path, "r");
    if (file == NULL)
        return 0;
    while (fgets(line, sizeof line, file) != NULL) {
        if (sscanf(line, "VmHWM: %ld", &kib) == 1)
            break;
    }
    (void)fclose(file);
    return kib;
}

#ifndef __SANITIZE_ADDRESS__
static void workers_stay_under_16_mib_with_a_large_backlog(void **state)
{
    static const struct pool_work work = {
        .users = 25000, .periods = 4, .orders = 200, .units = 100};
    pid_t pids[POOL_CHILDREN];
    long largest = 0;

    (void)state;
    pool_work_put(&f, &work);
    assert_true(pool_work_all(&work) >= 100000);
    fixture_spawn(&f, &pool, "run", "-w", "4", "--batch", "1000", "--poll-ms", "50",
                  "--now", pool_work_now(&work), NULL);
    pool_work_wait(&f, pool_work_all(&work), 60);
    assert_int_equal(pool_children(pool.pid, pids), 4);
    for (size_t i = 0; i < 4; i++) {
        long kib = high_water_kib(pids[i]);

        assert_true(kib > 1024);
        largest = kib > largest ? kib : largest;
    }
    print_message("largest worker: %ld KiB\n", largest);
    assert_in_range(largest, 0, 16 * 1024 - 1);
    (void)kill(pool.pid, SIGTERM);
    pool_assert_ends(&pool, 0, 10);
    assert_int_equal(pool_log_count(&pool, "event=pool.worker_died"), 0);
}
#else
static void workers_stay_under_16_mib_with_a_large_backlog(void **state)
{
    (void)state;
    (void)high_water_kib;
    print_message("SKIPPED: the sanitizer's own memory would be measured\n");
    skip();
}
#endif

/* ---- idle ---- */

static void idle_pool_asks_less_than_twenty_times_a_second(void **state)
{
    static const struct pool_work work = {
        .users = 10, .periods = 1, .orders = 1, .units = 1};
    int asked;

    (void)state;
    pool_work_put(&f, &work);
    fixture_spawn(&f, &pool, "run", "-w", "4", "--now", pool_work_now(&work), NULL);
    pool_work_wait(&f, pool_work_all(&work), 10);
    fixture_pause_ms(1200);
    asked = pool_asks(&f, 3000); /* a look is a statement for each of two jobs */
    print_message("idle: seen to ask %d times in 3 s\n", asked);
    assert_in_range(2 * asked, 1, 60);
    (void)kill(pool.pid, SIGTERM);
    pool_assert_ends(&pool, 0, 10);
}

#define MANNERS_TEST(name)                                                             \
    cmocka_unit_test_setup_teardown(name, open_world, close_world)

int main(void)
{
    const struct CMUnitTest tests[] = {
        MANNERS_TEST(log_of_eight_troubled_workers_is_one_record_a_write),
        MANNERS_TEST(pool_whose_log_nobody_reads_works_to_the_end),
        MANNERS_TEST(password_in_a_url_is_in_no_message),
        MANNERS_TEST(workers_stay_under_16_mib_with_a_large_backlog),
        MANNERS_TEST(idle_pool_asks_less_than_twenty_times_a_second),
    };

    fixture_need_servers();
    return cmocka_run_group_tests(tests, NULL, NULL);
}
