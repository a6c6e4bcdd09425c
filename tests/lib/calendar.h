/* calendar: period boundaries by date arithmetic of our own, so that nothing of
 * PostgreSQL's is compared with itself. */
#ifndef LEDGERLOCK_CALENDAR_H
#define LEDGERLOCK_CALENDAR_H

#include <stdint.h>

/* A repetition that starts at an instant in UTC; unit is 'd', 'w', 'm' or 'y'. */
struct calendar {
    int64_t year, month, day;
    int64_t second; /* of the day */
    char unit;
    int64_t every;
};

/* The one that starts at so many seconds since 1970. */
struct calendar calendar_from(int64_t at, char unit, int64_t every);

/* Start of period k, in seconds since 1970. A day that the month lacks becomes its
 * last one, counted from the anchor each time. */
int64_t calendar_start(const struct calendar *c, int64_t k);

/* First period that starts after an instant: so many start up to it. */
int64_t calendar_count(const struct calendar *c, int64_t until);

/* How many days a month has. */
int64_t calendar_last_day(int64_t year, int64_t month);

/* Seconds since 1970 of a day's beginning. */
int64_t calendar_seconds(int64_t year, int64_t month, int64_t day);

#endif
