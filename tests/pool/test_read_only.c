/* A PostgreSQL that takes no writes for a while, as a standby does that a host name
 * leads to after a failover: an outage, not the end of the pool. */
#include "tests/lib/steps.h"

GROUP(GROUP_OF_WORLD);

/* Guarantee: A PostgreSQL that takes no writes is waited for. */
CASE(pool_stays_up_on_a_read_only_server_and_goes_on_when_it_writes)
{
    world_user(1, 1000);
    world_subscription(1, 1, 100, "2024-01-01Z");
    super_do("ALTER DATABASE %s SET default_transaction_read_only = on",
             world.f.database);
    pool_start("run -w 2 --once --now 2024-01-02T00:00:00Z");
    pool_log_wait(&world.pool, "read-only");
    pool_log_wait(&world.pool, "event=pool.postgres_down");
    world_is(0, "SELECT count(*) FROM charges");
    super_do("BEGIN READ WRITE; ALTER DATABASE %s RESET default_transaction_read_only;"
             " COMMIT",
             world.f.database);
    pool_assert_ends(&world.pool, 0);
    pool_logged(0, "pool.worker_died");
    world_is(1, "SELECT count(*) FROM charges");
}
