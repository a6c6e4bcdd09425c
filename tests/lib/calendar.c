/* calendar: days since 1970 counted over years that start in March. */
#include "tests/lib/calendar.h"

#include <time.h>

static int64_t days(int64_t year, int64_t month, int64_t day)
{
    int64_t y = month <= 2 ? year - 1 : year;
    int64_t m = month <= 2 ? month + 9 : month - 3; /* from March */
    int64_t leap = y / 4 - y / 100 + y / 400;

    return 365 * y + leap + (153 * m + 2) / 5 + day - 1 - 719468;
}

int64_t calendar_last_day(int64_t year, int64_t month)
{
    return month == 12 ? 31 : days(year, month + 1, 1) - days(year, month, 1);
}

int64_t calendar_seconds(int64_t year, int64_t month, int64_t day)
{
    return days(year, month, day) * 86400;
}

struct calendar calendar_from(int64_t at, char unit, int64_t every)
{
    time_t when = (time_t)at;
    struct tm tm;

    (void)gmtime_r(&when, &tm);
    return (struct calendar){.year = tm.tm_year + 1900,
                             .month = tm.tm_mon + 1,
                             .day = tm.tm_mday,
                             .unit = unit,
                             .every = every,
                             .second = tm.tm_hour * 3600 + tm.tm_min * 60 + tm.tm_sec};
}

int64_t calendar_start(const struct calendar *c, int64_t k)
{
    int64_t n = k * c->every;
    int64_t months = c->year * 12 + c->month - 1;
    int64_t year, month, last;

    if (c->unit == 'd' || c->unit == 'w')
        return calendar_seconds(c->year, c->month, c->day) + c->second +
               n * (c->unit == 'w' ? 7 : 1) * 86400;
    months += n * (c->unit == 'y' ? 12 : 1);
    year = months / 12;
    month = months % 12 + 1;
    last = calendar_last_day(year, month);
    return calendar_seconds(year, month, c->day < last ? c->day : last) + c->second;
}

int64_t calendar_count(const struct calendar *c, int64_t until)
{
    int64_t k = 0;

    while (calendar_start(c, k) <= until)
        k++;
    return k;
}
