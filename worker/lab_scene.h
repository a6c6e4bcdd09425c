/* lab_scene: one schedule for each fault; the pool's in lab_pool_scene.c. ERR_BUG: the
 * fault did not happen as it was meant, so the cell would show nothing. */
#ifndef LEDGERLOCK_LAB_SCENE_H
#define LEDGERLOCK_LAB_SCENE_H

#include "worker/lab.h"

/* Boxes 1 .. are for the schedules, the flow works on those from here on. */
enum { LAB_FLOW_FIRST = 11, LAB_FLOW_LAST = 50, LAB_PERIODS = 3 };

/* X(name): lab_scene_name for the plain strategies, lab_pool_name for the shipped. */
#define LAB_SCENES(X)                                                                  \
    X(calm)                                                                            \
    X(killed)                                                                          \
    X(stopped)                                                                         \
    X(flushed)                                                                         \
    X(restarted)                                                                       \
    X(promoted)                                                                        \
    X(random)                                                                          \
    X(jumped)                                                                          \
    X(replies)                                                                         \
    X(postgres)                                                                        \
    X(commit)

#define LAB_SCENE_DECLARE(name)                                                        \
    MUST_CHECK int lab_scene_##name(struct lab *l, struct err *e);                     \
    MUST_CHECK int lab_pool_##name(struct lab *l, struct err *e);
LAB_SCENES(LAB_SCENE_DECLARE)
#undef LAB_SCENE_DECLARE

#endif
