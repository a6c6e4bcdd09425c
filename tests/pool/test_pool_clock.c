/* pool: the clock of its Redis jumps an hour ahead and back again while it works:
 * leases end under the workers, and the totals are exact all the same. */
#include "tests/lib/clock_world.h"
#include "tests/lib/fault.h"

static void begin(void)
{
    fixture_movable_clocks = true;
}

const struct world_plan world_plan = {FAULT_PLAN, .load = &fault_usual};
GROUP(.start = begin, GROUP_OF_WORLD);

static void jump(bool on)
{
    for (int i = 0; on && i < 50; i++) {
        if (i % 3 == 0)
            fault_feed();
        checker_forgot(&world.checker);
        clock_jump_server(&world.redis, i % 2 == 0 ? CLOCK_HOUR_MS : -CLOCK_HOUR_MS);
        fixture_pause_ms(20);
    }
}

/* Guarantee: Redis' clock jumps an hour ahead and back, again and again: totals are
 * exact. */
CASE(clock_jump_pool_totals_are_exact)
{
    static const struct fault jumps = {"jumps", jump, .up = NULL};

    fault_happens(&jumps);
    assert_true(pool_incidents(&world.f, "lost", "") > 0); /* leases did end */
}
