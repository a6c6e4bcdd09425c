/* money: text to minor units and back, to the last digit or not at all. */
#include "common/base/err.h"
#include "common/base/money.h"
#include "tests/lib/fixture.h"

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
