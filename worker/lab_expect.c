/* lab_expect: the faults in their order, and what must come out of every cell. The run
 * fails where something else does. */
#include <stdio.h>

#include "worker/lab_scene.h"

/* clang-format off */
const struct lab_fault lab_faults[LAB_FAULTS] = {
    {"calm",      "calm: two workers meet",                       lab_scene_calm,      lab_pool_calm,      LAB_LONG_MS, false},
    {"killed",    "holder killed in its lock and in its work",    lab_scene_killed,    lab_pool_killed,    500,         false},
    {"stopped",   "holder stopped beyond its lease",              lab_scene_stopped,   lab_pool_stopped,   500,         false},
    {"flushed",   "Redis flushed",                                lab_scene_flushed,   lab_pool_flushed,   LAB_LONG_MS, false},
    {"restarted", "Redis restarted empty",                        lab_scene_restarted, lab_pool_restarted, LAB_LONG_MS, false},
    {"promoted",  "a replica without the key promoted",           lab_scene_promoted,  lab_pool_promoted,  LAB_LONG_MS, false},
    {"random",    "Redis answering at random",                    lab_scene_random,    lab_pool_random,    LAB_LONG_MS, true},
    {"clock",     "clock of Redis jumped an hour",                lab_scene_jumped,    lab_pool_jumped,    LAB_LONG_MS, false},
    {"replies",   "replies of Redis lost",                        lab_scene_replies,   lab_pool_replies,   500,         false},
    {"postgres",  "PostgreSQL crashed and restarted",             lab_scene_postgres,  lab_pool_postgres,  1500,        false},
    {"commit",    "answer to COMMIT lost",                        lab_scene_commit,    lab_pool_commit,    LAB_LONG_MS, false},
};

/* {charged twice by the schedule, keys stuck}, in the order of lab_faults:
 *   calm   killed  stopped flushed restart promote random  clock   replies postgres commit */
static const struct lab_expect expected[LAB_STRATEGIES][LAB_FAULTS] = {
    {{1,0}, {1,0},  {2,0},  {1,0},  {1,0},  {1,0},  {1,0},  {1,0},  {1,0},  {1,0},  {1,0}}, /* none */
    {{1,0}, {1,0},  {2,0},  {1,0},  {1,0},  {1,0},  {1,0},  {1,0},  {1,0},  {1,0},  {1,0}}, /* mutex */
    {{0,0}, {0,2},  {0,0},  {1,0},  {1,0},  {1,0},  {1,0},  {0,0},  {1,1},  {0,0},  {1,0}}, /* setnx */
    {{0,0}, {0,1},  {2,0},  {1,0},  {1,0},  {1,0},  {1,0},  {1,0},  {1,1},  {1,0},  {1,0}}, /* setnx-expire */
    {{0,0}, {0,0},  {2,0},  {1,0},  {1,0},  {1,0},  {1,0},  {1,0},  {1,0},  {1,0},  {1,0}}, /* blind-del */
    {{0,0}, {0,0},  {2,0},  {1,0},  {1,0},  {1,0},  {1,0},  {1,0},  {0,0},  {1,0},  {1,0}}, /* get-del */
    {{0,0}, {0,0},  {1,0},  {1,0},  {1,0},  {1,0},  {1,0},  {1,0},  {0,0},  {1,0},  {1,0}}, /* token-lua */
    {{0,0}, {0,0},  {1,0},  {1,0},  {1,0},  {1,0},  {1,0},  {1,0},  {0,0},  {0,0},  {1,0}}, /* renewal */
    {{1,0}, {1,0},  {2,0},  {1,0},  {1,0},  {1,0},  {1,0},  {1,0},  {1,0},  {1,0},  {1,0}}, /* reentrant */
    {{0,0}, {0,0},  {1,0},  {1,0},  {1,0},  {1,0},  {1,0},  {1,0},  {0,0},  {1,0},  {1,0}}, /* watch */
    {{0,0}, {0,0},  {1,0},  {1,0},  {1,0},  {1,0},  {1,0},  {1,0},  {0,0},  {0,0},  {0,0}}, /* ours */
    {{0,0}, {0,0},  {0,0},  {0,0},  {0,0},  {0,0},  {1,0},  {0,0},  {0,0},  {0,0},  {0,0}}, /* ours-fenced */
    {{0,0}, {0,0},  {0,0},  {0,0},  {0,0},  {0,0},  {0,0},  {0,0},  {0,0},  {0,0},  {0,0}}, /* rows */
    {{0,0}, {0,0},  {0,0},  {0,0},  {0,0},  {0,0},  {0,0},  {0,0},  {0,0},  {0,0},  {0,0}}, /* advisory */
    {{0,0}, {0,0},  {0,0},  {0,0},  {0,0},  {0,0},  {0,0},  {0,0},  {0,0},  {0,0},  {0,0}}, /* constraints */
    {{0,0}, {0,0},  {0,0},  {0,0},  {0,0},  {0,0},  {0,0},  {0,0},  {0,0},  {0,0},  {0,0}}, /* everything */
};

/* clang-format on */

struct lab_expect lab_expected(size_t strategy, size_t fault)
{
    return expected[strategy][fault];
}

void lab_judge(struct lab_result *r)
{
    const struct lab_figures *f = &r->figures;
    bool lets_in = lab_is(r->strategy, LAB_LETS_IN);
    const char *why = NULL;

    if (r->forced != r->expected.twice)
        why = "the schedule did not charge twice as often as it must";
    else if (f->stuck != r->expected.stuck)
        why = "another number of keys is stuck than must be";
    else if (!lets_in && f->twice != r->forced)
        why = "charged twice where nothing stood in the way of the lock";
    else if (!lets_in && f->oversold != f->twice)
        why = "units oversold and periods charged twice differ";
    else if ((f->missed > 0) != (r->expected.stuck > 0))
        why = r->expected.stuck > 0 ? "nothing missed behind stuck keys"
                                    : "periods missed";
    r->is_right = why == NULL;
    if (why != NULL)
        (void)snprintf(r->why, sizeof r->why, "%s", why);
}
