/* timestamp: points in time as microseconds since 1970-01-01 UTC, read and written as
 * text. Used for flags and imported files; the database decides which rows are due. */
#ifndef LEDGERLOCK_TIMESTAMP_H
#define LEDGERLOCK_TIMESTAMP_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define TIMESTAMP_SECOND INT64_C(1000000)

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

#endif
