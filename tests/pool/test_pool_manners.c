/* pool: how it behaves towards its machine: the log is one record a line and a line a
 * write, no password is in it, the workers are small and an idle pool is quiet. */
#define _GNU_SOURCE /* pipe2, O_DIRECT, F_SETPIPE_SZ */
#include <ctype.h>
#include <fcntl.h>
#include <poll.h>
#include <sys/ioctl.h>

#include "tests/lib/runs.h"
#include "tests/lib/steps.h"

#define CANARY "canary-b7Fq9"

enum { PIPE_PAGES = 16 };

static struct fixture_redis redis;
static struct proxy to_postgres, to_redis;
static char url_file[96]; /* of the URLs that hold a password; "": there is none */

static void undo(void)
{
    proxy_close(&to_postgres);
    proxy_close(&to_redis);
    fixture_redis_close(&redis);
    (void)unlink(url_file);
    url_file[0] = '\0';
}

WORLD(.undo = undo);

/* ---- the log ---- */

/* One run of the program whose log has no line of level warn or above. */
static void runs_quietly(const struct fixture *f, const char *words)
{
    runs(f, 0, "%s", words);
    promise_true(strstr(said.err, " level=warn ") == NULL);
    promise_true(strstr(said.err, " level=error ") == NULL);
}

/* Guarantee: The first run on new servers warns of nothing. */
CASE(first_run_on_new_servers_warns_of_nothing)
{
    struct fixture first OWNED(fixture_close);

    fixture_open(&first);
    pool_redis_start(&redis);
    (void)strcpy(first.redis_url, redis.url);
    runs_quietly(&first, "migrate");
    runs_quietly(&first, "seed --users 100 --subscriptions 200 --skus 20 --orders 100");
    fixture_become(&first, "ledgerlock_worker");
    runs_quietly(&first, "run --once -w 2");
    fixture_assert_contains(said.err, "level=info");
    fixture_become(&first, "ledgerlock_owner");
    holds(&first, 0, "SELECT count(*) FROM lock_incidents");
}

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
    world.pool.pid = fork();
    assert_true(world.pool.pid >= 0);
    if (world.pool.pid == 0) {
        if (url_file[0] != '\0')
            (void)setenv("LEDGERLOCK_CONFIG", url_file, 1);
        if (url_file[0] == '\0')
            (void)setenv("LEDGERLOCK_POSTGRES_URL", world.f.url, 1);
        if (url_file[0] == '\0')
            (void)setenv("LEDGERLOCK_REDIS_URL", world.f.redis_url, 1);
        (void)setenv("LEDGERLOCK_LOCKS_PREFIX", world.f.prefix, 1);
        (void)setenv("LEDGERLOCK_LOCKS_LEASE_MS", "2000", 1);
        (void)dup2(fds[1], STDERR_FILENO);
        (void)execl(fixture_program(), "ledgerlock", "run", "--once", "-w", "8",
                    "--now", now, "--batch", "5", "--log-level", "debug", NULL);
        _exit(127);
    }
    (void)close(fds[1]);
    return fds[0];
}

/* Waits for the pool; returns how many bytes of its log were not read. A row that
 * another worker held as the pool ended may be left (exit code 7): then a second pool,
 * whose log nobody can read, does the rest. */
static int end_work(const char *now, int fd)
{
    int code = fixture_reap(world.pool.pid, 90), bytes = 0;

    assert_int_equal(ioctl(fd, FIONREAD, &bytes), 0);
    (void)close(fd);
    world.pool.pid = 0;
    if (code == 7) {
        (void)close(spawn_with_packets(now, 0));
        code = fixture_reap(world.pool.pid, 90);
        world.pool.pid = 0;
    }
    assert_int_equal(code, 0);
    return bytes;
}

