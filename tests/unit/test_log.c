/* log: lines as they arrive at file descriptor 2, and what becomes of them when nobody
 * reads there. */
#define _GNU_SOURCE /* F_SETPIPE_SZ, O_DIRECT, MAP_ANONYMOUS */
#include <fcntl.h>
#include <sched.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include "common/clock.h"
#include "common/log.h"
#include "tests/lib/fixture.h"

static char captured[8192];
static int saved_fd;
static int pipe_fd[2];

static void capture(void)
{
    assert_int_equal(pipe(pipe_fd), 0);
    saved_fd = dup(STDERR_FILENO);
    (void)dup2(pipe_fd[1], STDERR_FILENO);
}

/* What was written since capture. */
static const char *release(void)
{
    ssize_t n;

    (void)dup2(saved_fd, STDERR_FILENO);
    (void)close(saved_fd);
    (void)close(pipe_fd[1]);
    n = read(pipe_fd[0], captured, sizeof captured - 1);
    captured[n > 0 ? n : 0] = '\0';
    (void)close(pipe_fd[0]);
    return captured;
}

static void log_in_a_pipe_is_logfmt(void **state)
{
    (void)state;
    log_init(LOG_INFO, LOG_AUTO);
    capture();
    log_info("billing.charged", "sub=%d", 7);
    fixture_assert_contains(release(), " level=info event=billing.charged pid=");
    fixture_assert_contains(captured, " sub=7\n");
    assert_memory_equal(captured, "ts=2", 4);
}

static void log_below_level_writes_nothing(void **state)
{
    (void)state;
    log_init(LOG_WARN, LOG_LOGFMT);
    capture();
    log_info("quiet", "x=%d", 1);
    assert_string_equal(release(), "");
}

static void log_human_has_no_colour_in_a_pipe(void **state)
{
    (void)state;
    log_init(LOG_INFO, LOG_HUMAN);
    capture();
    log_error("pool.gave_up", "slot=%d", 2);
    fixture_assert_contains(release(), "error pool.gave_up");
    assert_null(strchr(captured, '\033'));
}

static void log_context_is_on_every_line(void **state)
{
    (void)state;
    log_init(LOG_INFO, LOG_LOGFMT);
    log_context("worker=%d job=%s", 3, "orders");
    capture();
    log_info("loop.started", "x=%d", 1);
    fixture_assert_contains(release(), " worker=3 job=orders x=1\n");
    log_context("%s", "");
}

static void log_newline_in_value_stays_one_line(void **state)
{
    (void)state;
    log_init(LOG_INFO, LOG_LOGFMT);
    capture();
    log_info("odd", "v=%s", "a\nlevel=error\rb");
    (void)release();
    assert_ptr_equal(strchr(captured, '\n'), captured + strlen(captured) - 1);
    assert_null(strchr(captured, '\r'));
}

static void log_of_very_long_value_is_cut_to_one_line(void **state)
{
    char text[4000];

    (void)state;
    memset(text, 'x', sizeof text - 1);
    text[sizeof text - 1] = '\0';
    log_init(LOG_INFO, LOG_LOGFMT);
    capture();
    log_info("long", "v=%s", text);
    assert_true(strlen(release()) < 2049);
    assert_int_equal(captured[strlen(captured) - 1], '\n');
}

static void log_quote_quotes_only_what_needs_it(void **state)
{
    char buf[32];

    (void)state;
    assert_string_equal(log_quote(buf, sizeof buf, "plain"), "plain");
    assert_string_equal(log_quote(buf, sizeof buf, ""), "\"\"");
    assert_string_equal(log_quote(buf, sizeof buf, "a b"), "\"a b\"");
    assert_string_equal(log_quote(buf, sizeof buf, "a\"b"), "\"a\\\"b\"");
    assert_string_equal(log_quote(buf, sizeof buf, "a\nb"), "\"a b\"");
}

static void log_quote_in_small_buffer_stays_inside(void **state)
{
    char buf[8];

    (void)state;
    assert_true(strlen(log_quote(buf, sizeof buf, "\"\"\"\"\"\"\"\"\"\"")) <
                sizeof buf);
}

/* ---- nobody reads ---- */

/* A line that waits ends the test by SIGALRM, and not after minutes. */
static void log_many(int lines)
{
    (void)alarm(10);
    for (int i = 0; i < lines; i++)
        log_info("unread", "line=%d", i);
    (void)alarm(0);
}

