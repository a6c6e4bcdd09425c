/* calendar: days are counted from 1 March of year 0, so that the leap day is the last
 * of its year. */
#include "tests/checker/calendar.h"

static const int64_t day_us = INT64_C(86400000000);

enum { YEAR = 365, ERA = 146097, SHIFT = 719468 };

static int64_t floor_div(int64_t a, int64_t b)
{
    return a / b - (a % b < 0);
}

struct date {
    int64_t year, month, day; /* month 0 is January */
};

static struct date date_of(int64_t days)
{
    int64_t z = days + SHIFT, era = floor_div(z, ERA), in_era = z - era * ERA;
    int64_t y = (in_era - in_era / 1460 + in_era / 36524 - in_era / 146096) / YEAR;
    int64_t in_year = in_era - (YEAR * y + y / 4 - y / 100);
    int64_t march = (5 * in_year + 2) / 153; /* 0 is March */
    struct date d = {.year = y + era * 400 + (march >= 10),
                     .month = march < 10 ? march + 2 : march - 10,
                     .day = in_year - (153 * march + 2) / 5 + 1};

    return d;
}

static int64_t days_of(struct date d)
{
    int64_t y = d.month < 2 ? d.year - 1 : d.year, era = floor_div(y, 400);
    int64_t in_era = y - era * 400;
    int64_t march = d.month < 2 ? d.month + 10 : d.month - 2;
    int64_t in_year = (153 * march + 2) / 5 + d.day - 1;

    return era * ERA + in_era * YEAR + in_era / 4 - in_era / 100 + in_year - SHIFT;
}

static int64_t last_day(int64_t year, int64_t month)
{
    struct date first = {year, month, 1};
    struct date next = {month == 11 ? year + 1 : year, (month + 1) % 12, 1};

    return days_of(next) - days_of(first);
}

int64_t calendar_start(int64_t anchor_us, enum unit unit, int64_t every, int64_t k)
{
    int64_t days = floor_div(anchor_us, day_us), rest = anchor_us - days * day_us;
    int64_t steps = every * k, last;
    struct date d;

    if (unit == UNIT_DAY || unit == UNIT_WEEK)
        return anchor_us + steps * (unit == UNIT_WEEK ? 7 : 1) * day_us;
    d = date_of(days);
    steps = d.month + steps * (unit == UNIT_YEAR ? 12 : 1);
    d.year += steps / 12;
    d.month = steps % 12;
    last = last_day(d.year, d.month);
    d.day = d.day < last ? d.day : last;
    return days_of(d) * day_us + rest;
}
