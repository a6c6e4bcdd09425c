/* scenes: one schedule for each fault; the pool's in pool_scenes.c. A schedule in
 * which the fault did not happen as it was meant would show nothing: it ends the
 * program. */
#ifndef LEDGERLOCK_LAB_SCENE_H
#define LEDGERLOCK_LAB_SCENE_H

#include "labs/lab/lab.h"

/* Items 1 .. are for the schedules, the free run works on those from here on. */
enum { LAB_FREE_FIRST = 11, LAB_FREE_LAST = 50, LAB_PERIODS = 3 };

/* The process of a seat has ended; waits until it has. */
bool lab_is_over(struct lab *l, int seat);
void lab_until_over(struct lab *l, int seat);

/* Waits until the actor of a seat stands at its point, or has ended; lets it go on to
 * the next one; lets it go on to its end. */
void lab_until_stopped(struct lab *l, int seat);
void lab_let_go(struct lab *l, int seat, enum lab_point next);
void lab_finish(struct lab *l, int seat);

/* Some actor waits inside its lock, which is counted. */
bool lab_waits_inside(struct lab *l);

/* Until the lease of an item has run out by itself; a key that is renewed is given
 * twice its lease, one without end none. */
void lab_outwait(struct lab *l, int64_t item);

/* By actors, and by the shipped pool. */
typedef void lab_scene(struct lab *l);

lab_scene lab_scene_calm, lab_pool_calm;
lab_scene lab_scene_killed, lab_pool_killed;
lab_scene lab_scene_stopped, lab_pool_stopped;
lab_scene lab_scene_forgets, lab_pool_forgets;
lab_scene lab_scene_lying, lab_pool_lying;
lab_scene lab_scene_replies, lab_pool_replies;
lab_scene lab_scene_postgres, lab_pool_postgres;
lab_scene lab_scene_commit, lab_pool_commit;

#endif
