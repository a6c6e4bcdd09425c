/* play_cluster: cases in a Redis Cluster, where the owner of one slot stands for all.
 */
#ifndef LEDGERLOCK_PLAY_CLUSTER_H
#define LEDGERLOCK_PLAY_CLUSTER_H

#include "tests/lib/cluster_world.h"
#include "tests/lib/play_inside.h"

/* The cluster, the slot of the case, and its primary. */
struct play_cluster {
    struct cluster_world w;
    int slot;
    size_t owner;
};

extern struct play_cluster play_cluster;

/* One cluster for the whole file; a cluster of the case's own. */
extern const struct test_group play_in_cluster, play_in_fresh_cluster;
#define CLUSTER_CASE(...) PLAY_CASE(play_in_cluster, __VA_ARGS__)
#define CLUSTER_FRESH(...) PLAY_CASE(play_in_fresh_cluster, __VA_ARGS__)

/* The primary that "slot begin" moves the slot to. */
size_t play_cluster_next(void);

/* The step "slot". */
struct play_answer play_slot(const struct play_step *s);

#endif
