/* The smallest parts of common/base: errors, jitter and back-off, points in time, ages,
 * files of a secret. */
#include <sys/stat.h>

#include "common/base/age.h"
#include "common/base/clock.h"
#include "common/base/err.h"
#include "common/base/secret.h"
#include "common/base/timestamp.h"
#include "tests/lib/fixture.h"

/* Guarantee: A message shows no control character of a stranger's words to the
 * terminal.
 */
CASE(err_set_takes_control_characters_out)
{
    struct err e;

    (void)err_set(&e, ERR_INVALID, "%s", "a\033[2Jb\tc\177\nd");
    assert_string_equal(e.msg, "a [2Jb c \nd");
}

/* PostgreSQL would refuse a text with a part of a character. */
CASE(err_set_cuts_a_long_message_between_characters)
{
    struct err e;
    char text[2 * sizeof e.msg];

    for (size_t i = 0; i + 1 < sizeof text; i += 2)
        memcpy(text + i, "\xC3\xBC", 2);
    text[sizeof text - 2] = '\0';
    (void)err_set(&e, ERR_BUG, "%s", text);
    assert_int_equal(strlen(e.msg), sizeof e.msg - 2);
    (void)err_set(&e, ERR_BUG, "x%s", text);
    assert_int_equal(strlen(e.msg), sizeof e.msg - 1);
    (void)err_set(&e, ERR_BUG, "whole \xE2\x82\xAC");
    assert_string_equal(e.msg, "whole \xE2\x82\xAC");
}

CASE(err_wrap_leaves_the_code_of_the_message_in_front)
{
    struct err e;

    (void)err_set(&e, ERR_CONFIG, "LL-2001 it is wrong");
    (void)err_wrap(&e, "line %d", 3);
    assert_string_equal(e.msg, "LL-2001 line 3: it is wrong");
    (void)err_set(&e, ERR_CONFIG, "LL-20 it is wrong");
    (void)err_wrap(&e, "line %d", 3);
    assert_string_equal(e.msg, "line 3: LL-20 it is wrong");
}

CASE(err_wrap_of_long_message_stays_terminated)
{
    struct err e = {0};
    char text[sizeof e.msg * 2];

    memset(text, 'x', sizeof text - 1);
    text[sizeof text - 1] = '\0';
    (void)err_set(&e, ERR_BUG, "%s", text);
    assert_int_equal(strlen(e.msg), sizeof e.msg - 1);
    (void)err_wrap(&e, "%s", text);
    assert_true(strlen(e.msg) < sizeof e.msg);
}

/* ---- ages ---- */

/* The page is held to the same file by a browser. */
CASE(age_text_is_as_people_read_it)
{
    char path[512], line[128], text[AGE_TEXT];
    size_t ct = 0;
    FILE *f;

    (void)snprintf(path, sizeof path, "%s/tests/page/ages", getenv("LL_TEST_SOURCE"));
    f = fopen(path, "r");
    assert_non_null(f);
    while (fgets(line, sizeof line, f) != NULL) {
        char *rest;
        long long ms = strtoll(line, &rest, 10);

        if (line[0] == '#')
            continue;
        rest[strcspn(rest, "\n")] = '\0';
        assert_string_equal(age_text(ms, text), rest + 1);
        ct++;
    }
    (void)fclose(f);
    assert_in_range(ct, 20, 1000);
    assert_string_equal(age_text(INT64_MAX, text), "292471208 y 247 d");
}

/* ---- jitter and back-off ---- */

CASE(clk_jitter_stays_in_bounds_and_spreads)
{
    int low = 0, high = 0;

    for (int i = 0; i < 2000; i++) {
        int64_t ms = clk_jitter_ms(100);

        assert_in_range(ms, 0, 100);
        low += ms < 20;
        high += ms > 80;
    }
    assert_true(low > 200 && high > 200);
    assert_int_equal(clk_jitter_ms(0), 0);
    assert_int_equal(clk_jitter_ms(-1), 0);
}

CASE(clk_backoff_doubles_up_to_its_cap_and_spreads)
{
    int low = 0, high = 0;

    for (int i = 0; i < 200; i++) {
        int64_t ms = clk_backoff_ms(3, 10, 1000);

        assert_in_range(clk_backoff_ms(0, 10, 1000), 5, 10);
        assert_in_range(ms, 40, 80);
        assert_in_range(clk_backoff_ms(10, 10, 1000), 500, 1000);
        assert_in_range(clk_backoff_ms(4000000000u, 10, 1000), 500, 1000);
        low += ms < 50;
        high += ms > 70;
    }
    assert_true(low > 10 && high > 10);
}

/* ---- points in time ---- */

static void assert_reads(const char *text, const char *expected)
{
    char buf[TIMESTAMP_TEXT];
    int64_t us;

    assert_true(timestamp_parse(text, &us));
    assert_string_equal(timestamp_format(us, buf, sizeof buf), expected);
}

