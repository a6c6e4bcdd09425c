/* swarm: a mixture of faults drawn from a seed: which ones take part, when each begins
 * and how long it lasts. The same seed and length give the same schedule. */
#ifndef LEDGERLOCK_SWARM_H
#define LEDGERLOCK_SWARM_H

#include <stddef.h>
#include <stdint.h>

enum { SWARM_EVENTS = 512, SWARM_MIXED = 6 };

struct swarm_event {
    int64_t at_ms;
    int fault;
    int ends; /* 1: the fault is over; 0: it begins */
};

struct swarm {
    int mixed[SWARM_MIXED]; /* the faults that take part */
    size_t mixed_ct;
    struct swarm_event events[SWARM_EVENTS]; /* in the order of time */
    size_t event_ct;
};

/* Faults are 0 to fault_ct - 1; group[fault] is what it holds: two faults of one group
 * never overlap. Every fault that begins ends before total_ms. */
void swarm_draw(struct swarm *s,
                uint64_t seed,
                const int *group,
                size_t fault_ct,
                int64_t total_ms);

/* A number that differs between schedules. */
uint64_t swarm_hash(const struct swarm *s);

/* The seed of round i of a long run. */
uint64_t swarm_seed(uint64_t seed, uint64_t i);

#endif
