/* The project is known by this: four workers of each job, thousands of due periods and
 * orders, hot SKUs, clients at work, and workers killed with -9 again and again. Then
 * every total is compared with what the load itself says must come out, in both
 * directions: nothing twice, nothing missed. test_negative_control shows that each
 * comparison can fail. */
#include "tests/lib/steps.h"

enum { KILLS = 60, RACES = 100, TRIES = 5, CLIENTS_MS = 2500 };

static PGconn *conn;
static unsigned kills;

/* ---- killing ---- */

/* Kills a worker every few ms, until it was often enough or nothing is left. Something
 * was done since the last one, and mostly it is the worker that has lived longest: a
 * pool gives up when ten in a row get nowhere. */
static void kill_again_and_again(void)
{
    unsigned random = (unsigned)world.load.seed;
    int64_t before = 0;

    for (kills = 0; kills < KILLS && load_left() > 0; fixture_pause_ms(20)) {
        pid_t workers[POOL_CHILDREN];
        size_t n = pool_children(world.pool.pid, workers);
        unsigned any = (unsigned)rand_r(&random);
        int64_t done = pool_work_done();

        if (n > 0 && done > before &&
            kill(workers[any % 4 == 0 ? any / 4 % n : 0], SIGKILL) == 0) {
            before = done;
            kills++;
        }
    }
}

static bool has_raced(void)
{
    return kills >= KILLS / 2 && pool_counter("restarts") >= (int64_t)kills / 2 &&
           pool_counter_of("billing", "busy") >= RACES &&
           pool_counter_of("orders", "busy") >= RACES;
}

/* The kind of rows that the load made fewer than five of, or NULL. */
static const char *rare_kind(void)
{
    static const char *const rows[] = {
        "charges WHERE state = 'declined'",
        "charges WHERE state = 'captured' AND tries > 1", /* saved by a client */
        "subscriptions WHERE state = 'cancelled'",
        "subscriptions WHERE state = 'active' AND cancel_at IS NOT NULL",
        "subscriptions WHERE unit = 'year' AND next_period_no > 1",
        "subscriptions WHERE every > 1 AND next_period_no > 1",
        "orders WHERE state = 'fulfilled' AND currency = 'EUR'",
        "orders WHERE state = 'fulfilled' AND currency = 'USD'",
        "orders WHERE reason = 'out_of_stock'",
        "orders WHERE reason = 'insufficient_funds'",
    };

    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        char sql[160];

        (void)snprintf(sql, sizeof sql, "SELECT count(*) FROM ledgerlock.%s", rows[i]);
        if (fixture_query_int8(world.f.url, sql) < 5)
            return rows[i];
    }
    return NULL;
}

static void work_with(const struct load_size *size)
{
    static struct world_plan plan = {.lease_ms = 1500, .any = true};

    plan.load = size;
    world_open_as(&plan);
    pool_start("run -w 4 --batch 20");
    load_clients_start(CLIENTS_MS);
    kill_again_and_again();
    load_clients_finish();
    pool_stop();
}

/* A run in which too little happened is followed by one with twice the work. */
static void work_under_kills(void)
{
    static struct load_size size = {
        .users = 450, .subscriptions = 900, .orders = 3000, .periods = 6};

    work_with(&size);
    for (int i = 1; i < TRIES && !(has_raced() && rare_kind() == NULL); i++) {
        load_assert_exact();
        world_close();
        size.periods *= 2;
        size.orders *= 2;
        work_with(&size);
    }
    conn = load_connect();
}

static void close_all(void)
{
    PQfinish(conn);
    world_close();
}

GROUP(.start = work_under_kills, .stop = close_all);

/* ---- comparing ---- */

static const struct {
    const char *name;
    const char *(*compare)(PGconn *);
} comparisons[] = {
    {"period_that_was_due_is_charged_once_and_no_other", load_wrong_charges},
    {"subscription_stands_at_its_next_period", load_wrong_subscriptions},
    {"decline_is_of_a_wallet_that_was_short_and_tried_to_the_end", load_wrong_declines},
    {"hot_unit_is_sold_once_and_none_is_left_over", load_wrong_stock},
    {"order_is_whole_or_nothing_and_refused_only_for_a_reason", load_wrong_orders},
    {"wallet_holds_what_was_not_spent", load_wrong_wallets},
};

/* Guarantee: Workers are killed up to 60 times: every period that was due is charged
 * once and no other; a charge is declined only where the wallet was short, and is tried
 * to the end of its schedule; every unit of the SKU that all want is sold once, and
 * none is left over; every order is served whole or not at all, and refused only for a
 * reason that is true; every wallet holds what was not spent. */
CASE_ROWS(every, comparisons)
{
    const char *found = row->compare(conn);

    if (found != NULL)
        promise_broken("%s", found);
}

/* A run without races, and a load without its kinds of rows, prove nothing. */
CASE(races_really_happened)
{
    int64_t busy = pool_counter("busy"), restarts = pool_counter("restarts");

    assert_true(fixture_query_int8(world.f.url,
                                   "SELECT count(*) FROM ledgerlock.charges") > 3000);
    print_message("killed %u workers, restarted %" PRId64 ", met %" PRId64
                  " busy keys\n",
                  kills, restarts, busy);
    assert_true(has_raced());
    if (rare_kind() != NULL)
        fail_msg("fewer than 5: %s", rare_kind());
}

/* Guarantee: Workers are killed up to 60 times: the audit and the independent
 * checker agree that all of it is right. */
CASE(audit_and_checker_hold)
{
    load_assert_exact();
}
