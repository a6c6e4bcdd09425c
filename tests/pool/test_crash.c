/* crash: a row that takes its workers with it is found, parked after three deaths over
 * it alone, and given back by a person; a death of any other kind counts against no
 * row, and what the dead worker had in its hands is worked again, once. */
#include "tests/lib/points.h"
#include "tests/lib/shop.h"
#include "tests/lib/steps.h"

#define BILLED(charged, parked)                                                        \
    "billing: " charged " charged, 0 declined, 0 planned, 0 cancelled, " parked        \
    " parked, nothing left; "
#define SERVED(fulfilled, parked)                                                      \
    "orders: " fulfilled " fulfilled, 0 rejected, 0 planned, " parked                  \
    " parked, nothing left\n"

static char once[256]; /* the file that only one worker can make */

static void open_shop(void)
{
    points_program();
    shop_open();
    /* Row 7 of each job is pulled with many others, before all of them. */
    world_do("UPDATE subscriptions SET next_due_at = " SHOP_FIRST ", anchor_at ="
             " " SHOP_FIRST " WHERE subscription_id = 7;"
             " UPDATE orders SET placed_at = " SHOP_FIRST " WHERE order_id = 7");
    /* So long that only the successor of a dead worker can have freed its keys. */
    fixture_env("LEDGERLOCK_LOCKS_LEASE_MS", "60000");
    fixture_temporary(once, sizeof once, "once");
}

static void close_shop(void)
{
    (void)unlink(once);
    points_as_shipped();
    shop_close();
}

GROUP(.open = open_shop, .end = world_end, .close = close_shop);

/* ---- a row that kills ---- */

static void meet_poison(const char *list)
{
    fixture_env("LL_TEST_POISON", list);
    (void)shop_run();
    fixture_env("LL_TEST_POISON", NULL);
}

static void assert_parked_after_deaths(const char *line, const char *item)
{
    const char *incident;

    assert_string_equal(said.out, line);
    assert_int_equal(said.code, 8);
    assert_true(shop_log_count("event=pool.worker_died") >=
                3); /* and once in company */
    assert_true(shop_log_count("event=worker.row_death") >= 3);
    assert_int_equal(pool_incidents("parked", ""), 1);
    incident =
        world_text("SELECT resource || ' ' || detail FROM lock_incidents WHERE kind ="
                   " 'parked'");
    fixture_assert_contains(incident, item);
    fixture_assert_contains(incident,
                            "while it worked it alone, the last time of signal 11");
}

static const struct {
    const char *name, *list, *item, *line;
} poisons[] = {
    {"subscription", "billing:7", "subscription:7",
     BILLED("199", "1") SERVED("200", "0")},
    {"order", "orders:7", "order:7", BILLED("200", "0") SERVED("199", "1")},
};

/* Guarantee: A row that kills its worker is parked after three deaths over it alone. */
CASE_ROWS(three_deaths_park_a_poisonous, poisons)
{
    meet_poison(row->list);
    assert_parked_after_deaths(row->line, row->item);
    world_is(1, "SELECT count(*) FROM lock_incidents WHERE kind = 'parked' AND detail"
                " LIKE '%%died 3 times%%'");
}

/* Without locks the workers meet over the row, and all others may be done before the
 * first dies over it alone: the row of user 100 is committed after that, however many
 * deaths there were by then. */
CASE(three_deaths_park_a_poisonous_subscription_without_locks)
{
    fixture_env("LEDGERLOCK_LOCKS_MODE", "database-only");
    fixture_env("LL_TEST_POISON", "billing:7");
    shop_hold("SELECT FROM users WHERE user_id = 100 FOR UPDATE");
    pool_start("run --once -w 2 --now %s", SHOP_NOW);
    pool_log_wait(&world.pool, "event=worker.row_death");
    shop_let_go();
    (void)fixture_wait(&world.pool, 600, &said);
    assert_parked_after_deaths(BILLED("199", "1") SERVED("200", "0"), "subscription:7");
}

/* Guarantee: Two rows of one batch that kill their workers are both parked. */
CASE(two_poisonous_rows_of_one_batch_are_both_parked)
{
    world_do("UPDATE subscriptions SET unit = 'day', anchor_at = anchor_at - interval"
             " '40 days', next_due_at = next_due_at - interval '40 days'"
             " WHERE subscription_id > 31");
    meet_poison("billing:7,billing:8");
    assert_int_equal(said.code, 8);
    assert_int_equal(pool_incidents("parked", ""), 2);
    world_is(2, "SELECT count(*) FROM subscriptions WHERE state = 'parked' AND"
                " subscription_id IN (7, 8)");
}

