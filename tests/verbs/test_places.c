/* places: rows that somebody writes between the pull, the claim and the apply. */
#include <libpq-fe.h>
#include <signal.h>

#include "tests/lib/hand.h"

static const char now[] = "2024-01-05T00:00:00Z";

static const char states[] =
    "SELECT string_agg(state || next_period_no, ' ' ORDER BY subscription_id) FROM subscriptions";

/* ---- the subscription ---- */

GROUP(.open = hand_world, .close = world_close);

CASE(subscription_that_moved_since_its_pull_waits_for_the_next)
{
    struct job_result counted = {.effects = 0};
    struct hand h;

    hand_open(&h, 10000);
    hand_pull(&h);
    world_do("UPDATE subscriptions SET plan = 'moved' WHERE subscription_id = 3");
    assert_int_equal(hand_claim(&h, 5), 0);
    assert_int_equal(hand_effects(&h, &job_billing, 5, now, &counted), 0);
    assert_int_equal(counted.counts[0], 4);
    world_expect("active1 active1 active0 active1 active1", states);
    assert_int_equal(hand_apply(&h, &job_billing, 6, now, &counted), 0);
    world_expect("active1 active1 active1 active1 active1", states);
    session_close(&h.s);
}

/* Of the same user, so nothing but its key tells the two rows apart. */
CASE(place_that_another_subscription_has_charges_neither)
{
    struct job_result counted = {.effects = 0};
    unsigned block, offset;
    struct hand h;

    hand_open(&h, 10000);
    world_subscription(6, 64, 100, "2024-01-01Z");
    hand_pull(&h);
    assert_int_equal(
        sscanf(world_text("SELECT ctid FROM subscriptions WHERE subscription_id = 6"),
               "(%u,%u)", &block, &offset),
        2);
    h.pulled.places[0] = (struct pg_tid){block, (uint16_t)offset};
    assert_int_equal(hand_claim(&h, 5), 0);
    assert_int_equal(hand_effects(&h, &job_billing, 5, now, &counted), 0);
    world_expect("active0 active1 active1 active1 active1 active0", states);
    session_close(&h.s);
}

/* ---- the wallet ---- */

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
