/* citus_roles: people and programs in a Citus cluster who are no superusers. */

#include "tests/lib/citus_world.h"
#include "tests/lib/pool_world.h"

/* As docs/cells.md has it. */
static const char for_the_owner[] =
    "ALTER ROLE ledgerlock_owner LOGIN; "
    "DO $$ BEGIN EXECUTE format('GRANT CONNECT ON DATABASE %I TO ledgerlock_owner', "
    "current_database()); END $$";
static const char for_functions[] =
    "DO $$ BEGIN EXECUTE format('ALTER DATABASE %I SET "
    "citus.allow_nested_distributed_execution = on', current_database()); END $$";

/* The runs that follow log in as this role. */
static void become(const char *role)
{
    char url[FIXTURE_URL + 64];

    (void)snprintf(url, sizeof url, "%s%suser=%s", cluster.url,
                   strchr(cluster.url, '?') != NULL ? "&" : "?", role);
    fixture_env("LEDGERLOCK_CELLS_CITUS", url);
}

static void open_roles(void)
{
    char command[2048];

    citus_open();
    (void)snprintf(
        command, sizeof command,
        "psql -qX -d '%s' -f '%s/config/postgres/10-roles.sql' >/dev/null 2>&1",
        cluster.url, getenv("LL_TEST_SOURCE"));
    assert_int_equal(system(command), 0);
    fixture_exec(cluster.url, for_the_owner);
}

GROUP(.open = open_roles, .close = citus_close);

/* Guarantee: In a Citus cluster the owner adds and moves cells, a worker works them and
 * makes months, and a reader proves them, without a superuser. */
CASE(roles_of_a_cluster_need_no_superuser)
{
    fixture_exec(
        cluster.url,
        "DO $$ BEGIN EXECUTE format('ALTER DATABASE %I RESET "
        "citus.allow_nested_distributed_execution', current_database()); END $$");
    become("ledgerlock_migrate");
    says(&cluster, 4, "SET citus.allow_nested_distributed_execution = on",
         "cells add 1");
    fixture_exec(cluster.url, for_functions);
    citus_add_fresh(1);
    fixture_exec(citus_home(1),
                 "INSERT INTO subscriptions (user_id, plan, amount_minor, currency, "
                 "anchor_at, unit, every, next_due_at) SELECT min(user_id), 'old', 0, "
                 "min(currency), '2011-05-01Z', 'year', 30, '2011-05-01Z' FROM users");
    for (int i = 0; i < 2; i++) {
        become("ledgerlock_worker");
        starts(&cluster, &citus_pool[0], "run --billing 1 --orders 1");
        fixture_exec(
            citus_home_as(1, "ledgerlock_shop"),
            "SELECT place_order((1::bigint << 40) + 1, gen_random_uuid()::text, "
            "'[{\"sku\": \"SKU-00012\", \"qty\": 1}]')");
        citus_await_worked(1);
        citus_end_pool(0);
        become("ledgerlock_migrate");
        runs(&cluster, 0, "cells move 1 %s%s", citus_node(1, false),
             i == 1 ? " --online" : "");
    }
    runs(&cluster, 0, "migrate");
    become("ledgerlock_worker");
    says(&cluster, 0, "workers_seen", "doctor");
    become("ledgerlock_reader");
    says(&cluster, 0, citus_node(1, true), "cells");
    runs(&cluster, 0, "status");
    says(&cluster, 0, "46 of 46 invariants hold", "audit --wait 0s");
}
