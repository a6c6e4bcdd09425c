/* checker: popen, and files that tell lies. */
#include "tests/lib/world.h"

#include <time.h>

void checker_open(void)
{
    memset(&world.checker, 0, sizeof world.checker);
    fixture_temporary(world.checker.dir, sizeof world.checker.dir, "history");
    assert_non_null(mkdtemp(world.checker.dir));
    fixture_env("LL_TEST_HISTORY", world.checker.dir);
}

int checker_run(const char *now, const char *options)
{
    char command[2048], history[128] = "";
    size_t n;
    FILE *pipe;

    if (world.checker.dir[0] != '\0' && options != NULL)
        (void)snprintf(history, sizeof history, "--history '%s'", world.checker.dir);
    (void)snprintf(command, sizeof command,
                   "'%s' --postgres '%s' %s --now '%s' %s 2>&1", CHECKER_PROGRAM,
                   world.owner, history, now, options != NULL ? options : "");
    pipe = popen(command, "r");
    assert_non_null(pipe);
    n = fread(world.checker.out, 1, sizeof world.checker.out - 1, pipe);
    world.checker.out[n] = '\0';
    world.checker.code = WEXITSTATUS(pclose(pipe));
    return world.checker.code;
}

int checker_run_spoilt(const char *now, const char *spoil)
{
    (void)setenv("CHECKER_FIRST", spoil, 1);
    return checker_run(now, "--first \"$CHECKER_FIRST\"");
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

void checker_assert_holds(const char *now, const char *options)
{
    switch (checker_run(now, options)) {
    case 0:
        break;
    case 1:
        if (!only_late(world.checker.out))
            promise_broken("checker: %s", world.checker.out);
        fail_msg("checker: %s", world.checker.out);
        break;
    default:
        fail_msg("checker: exit %d: %s", world.checker.code, world.checker.out);
    }
}

void checker_assert_rows(const char *now)
{
    checker_assert_holds(now, NULL);
}

/* ---- what else happened ---- */

void checker_mark(const char *event, pid_t pid, int64_t ms)
{
    struct timespec ts = {ms / 1000, ms % 1000 * 1000000};

    if (ms == 0)
        (void)clock_gettime(CLOCK_MONOTONIC, &ts);
    if (world.checker.dir[0] != '\0')
        checker_plant("faults", "{\"event\":\"%s\",\"pid\":%ld,\"t\":%lld}\n", event,
                      (long)pid, (long long)ts.tv_sec * 1000000 + ts.tv_nsec / 1000);
}

/* ---- lies ---- */

void checker_plant(const char *file, const char *fmt, ...)
{
    char path[256];
    FILE *out;
    va_list ap;

    (void)snprintf(path, sizeof path, "%s/%s.jsonl", world.checker.dir, file);
    out = fopen(path, "a");
    assert_non_null(out);
    va_start(ap, fmt);
    (void)vfprintf(out, fmt, ap);
    va_end(ap);
    assert_int_equal(fclose(out), 0);
}

void checker_unplant(const char *file)
{
    char path[256];

    (void)snprintf(path, sizeof path, "%s/%s.jsonl", world.checker.dir, file);
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

void checker_forge(const char *from, const char *to)
{
    assert_int_equal(shell("grep -q '%s' '%s'/*.jsonl", from, world.checker.dir), 0);
    assert_int_equal(
        shell("sed -i 's/%s/%s/' '%s'/*.jsonl", from, to, world.checker.dir), 0);
}

void checker_close(void)
{
    if (world.checker.dir[0] != '\0')
        (void)shell("rm -rf '%s'", world.checker.dir);
}
