/* timestamp: ISO 8601 in, PostgreSQL's calendar out. */
#include "tests/lib/test.h"

#include "common/base/timestamp.h"

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
