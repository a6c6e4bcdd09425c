/* log: lines as they arrive at file descriptor 2, and what becomes of them when nobody
 * reads there. */
#define _GNU_SOURCE /* F_SETPIPE_SZ, O_DIRECT, MAP_ANONYMOUS */
#include <fcntl.h>
#include <sched.h>
#include <stdatomic.h>
#include <sys/mman.h>
#include <sys/socket.h>

#include "common/base/clock.h"
#include "common/base/log.h"
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

/* The text that was written since capture. */
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

/* Logs a line of this level and form; returns the text that arrives. */
static const char *line(enum log_level level, enum log_format form, const char *value)
{
    log_init(LOG_INFO, form);
    capture();
    log_event(level, "loop.started", "v=%s", value);
    return release();
}

CASE(log_in_a_pipe_is_logfmt_with_the_context_on_every_line)
{
    fixture_assert_contains(line(LOG_INFO, LOG_AUTO, "7"),
                            " level=info event=loop.started pid=");
    fixture_assert_contains(captured, " v=7\n");
    assert_memory_equal(captured, "ts=2", 4);
    log_context("worker=%d job=%s", 3, "orders");
    fixture_assert_contains(line(LOG_INFO, LOG_LOGFMT, "1"),
                            " worker=3 job=orders v=1\n");
    log_context("%s", "");
}

CASE(log_below_level_writes_nothing)
{
    assert_string_equal(line(LOG_DEBUG, LOG_LOGFMT, "1"), "");
}

CASE(log_human_has_no_colour_in_a_pipe)
{
    fixture_assert_contains(line(LOG_ERROR, LOG_HUMAN, "2"), "error loop.started");
    assert_null(strchr(captured, '\033'));
}

CASE(log_newline_in_value_stays_one_line)
{
    (void)line(LOG_INFO, LOG_LOGFMT, "a\nlevel=error\rb");
    assert_ptr_equal(strchr(captured, '\n'), captured + strlen(captured) - 1);
    assert_null(strchr(captured, '\r'));
}

CASE(log_of_very_long_value_is_cut_to_one_line)
{
    char text[4000];

    (void)snprintf(text, sizeof text, "%0*d", (int)sizeof text - 1, 0);
    assert_true(strlen(line(LOG_INFO, LOG_LOGFMT, text)) < 2049);
    assert_int_equal(captured[strlen(captured) - 1], '\n');
}

/* Guarantee: An event that is cut is logfmt still. */
CASE(log_that_is_cut_in_quotes_ends_with_a_quote)
{
    char text[4000];

    (void)snprintf(text, sizeof text, "\"%0*d", (int)sizeof text - 2, 0);
    (void)line(LOG_INFO, LOG_LOGFMT, text);
    assert_string_equal(captured + strlen(captured) - 3, "0\"\n");
    for (size_t i = 1; i < sizeof text - 1; i++)
        text[i] = '\\';
    (void)line(LOG_INFO, LOG_LOGFMT, text);
    assert_true(strspn(strchr(captured, '"') + 1, "\\") % 2 == 0);
    assert_string_equal(captured + strlen(captured) - 3, "\\\"\n");
}

CASE(log_shows_no_escape_of_a_value)
{
    assert_null(strchr(line(LOG_INFO, LOG_HUMAN, "a\033[31mb\x7f"), '\033'));
    fixture_assert_contains(captured, "v=a [31mb\n");
}

CASE(log_quote_quotes_only_what_needs_it_and_stays_inside)
{
    static const char *const rows[][2] = {{"plain", "plain"},   {"", "\"\""},
                                          {"a b", "\"a b\""},   {"a\"b", "\"a\\\"b\""},
                                          {"a\nb", "\"a b\""},  {"a\001b", "\"a b\""},
                                          {"a\177b", "\"a b\""}};
    char buf[32];

    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++)
        assert_string_equal(log_quote(buf, sizeof buf, rows[i][0]), rows[i][1]);
    assert_true(strlen(log_quote(buf, 8, "\"\"\"\"\"\"\"\"\"\"")) < 8);
}

/* ---- nobody reads ---- */

/* A line that waits ends the test by SIGALRM, and not after minutes. */
static void log_many(int lines)
{
    (void)alarm(60);
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

CASE(log_that_nobody_reads_drops_and_tells_how_many_and_leaves_the_flags_alone)
{
    size_t read_ct;
    char wanted[64];
    int flags;

    log_init(LOG_INFO, LOG_LOGFMT);
    capture();
    log_many(20000);
    flags = fcntl(STDERR_FILENO, F_GETFL);
    read_ct = drain_lines(pipe_fd[0]);
    log_many(1);
    (void)release();
    assert_int_equal(flags & O_NONBLOCK, 0);
    assert_in_range(read_ct, 10, 5000);
    (void)snprintf(wanted, sizeof wanted,
                   "event=log.dropped pid=%ld code=LL-5001 lines=%zu ", (long)getpid(),
                   20000 - read_ct);
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

/* True when all came through every round: the pipe takes one line. */
static bool run_rounds(struct race *race)
{
    int64_t end_ms = clk_ms() + RACE_MS;

    for (int round = 1; clk_ms() < end_ms; round++) {
        int64_t since_ms = clk_ms();

        race->round = round;
        while (race->done < round * RACERS && clk_ms() - since_ms < 60000)
            (void)sched_yield();
        if (race->done < round * RACERS)
            return false;
        (void)drain_lines(pipe_fd[0]);
    }
    return true;
}

/* To look whether there is room would not do: another may take it before we write. */
CASE(log_of_many_processes_to_one_full_pipe_never_blocks)
{
    struct race *race = mmap(NULL, sizeof *race, PROT_READ | PROT_WRITE,
                             MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    pid_t pids[RACERS];
    bool ok;

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

CASE(log_to_a_socket_that_nobody_reads_drops)
{
    int ends[2];

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