/* The machine may be at fault as well: no other row shows that it is not. */
/* Guarantee: A row that kills its worker is not parked when nothing else could be
 * committed. */
CASE(poisonous_row_alone_in_the_shop_is_not_parked)
{
    world_do(
        "UPDATE subscriptions SET state = 'cancelled', cancel_at = anchor_at WHERE"
        " subscription_id <> 7; UPDATE orders SET state = 'fulfilled', decided_at ="
        " now(), fence = 1");
    meet_poison("billing:7");
    assert_int_equal(said.code, 70);
    assert_int_equal(shop_log_count("event=pool.giving_up"), 1);
    promise_int_equal(pool_incidents("parked", ""), 0);
    world_is(0, "SELECT count(*) FROM subscriptions WHERE state = 'parked'");
}

CASE(row_is_never_parked_when_park_after_is_0)
{
    fixture_env("LEDGERLOCK_POOL_PARK_AFTER", "0");
    meet_poison("billing:7");
    assert_int_equal(said.code, 70);
    promise_int_equal(pool_incidents("parked", ""), 0);
    world_is(SHOP_USERS - 1, "SELECT count(*) FROM charges");
}

/* The worker dies at the first claim after the file is gone, and its successor makes
 * the file. Each time the row is committed before the next death. */
/* Guarantee: Deaths of workers over a row do not add up across a commit of that row. */
CASE(row_that_is_committed_between_three_deaths_is_not_parked)
{
    int64_t charged = 0;

    world_do("UPDATE subscriptions SET state = 'cancelled', cancel_at = anchor_at WHERE"
             " subscription_id <> 7; UPDATE subscriptions SET unit = 'day', anchor_at ="
             " anchor_at - interval '900 days', next_due_at = next_due_at - interval"
             " '900 days' WHERE subscription_id = 7");
    fixture_env("LL_TEST_POINT", "after_claim=kill");
    fixture_env("LL_TEST_POINT_ONCE", once);
    (void)unlink(once);
    pool_start("run -w 1 --jobs billing --now " SHOP_NOW);
    for (unsigned deaths = 1; deaths <= 3; deaths++) {
        FIXTURE_AWAIT(pool_log_count(&world.pool, "event=worker.row_death") == deaths,
                      "not %u deaths", deaths);
        charged = world_ask("SELECT count(*) FROM charges");
        FIXTURE_AWAIT(world_ask("SELECT count(*) FROM charges") > charged ||
                          world_parked() > 0,
                      "no charge after %u deaths", deaths);
        promise_int_equal(world_parked(), 0);
        if (deaths < 3)
            (void)unlink(once);
    }
    pool_work_wait(901);
    pool_stop();
    pool_logged(3, " deaths=1 ");
    promise_int_equal(world_parked(), 0);
}

/* Row 25 is in the middle of a batch, so that neither order of the others hides it. */
/* Guarantee: Rows that were in a batch with one that kills its workers are worked
 * before that one is tried again. */
CASE(rows_of_the_only_worker_are_worked_before_the_row_that_kills)
{
    fixture_env("LL_TEST_POISON", "billing:25");
    world_runs(8, "run --once -w 1 --jobs billing --now " SHOP_NOW);
    fixture_env("LL_TEST_POISON", NULL);
    assert_string_equal(said.out,
                        "billing: 199 charged, 0 declined, 0 planned, 0 cancelled, 1"
                        " parked, nothing left\n");
    /* The 49 others of the batch, by their fences: microseconds of the server's clock.
     */
    world_is(49,
             "SELECT count(*) FROM charges, lock_incidents WHERE kind = 'parked' AND"
             " fence < extract(epoch FROM at) * 1000000");
}

/* The row that comes with it has the same user, so that no batch has it alone: what its
 * successor works first shows that the machine is not at fault. */
