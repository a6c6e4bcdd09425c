/* timestamp: points in time as microseconds since 1970-01-01 UTC, and the calendar in
 * UTC as PostgreSQL counts it. Used for imported files and generated data; the
 * database decides which rows are due. */
#ifndef LEDGERLOCK_TIMESTAMP_H
#define LEDGERLOCK_TIMESTAMP_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define TIMESTAMP_SECOND INT64_C(1000000)
#define TIMESTAMP_DAY (INT64_C(86400) * TIMESTAMP_SECOND)

/* Buffer that timestamp_format always fits into. */
enum { TIMESTAMP_TEXT = 48 };

/* Reads ISO 8601: "2010-12-01", "2010-12-01 08:26", "2010-12-01T08:26:00.5Z",
 * "... +01:00"; UTC when no zone is given; years 1900 to 9999. False if it is none. */
bool timestamp_parse(const char *text, int64_t *us);

/* "2010-12-01 08:26:00.000000+00", which PostgreSQL reads; returns buf. */
const char *timestamp_format(int64_t us, char *buf, size_t size);

/* Reads "90s", "5m", "1h" or "2d", at most 9999999 of each, into seconds. Returns
 * the rest of the text; text itself if it is none. */
const char *duration_parse(const char *text, int64_t *seconds);

/* Day of the month, 1 to 31. */
int timestamp_day(int64_t us);

/* Days of the month that lies `months` from the month of us. */
int timestamp_month_days(int64_t us, int64_t months);

/* The same day and time `months` later (or earlier), or the last day of that month if
 * it has no such day: 31 Jan + 1 is 28 or 29 Feb. */
int64_t timestamp_add_months(int64_t us, int64_t months);

#endif