/* Checks every line until the run closes its end; returns how many there were. */
static unsigned check_packets(int fd, int seconds)
{
    int64_t deadline = fixture_now_ms() + seconds * 1000;
    struct pollfd p = {.fd = fd, .events = POLLIN};
    char line[4096 + 1];
    unsigned lines = 0;
    ssize_t n;

    while (fixture_now_ms() < deadline) {
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

/* The runs that follow have the URLs of the world from a file: passwords may stand
 * there alone. */
static void write_urls(void)
{
    char text[2 * FIXTURE_URL + 64];

    (void)unlink(url_file);
    (void)snprintf(text, sizeof text,
                   "postgres: { url = \"%s\"; };\nredis: { url = \"%s\"; };\n",
                   world.f.url, world.f.redis_url);
    fixture_file(url_file, sizeof url_file, text, 0600);
    fixture_forget_env();
    fixture_env("LEDGERLOCK_CONFIG", url_file);
    fixture_env("LEDGERLOCK_POSTGRES_URL", NULL);
    fixture_env("LEDGERLOCK_REDIS_URL", NULL);
}

static void plant_canaries(void)
{
    char url[FIXTURE_URL], listener[FIXTURE_URL];

    (void)snprintf(url, sizeof url, "%.*s&password=" CANARY,
                   (int)(sizeof url - sizeof "&password=" CANARY), world.f.url);
    (void)snprintf(world.f.url, sizeof world.f.url, "%s", url);
    proxy_open_postgres(&to_postgres, &world.f);
    memset(&redis, 0, sizeof redis);
    fixture_redis_start(&redis, "--requirepass", CANARY, NULL);
    proxy_open(&to_redis, redis.url + strlen("unix://"), NULL);
    (void)snprintf(listener, sizeof listener, "redis://:" CANARY "@127.0.0.1:%d",
                   to_redis.port);
    (void)snprintf(world.f.redis_url, sizeof world.f.redis_url, "%s", listener);
    write_urls();
}

/* Guarantee: The log of eight workers in trouble is one record a write, without a
 * password. */
CASE(log_of_eight_troubled_workers_is_one_record_a_write)
{
    static const struct pool_work work = {
        .users = 200, .periods = 4, .orders = 100, .units = 50};
    unsigned lines;
    int fd;

    pool_work_put(&world.f, &work);
    plant_canaries();
    proxy_cut_before(&to_postgres, PROXY_COMMIT, PROXY_COMMIT_SIZE, 40);
    proxy_cut_after(&to_redis, "EVALSHA", 7, 15);
    fd = spawn_with_packets(pool_work_now(&work), 0);
    lines = check_packets(fd, 400);
    (void)end_work(pool_work_now(&work), fd);
    assert_int_equal(proxy_count(&to_postgres, PROXY_CUTS_BEFORE), 40);
    assert_int_equal(proxy_count(&to_redis, PROXY_CUTS_AFTER), 15);
    assert_true(lines >= 40);
    pool_work_assert_exact(&world.f, &work);
}

CASE(pool_whose_log_nobody_reads_works_to_the_end)
{
    static const struct pool_work work = {
        .users = 200, .periods = 4, .orders = 100, .units = 50};
    int fd;

    pool_work_put(&world.f, &work);
    fd = spawn_with_packets(pool_work_now(&work), PIPE_PAGES);
    assert_int_equal(end_work(pool_work_now(&work), fd), PIPE_PAGES); /* still full */
    pool_work_assert_exact(&world.f, &work);
}

static void assert_no_canary(void)
{
    if (strstr(world.o.out, CANARY) != NULL || strstr(world.o.err, CANARY) != NULL)
        fail_msg("a password is shown: %s%s", world.o.out, world.o.err);
}

/* A run with these URLs fails and shows no password. */
static void assert_hidden(const char *url, const char *redis_url)
{
    (void)snprintf(world.f.url, sizeof world.f.url, "%s", url);
    (void)snprintf(world.f.redis_url, sizeof world.f.redis_url, "%s", redis_url);
    write_urls();
    assert_int_not_equal(fixture_run(&world.f, &world.o, "run", "--once", NULL), 0);
    assert_no_canary();
}

/* Guarantee: No message holds a password of a URL. */
CASE(password_in_a_url_is_in_no_message)
{
    char url[FIXTURE_URL], redis_url[FIXTURE_URL], refused[96];

    plant_canaries();
    (void)strcpy(url, world.f.url);
    (void)strcpy(redis_url, world.f.redis_url);
    (void)snprintf(refused, sizeof refused, "redis://:" CANARY "x@127.0.0.1:%d",
                   to_redis.port);
    assert_hidden("postgresql://u:" CANARY "@127.0.0.1:1/nothing?connect_timeout=2",
                  redis_url);
    assert_int_equal(world.o.code, 4);
    assert_hidden("postgresql://u:" CANARY "@[broken/nothing", redis_url);
    assert_hidden(url, refused);
    assert_hidden(url, "redis://:" CANARY "@127.0.0.1:x");
    world_runs(0, "config show");
    assert_no_canary();
}

/* ---- memory ---- */

/* Largest resident set that a process ever had, in KiB; 0 when it is gone. */
static long high_water_kib(pid_t pid)
{
    const char *at = strstr(pool_proc(pid, "status"), "VmHWM:");

    return at != NULL ? strtol(at + strlen("VmHWM:"), NULL, 10) : 0;
}

#ifndef __SANITIZE_ADDRESS__
CASE(workers_stay_under_16_mib_with_a_large_backlog)
{
    static const struct pool_work work = {
        .users = 25000, .periods = 4, .orders = 200, .units = 100};
    pid_t pids[POOL_CHILDREN];
    long largest = 0;

    pool_work_put(&world.f, &work);
    assert_true(pool_work_all(&work) >= 100000);
    pool_start("run -w 3 --batch 1000 --billing-poll-ms 50 --now %s",
               pool_work_now(&work));
    pool_work_wait(&world.f, pool_work_all(&work));
    assert_int_equal(pool_children(world.pool.pid, pids), 4);
    for (size_t i = 0; i < 4; i++) {
        long kib = high_water_kib(pids[i]);

        assert_true(kib > 1024);
        largest = kib > largest ? kib : largest;
    }
    print_message("largest worker: %ld KiB\n", largest);
    assert_in_range(largest, 0, 16 * 1024 - 1);
    pool_stop();
    pool_logged(0, "event=pool.worker_died");
}
#else
CASE(workers_stay_under_16_mib_with_a_large_backlog)
{
    (void)high_water_kib;
    print_message("SKIPPED: the sanitizer's own memory would be measured\n");
    skip();
}
#endif
