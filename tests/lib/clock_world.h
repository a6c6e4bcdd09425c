/* clock_world: clocks that a test moves: a server's, and the test's own. Every move is
 * looked at where it must be seen, and the test fails when it is not. The test's own
 * clocks move only where it links clock_shim. */
#ifndef LEDGERLOCK_CLOCK_WORLD_H
#define LEDGERLOCK_CLOCK_WORLD_H

#include "tests/lib/fixture.h"
#include "tests/testkit/clock_shim.h"

enum { CLOCK_HOUR_MS = 3600 * 1000 };

/* Moves the wall clock of a server that was started with fixture_movable_clocks, by so
 * much; TIME must tell. */
void clock_jump_server(const struct fixture_redis *r, int64_t ms);

/* Puts it right again. */
void clock_mend_server(const struct fixture_redis *r);

/* Moves clocks of this process: the wall's; the one since boot, as after a suspend. */
void clock_jump_wall(int64_t ms);
void clock_jump_boot(int64_t ms);

/* Puts all of this process' clocks right again. */
void clock_mend_own(void);

/* Fails the test when what went from before to after did not move by ms. */
void clock_assert_moved(const char *what, int64_t before, int64_t after, int64_t ms);

#endif
