/* checker: popen, and files that tell lies. */
#include "tests/lib/checker.h"

#include <fcntl.h>
#include <glob.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

void checker_open(struct checker *c)
{
    memset(c, 0, sizeof *c);
    fixture_temporary(c->dir, sizeof c->dir, "history");
    assert_non_null(mkdtemp(c->dir));
    fixture_env("LEDGERLOCK_TEST_HISTORY", c->dir);
}

int checker_run(struct checker *c,
                const struct fixture *f,
                const char *now,
                const char *options)
{
    char command[2048], url[FIXTURE_URL], history[128] = "";
    size_t n;
    FILE *pipe;

    fixture_url_as(f, "ledgerlock_owner", url, sizeof url);
    if (c->dir[0] != '\0')
        (void)snprintf(history, sizeof history, "--history '%s'", c->dir);
    (void)snprintf(command, sizeof command,
                   "'%s' --postgres '%s' %s --now '%s' %s 2>&1", CHECKER_PROGRAM, url,
                   history, now, options);
    pipe = popen(command, "r");
    assert_non_null(pipe);
    n = fread(c->out, 1, sizeof c->out - 1, pipe);
    c->out[n] = '\0';
    c->code = WEXITSTATUS(pclose(pipe));
    return c->code;
}

void checker_assert_holds(struct checker *c,
                          const struct fixture *f,
                          const char *now,
                          const char *options)
{
    if (checker_run(c, f, now, options) != 0)
        fail_msg("checker: exit %d: %s", c->code, c->out);
}

/* ---- what else happened ---- */

static void mark(const struct checker *c, const char *event, pid_t pid)
{
    struct timespec ts;

    (void)clock_gettime(CLOCK_MONOTONIC, &ts);
    if (c->dir[0] != '\0')
        checker_plant(c, "faults", "{\"event\":\"%s\",\"pid\":%ld,\"t\":%lld}\n", event,
                      (long)pid, (long long)ts.tv_sec * 1000000 + ts.tv_nsec / 1000);
}

void checker_killed(const struct checker *c, pid_t pid)
{
    mark(c, "killed", pid);
}

void checker_healed(const struct checker *c)
{
    mark(c, "healed", 0);
}

void checker_lost(const struct checker *c)
{
    mark(c, "lost", 0);
}

/* ---- lies ---- */

void checker_plant(const struct checker *c, const char *file, const char *fmt, ...)
{
    char path[256];
    FILE *out;
    va_list ap;

    (void)snprintf(path, sizeof path, "%s/%s.jsonl", c->dir, file);
    out = fopen(path, "a");
    assert_non_null(out);
    va_start(ap, fmt);
    (void)vfprintf(out, fmt, ap);
    va_end(ap);
    assert_int_equal(fclose(out), 0);
}

static bool forge_file(const char *path, const char *from, const char *to)
{
    static char text[1 << 20];
    int fd = open(path, O_RDWR | O_CLOEXEC);
    ssize_t n = read(fd, text, sizeof text - 1);
    bool is_there = false;
    char *at;

    assert_true(n >= 0 && strlen(from) == strlen(to));
    text[n] = '\0';
    for (at = text; (at = strstr(at, from)) != NULL; at++, is_there = true)
        assert_int_equal(pwrite(fd, to, strlen(to), at - text), strlen(to));
    (void)close(fd);
    return is_there;
}

static void for_each_file(const struct checker *c, glob_t *found)
{
    char pattern[128];

    (void)snprintf(pattern, sizeof pattern, "%s/*.jsonl", c->dir);
    memset(found, 0, sizeof *found);
    (void)glob(pattern, 0, NULL, found);
}

void checker_forge(struct checker *c, const char *from, const char *to)
{
    bool is_done = false;
    glob_t found;

    for_each_file(c, &found);
    for (size_t i = 0; i < found.gl_pathc; i++)
        is_done = forge_file(found.gl_pathv[i], from, to) || is_done;
    globfree(&found);
    assert_true(is_done);
}

void checker_close(struct checker *c)
{
    glob_t found;

    if (c->dir[0] == '\0')
        return;
    for_each_file(c, &found);
    for (size_t i = 0; i < found.gl_pathc; i++)
        (void)unlink(found.gl_pathv[i]);
    globfree(&found);
    (void)rmdir(c->dir);
}
