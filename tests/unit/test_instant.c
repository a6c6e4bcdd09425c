/* instant: ISO 8601 in, PostgreSQL's calendar out. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "worker/instant.h"

static void assert_reads(const char *text, const char *expected)
{
    char buf[INSTANT_TEXT];
    int64_t us;

    assert_true(instant_parse(text, &us));
    assert_string_equal(instant_format(us, buf, sizeof buf), expected);
}

static void instant_parse_reads_iso_8601(void **state)
{
    int64_t us;

    (void)state;
    assert_true(instant_parse("1970-01-01T00:00:00Z", &us) && us == 0);
    assert_true(instant_parse("2024-02-29T12:00:00Z", &us));
    assert_true(us == INT64_C(1709208000) * INSTANT_SECOND);
    assert_reads("2010-12-01 08:26", "2010-12-01 08:26:00.000000+00");
    assert_reads("2010-12-01", "2010-12-01 00:00:00.000000+00");
    assert_reads("2010-12-01T08:26:00.5Z", "2010-12-01 08:26:00.500000+00");
    assert_reads("2010-12-01T00:30:00+01:00", "2010-11-30 23:30:00.000000+00");
    assert_reads("2010-12-31T22:00-0330", "2011-01-01 01:30:00.000000+00");
    assert_reads("1900-03-01T00:00:00+00", "1900-03-01 00:00:00.000000+00");
}

static void instant_parse_refuses_what_is_no_time(void **state)
{
    static const char *const texts[] = {"",
                                        "now",
                                        "2010-13-01",
                                        "2010-02-29",
                                        "2010-00-10",
                                        "2010-1-1",
                                        "01/12/2010 08:26",
                                        "2010-12-01 24:00",
                                        "2010-12-01 08",
                                        "2010-12-01 08:60",
                                        "2010-12-01T08:26:61Z",
                                        "2010-12-01 08:26 ",
                                        "2010-12-01T",
                                        "2010-12-01Tx",
                                        "1899-12-31",
                                        "2010-12-01T08:26:00.1234567Z",
                                        "2010-12-01T08:26:00.Z",
                                        "2010-12-01T08:26+",
                                        "2010-12-01T08:26+16",
                                        "infinity"};
    int64_t us;

    (void)state;
    for (size_t i = 0; i < sizeof texts / sizeof texts[0]; i++) {
        if (instant_parse(texts[i], &us))
            fail_msg("\"%s\" was read", texts[i]);
    }
}

static void assert_month(const char *from, int64_t months, const char *expected)
{
    char buf[INSTANT_TEXT];
    int64_t us;

    assert_true(instant_parse(from, &us));
    (void)instant_format(instant_add_months(us, months), buf, sizeof buf);
    buf[10] = '\0';
    assert_string_equal(buf, expected);
}

static void instant_months_clamp_to_the_last_day(void **state)
{
    (void)state;
    assert_month("2023-01-31", 1, "2023-02-28");
    assert_month("2024-01-31", 1, "2024-02-29");
    assert_month("2024-01-31", 2, "2024-03-31");
    assert_month("2024-02-29", 12, "2025-02-28");
    assert_month("2024-02-29", 48, "2028-02-29");
    assert_month("2024-03-31", -1, "2024-02-29");
    assert_month("2024-01-15", -13, "2022-12-15");
    assert_month("1969-12-31", 2, "1970-02-28");
}

static void instant_days_of_months_are_known(void **state)
{
    int64_t us;

    (void)state;
    assert_true(instant_parse("2024-01-31 10:00", &us));
    assert_int_equal(instant_day(us), 31);
    assert_int_equal(instant_month_days(us, 0), 31);
    assert_int_equal(instant_month_days(us, 1), 29);
    assert_int_equal(instant_month_days(us, -11), 28);
    assert_int_equal(instant_month_days(us, 13), 28);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(instant_parse_reads_iso_8601),
        cmocka_unit_test(instant_parse_refuses_what_is_no_time),
        cmocka_unit_test(instant_months_clamp_to_the_last_day),
        cmocka_unit_test(instant_days_of_months_are_known),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
