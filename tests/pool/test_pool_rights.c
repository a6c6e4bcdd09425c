/* pool rights: a pool that may not work does not start. */
#include "tests/lib/steps.h"

static void undo(void)
{
    super_do("DO $$ BEGIN IF EXISTS (SELECT FROM pg_roles WHERE rolname = '%s') THEN"
             " DROP OWNED BY %s; DROP ROLE %s; END IF; END $$",
             world.f.database, world.f.database, world.f.database);
}

static void fill(void)
{
    world_user(1, 1000);
    world_subscription(1, 1, 100, "2024-01-01Z");
}

WORLD(.redis = true, .also = fill, .undo = undo);

#define RUN "run --once --now 2024-02-01T00:00:00Z"

/* ---- in PostgreSQL ---- */

/* The role that runs the pool, by default a new login, which is called as the database;
 * what is granted to that beforehand, and what is revoked then. */
static const struct {
    const char *name, *role;
    bool is_granted; /* all of schema ledgerlock */
    const char *revoke, *lacks;
} roles[] = {
    {"a_reader", .role = "ledgerlock_reader", .lacks = " may not use apply_charges, "},
    {"a_login_without_any_right", .lacks = " may not use the schema ledgerlock, "},
    {"a_login_without_one_function", .is_granted = true,
     .revoke = "EXECUTE ON FUNCTION ledgerlock.claim_stock",
     .lacks = " may not use claim_stock"},
    {"a_login_without_one_table", .is_granted = true,
     .revoke = "SELECT ON ledgerlock.order_lines", .lacks = " may not use order_lines"},
    {"workers_without_one_function", .role = "ledgerlock_worker",
     .revoke = "EXECUTE ON FUNCTION ledgerlock.next_token",
     .lacks = "ledgerlock_worker may not use next_token"},
};

static void grant_all(const char *role)
{
    super_do("GRANT USAGE ON SCHEMA ledgerlock TO %s; GRANT SELECT ON ALL TABLES IN"
             " SCHEMA ledgerlock TO %s; GRANT EXECUTE ON ALL FUNCTIONS IN SCHEMA"
             " ledgerlock TO %s",
             role, role, role);
}

/* Guarantee: A pool whose role may not use all that a worker uses does not start: exit
 * code 6, and the message names what it lacks, as `doctor` does. */
CASE_ROWS(pool_does_not_start_as, roles)
{
    const char *role = row->role != NULL ? row->role : world.f.database;

    if (row->role == NULL)
        super_do("CREATE ROLE %s LOGIN", role);
    if (row->is_granted)
        grant_all(role);
    if (row->revoke != NULL)
        super_do("REVOKE %s FROM %s", row->revoke, role);
    fixture_become(&world.f, role);
    world_says(6, row->lacks, RUN);
    fixture_assert_contains(said.err, "run as a member of ledgerlock_worker");
    assert_null(strstr(said.err, "pool.started"));
    world_runs(1, "doctor");
    fixture_assert_contains(said.out, row->lacks);
}

/* ---- in Redis ---- */

/* Guarantee: A pool whose user of Redis may log in and take no lock does not start:
 * exit code 5, and `doctor` says so. */
CASE(pool_does_not_start_as_a_user_who_may_take_no_lock)
{
    (void)redis_do("ACL SETUSER default -evalsha -eval");
    world_says(5, "the user's rights", RUN);
    assert_null(strstr(said.err, "pool.started"));
    world_runs(1, "doctor");
    fixture_assert_contains(said.out, "FAIL  redis_rights");
    world_is(0, "SELECT count(*) FROM charges");
    (void)redis_do("ACL SETUSER default +@all");
    world_runs(0, RUN);
    world_is(2, "SELECT count(*) FROM charges");
}
