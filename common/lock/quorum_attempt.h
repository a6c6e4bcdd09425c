/* quorum_attempt: the rounds of one acquire, and what the nodes said in them. */
#ifndef LEDGERLOCK_LOCK_QUORUM_ATTEMPT_H
#define LEDGERLOCK_LOCK_QUORUM_ATTEMPT_H

#include "common/lock/quorum.h"

/* One script call's worth of keys on its way. */
struct ll_quorum_attempt {
    struct ll_lock *l;
    size_t first, n;
    enum ll_mode mode;
    uint32_t ttl_ms;
    int64_t node_ms, clock_us, token;
    struct ll_quorum_records records;
    size_t voters, amnesic;
    bool doubted[LL_NODES_MAX]; /* without memory, or we know it by an old ident */
    bool readmit;               /* a node has been without memory for long enough */
    bool too_late;
};

struct ll_slot *ll_quorum_slot(const struct ll_quorum_attempt *a, size_t i);

/* Nodes that granted key i, and whether they are a majority. */
size_t ll_quorum_grants(const struct ll_quorum_attempt *a, size_t i);
bool ll_quorum_has_majority(const struct ll_quorum_attempt *a, size_t i);

/* First round: fills the slots' grants and busy times, counts voters. */
int ll_quorum_ask(struct ll_quorum_attempt *a);

/* Second round: tells the nodes that granted less the token; counts acks. */
int ll_quorum_write_back(struct ll_quorum_attempt *a);

#endif
