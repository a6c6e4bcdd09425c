/* log: one event, one line, one write. logfmt in pipes, human on a terminal. Never
 * waits for a reader: lines for a full pipe are dropped and counted; log.dropped
 * reports their number once the pipe has room again. */
#ifndef LEDGERLOCK_LOG_H
#define LEDGERLOCK_LOG_H

#include <stdbool.h>

enum log_level { LOG_DEBUG, LOG_INFO, LOG_WARN, LOG_ERROR };

enum log_format { LOG_AUTO, LOG_LOGFMT, LOG_HUMAN };

/* Chooses level and format for this process; LOG_AUTO checks if stderr is a
 * terminal. Colour only on a terminal, never with a non-empty NO_COLOR. */
void log_init(enum log_level level, enum log_format format);

/* True if lines are written for a person on a terminal. */
bool log_is_human(void);

/* `uncover` is called before each line: it takes away what stands in the line of the
 * terminal. */
void log_uncovers(void (*uncover)(void));

/* Sets the process name that every line carries: "supervisor", "worker=3 job=billing".
 * The text is copied. The count of dropped lines starts again. */
void log_context(const char *fmt, ...) __attribute__((format(printf, 1, 2)));

/* Writes one event. event is a stable dotted name ("billing.parked"); fmt makes
 * key=value pairs. Newlines and control characters in the result are escaped. */
void log_event(enum log_level level, const char *event, const char *fmt, ...)
    __attribute__((format(printf, 3, 4)));

/* Quotes a value for logfmt into buf if it needs quoting; returns buf. */
const char *log_quote(char *buf, unsigned long size, const char *value);

/* The same, into a buffer that lasts as long as the block of the call: for the values
 * of an event. */
#define LOG_TEXT(value) log_quote((char[600]){0}, 600, value)

#define log_debug(event, ...) log_event(LOG_DEBUG, event, __VA_ARGS__)
#define log_info(event, ...) log_event(LOG_INFO, event, __VA_ARGS__)
#define log_warn(event, ...) log_event(LOG_WARN, event, __VA_ARGS__)
#define log_error(event, ...) log_event(LOG_ERROR, event, __VA_ARGS__)

#endif