/* Reads away what is there now; returns how many lines. */
static size_t drain_lines(int fd)
{
    size_t lines = 0;
    ssize_t n;

    (void)fcntl(fd, F_SETFL, O_NONBLOCK);
    while ((n = read(fd, captured, sizeof captured)) > 0) {
        for (ssize_t i = 0; i < n; i++)
            lines += captured[i] == '\n' ? 1 : 0;
    }
    return lines;
}

static void log_that_nobody_reads_drops_and_tells_how_many(void **state)
{
    size_t read_ct;
    char wanted[64];

    (void)state;
    log_init(LOG_INFO, LOG_LOGFMT);
    capture();
    log_many(20000);
    read_ct = drain_lines(pipe_fd[0]);
    log_many(1);
    (void)release();
    assert_in_range(read_ct, 10, 5000);
    (void)snprintf(wanted, sizeof wanted, "event=log.dropped pid=%ld lines=%zu ",
                   (long)getpid(), 20000 - read_ct);
    fixture_assert_contains(captured, wanted);
    fixture_assert_contains(captured, " line=0\n");
}

enum { RACERS = 3, RACE_MS = 2000 };

struct race {
    atomic_int round;
    atomic_int done; /* lines of all rounds that did not wait */
};

/* One line in every round, all at the same moment. */
static void race_for_the_last_place(struct race *race)
{
    for (int round = 1;; round++) {
        while (race->round < round)
            (void)sched_yield();
        log_info("unread", "round=%d", round);
        race->done++;
    }
}

/* Whether everybody came through every round: the pipe takes one line. */
static bool run_rounds(struct race *race)
{
    int64_t end_ms = clk_ms() + RACE_MS;

    for (int round = 1; clk_ms() < end_ms; round++) {
        int64_t since_ms = clk_ms();

        race->round = round;
        while (race->done < round * RACERS && clk_ms() - since_ms < 3000)
            (void)sched_yield();
        if (race->done < round * RACERS)
            return false;
        (void)drain_lines(pipe_fd[0]);
    }
    return true;
}

/* To look whether there is room would not do: another may take it before we write. */
static void log_of_many_processes_to_one_full_pipe_never_blocks(void **state)
{
    struct race *race = mmap(NULL, sizeof *race, PROT_READ | PROT_WRITE,
                             MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    pid_t pids[RACERS];
    bool ok;

    (void)state;
    log_init(LOG_INFO, LOG_LOGFMT);
    capture();
    assert_int_equal(fcntl(pipe_fd[1], F_SETPIPE_SZ, 4096), 4096);
    assert_int_equal(fcntl(pipe_fd[1], F_SETFL, O_DIRECT), 0);
    for (int i = 0; i < RACERS; i++) {
        pids[i] = fork();
        if (pids[i] == 0)
            race_for_the_last_place(race);
    }
    ok = run_rounds(race);
    for (int i = 0; i < RACERS; i++) {
        (void)kill(pids[i], SIGKILL);
        (void)waitpid(pids[i], NULL, 0);
    }
    (void)release();
    assert_true(ok);
}

static void log_leaves_the_flags_of_stderr_alone(void **state)
{
    int flags;

    (void)state;
    capture();
    log_many(20000);
    flags = fcntl(STDERR_FILENO, F_GETFL);
    (void)release();
    assert_int_equal(flags & O_NONBLOCK, 0);
}

static void log_to_a_socket_that_nobody_reads_drops(void **state)
{
    int ends[2];

    (void)state;
    assert_int_equal(socketpair(AF_UNIX, SOCK_STREAM, 0, ends), 0);
    capture();
    (void)dup2(ends[1], STDERR_FILENO);
    log_many(20000);
    assert_in_range(drain_lines(ends[0]), 10, 19999);
    log_many(1);
    assert_int_equal(drain_lines(ends[0]), 2); /* how many were dropped, and the line */
    (void)release();
    (void)close(ends[0]);
    (void)close(ends[1]);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(log_in_a_pipe_is_logfmt),
        cmocka_unit_test(log_below_level_writes_nothing),
        cmocka_unit_test(log_human_has_no_colour_in_a_pipe),
        cmocka_unit_test(log_context_is_on_every_line),
        cmocka_unit_test(log_newline_in_value_stays_one_line),
        cmocka_unit_test(log_of_very_long_value_is_cut_to_one_line),
        cmocka_unit_test(log_quote_quotes_only_what_needs_it),
        cmocka_unit_test(log_quote_in_small_buffer_stays_inside),
        cmocka_unit_test(log_that_nobody_reads_drops_and_tells_how_many),
        cmocka_unit_test(log_of_many_processes_to_one_full_pipe_never_blocks),
        cmocka_unit_test(log_leaves_the_flags_of_stderr_alone),
        cmocka_unit_test(log_to_a_socket_that_nobody_reads_drops),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