CASE(timestamp_parse_reads_iso_8601)
{
    int64_t us;

    assert_true(timestamp_parse("1970-01-01T00:00:00Z", &us) && us == 0);
    assert_true(timestamp_parse("2024-02-29T12:00:00Z", &us));
    assert_true(us == INT64_C(1709208000) * TIMESTAMP_SECOND);
    assert_reads("2010-12-01 08:26", "2010-12-01 08:26:00.000000+00");
    assert_reads("2010-12-01", "2010-12-01 00:00:00.000000+00");
    assert_reads("2010-12-01T08:26:00.5Z", "2010-12-01 08:26:00.500000+00");
    assert_reads("2010-12-01T00:30:00+01:00", "2010-11-30 23:30:00.000000+00");
    assert_reads("2010-12-31T22:00-0330", "2011-01-01 01:30:00.000000+00");
    assert_reads("1900-03-01T00:00:00+00", "1900-03-01 00:00:00.000000+00");
}

/* clang-format off */
static const char *const no_times[] = {
    "", "now", "infinity", "2010-13-01", "2010-02-29", "1900-02-29", "2010-00-10", "2010-1-1", "01/12/2010 08:26",
    "2010-12-01 24:00", "2010-12-01 08", "2010-12-01 08:60", "2010-12-01T08:26:61Z", "2010-12-01 08:26 ", "2010-12-01T",
    "2010-12-01Tx", "1899-12-31", "2010-12-01T08:26:00.1234567Z", "2010-12-01T08:26:00.Z", "2010-12-01T08:26+",
    "2010-12-01T08:26+16",
};

/* clang-format on */

CASE(timestamp_parse_refuses_what_is_no_time)
{
    int64_t us;

    for (size_t i = 0; i < sizeof no_times / sizeof no_times[0]; i++) {
        if (timestamp_parse(no_times[i], &us))
            fail_msg("\"%s\" was read", no_times[i]);
    }
}

/* ---- secrets ---- */

static struct err e;
static char password[SECRET_SIZE];

/* Reads a file of this text and mode as a password. */
static int read_secret(const char *text, unsigned mode)
{
    char path[64];
    int code;

    fixture_file(path, sizeof path, text, mode);
    code = secret_read(path, password, &e);
    (void)unlink(path);
    if (code != 0)
        fixture_assert_contains(e.msg, path);
    return code;
}

CASE(secret_file_gives_its_first_line)
{
    assert_int_equal(read_secret("s3cret\r\nmore\n", 0600), 0);
    assert_string_equal(password, "s3cret");
}

CASE(secret_file_has_up_to_4096_characters)
{
    char text[SECRET_MAX + 3];

    memset(text, 'x', sizeof text);
    text[SECRET_MAX] = '\n';
    text[SECRET_MAX + 1] = '\0';
    assert_int_equal(read_secret(text, 0600), 0);
    assert_int_equal(strlen(password), SECRET_MAX);
    text[SECRET_MAX] = 'x';
    assert_int_equal(read_secret(text, 0600), ERR_CONFIG);
    fixture_assert_contains(e.msg, "1 to 4096 characters");
}

CASE(secret_file_that_others_read_is_refused)
{
    assert_int_equal(read_secret("s3cret\n", 0640), ERR_CONFIG);
    fixture_assert_contains(e.msg, "run: chmod 600 /");
}

/* Its ACL lets the service read it, and shows as bits of the group. */
CASE(secret_file_that_systemd_hands_in_is_read)
{
    char folder[64], path[96];
    FILE *f;

    if (geteuid() != 0)
        skip(); /* only root writes there */
    (void)snprintf(folder, sizeof folder, "/run/credentials/ledgerlock-%ld",
                   (long)getpid());
    (void)snprintf(path, sizeof path, "%s/redis", folder);
    (void)mkdir("/run/credentials", 0755);
    assert_int_equal(mkdir(folder, 0700), 0);
    f = fopen(path, "w");
    assert_non_null(f);
    (void)fputs("s3cret\n", f);
    (void)fclose(f);
    assert_int_equal(chmod(path, 0440), 0);
    assert_int_equal(secret_read(path, password, &e), 0);
    assert_string_equal(password, "s3cret");
    assert_int_equal(secret_check_mode(path, &e), 0);
    (void)unlink(path);
    (void)rmdir(folder);
    (void)rmdir("/run/credentials"); /* unless somebody else uses it */
}

CASE(secret_file_that_is_empty_or_missing_is_refused)
{
    assert_int_equal(read_secret("\nx\n", 0600), ERR_CONFIG);
    assert_int_equal(secret_read("/nowhere/x", password, &e), ERR_CONFIG);
    fixture_assert_contains(e.msg, "No such file");
}

CASE(secret_file_that_is_a_fifo_is_refused_at_once)
{
    char path[64];

    fixture_file(path, sizeof path, "", 0600);
    (void)unlink(path);
    assert_int_equal(mkfifo(path, 0600), 0);
    (void)alarm(60); /* opening it for reading would wait for a writer */
    assert_int_equal(secret_read(path, password, &e), ERR_CONFIG);
    (void)alarm(0);
    (void)unlink(path);
    fixture_assert_contains(e.msg, "is no regular file");
}
