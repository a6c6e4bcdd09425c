/* part: what of a lock's keys goes into one call. */
#include <stdio.h>

#include "common/lock/internal.h"

size_t ll_next_granted(const struct ll_lock *l, size_t i)
{
    while (i < l->n && l->slots[i].code != LL_OK)
        i++;
    return i;
}

struct ll_part
ll_part_cut(const struct ll_lock *l, size_t *at, size_t room, uint32_t ttl_ms)
{
    struct ll_part part = {.l = l, .ttl_ms = ttl_ms};
    size_t i = ll_next_granted(l, *at);

    part.from = i;
    for (; i < l->n && part.n < room; i = ll_next_granted(l, i + 1))
        part.n++;
    *at = i;
    (void)snprintf(part.ttl, sizeof part.ttl, "%u", ttl_ms);
    (void)snprintf(part.count, sizeof part.count, "%zu", part.n);
    return part;
}