/* Guarantee: Deaths over a row are counted anew when it was parked and given back. */
CASE(row_that_was_parked_and_given_back_is_parked_after_three_deaths_again)
{
    fixture_env("LL_TEST_POISON", "billing:7");
    pool_start("run -w 1 --jobs billing --now " SHOP_NOW);
    fixture_env("LL_TEST_POISON", NULL);
    world_wait("SELECT count(*) = 1 FROM ledgerlock.subscriptions WHERE state ="
               " 'parked'");
    pool_logged(1, " deaths=1 ");
    world_do(INTO_SUBSCRIPTIONS "VALUES (1000, 7, 'more', 1, 'USD', " SHOP_FIRST
                                ", 'month', " SHOP_FIRST
                                "); SELECT release_rows('billing', '{7}')");
    world_wait("SELECT count(*) = 2 FROM ledgerlock.lock_incidents WHERE kind ="
               " 'parked'");
    pool_logged(2, " deaths=1 ");
    (void)kill(world.pool.pid, SIGTERM);
    pool_assert_ends(&world.pool, 8);
}

/* ---- a worker that is killed ---- */

static const struct {
    const char *name, *place;
    const char *workers; /* of each job: one meets no busy key, so its batch is whole */
    bool is_claimed, is_committed;
} places[] = {
    {"before_lock", "before_lock", "4", false, false},
    {"after_lock", "after_lock", "4", false, false},
    {"before_begin", "before_begin", "4", false, false},
    {"after_claim", "after_claim", "4", true, false},
    {"before_commit", "before_commit", "4", true, false},
    {"after_commit", "after_commit", "4", true, true},
    {"before_release", "before_release", "4", true, true},
    {"after_claim_of_a_whole_batch", "after_claim", "1", false, false},
};

static int run(const char *workers)
{
    return strcmp(workers, "1") == 0 ? shop_run_with("1") : shop_run_met();
}

/* Guarantee: A worker that is killed over a batch, before, inside or after its
 * transaction, loses none of its rows, charges none twice, and parks none; its
 * successor frees its keys; the checker agrees. */
CASE_ROWS(rows_are_worked_once_after_a_kill, places)
{
    char order[64];

    (void)snprintf(order, sizeof order, "%s=kill", row->place);
    fixture_env("LL_TEST_POINT", order);
    fixture_env("LL_TEST_POINT_ONCE", once);
    (void)unlink(once);
    checker_open();
    assert_int_equal(run(row->workers), 0);
    if (!row->is_committed) /* the dead one had not counted what it committed */
        assert_string_equal(said.out, BILLED("200", "0") SERVED("200", "0"));
    assert_int_equal(shop_log_count("event=pool.worker_died"), 1);
    assert_int_equal(shop_log_count("event=worker.recovers"),
                     strcmp(row->place, "before_lock") != 0);
    /* Beside a second worker a batch may be down to one row, and the death is then
     * counted against it. */
    assert_in_range(shop_log_count("event=worker.row_death"), 0, row->is_claimed);
    promise_int_equal(pool_incidents("parked", ""), 0);
    promise_int_equal(pool_lock_keys(), 0);
    world_expect(
        "200 400 200 19978000",
        "SELECT concat_ws(' ', (SELECT count(*) FROM charges), (SELECT count(*)"
        " FROM ledger WHERE kind <> 'deposit'), (SELECT count(*) FROM"
        " stock_ledger), (SELECT sum(balance_minor) FROM users))");
    checker_assert_holds(SHOP_NOW, "--kills --bound-ms 30000");
}

/* Nothing is due any more when its successor looks for it. */
/* Guarantee: A batch that was committed before the death of its worker is made up for
 * once, and counts against no row. */
CASE(death_behind_the_commit_of_one_row_is_made_up_for_once)
{
    world_do("UPDATE subscriptions SET state = 'cancelled', cancel_at = anchor_at WHERE"
             " subscription_id <> 7");
    fixture_env("LL_TEST_POINT", "before_release=kill");
    fixture_env("LL_TEST_POINT_ONCE", once);
    (void)unlink(once);
    pool_start("run -w 1 --jobs billing --billing-poll-ms 50 --now " SHOP_NOW);
    pool_log_wait(&world.pool, "event=worker.recovers");
    (void)pool_asks(1000); /* it looks for due rows again and again */
    pool_stop();
    pool_logged(1, "event=worker.recovers");
    pool_logged(0, "event=worker.row_death");
    world_is(1, "SELECT count(*) FROM charges");
}
