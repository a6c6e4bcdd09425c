/* log: lines as they arrive at file descriptor 2. */
#include <stdio.h>
#include <string.h>
#include <unistd.h>

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
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
