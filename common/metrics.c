/* metrics: names and text form of the counters. */
#include "common/metrics.h"

#include <inttypes.h>
#include <stdio.h>

static const char *const names[] = {
#define METRIC_NAME(name, help) #name,
    METRIC_LIST(METRIC_NAME)
#undef METRIC_NAME
};

static const char *const helps[] = {
#define METRIC_HELP(name, help) help,
    METRIC_LIST(METRIC_HELP)
#undef METRIC_HELP
};

const char *metric_name(enum metric m)
{
    return names[m];
}

const char *metric_help(enum metric m)
{
    return helps[m];
}

const char *metrics_json(const struct metrics *m, char *buf, size_t size)
{
    size_t n = (size_t)snprintf(buf, size, "{");

    for (int i = 0; i < METRIC_COUNT; i++) {
        if (m->value[i] == 0 || n + 64 > size)
            continue;
        n += (size_t)snprintf(buf + n, size - n, "%s\"%s\":%" PRId64, n > 1 ? "," : "",
                              names[i], m->value[i]);
    }
    (void)snprintf(buf + n, size - n, "}");
    return buf;
}

void metrics_add(struct metrics *to, const struct metrics *from)
{
    for (int i = 0; i < METRIC_COUNT; i++)
        to->value[i] += from->value[i];
}
