/* The smallest parts of common/base: errors, jitter and back-off, points in time,
 * money, files of a secret. */
#include <sys/stat.h>

#include "common/base/clock.h"
#include "common/base/err.h"
#include "common/base/money.h"
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

static void assert_month(const char *from, int64_t months, const char *expected)
{
    char buf[TIMESTAMP_TEXT];
    int64_t us;

    assert_true(timestamp_parse(from, &us));
    (void)timestamp_format(timestamp_add_months(us, months), buf, sizeof buf);
    buf[10] = '\0';
    assert_string_equal(buf, expected);
}

CASE(timestamp_months_clamp_to_the_last_day)
{
    assert_month("2023-01-31", 1, "2023-02-28");
    assert_month("2024-01-31", 1, "2024-02-29");
    assert_month("2024-01-31", 2, "2024-03-31");
    assert_month("2024-02-29", 12, "2025-02-28");
    assert_month("2024-02-29", 48, "2028-02-29");
    assert_month("2024-03-31", -1, "2024-02-29");
    assert_month("2024-01-15", -13, "2022-12-15");
    assert_month("1969-12-31", 2, "1970-02-28");
}

CASE(timestamp_days_of_months_are_known)
{
    int64_t us;

    assert_true(timestamp_parse("2024-01-31 10:00", &us));
    assert_int_equal(timestamp_day(us), 31);
    assert_int_equal(timestamp_month_days(us, 0), 31);
    assert_int_equal(timestamp_month_days(us, 1), 29);
    assert_int_equal(timestamp_month_days(us, -11), 28);
    assert_int_equal(timestamp_month_days(us, 13), 28);
}

/* ---- money: text to minor units and back, to the last digit or not at all ---- */

static void assert_parses(const char *text, const char *currency, int64_t minor)
{
    struct err e = {0};
    int64_t got = 0;

    assert_int_equal(money_parse(text, currency, &got, &e), 0);
    assert_true(got == minor);
}

static void assert_no_money(const char *text, const char *currency, const char *reason)
{
    struct err e = {0};
    int64_t got = 77;

    assert_int_equal(money_parse(text, currency, &got, &e), ERR_INVALID);
    assert_non_null(strstr(e.msg, reason));
    assert_true(got == 77);
}

CASE(money_parse_reads_what_the_currency_has)
{
    assert_parses("12.34", "USD", 1234);
    assert_parses("12.3", "USD", 1230);
    assert_parses("12", "USD", 1200);
    assert_parses("-0.05", "EUR", -5);
    assert_parses("0012.3400", "USD", 1234);
    assert_parses("500", "JPY", 500);
    assert_parses("500.00", "JPY", 500);
    assert_parses("1.234", "KWD", 1234);
    assert_parses("1.2345", "CLF", 12345);
    assert_parses("0", "USD", 0);
}

CASE(money_parse_refuses_what_is_no_amount_and_too_many_decimals)
{
    static const char *const texts[] = {
        "",   "-",   ".",    ".5",  "5.",   "+5",  "1,5",  "1.2.3",   " 1",
        "1 ", "1e3", "0x10", "--1", "1.-2", "nan", "1.2a", "\xC2\xBD"};

    for (size_t i = 0; i < sizeof texts / sizeof texts[0]; i++)
        assert_no_money(texts[i], "USD", "is not an amount");
    assert_no_money("1.234", "USD", "more decimals than USD (2)");
    assert_no_money("1.5", "JPY", "more decimals than JPY (0)");
    assert_no_money("1.2345", "BHD", "more decimals than BHD (3)");
}

CASE(money_parse_stops_at_the_ends_of_int64)
{
    assert_parses("92233720368547758.07", "USD", INT64_MAX);
    assert_parses("-92233720368547758.08", "USD", INT64_MIN);
    assert_no_money("92233720368547758.08", "USD", "too large");
    assert_no_money("-92233720368547758.09", "USD", "too large");
    assert_no_money("99999999999999999999999999", "JPY", "too large");
}

static void assert_formats(int64_t minor, const char *currency, const char *expected)
{
    char buf[48];

    assert_string_equal(money_format(minor, currency, buf, sizeof buf), expected);
}

CASE(money_format_groups_and_points)
{
    assert_formats(123456, "USD", "1,234.56");
    assert_formats(5, "USD", "0.05");
    assert_formats(-100000, "USD", "-1,000.00");
    assert_formats(1234567, "JPY", "1,234,567");
    assert_formats(1234567, "KWD", "1,234.567");
    assert_formats(12345, "UYW", "1.2345");
    assert_formats(INT64_MIN, "USD", "-92,233,720,368,547,758.08");
}

CASE(money_format_digits_takes_more_than_64_bits)
{
    char buf[48];

    assert_string_equal(
        money_format_digits("-36000000000000000000", "BHD", buf, sizeof buf),
        "-36,000,000,000,000,000.000");
    assert_string_equal(money_format_digits("7", "BHD", buf, sizeof buf), "0.007");
    assert_string_equal(money_format_digits("0", "JPY", buf, sizeof buf), "0");
    assert_true(strlen(money_format_digits("123456789012", "USD", buf, 8)) < 8);
}

CASE(money_currency_is_three_capitals)
{
    static const char *const none[] = {"", "US", "usd", "USDT"};

    assert_true(money_is_currency("USD"));
    for (size_t i = 0; i < sizeof none / sizeof none[0]; i++)
        assert_false(money_is_currency(none[i]));
    assert_int_equal(money_exponent("JPY"), 0);
    assert_int_equal(money_exponent("KWD"), 3);
    assert_int_equal(money_exponent("USD"), 2);
}

CASE(money_arithmetic_says_when_it_does_not_fit)
{
    int64_t v;

    assert_true(money_add(INT64_MAX - 1, 1, &v) && v == INT64_MAX);
    assert_false(money_add(INT64_MAX, 1, &v));
    assert_false(money_add(INT64_MIN, -1, &v));
    assert_true(money_multiply(3037000499, 3037000499, &v));
    assert_false(money_multiply(INT64_MAX / 2, 3, &v));
    assert_false(money_multiply(INT64_MIN, -1, &v));
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
