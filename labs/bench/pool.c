/* pool: `ledgerlock run` as a child process, as everybody starts it, and what the
 * kernel tells of it. */
#define _DEFAULT_SOURCE /* wait4 */
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include "common/base/clock.h"
#include "labs/bench/bench.h"

enum { TICK_MS = 20, START_MS = 30000, BURN_DOWN_S = 600, STEADY_S = 10 };

enum { PATH = 4096 };

/* ---- the child's side ---- */

/* The program beside this one. */
static void find_program(char path[PATH])
{
    ssize_t n = readlink("/proc/self/exe", path, PATH - 16);
    char *slash;

    path[n > 0 ? n : 0] = '\0';
    slash = strrchr(path, '/');
    (void)snprintf(slash == NULL ? path : slash + 1, 16, "ledgerlock");
}

/* The settings of this program's command line are read by its child in the environment,
 * where nobody else sees a password. */
static void pass_settings(const struct config *c)
{
    for (size_t i = 0; i < config_option_ct; i++) {
        const struct config_option *o = &config_options[i];
        const char *at = (const char *)c + o->offset;
        char number[24];
        int64_t value;

        if (c->origin[i] == ORIGIN_DEFAULT)
            continue;
        if (o->type == OPTION_INT) {
            memcpy(&value, at, sizeof value);
            (void)snprintf(number, sizeof number, "%" PRId64, value);
            at = number;
        }
        (void)setenv(o->env, at, 1);
    }
}

/* The everyday lines of the pool would stand between the figures. */
static void become_pool(const struct config *c, const char *job, bool once, pid_t owner)
{
    /* A benchmark that lasts has rows that are far behind. */
    const char *words[10] = {"ledgerlock",     "run",    "--jobs", job,
                             "--catch-up-max", "1000000"};
    int nowhere = open("/dev/null", O_WRONLY | O_CLOEXEC);
    char path[PATH];
    size_t n = 6;

    if (strcmp(c->log_level, "info") == 0) {
        words[n++] = "--log-level";
        words[n++] = "warn";
    }
    words[n] = once ? "--once" : NULL;
    find_program(path);
    pass_settings(c);
    (void)dup2(nowhere, STDOUT_FILENO);
    (void)prctl(PR_SET_PDEATHSIG, SIGTERM);
    if (getppid() == owner)
        (void)execv(path, (char *const *)(uintptr_t)words);
    (void)fprintf(stderr, "%s: %s\n", path, strerror(errno));
    _exit(EXIT_BUG);
}

/* ---- its owner's side ---- */

/* The number behind a name in /proc/PID/status; 0: the process is gone. */
static int64_t read_status(long pid, const char *name)
{
    char path[64], line[256];
    int64_t value = 0;
    FILE *file;

    (void)snprintf(path, sizeof path, "/proc/%ld/status", pid);
    file = fopen(path, "r");
    while (file != NULL && fgets(line, sizeof line, file) != NULL) {
        if (strncmp(line, name, strlen(name)) == 0)
            value = strtoll(line + strlen(name), NULL, 10);
    }
    if (file != NULL)
        (void)fclose(file);
    return value;
}

/* The most that any child of the supervisor has had in memory so far. False: it has no
 * children yet. */
static bool read_workers(pid_t pool, struct bench_run *run)
{
    char path[80], pids[4096];
    char *at = pids;
    size_t n;
    FILE *file;

    (void)snprintf(path, sizeof path, "/proc/%ld/task/%ld/children", (long)pool,
                   (long)pool);
    file = fopen(path, "r");
    if (file == NULL)
        return true; /* of this kernel it cannot be known */
    n = fread(pids, 1, sizeof pids - 1, file);
    (void)fclose(file);
    pids[n] = '\0';
    for (long pid = strtol(at, &at, 10); pid > 0; pid = strtol(at, &at, 10)) {
        int64_t kib = read_status(pid, "VmHWM:");

        run->peak_kib = kib > run->peak_kib ? kib : run->peak_kib;
    }
    return n > 0;
}

/* So many seconds are over since its workers were there. */
static bool is_over(int64_t begun_ms, int64_t worked_ms, int64_t seconds)
{
    return worked_ms == 0 ? clk_ms() > begun_ms + START_MS
                          : clk_ms() > worked_ms + seconds * 1000;
}

static int await_end(pid_t pool, int64_t seconds, struct bench_run *run, struct err *e)
{
    int64_t begun_ms = clk_ms(), worked_ms = 0;
    struct rusage used = {.ru_maxrss = 0};
    bool told = false;
    int status = 0;
    pid_t ended = 0;

    cli_progress("measuring");
    while (ended == 0 || (ended < 0 && errno == EINTR)) {
        if (read_workers(pool, run) && worked_ms == 0)
            worked_ms = clk_ms();
        if (!told && is_over(begun_ms, worked_ms, seconds)) {
            told = true;
            (void)kill(pool, SIGTERM);
        }
        clk_pause_ms(TICK_MS);
        ended = wait4(pool, &status, WNOHANG, &used);
    }
    cli_progress_end();
    run->cpu_us = (int64_t)(used.ru_utime.tv_sec + used.ru_stime.tv_sec) * 1000000 +
                  used.ru_utime.tv_usec + used.ru_stime.tv_usec;
    run->code = WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
    if (run->code == EXIT_OK || (told && run->code == EXIT_LEFT))
        return 0;
    return err_set(e, ERR_BUG, "the pool ended with exit code %d", run->code);
}

int bench_run_pool(const struct config *c,
                   const struct bench_flags *f,
                   const char *job,
                   struct bench_run *run,
                   struct err *e)
{
    int64_t usual = f->steady ? STEADY_S : BURN_DOWN_S;
    pid_t owner = getpid(), pool;

    (void)fflush(NULL);
    pool = fork();
    if (pool == 0)
        become_pool(c, job, !f->steady, owner);
    if (pool < 0)
        return err_set(e, ERR_NOMEM, "fork: %s", strerror(errno));
    return await_end(pool, f->seconds != 0 ? f->seconds : usual, run, e);
}
