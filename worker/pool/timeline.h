/* timeline: the last incidents of a pool, as its supervisor saw them begin and end.
 * Written by the supervisor alone, in memory that the page reads. */
#ifndef LEDGERLOCK_TIMELINE_H
#define LEDGERLOCK_TIMELINE_H

#include <stddef.h>
#include <stdint.h>

enum { TIMELINE_KEPT = 32 };

struct timeline_event {
    const char *what; /* "worker died"; the same text for the same kind of incident */
    char detail[120];
    size_t slot;      /* of the worker that it happened to, or that met it first */
    int64_t begun_ms; /* clk_ms */
    int64_t ended_ms; /* 0: not yet */
};

/* A ring; the event n stands at n % TIMELINE_KEPT. Zero it before the first one. */
struct timeline {
    size_t count; /* since the pool started */
    struct timeline_event events[TIMELINE_KEPT];
};

/* The kinds that happen to a worker. */
extern const char timeline_died[], timeline_froze[], timeline_lost[];

void timeline_begin(struct timeline *t,
                    const char *what,
                    size_t slot,
                    const char *detail);

/* The incident is over since at_ms; in any slot if `slot` is TIMELINE_ANY. */
enum { TIMELINE_ANY = -1 };

void timeline_end(struct timeline *t, const char *what, int64_t slot, int64_t at_ms);

#endif
