/* swarm_faults: the kinds of faults that a swarm mixes, for a world of FAULT_PLAN. */
#ifndef LEDGERLOCK_SWARM_FAULTS_H
#define LEDGERLOCK_SWARM_FAULTS_H

#include "tests/lib/world.h"

enum { SWARM_FAULTS = 17 };

/* Two faults of one group never overlap. */
enum swarm_group {
    WORKER_A,
    WORKER_B,
    REDIS,
    POSTGRES,
    WAY_TO_REDIS,
    WAY_TO_POSTGRES,
    CUT
};

struct swarm_fault {
    const char *name;
    enum swarm_group group;
    void (*set)(bool on);
    const char *on, *off; /* or these commands to Redis */
    struct proxy *by;     /* counts how often it met something; NULL: seen */
    enum proxy_count count;
    void (*way)(struct proxy *, bool on); /* that proxy does so, or cuts COMMIT */
    void (*cut)(struct proxy *, const char *bytes, size_t size, unsigned times);
};

extern const struct swarm_fault swarm_faults[SWARM_FAULTS];

/* How often a fault without a proxy has met something since the test set it to 0. */
extern unsigned swarm_seen;

/* Lets a fault begin, or end. */
void swarm_throw(size_t fault, bool on);

/* How often it has met something: since the world was opened, or swarm_seen. */
unsigned swarm_met(size_t fault);

/* Ends what a test that failed has left behind. */
void swarm_end_faults(void);

#endif
