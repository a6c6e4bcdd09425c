/* counters: numbers that a worker adds to, by index; the caller gives them names. The
 * numbers are in memory shared with the supervisor, so they survive the death of the
 * worker. Each has one writer. */
#ifndef LEDGERLOCK_COUNTERS_H
#define LEDGERLOCK_COUNTERS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum { COUNTERS_MAX = 24 };

struct counters {
    int64_t value[COUNTERS_MAX];
};

/* Adds every counter of `from`. */
void counters_add(struct counters *to, const struct counters *from);

/* The first n counters as "name=value ...", without those that are 0 if not_zero, or as
 * a JSON object of those that are not 0. Returns the length of the text in buf;
 * counters that do not fit are left out. */
size_t counters_text(const struct counters *c,
                     const char *const *names,
                     size_t n,
                     bool not_zero,
                     char *buf,
                     size_t size);
size_t counters_json(const struct counters *c,
                     const char *const *names,
                     size_t n,
                     char *buf,
                     size_t size);

#endif
