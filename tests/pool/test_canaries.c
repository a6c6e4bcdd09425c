/* canaries: two passwords that stand in a configuration file are in no log, no
 * argument, no environment, no output and no core. secrets.h looks into whatever a run
 * writes. */
#define _DEFAULT_SOURCE /* WCOREDUMP */
#include <fcntl.h>
#include <sys/resource.h>
#include <sys/stat.h>

#include "tests/lib/private_pg.h"
#include "tests/lib/secrets.h"
#include "tests/lib/steps.h"

static struct fixture_redis redis;
static char file[96]; /* the configuration */
static const struct pool_work small = {10, 2, 10, 8};

static void ask_for_password(void)
{
    char sql[512], hba[160];

    fixture_query_text(private_pg.url, "SHOW hba_file", hba, sizeof hba);
    (void)snprintf(
        sql, sizeof sql,
        "ALTER ROLE ledgerlock_worker PASSWORD '" SECRET_OF_POSTGRES "';"
        "COPY (SELECT 'local all ledgerlock_worker scram-sha-256' UNION ALL SELECT "
        "'local all all trust') TO '%s'; SELECT pg_reload_conf()",
        hba);
    fixture_exec(private_pg.url, sql);
}

static void write_file(void)
{
    char text[2048];

    (void)snprintf(
        text, sizeof text,
        "postgres: { url = \"postgresql://ledgerlock_worker:%s@/%s?host=%s\"; "
        "};\nredis: { url = \"unix://:%s@%s\"; };\n"
        "log: { level = \"debug\"; };\n",
        SECRET_OF_POSTGRES, world.f.database, private_pg.dir, SECRET_OF_REDIS,
        redis.url + strlen("unix://"));
    fixture_file(file, sizeof file, text, 0600);
}

static void open_all(void)
{
    static const struct world_plan plan = {.work = &small};

    private_pg_begin();
    world_open_as(&plan);
    ask_for_password();
    fixture_redis_start(&redis, "--requirepass", SECRET_OF_REDIS, NULL);
    write_file();
}

/* The runs have what stands in the file, and nothing else. */
static void use_file(void)
{
    fixture_forget_env();
    fixture_env("LEDGERLOCK_CONFIG", file);
    fixture_env("LEDGERLOCK_POSTGRES_URL", NULL);
    fixture_env("LEDGERLOCK_POSTGRES_PASSWORD_FILE", NULL);
    fixture_env("LEDGERLOCK_REDIS_URL", NULL);
    FIXTURE_AWAIT(fixture_run(&world.f, &said, "status", NULL) == 0, "status: %s",
                  said.err);
}

static void close_all(void)
{
    (void)unlink(file);
    fixture_redis_close(&redis);
    world_close();
    private_pg_end();
}

GROUP(.start = open_all, .stop = close_all, .open = use_file);

/* ---- processes ---- */

/* Nothing of a file of /proc; one that may not be read shows nothing. */
static void shows_none(pid_t pid, const char *name)
{
    const char *text = pool_proc(pid, name);

    if (strstr(text, "canary") != NULL)
        fail_msg("%s of %ld shows a password: %s", name, (long)pid, text);
}

/* Guarantee: Passwords are in no argument and no environment of the pool and its
 * workers, and in no log, even at level debug. */
CASE(processes_of_a_pool_show_no_password)
{
    pid_t pids[POOL_CHILDREN];
    size_t n;

    pool_start("run -w 2 --now %s", pool_work_now());
    pool_work_wait(pool_work_all());
    n = pool_children(world.pool.pid, pids);
    assert_true(n > 0 && n < POOL_CHILDREN);
    pids[n++] = world.pool.pid;
    for (size_t i = 0; i < n; i++) {
        shows_none(pids[i], "cmdline");
        shows_none(pids[i], "environ");
        shows_none(pids[i], "comm");
    }
    pool_stop();
    pool_logged(0, "canary");
    pool_work_assert_exact();
}

/* ---- outputs ---- */

static const struct {
    const char *name, *words;
} outputs[] = {{"config", "config show"},
               {"status", "status"},
               {"status_json", "status --json"},
               {"locks", "locks"},
               {"parked", "parked"},
               {"audit_json", "audit --json --now 2024-01-02T12:00:00Z --lag 0s"},
               {"run", "run --once --now 2024-01-02T12:00:00Z"}};

/* Guarantee: No verb prints a password: config, status, locks, audit, as text or JSON.
 */
CASE_ROWS(no_password_is_printed_by, outputs)
{
    world_runs(0, "%s", row->words);
    assert_true(strlen(said.out) > 0 || strcmp(row->name, "locks") == 0 ||
                strcmp(row->name, "parked") == 0);
    assert_null(strstr(said.out, "canary"));
    assert_null(strstr(said.err, "canary"));
}

