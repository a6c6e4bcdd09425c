/* age: the largest unit and the one below it. */
#include "common/base/age.h"

#include <inttypes.h>
#include <stdio.h>

enum { SECOND_MS = 1000, DECIMAL_MS = 10 * SECOND_MS };

static const struct unit {
    const char *name;
    int64_t ms;
} units[] = {
    {"y", 365 * 86400LL * SECOND_MS},
    {"d", 86400LL * SECOND_MS},
    {"h", 3600LL * SECOND_MS},
    {"min", 60LL * SECOND_MS},
    {"s", SECOND_MS},
};

enum { UNITS = sizeof units / sizeof units[0] };

static const char *whole(int64_t ms, char text[AGE_TEXT])
{
    int i = 0, n;
    int64_t rest;

    while (i < UNITS - 1 && ms < units[i].ms)
        i++;
    n = snprintf(text, AGE_TEXT, "%" PRId64 " %s", ms / units[i].ms, units[i].name);
    if (i == UNITS - 1)
        return text;
    rest = ms % units[i].ms / units[i + 1].ms;
    if (rest > 0)
        (void)snprintf(text + n, AGE_TEXT - (size_t)n, " %" PRId64 " %s", rest,
                       units[i + 1].name);
    return text;
}

const char *age_text(int64_t ms, char text[AGE_TEXT])
{
    if (ms >= DECIMAL_MS)
        return whole(ms, text);
    if (ms < 0)
        (void)snprintf(text, AGE_TEXT, "-");
    else if (ms < SECOND_MS)
        (void)snprintf(text, AGE_TEXT, "%" PRId64 " ms", ms);
    else
        (void)snprintf(text, AGE_TEXT, "%" PRId64 ".%" PRId64 " s", ms / SECOND_MS,
                       ms % SECOND_MS / 100);
    return text;
}
