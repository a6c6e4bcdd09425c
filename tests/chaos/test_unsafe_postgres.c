/* A PostgreSQL whose COMMIT does not reach the disk is refused at start by name, unless
 * one says that one knows. */
#include "tests/lib/fault.h"
#include "tests/lib/private_pg.h"
#include "tests/lib/steps.h"

const struct world_plan world_plan = {FAULT_PLAN, .load = &fault_small};

/* A setting of the whole server; returns when new sessions have it. */
static void set(const char *setting, const char *value)
{
    char sql[128], answer[16] = "";

    (void)snprintf(sql, sizeof sql, "ALTER SYSTEM SET %s = %s", setting, value);
    fixture_exec(private_pg.url, sql);
    fixture_exec(private_pg.url, "SELECT pg_reload_conf()");
    (void)snprintf(sql, sizeof sql, "SHOW %s", setting);
    for (int i = 0; strcmp(answer, value) != 0; i++) {
        assert_true(i < 6000);
        fixture_query_text(private_pg.url, sql, answer, sizeof answer);
        fixture_pause_ms(10);
    }
}

static void assert_refused_without(const char *setting)
{
    char words[64];

    set(setting, "off");
    (void)snprintf(words, sizeof words, "PostgreSQL has %s=off:", setting);
    world_says(6, words, "run --once");
    fixture_assert_contains(world.o.err, "postgres.durability");
    assert_int_equal(pool_work_done(&world.f), 0);
    set(setting, "on");
}

/* Guarantee: A PostgreSQL without fsync, full_page_writes or synchronous_commit is
 * refused by name with exit code 6. */
CASE(unsafe_postgres_is_refused_by_name)
{
    assert_refused_without("fsync");
    assert_refused_without("full_page_writes");
    assert_refused_without("synchronous_commit");
}

/* Guarantee: A PostgreSQL without fsync is worked on when `postgres.durability` is
 * `any`. */
CASE(unsafe_postgres_is_worked_on_when_one_says_so)
{
    fault_as_shipped();
    set("synchronous_commit", "off");
    fixture_env("LEDGERLOCK_POSTGRES_DURABILITY", "any");
    fault_start("4");
    fault_recovers();
    fault_end();
}

GROUP(.start = private_pg_begin, .stop = private_pg_end, GROUP_OF_WORLD);
