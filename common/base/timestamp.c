/* timestamp: glibc's calendar in UTC behind microseconds. */
#define _GNU_SOURCE /* strptime, timegm */
#include "common/base/timestamp.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

/* Date and time of the second that us lies in; rest is the fraction of it. */
static struct tm split(int64_t us, int64_t *rest)
{
    time_t second = us / TIMESTAMP_SECOND - (time_t)(us % TIMESTAMP_SECOND < 0 ? 1 : 0);
    struct tm tm;

    *rest = us - second * TIMESTAMP_SECOND;
    return *gmtime_r(&second, &tm);
}

/* ---- text ---- */

/* True if *p begins with shape, in which 9 stands for any digit; *p is moved behind it.
 */
static bool matches(const char **p, const char *shape)
{
    size_t n = 0;

    for (; shape[n] != '\0'; n++) {
        if (shape[n] == '9' ? (*p)[n] < '0' || (*p)[n] > '9' : (*p)[n] != shape[n])
            return false;
    }
    *p += n;
    return true;
}

/* strptime takes blanks and single digits as well; the shape does not. */
static bool
read_as(const char **p, const char *shape, const char *format, struct tm *tm)
{
    const char *begin = *p;

    return matches(p, shape) && strptime(begin, format, tm) == *p;
}

/* A point and one to six digits behind it, or nothing. */
static bool read_fraction(const char **p, int64_t *us)
{
    int64_t unit = TIMESTAMP_SECOND / 10;
    size_t n;

    if (!matches(p, "."))
        return true;
    n = strspn(*p, "0123456789");
    if (n == 0 || n > 6)
        return false;
    for (; n > 0; n--, unit /= 10)
        *us += (*(*p)++ - '0') * unit;
    return true;
}

static bool read_time(const char **p, struct tm *tm, int64_t *fraction)
{
    if ((!matches(p, "T") && !matches(p, " ")) || !read_as(p, "99:99", "%H:%M", tm))
        return false;
    if (**p != ':')
        return true;
    return read_as(p, ":99", ":%S", tm) && tm->tm_sec < 60 &&
           read_fraction(p, fraction);
}

/* "", "Z", "+01", "+0100", "+01:00"; us is what to subtract. */
static bool read_zone(const char **p, int64_t *us)
{
    const char *zone = *p;
    int hour = 0, minute = 0;

    if (*zone == '\0' || matches(p, "Z"))
        return true;
    if (!matches(p, "+99") && !matches(p, "-99"))
        return false;
    (void)sscanf(zone + 1, "%2d", &hour);
    if (**p != '\0') {
        (void)matches(p, ":");
        if (!matches(p, "99"))
            return false;
        (void)sscanf(*p - 2, "%2d", &minute);
    }
    *us = (*zone == '-' ? -1 : 1) * (hour * 60 + minute) * 60 * TIMESTAMP_SECOND;
    return hour < 16 && minute < 60;
}

bool timestamp_parse(const char *text, int64_t *us)
{
    struct tm tm = {0};
    int64_t fraction = 0, zone = 0;
    int day;

    if (!read_as(&text, "9999-99-99", "%Y-%m-%d", &tm) || tm.tm_year < 0)
        return false;
    if (*text != '\0' && (!read_time(&text, &tm, &fraction) ||
                          !read_zone(&text, &zone) || *text != '\0'))
        return false;
    day = tm.tm_mday;
    *us = timegm(&tm) * TIMESTAMP_SECOND + fraction - zone;
    return tm.tm_mday == day; /* timegm makes 1 March of 30 February */
}

const char *timestamp_format(int64_t us, char *buf, size_t size)
{
    int64_t rest;
    struct tm tm = split(us, &rest);
    size_t n = strftime(buf, size, "%Y-%m-%d %H:%M:%S", &tm);

    (void)snprintf(buf + n, size - n, ".%06" PRId64 "+00", rest);
    return buf;
}

const char *duration_parse(const char *text, int64_t *seconds)
{
    static const struct {
        char letter;
        int64_t seconds;
    } units[] = {{'s', 1}, {'m', 60}, {'h', 3600}, {'d', 86400}};

    char *end;
    long n = strtol(text, &end, 10);

    for (size_t i = 0; i < sizeof units / sizeof units[0]; i++) {
        if (*end == units[i].letter && text[0] >= '0' && text[0] <= '9' &&
            n <= 9999999) {
            *seconds = n * units[i].seconds;
            return end + 1;
        }
    }
    return text;
}
