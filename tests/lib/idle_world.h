/* idle_world: a pool with nothing to do, until a test gives it something. */
#ifndef LEDGERLOCK_IDLE_WORLD_H
#define LEDGERLOCK_IDLE_WORLD_H

#include "tests/lib/steps.h"

/* A due row is worked within a poll and a tenth of a second, as the benchmark measures.
 * Here a machine may be slow: the limit is that of a pool which polls too seldom, or
 * which a row does not wake. */
enum { POLL_MS = 500, LATE_MS = 10 * POLL_MS };

/* Users with money and units enough, nothing due. */
static const struct pool_work plenty = {.users = 20, .units = 100000};

/* So many workers of each job. */
static inline void start_pool(const char *workers)
{
    pool_start("run -w %s", workers);
    pool_log_wait(&world.pool, "event=pool.started");
}

static inline void stop_pool(void)
{
    pool_stop();
    pool_logged(0, "level=error");
}

/* Half of the rows that `from` tells of were worked soon after their time; `at` is
 * when.
 */
static inline void assert_soon(const char *at, const char *due, const char *from)
{
    int64_t late = world_ask("SELECT (extract(epoch FROM percentile_disc(0.5) WITHIN"
                             " GROUP (ORDER BY %s - %s)) * 1000)::bigint FROM %s",
                             at, due, from);

    print_message("%s: half of them within %" PRId64 " ms, the poll is %d ms\n", from,
                  late, POLL_MS);
    assert_in_range(late, 0, LATE_MS);
}

#endif
