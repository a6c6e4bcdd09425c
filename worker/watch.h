/* watch: what the supervisor says of its workers: servers that went away and came back,
 * progress, totals. */
#ifndef LEDGERLOCK_WATCH_H
#define LEDGERLOCK_WATCH_H

#include <stdbool.h>

#include "worker/slot.h"

struct watch {
    bool postgres_down, redis_down;
    int64_t started_ms, progress_ms;
    struct metrics progress; /* totals when progress was last said */
};

void watch_start(struct watch *w);

/* A server that goes away is said once by the pool, not once by each worker, and once
 * when every worker has it again. */
void watch_servers(struct watch *w, const struct slot *slots, size_t n);

/* A line every five seconds, if anything was counted since. */
void watch_progress(struct watch *w, const struct slot *slots, size_t n);

/* The last line: everything since the start. */
void watch_totals(const struct watch *w,
                  const struct slot *slots,
                  size_t n,
                  const char *event);

#endif
