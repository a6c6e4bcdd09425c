/* A PostgreSQL that takes no writes for a while, as a standby does that a host name
 * leads to after a failover: an outage, not the end of the pool. */
#include <stdio.h>
#include <string.h>

#include "tests/lib/world.h"

static void set_read_only(const char *setting)
{
    world_do("DO $$ BEGIN EXECUTE format('ALTER DATABASE %%I SET "
             "default_transaction_read_only = %s', current_database()); END $$",
             setting);
}

static void pool_stays_up_on_a_read_only_server_and_goes_on_when_it_writes(void **state)
{
    struct fixture_child pool;
    char owner[FIXTURE_URL + 64];

    (void)state;
    world_user(1, 1000);
    world_subscription(1, 1, 100, "2024-01-01Z");
    set_read_only("on");
    fixture_spawn(&world.f, &pool, "run", "-w", "2", "--once", "--now",
                  "2024-01-02T00:00:00Z", NULL);
    fixture_pause_ms(3000);
    assert_int_equal(world_ask("SELECT count(*) FROM charges"), 0);
    (void)snprintf(owner, sizeof owner,
                   "%s&options=-cdefault_transaction_read_only%%3Doff", world.owner);
    fixture_exec(owner,
                 "DO $$ BEGIN EXECUTE format('ALTER DATABASE %I SET "
                 "default_transaction_read_only = off', current_database()); END $$");
    assert_int_equal(fixture_wait(&pool, 30, &world.o), 0);
    fixture_assert_contains(world.o.err, "pool.postgres_down");
    fixture_assert_contains(world.o.err, "read-only");
    assert_null(strstr(world.o.err, "pool.worker_died"));
    assert_int_equal(world_ask("SELECT count(*) FROM charges"), 1);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(
            pool_stays_up_on_a_read_only_server_and_goes_on_when_it_writes, world_open,
            world_close),
    };

    fixture_need_servers();
    return cmocka_run_group_tests(tests, NULL, NULL);
}
