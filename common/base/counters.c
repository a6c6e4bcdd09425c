/* counters: addition and text. */
#include "common/base/counters.h"

#include <inttypes.h>
#include <stdio.h>

void counters_add(struct counters *to, const struct counters *from)
{
    for (int i = 0; i < COUNTERS_MAX; i++)
        to->value[i] += from->value[i];
}

size_t counters_text(const struct counters *c,
                     const char *const *names,
                     size_t n,
                     bool not_zero,
                     char *buf,
                     size_t size)
{
    size_t at = 0;

    buf[0] = '\0';
    for (size_t i = 0; i < n && at + 64 < size; i++) {
        if (!not_zero || c->value[i] != 0)
            at += (size_t)snprintf(buf + at, size - at, "%s%s=%" PRId64,
                                   at > 0 ? " " : "", names[i], c->value[i]);
    }
    return at;
}

size_t counters_json(const struct counters *c,
                     const char *const *names,
                     size_t n,
                     char *buf,
                     size_t size)
{
    size_t at = (size_t)snprintf(buf, size, "{");

    for (size_t i = 0; i < n && at + 64 < size; i++) {
        if (c->value[i] != 0)
            at += (size_t)snprintf(buf + at, size - at, "%s\"%s\":%" PRId64,
                                   at > 1 ? "," : "", names[i], c->value[i]);
    }
    return at + (size_t)snprintf(buf + at, size - at, "}");
}
