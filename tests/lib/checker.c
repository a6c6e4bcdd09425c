/* checker: popen, and files that tell lies. */
#include "tests/lib/checker.h"

#include <time.h>

void checker_open(struct checker *c)
{
    memset(c, 0, sizeof *c);
    fixture_temporary(c->dir, sizeof c->dir, "history");
    assert_non_null(mkdtemp(c->dir));
    fixture_env("LL_TEST_HISTORY", c->dir);
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

int checker_run_spoilt(struct checker *c,
                       const struct fixture *f,
                       const char *now,
                       const char *spoil)
{
    (void)setenv("CHECKER_FIRST", spoil, 1);
    return checker_run(c, f, now, "--first \"$CHECKER_FIRST\"");
}

/* True if it found only that the pool was late, which is a matter of speed. */
static bool only_late(const char *out)
{
    static const char any[] = "broken: ", late[] = "broken: recovery_bounded";

    while ((out = strstr(out, any)) != NULL) {
        if (strncmp(out, late, sizeof late - 1) != 0)
            return false;
        out += sizeof any - 1;
    }
    return true;
}

void checker_assert_holds(struct checker *c,
                          const struct fixture *f,
                          const char *now,
                          const char *options)
{
    switch (checker_run(c, f, now, options)) {
    case 0:
        break;
    case 1:
        if (!only_late(c->out))
            promise_broken("checker: %s", c->out);
        fail_msg("checker: %s", c->out);
        break;
    default:
        fail_msg("checker: exit %d: %s", c->code, c->out);
    }
}

/* ---- what else happened ---- */

static void mark(const struct checker *c, const char *event, pid_t pid, int64_t us)
{
    struct timespec ts;

    (void)clock_gettime(CLOCK_MONOTONIC, &ts);
    if (us == 0)
        us = (int64_t)ts.tv_sec * 1000000 + ts.tv_nsec / 1000;
    if (c->dir[0] != '\0')
        checker_plant(c, "faults", "{\"event\":\"%s\",\"pid\":%ld,\"t\":%lld}\n", event,
                      (long)pid, (long long)us);
}

void checker_killed(const struct checker *c, pid_t pid)
{
    mark(c, "killed", pid, 0);
}

void checker_healed(const struct checker *c)
{
    mark(c, "healed", 0, 0);
}

void checker_healed_at(const struct checker *c, int64_t ms)
{
    mark(c, "healed", 0, ms * 1000);
}

void checker_lost(const struct checker *c)
{
    mark(c, "lost", 0, 0);
}

void checker_forgot(const struct checker *c)
{
    mark(c, "forgot", 0, 0);
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

void checker_unplant(const struct checker *c, const char *file)
{
    char path[256];

    (void)snprintf(path, sizeof path, "%s/%s.jsonl", c->dir, file);
    (void)unlink(path);
}

__attribute__((format(printf, 1, 2))) static int shell(const char *fmt, ...)
{
    char command[512];
    va_list ap;

    va_start(ap, fmt);
    assert_in_range(vsnprintf(command, sizeof command, fmt, ap), 1, sizeof command - 1);
    va_end(ap);
    return system(command);
}

void checker_forge(struct checker *c, const char *from, const char *to)
{
    assert_int_equal(shell("grep -q '%s' '%s'/*.jsonl", from, c->dir), 0);
    assert_int_equal(shell("sed -i 's/%s/%s/' '%s'/*.jsonl", from, to, c->dir), 0);
}

void checker_close(struct checker *c)
{
    if (c->dir[0] != '\0')
        (void)shell("rm -rf '%s'", c->dir);
}
