/* instant: the proleptic Gregorian calendar in integers (days <-> date after H.
 * Hinnant, "chrono-Compatible Low-Level Date Algorithms"). */
#include "worker/instant.h"

#include <inttypes.h>
#include <stdio.h>

struct date {
    int64_t year, month, day; /* month 1-12, day 1-31 */
};

static int64_t floor_div(int64_t a, int64_t b)
{
    return a / b - (a % b < 0 ? 1 : 0);
}

static int64_t days_of(struct date d)
{
    int64_t y = d.year - (d.month <= 2 ? 1 : 0);
    int64_t era = floor_div(y, 400);
    int64_t of_era = y - era * 400;
    int64_t of_year = (153 * (d.month + (d.month > 2 ? -3 : 9)) + 2) / 5 + d.day - 1;

    return era * 146097 + of_era * 365 + of_era / 4 - of_era / 100 + of_year - 719468;
}

static struct date date_of(int64_t days)
{
    int64_t z = days + 719468;
    int64_t era = floor_div(z, 146097);
    int64_t doe = z - era * 146097;
    int64_t yoe = (doe - doe / 1460 + doe / 36524 - doe / 146096) / 365;
    int64_t doy = doe - (365 * yoe + yoe / 4 - yoe / 100);
    int64_t mp = (5 * doy + 2) / 153;
    struct date d = {.day = doy - (153 * mp + 2) / 5 + 1};

    d.month = mp < 10 ? mp + 3 : mp - 9;
    d.year = yoe + era * 400 + (d.month <= 2 ? 1 : 0);
    return d;
}

static int64_t days_in(int64_t year, int64_t month)
{
    static const int table[] = {31, 28, 31, 30, 31, 30, 31, 31, 30, 31, 30, 31};
    bool is_leap = (year % 4 == 0 && year % 100 != 0) || year % 400 == 0;

    return table[month - 1] + (month == 2 && is_leap ? 1 : 0);
}

/* Year and month `months` from those of d. */
static struct date month_from(struct date d, int64_t months)
{
    int64_t m = d.year * 12 + d.month - 1 + months;

    d.year = floor_div(m, 12);
    d.month = m - d.year * 12 + 1;
    return d;
}

/* ---- text ---- */

/* Exactly n digits; moves *p behind them. */
static bool digits(const char **p, int n, int64_t *value)
{
    *value = 0;
    for (int i = 0; i < n; i++) {
        if (**p < '0' || **p > '9')
            return false;
        *value = *value * 10 + (*(*p)++ - '0');
    }
    return true;
}

static bool literal(const char **p, char c)
{
    if (**p != c)
        return false;
    (*p)++;
    return true;
}

static bool parse_date(const char **p, int64_t *days)
{
    struct date d;

    if (!digits(p, 4, &d.year) || !literal(p, '-') || !digits(p, 2, &d.month) ||
        !literal(p, '-') || !digits(p, 2, &d.day))
        return false;
    if (d.year < 1900 || d.month < 1 || d.month > 12 || d.day < 1 ||
        d.day > days_in(d.year, d.month))
        return false;
    *days = days_of(d);
    return true;
}

/* One to six digits behind a point. */
static bool parse_fraction(const char **p, int64_t *us)
{
    int64_t unit = INSTANT_SECOND;
    int64_t digit;

    *us = 0;
    if (!literal(p, '.'))
        return true;
    do {
        unit /= 10;
        if (unit == 0 || !digits(p, 1, &digit))
            return false;
        *us += digit * unit;
    } while (**p >= '0' && **p <= '9');
    return true;
}

static bool parse_time(const char **p, int64_t *us)
{
    int64_t hour, minute, second = 0, fraction = 0;

    if (!digits(p, 2, &hour) || !literal(p, ':') || !digits(p, 2, &minute))
        return false;
    if (literal(p, ':') && (!digits(p, 2, &second) || !parse_fraction(p, &fraction)))
        return false;
    *us = ((hour * 60 + minute) * 60 + second) * INSTANT_SECOND + fraction;
    return hour < 24 && minute < 60 && second < 60;
}

/* "", "Z", "+01", "+0100", "+01:00"; us is what to subtract. */
static bool parse_zone(const char **p, int64_t *us)
{
    int64_t sign = **p == '-' ? -1 : 1;
    int64_t hour, minute = 0;

    *us = 0;
    if (**p == '\0' || literal(p, 'Z'))
        return true;
    if ((!literal(p, '+') && !literal(p, '-')) || !digits(p, 2, &hour))
        return false;
    if (**p != '\0' && ((void)literal(p, ':'), !digits(p, 2, &minute)))
        return false;
    *us = sign * (hour * 60 + minute) * 60 * INSTANT_SECOND;
    return hour < 16 && minute < 60;
}

bool instant_parse(const char *text, int64_t *us)
{
    const char *p = text;
    int64_t days, time = 0, zone = 0;

    if (!parse_date(&p, &days))
        return false;
    if (*p != '\0') {
        if (*p != 'T' && *p != ' ')
            return false;
        p++;
        if (!parse_time(&p, &time) || !parse_zone(&p, &zone) || *p != '\0')
            return false;
    }
    *us = days * INSTANT_DAY + time - zone;
    return true;
}

const char *instant_format(int64_t us, char *buf, size_t size)
{
    int64_t days = floor_div(us, INSTANT_DAY);
    int64_t rest = us - days * INSTANT_DAY;
    int64_t second = rest / INSTANT_SECOND;
    struct date d = date_of(days);

    (void)snprintf(buf, size,
                   "%04" PRId64 "-%02" PRId64 "-%02" PRId64 " %02" PRId64 ":%02" PRId64
                   ":%02" PRId64 ".%06" PRId64 "+00",
                   d.year, d.month, d.day, second / 3600, second / 60 % 60, second % 60,
                   rest % INSTANT_SECOND);
    return buf;
}

/* ---- calendar ---- */

int instant_day(int64_t us)
{
    return (int)date_of(floor_div(us, INSTANT_DAY)).day;
}

int instant_month_days(int64_t us, int64_t months)
{
    struct date d = month_from(date_of(floor_div(us, INSTANT_DAY)), months);

    return (int)days_in(d.year, d.month);
}

int64_t instant_add_months(int64_t us, int64_t months)
{
    int64_t days = floor_div(us, INSTANT_DAY);
    struct date d = month_from(date_of(days), months);
    int64_t longest = days_in(d.year, d.month);

    if (d.day > longest)
        d.day = longest;
    return days_of(d) * INSTANT_DAY + (us - days * INSTANT_DAY);
}
