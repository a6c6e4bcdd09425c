/* card_races: two workers of the job payments that ask the gateway for the same attempt
 * at the same time, since the first has lost its lock. The stand-in holds the call of
 * the first until it is killed. */
#include "tests/lib/cards.h"

static const struct world_plan world_plan = {
    .lease_ms = 3000, .points = true, .redis = true};

GROUP(.plan = &world_plan, .open = cards_open, .end = world_end, .close = cards_close);

static const struct {
    const char *name;
    int run_at; /* percents of the time that the call is held, before it is run */
    bool is_frozen;
} races[] = {
    {"is_frozen_after_it_was_run", 0, true},
    {"is_frozen_before_it_is_run", 100, true},
    {"lost_its_key_after_it_was_run", 0, false},
    {"lost_its_key_before_it_is_run", 100, false},
};

/* The gateway has the call of this worker, which holds no lock any more, and its row is
 * due again. */
static void first_loses_its_lock(pid_t pid, bool is_frozen)
{
    gateway_wait("/_/calls", "received", 1);
    if (is_frozen)
        (void)kill(pid, SIGSTOP);
    else
        (void)redis_do("FLUSHALL");
    super_do("UPDATE ledgerlock.payments SET due_at = now()");
}

/* Guarantee: Two workers that ask the gateway at the same time use the same key: the
 * second is refused, the attempt stays undecided, and the money is taken once. */
CASE_ROWS(two_workers_ask_at_once_when_the_first, races, .every = 2)
{
    char slot[8], title[24];
    pid_t pid;

    fixture_env("LEDGERLOCK_GATEWAY_TIMEOUT_MS", "300000");
    fixture_env("LEDGERLOCK_GATEWAY_CALLS", "1"); /* the first pulls no more */
    cards_users(1, 1);
    cards_periods(1);
    world_runs(0, "run --once --jobs billing");
    gateway_behaves("slow=next:1&slow_ms=600000");
    gateway_behaves(row->run_at > 0 ? "run_at=100" : "run_at=0");
    pool_start("run --jobs payments --payments 2");
    world_wait("SELECT count(*) = 1 FROM ledgerlock.payments WHERE state = 'sent'");
    (void)snprintf(slot, sizeof slot, "%s",
                   world_text("SELECT split_part(worker, '.', 2) FROM payments"));
    (void)snprintf(title, sizeof title, "payments:%s", slot);
    pid = pool_child(world.pool.pid, title);
    assert_int_not_equal(pid, 0);
    first_loses_its_lock(pid, row->is_frozen);
    world_wait("SELECT count(*) = 1 FROM ledgerlock.payments WHERE state = 'unknown'"
               " AND reason = 'HTTP 409 idempotency_key_in_use'");
    promise_int_equal(gateway_captures(), row->run_at == 0);
    world_is(0, "SELECT count(*) FROM payments WHERE split_part(worker, '.', 2) = '%s'",
             slot);
    assert_int_equal(pool_child(world.pool.pid, title), pid);
    if (row->is_frozen)
        (void)kill(pid, SIGCONT);
    (void)gateway_stop(SIGKILL);
    gateway_again("");
    cards_decided_soon();
    cards_agree(1, 0);
    world_is(1, "SELECT count(*) FROM payments");
}
