/* swarm: a mixture of faults for a world of FAULT_PLAN, drawn from a seed: which ones
 * take part, when each begins and how long it lasts. The same seed and length give the
 * same schedule. Some are of the gateway, which the world needs, too (cards.h). */
#ifndef LEDGERLOCK_SWARM_H
#define LEDGERLOCK_SWARM_H

#include "tests/lib/world.h"

enum { SWARM_EVENTS = 512, SWARM_MIXED = 6, SWARM_FAULTS = 21 };

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

/* Every fault that begins ends before total_ms. */
void swarm_draw(struct swarm *s, uint64_t seed, int64_t total_ms);

/* A number that differs between schedules. */
uint64_t swarm_hash(const struct swarm *s);

/* The seed of round i of a long run. */
uint64_t swarm_seed(uint64_t seed, uint64_t i);

/* Two faults of one group never overlap. */
enum swarm_group {
    WORKER_A,
    WORKER_B,
    REDIS,
    POSTGRES,
    WAY_TO_REDIS,
    WAY_TO_POSTGRES,
    GATEWAY,
    CUT
};

struct swarm_fault {
    const char *name;
    enum swarm_group group;
    void (*set)(bool on);
    const char *on, *off; /* or these commands to Redis */
    const char *counted;  /* the gateway counts how often it met something, or */
    struct proxy *by;     /* this one does; both NULL: seen */
    enum proxy_count count;
    void (*way)(struct proxy *, bool on); /* that proxy does so, or cuts COMMIT */
    void (*cut)(struct proxy *, const char *bytes, size_t size, unsigned times);
};

extern const struct swarm_fault swarm_faults[SWARM_FAULTS];

/* How often a fault that nobody counts has met something since the test set it to 0. */
extern unsigned swarm_seen;

/* Lets a fault begin, or end. */
void swarm_throw(size_t fault, bool on);

/* How often it has met something: since the world was opened, or swarm_seen. */
unsigned swarm_met(size_t fault);
bool swarm_is_counted(size_t fault);

/* Ends what a test that failed has left behind. */
void swarm_end_faults(void);

#endif
