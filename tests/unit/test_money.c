/* money: text to minor units and back, to the last digit or not at all. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <string.h>

#include "common/money.h"

static void assert_parses(const char *text, const char *currency, int64_t minor)
{
    struct err e = {0};
    int64_t got = 0;

    assert_int_equal(money_parse(text, currency, &got, &e), 0);
    assert_true(got == minor);
}

static void assert_refused(const char *text, const char *currency, const char *reason)
{
    struct err e = {0};
    int64_t got = 77;

    assert_int_equal(money_parse(text, currency, &got, &e), ERR_INVALID);
    assert_non_null(strstr(e.msg, reason));
    assert_true(got == 77);
}

static void money_parse_reads_what_the_currency_has(void **state)
{
    (void)state;
    assert_parses("12.34", "USD", 1234);
    assert_parses("12.3", "USD", 1230);
    assert_parses("12", "USD", 1200);
    assert_parses("-0.05", "EUR", -5);
    assert_parses("0012.3400", "USD", 1234);
    assert_parses("500", "JPY", 500);
    assert_parses("500.00", "JPY", 500);
    assert_parses("1.234", "KWD", 1234);
    assert_parses("0", "USD", 0);
}

static void money_parse_refuses_what_is_no_amount(void **state)
{
    static const char *const texts[] = {
        "",   "-",   ".",    ".5",  "5.",   "+5",  "1,5",  "1.2.3",   " 1",
        "1 ", "1e3", "0x10", "--1", "1.-2", "nan", "1.2a", "\xC2\xBD"};

    (void)state;
    for (size_t i = 0; i < sizeof texts / sizeof texts[0]; i++)
        assert_refused(texts[i], "USD", "is not an amount");
}

static void money_parse_refuses_too_many_decimals(void **state)
{
    (void)state;
    assert_refused("1.234", "USD", "more decimals than USD (2)");
    assert_refused("1.5", "JPY", "more decimals than JPY (0)");
    assert_refused("1.2345", "BHD", "more decimals than BHD (3)");
}

static void money_parse_stops_at_the_ends_of_int64(void **state)
{
    (void)state;
    assert_parses("92233720368547758.07", "USD", INT64_MAX);
    assert_parses("-92233720368547758.08", "USD", INT64_MIN);
    assert_refused("92233720368547758.08", "USD", "too large");
    assert_refused("-92233720368547758.09", "USD", "too large");
    assert_refused("99999999999999999999999999", "JPY", "too large");
}

static void money_format_groups_and_points(void **state)
{
    char buf[48];

    (void)state;
    assert_string_equal(money_format(123456, "USD", buf, sizeof buf), "1,234.56");
    assert_string_equal(money_format(5, "USD", buf, sizeof buf), "0.05");
    assert_string_equal(money_format(-100000, "USD", buf, sizeof buf), "-1,000.00");
    assert_string_equal(money_format(1234567, "JPY", buf, sizeof buf), "1,234,567");
    assert_string_equal(money_format(1234567, "KWD", buf, sizeof buf), "1,234.567");
    assert_string_equal(money_format(INT64_MIN, "USD", buf, sizeof buf),
                        "-92,233,720,368,547,758.08");
}

static void money_format_digits_takes_more_than_64_bits(void **state)
{
    char buf[48], small[8];

    (void)state;
    assert_string_equal(
        money_format_digits("-36000000000000000000", "BHD", buf, sizeof buf),
        "-36,000,000,000,000,000.000");
    assert_string_equal(money_format_digits("7", "BHD", buf, sizeof buf), "0.007");
    assert_string_equal(money_format_digits("0", "JPY", buf, sizeof buf), "0");
    assert_true(strlen(money_format_digits("123456789012", "USD", small,
                                           sizeof small)) < sizeof small);
}

static void money_currency_is_three_capitals(void **state)
{
    (void)state;
    assert_true(money_is_currency("USD"));
    assert_false(money_is_currency(""));
    assert_false(money_is_currency("US"));
    assert_false(money_is_currency("usd"));
    assert_false(money_is_currency("USDT"));
    assert_int_equal(money_exponent("JPY"), 0);
    assert_int_equal(money_exponent("KWD"), 3);
    assert_int_equal(money_exponent("USD"), 2);
}

static void money_arithmetic_says_when_it_does_not_fit(void **state)
{
    int64_t v;

    (void)state;
    assert_true(money_add(INT64_MAX - 1, 1, &v) && v == INT64_MAX);
    assert_false(money_add(INT64_MAX, 1, &v));
    assert_false(money_add(INT64_MIN, -1, &v));
    assert_true(money_multiply(3037000499, 3037000499, &v));
    assert_false(money_multiply(INT64_MAX / 2, 3, &v));
    assert_false(money_multiply(INT64_MIN, -1, &v));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(money_parse_reads_what_the_currency_has),
        cmocka_unit_test(money_parse_refuses_what_is_no_amount),
        cmocka_unit_test(money_parse_refuses_too_many_decimals),
        cmocka_unit_test(money_parse_stops_at_the_ends_of_int64),
        cmocka_unit_test(money_format_groups_and_points),
        cmocka_unit_test(money_format_digits_takes_more_than_64_bits),
        cmocka_unit_test(money_currency_is_three_capitals),
        cmocka_unit_test(money_arithmetic_says_when_it_does_not_fit),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
