/* places: a wallet that somebody writes between the snapshot of a claim and its lock. A
 * subscription that moved since its pull is told in tests/sql/forgeries.sql. */
#include <libpq-fe.h>
#include <signal.h>

#include "tests/lib/hand.h"

static const char now[] = "2024-01-05T00:00:00Z";

GROUP(.open = hand_world, .close = world_close);

/* The claim asks the policy while it reads: it has its snapshot then, and no lock. */
static PGconn *stand_in_the_claim(void)
{
    PGconn *other = PQconnectdb(world.owner);

    world_do(
        "CREATE FUNCTION stand() RETURNS boolean LANGUAGE plpgsql AS 'BEGIN PERFORM "
        "pg_advisory_xact_lock_shared(7); RETURN true; END'; ALTER TABLE users "
        "ENABLE ROW LEVEL SECURITY, FORCE ROW LEVEL SECURITY; CREATE POLICY stand ON "
        "users USING (user_id <> 128 OR session_user <> 'ledgerlock_worker' OR "
        "stand())");
    PQclear(PQexec(other, "SELECT pg_advisory_lock(7)"));
    return other;
}

static const char claim_stands[] =
    "SELECT count(*) = 1 FROM pg_stat_activity WHERE datname = current_database() AND "
    "wait_event = 'advisory' AND query LIKE '-- Claims users%'";

/* The pool begins first: it refuses a schema whose rows are hidden by a policy. */
CASE(wallet_written_behind_the_claims_snapshot_pays_what_it_holds)
{
    struct fixture_child pool;
    PGconn *other;

    world_do("UPDATE subscriptions SET amount_minor = 1500 WHERE subscription_id = 2;"
             "SELECT pause_job('billing', 'test')");
    fixture_spawn(&world.f, &pool, "run", "-w", "1", "--jobs", "billing", "--now", now,
                  NULL);
    world_wait("SELECT count(*) = 1 FROM ledgerlock.workers");
    other = stand_in_the_claim();
    world_do("SELECT resume_job('billing')");
    world_wait("%s", claim_stands);
    world_deposit(128, 2, 600);
    PQfinish(other);
    world_wait("SELECT bool_and(next_period_no = 1) FROM ledgerlock.subscriptions");
    assert_int_equal(kill(pool.pid, SIGTERM), 0);
    assert_int_equal(fixture_wait(&pool, 30, NULL), 0);
    assert_int_equal(world_ask("SELECT balance_minor FROM users WHERE user_id = 128"),
                     100);
    assert_int_equal(
        world_ask("SELECT count(*) FROM lock_incidents WHERE kind = 'parked'"), 0);
}