/* ---- cores ---- */

static bool core_of(pid_t pid)
{
    int status;

    assert_int_equal(waitpid(pid, &status, 0), pid);
    assert_true(WIFSIGNALED(status) && WTERMSIG(status) == SIGABRT);
    return WCOREDUMP(status);
}

/* Guarantee: A crash of the program leaves no core with the passwords in it. */
CASE(crash_leaves_no_core)
{
    struct rlimit before, all;
    char dir[80];
    pid_t pid;

    assert_int_equal(getrlimit(RLIMIT_CORE, &before), 0);
    all = (struct rlimit){before.rlim_max, before.rlim_max};
    fixture_folder(dir, sizeof dir, "core");
    assert_int_equal(chdir(dir), 0);
    assert_int_equal(setrlimit(RLIMIT_CORE, &all), 0);
    pid = fork();
    if (pid == 0) {
        (void)signal(SIGABRT, SIG_DFL);
        abort();
    }
    if (!core_of(pid))
        print_message("this machine makes no cores at all\n");
    pool_start("run --now %s", pool_work_now());
    pool_log_wait(&world.pool, "pool.started");
    assert_int_equal(kill(world.pool.pid, SIGABRT), 0);
    assert_false(core_of(world.pool.pid));
    world.pool.pid = 0;
    assert_int_equal(setrlimit(RLIMIT_CORE, &before), 0);
    assert_int_equal(chdir("/"), 0);
    fixture_remove(dir, "none");
}

/* ---- sources of passwords ---- */

CASE(file_that_others_read_is_refused)
{
    assert_int_equal(chmod(file, 0640), 0);
    world_says(3, "holds a password and may be read by others; run: chmod 600 /",
               "status");
    assert_null(strstr(said.err, "canary"));
    assert_int_equal(chmod(file, 0600), 0);
}

/* clang-format off */
static const struct {
    const char *name, *variable, *value, *words, *part;
} places[] = {
    {"a_flag_of_postgres", NULL, NULL, "status --postgres-url postgresql://u:" SECRET_OF_POSTGRES "@h/d",
     "flag --postgres-url: no password may stand there; put it into a file of mode 600, and name that in postgres.password_file"},
    {"a_flag_of_redis", NULL, NULL, "status --redis-url redis://:" SECRET_OF_REDIS "@h",
     "flag --redis-url: no password may stand there; put it into a file of mode 600, and name that in redis.password_file"},
    {"words_of_libpq", NULL, NULL, "status --postgres-url 'host=h password=" SECRET_OF_POSTGRES "'", "no password may stand there"},
    {"the_environment", "LEDGERLOCK_REDIS_URL", "redis://:" SECRET_OF_REDIS "@h", "status",
     "environment LEDGERLOCK_REDIS_URL: no password may stand there"},
    {"the_variable_of_libpq", "PGPASSWORD", SECRET_OF_POSTGRES, "status", "environment PGPASSWORD: no password may stand there"},
};

/* clang-format on */

/* Guarantee: Passwords come from files that nobody else may read, never from the
 * command line or the environment. */
CASE_ROWS(no_password_is_taken_from, places)
{
    if (row->variable != NULL)
        fixture_env(row->variable, row->value);
    world_says(row->variable == NULL ? 2 : 3, row->part, "%s", row->words);
    assert_null(strstr(said.err, "canary"));
}

/* The URL without its password. */
static void without_password(void)
{
    char url[FIXTURE_URL];

    fixture_url_as(&world.f, "ledgerlock_worker", url, sizeof url);
    fixture_env("LEDGERLOCK_POSTGRES_URL", url);
}

CASE(password_comes_from_a_descriptor)
{
    char path[96], name[32];
    int fd;

    fixture_file(path, sizeof path, SECRET_OF_POSTGRES "\n", 0600);
    fd = open(path, O_RDONLY);
    assert_true(fd >= 0);
    (void)unlink(path);
    (void)snprintf(name, sizeof name, "/dev/fd/%d", fd);
    without_password();
    fixture_env("LEDGERLOCK_POSTGRES_PASSWORD_FILE", name);
    world_runs(0, "status");
    (void)close(fd);
}

/* libpq passes over a file that others may read. */
CASE(pgpassfile_is_taken_only_if_nobody_else_reads_it)
{
    char path[96];

    fixture_file(path, sizeof path, "*:*:*:*:" SECRET_OF_POSTGRES "\n", 0600);
    without_password();
    fixture_env("PGPASSFILE", path);
    world_runs(0, "status");
    assert_int_equal(chmod(path, 0640), 0);
    world_says(4, "no password supplied", "status");
    (void)unlink(path);
}
