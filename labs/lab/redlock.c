/* redlock: as it is published: an independent SET NX PX on each of three nodes, a
 * majority of them, and what is left of the lease by our own clock. No fence. */
#include "common/base/clock.h"
#include "labs/lab/actor.h"

enum { MAJORITY = 2, DRIFT_MS = 2 };

bool lab_redlock_check(struct lab_actor *a)
{
    return clk_ms() < a->valid_until_ms;
}

bool lab_redlock_unlock(struct lab_actor *a)
{
    for (size_t i = 0; i < LAB_NODES; i++)
        (void)lab_unlock_node(a, i);
    return true; /* it is sent to all of them once, whoever answers */
}

enum lab_answer lab_redlock_lock(struct lab_actor *a)
{
    int64_t start = clk_ms();
    int granted = 0;

    for (size_t i = 0; i < LAB_NODES; i++) {
        struct bare_answer r =
            LAB_ASK_NODE(a, i, "SET", a->key, a->value, "NX", "PX", a->lease);

        granted += r.kind == BARE_TEXT;
    }
    a->valid_until_ms = start + a->lease_ms - a->lease_ms / 100 - DRIFT_MS;
    if (granted >= MAJORITY && lab_redlock_check(a))
        return LAB_GRANTED;
    (void)lab_redlock_unlock(a);
    return LAB_BUSY;
}
