/* fixture: databases by libpq, the program by fork and exec, Redis by its own process.
 */
#define _XOPEN_SOURCE 700 /* nftw */
#include "tests/lib/fixture.h"

#include <errno.h>
#include <fcntl.h>
#include <libpq-fe.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "tests/lib/secrets.h"

extern char **environ;

enum { MAX_WORDS = 32, MAX_EXTRA = 16 };

static char extra_env[MAX_EXTRA][2][512];
static size_t extra_ct;

void fixture_pause_ms(long ms)
{
    struct timespec ts = {ms / 1000, ms % 1000 * 1000000L};

    (void)nanosleep(&ts, NULL);
}

static int64_t now_ms(void)
{
    struct timespec ts;

    (void)clock_gettime(CLOCK_MONOTONIC, &ts);
    return (int64_t)ts.tv_sec * 1000 + ts.tv_nsec / 1000000;
}

/* ---- databases ---- */

static const char *super_url(void)
{
    return getenv("LEDGERLOCK_TEST_PG");
}

void fixture_need_servers(void)
{
    if (getenv("LEDGERLOCK_TEST_ONLY") != NULL)
        cmocka_set_test_filter(getenv("LEDGERLOCK_TEST_ONLY"));
    if (super_url() != NULL && getenv("LEDGERLOCK_TEST_REDIS") != NULL)
        return;
    (void)printf("skipped: LEDGERLOCK_TEST_PG and LEDGERLOCK_TEST_REDIS are not set; "
                 "scripts/test starts servers and sets them\n");
    exit(77);
}

/* Server, port and nothing else of the superuser's URL; database and role are ours. */
static void make_url(const char *database, const char *role, char *url, size_t size)
{
    PQconninfoOption *options = PQconninfoParse(super_url(), NULL);
    size_t n = (size_t)snprintf(url, size, "postgresql:///%s?user=%s", database, role);

    assert_non_null(options);
    for (PQconninfoOption *o = options; o->keyword != NULL; o++) {
        bool is_place =
            strcmp(o->keyword, "host") == 0 || strcmp(o->keyword, "port") == 0;

        if (is_place && o->val != NULL && n < size)
            n += (size_t)snprintf(url + n, size - n, "&%s=%s", o->keyword, o->val);
    }
    PQconninfoFree(options);
    assert_true(n < size);
}

void fixture_url_as(const struct fixture *f, const char *role, char *url, size_t size)
{
    make_url(f->database, role, url, size);
}

void fixture_become(struct fixture *f, const char *role)
{
    fixture_url_as(f, role, f->url, sizeof f->url);
}

void fixture_open(struct fixture *f)
{
    static unsigned count;
    char sql[256];

    memset(f, 0, sizeof *f);
    extra_ct = 0;
    (void)snprintf(f->database, sizeof f->database, "lltest_%ld_%u", (long)getpid(),
                   ++count);
    (void)snprintf(f->prefix, sizeof f->prefix, "%s:", f->database);
    (void)snprintf(f->redis_url, sizeof f->redis_url, "%s",
                   getenv("LEDGERLOCK_TEST_REDIS"));
    (void)snprintf(sql, sizeof sql, "CREATE DATABASE %s OWNER ledgerlock_owner",
                   f->database);
    fixture_exec(super_url(), sql);
    fixture_become(f, "ledgerlock_owner");
}

void fixture_close(struct fixture *f)
{
    char sql[256];

    extra_ct = 0;
    if (f->database[0] != '\0') {
        (void)snprintf(sql, sizeof sql, "DROP DATABASE IF EXISTS %s WITH (FORCE)",
                       f->database);
        fixture_exec(super_url(), sql);
    }
    f->database[0] = '\0';
    secrets_close();
}

static int migrate(const struct fixture *f, struct fixture_output *o)
{
    struct fixture owner = *f;

    fixture_become(&owner, "ledgerlock_owner");
    return fixture_run(&owner, o, "migrate", NULL);
}

void fixture_migrate(const struct fixture *f)
{
    static struct fixture_output o;

    if (migrate(f, &o) != 0)
        fail_msg("migrate: exit %d: %s", o.code, o.err);
}

/* A setup that fails gets no teardown from cmocka. */
void fixture_open_migrated(struct fixture *f)
{
    static struct fixture_output o;

    fixture_open(f);
    if (migrate(f, &o) == 0)
        return;
    fixture_close(f);
    fail_msg("migrate: exit %d: %s", o.code, o.err);
}

/* ---- the program ---- */

const char *fixture_program(void)
{
    static char path[4096];
    const char *bin = getenv("LEDGERLOCK_TEST_BIN");
    ssize_t n;
    char *slash;

    if (bin != NULL && bin[0] != '\0')
        return bin;
    n = readlink("/proc/self/exe", path, sizeof path - sizeof "/ledgerlock");
    assert_true(n > 0);
    path[n] = '\0';
    slash = strrchr(path, '/');
    (void)strcpy(slash, "/ledgerlock");
    return path;
}

void fixture_env(const char *name, const char *value)
{
    assert_true(extra_ct < MAX_EXTRA);
    (void)snprintf(extra_env[extra_ct][0], sizeof extra_env[0][0], "%s", name);
    (void)snprintf(extra_env[extra_ct][1], sizeof extra_env[0][1], "%s",
                   value != NULL ? value : "\n");
    extra_ct++;
}

