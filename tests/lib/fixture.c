/* fixture: the program by fork and exec, and its environment. */
#define _XOPEN_SOURCE 700 /* mkstemp */
#include "tests/lib/fixture.h"

#include <errno.h>
#include <fcntl.h>
#include <sys/prctl.h>
#include <time.h>

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

int fixture_scale(void)
{
    const char *text = getenv("LL_TEST_SCALE");

    return text != NULL ? atoi(text) : 1;
}

int64_t fixture_now_ms(void)
{
    struct timespec ts;

    (void)clock_gettime(CLOCK_MONOTONIC, &ts);
    return (int64_t)ts.tv_sec * 1000 + ts.tv_nsec / 1000000;
}

void fixture_forget_env(void)
{
    extra_ct = 0;
}

/* ---- the program ---- */

const char *fixture_program(void)
{
    static char path[4096];
    const char *bin = getenv("LL_TEST_BIN");
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
    size_t i = 0;

    while (i < extra_ct && strcmp(extra_env[i][0], name) != 0)
        i++;
    assert_true(i < MAX_EXTRA);
    (void)snprintf(extra_env[i][0], sizeof extra_env[0][0], "%s", name);
    (void)snprintf(extra_env[i][1], sizeof extra_env[0][1], "%s",
                   value != NULL ? value : "\n");
    extra_ct = i < extra_ct ? extra_ct : i + 1;
}

static void clean_environment(void)
{
    static char names[64][128];
    size_t n = 0;

    for (char **p = environ; *p != NULL && n < 64; p++) {
        size_t len = strcspn(*p, "=");

        if (strncmp(*p, "LEDGERLOCK_", 11) == 0 && len < sizeof names[0])
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

pid_t fixture_fork(void)
{
    pid_t pid;

    (void)fflush(NULL);
    pid = fork();
    assert_true(pid >= 0);
    if (pid == 0)
        (void)prctl(PR_SET_PDEATHSIG, SIGKILL);
    return pid;
}

static void
start(struct fixture_child *child, const struct fixture *f, const char *const *words)
{
    char bin[4096];

    /* A program of its own, beside the other, has its name behind "ledgerlock-". */
    (void)snprintf(bin, sizeof bin, "%s-%s", fixture_program(),
                   words[1] != NULL ? words[1] : "");
    if (access(bin, X_OK) == 0)
        words++;
    else
        (void)snprintf(bin, sizeof bin, "%s", fixture_program());
    child->out_fd = temporary();
    child->err_fd = temporary();
    (void)secrets_of_postgres(); /* the child would make one of its own */
    child->pid = fixture_fork();
    if (child->pid > 0)
        return;
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
    int64_t deadline = fixture_now_ms() + (int64_t)seconds * 1000;
    int status = 0;

    while (waitpid(pid, &status, WNOHANG) == 0) {
        if (fixture_now_ms() > deadline) {
            (void)kill(pid, SIGKILL);
            (void)waitpid(pid, &status, 0);
            return -1;
        }
        fixture_pause_ms(5);
    }
    return WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
}

/* A test that fails for an exit code alone would not say why. */
static void tell(int code, int err_fd)
{
    char text[1000];

    slurp(err_fd, text, sizeof text);
    /* Its own line: the count of the tests reads what stands at a line's beginning. */
    (void)fprintf(stderr, "exit %d: %s\n", code, text);
}

int fixture_wait(struct fixture_child *child, int seconds, struct fixture_output *o)
{
    int code = fixture_reap(child->pid, seconds);

    if (o != NULL) {
        o->code = code;
        slurp(child->out_fd, o->out, sizeof o->out);
        slurp(child->err_fd, o->err, sizeof o->err);
    }
    if (code != 0)
        tell(code, child->err_fd);
    secrets_find((const int[]){child->out_fd, child->err_fd});
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