static void clean_environment(void)
{
    static char names[64][128];
    size_t n = 0;

    for (char **p = environ; *p != NULL && n < 64; p++) {
        size_t len = strcspn(*p, "=");

        if (strncmp(*p, "LEDGERLOCK_", 11) == 0 &&
            strncmp(*p, "LEDGERLOCK_TEST_", 16) != 0 && len < sizeof names[0])
            (void)snprintf(names[n++], sizeof names[0], "%.*s", (int)len, *p);
    }
    while (n > 0)
        (void)unsetenv(names[--n]);
}

static void set_environment(const struct fixture *f)
{
    clean_environment();
    (void)setenv("NO_COLOR", "1", 1);
    if (f != NULL) {
        (void)setenv("LEDGERLOCK_POSTGRES_URL", f->url, 1);
        (void)setenv("LEDGERLOCK_POSTGRES_PASSWORD_FILE", secrets_of_postgres(), 1);
        (void)setenv("LEDGERLOCK_REDIS_URL", f->redis_url, 1);
        (void)setenv("LEDGERLOCK_LOCKS_PREFIX", f->prefix, 1);
    }
    for (size_t i = 0; i < extra_ct; i++) {
        if (extra_env[i][1][0] == '\n')
            (void)unsetenv(extra_env[i][0]);
        else
            (void)setenv(extra_env[i][0], extra_env[i][1], 1);
    }
}

static int temporary(void)
{
    char path[256];
    int fd;

    fixture_temporary(path, sizeof path, "test");
    fd = mkstemp(path);
    assert_true(fd >= 0);
    (void)unlink(path);
    (void)fcntl(fd, F_SETFD, FD_CLOEXEC);
    return fd;
}

static void
start(struct fixture_child *child, const struct fixture *f, const char *const *words)
{
    const char *bin = fixture_program();

    child->out_fd = temporary();
    child->err_fd = temporary();
    (void)secrets_of_postgres(); /* the child would make one of its own */
    (void)fflush(NULL);
    child->pid = fork();
    assert_true(child->pid >= 0);
    if (child->pid > 0)
        return;
    (void)prctl(PR_SET_PDEATHSIG, SIGKILL);
    set_environment(f);
    (void)dup2(child->out_fd, STDOUT_FILENO);
    (void)dup2(child->err_fd, STDERR_FILENO);
    (void)execv(bin, (char *const *)(uintptr_t)words);
    (void)fprintf(stderr, "%s: %s\n", bin, strerror(errno));
    _exit(127);
}

static void collect_words(const char **words, va_list ap)
{
    size_t n = 0;

    words[n++] = "ledgerlock";
    do {
        assert_true(n < MAX_WORDS);
        words[n] = va_arg(ap, const char *);
    } while (words[n++] != NULL);
}

static void slurp(int fd, char *buf, size_t size)
{
    ssize_t n = pread(fd, buf, size - 1, 0);

    buf[n > 0 ? n : 0] = '\0';
}

int fixture_reap(pid_t pid, int seconds)
{
    int64_t deadline = now_ms() + (int64_t)seconds * 1000;
    int status = 0;

    while (waitpid(pid, &status, WNOHANG) == 0) {
        if (now_ms() > deadline) {
            (void)kill(pid, SIGKILL);
            (void)waitpid(pid, &status, 0);
            return -1;
        }
        fixture_pause_ms(5);
    }
    return WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
}

int fixture_wait(struct fixture_child *child, int seconds, struct fixture_output *o)
{
    int code = fixture_reap(child->pid, seconds);

    if (o != NULL) {
        o->code = code;
        slurp(child->out_fd, o->out, sizeof o->out);
        slurp(child->err_fd, o->err, sizeof o->err);
    }
    secrets_look((const int[]){child->out_fd, child->err_fd});
    (void)close(child->out_fd);
    (void)close(child->err_fd);
    child->pid = 0;
    return code;
}

void fixture_spawn(const struct fixture *f, struct fixture_child *child, ...)
{
    const char *words[MAX_WORDS];
    va_list ap;

    va_start(ap, child);
    collect_words(words, ap);
    va_end(ap);
    start(child, f, words);
    secrets_watch((const int[]){child->out_fd, child->err_fd});
}

int fixture_run(const struct fixture *f, struct fixture_output *o, ...)
{
    const char *words[MAX_WORDS];
    struct fixture_child child;
    va_list ap;

    va_start(ap, o);
    collect_words(words, ap);
    va_end(ap);
    start(&child, f, words);
    return fixture_wait(&child, FIXTURE_RUN_SECONDS, o);
}

void fixture_assert_contains(const char *text, const char *part)
{
    if (strstr(text, part) == NULL)
        fail_msg("expected \"%s\" in: %s", part, text);
}

/* ---- files ---- */

void fixture_temporary(char *path, size_t size, const char *name)
{
    const char *base = getenv("LEDGERLOCK_TEST_TMP");
    int n = -1;

    if (base != NULL && base[0] != '\0')
        n = snprintf(path, size, "%s/%s.XXXXXX", base, name);
    if (n < 0 || (size_t)n >= size)
        (void)snprintf(path, size, "/tmp/ledgerlock-%s.XXXXXX", name);
}

void fixture_file(char *path, size_t size, const char *text, unsigned mode)
{
    int fd;

    fixture_temporary(path, size, "file");
    fd = mkstemp(path);
    assert_true(fd >= 0);
    assert_int_equal(write(fd, text, strlen(text)), (ssize_t)strlen(text));
    assert_int_equal(fchmod(fd, (mode_t)mode), 0);
    (void)close(fd);
}
