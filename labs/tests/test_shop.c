/* The shop of the demonstration and its buttons: a pool that stays exact under every
 * fault, beside workers under a plain lock that do not. */
#include "labs/tests/lib/demo.h"

enum { LEASE_MS = 2000, SEASONS_MS = 300000 };

WORLD(.lease_ms = LEASE_MS,
      .poll_ms = 100,
      .redis = true,
      .also = demo_mark,
      .undo = demo_kill);

/* ---- the two programs ---- */

static void open_shop(const char *keep_mb, const char *rate)
{
    pool_start("run -w 2 --http-audit-every-s 5");
    demo_start("--keep-mb %s --orders %s --periods %s --users 100", keep_mb, rate,
               rate);
    FIXTURE_AWAIT(super_ask("SELECT count(*) FROM ledgerlock.charges") > 50 &&
                      super_ask("SELECT count(*) FROM ledgerlock.orders WHERE state = "
                                "'fulfilled'") > 20 &&
                      super_ask("SELECT count(*) FROM ledgerlock_plain.charges") > 50,
                  "the shop does not place, or nobody serves");
}

static void close_shop(void)
{
    pool_end(&demo);
    pool_stop();
}

static int64_t plain(const char *column)
{
    return super_ask("SELECT %s FROM ledgerlock_plain.figures", column);
}

/* ---- the buttons ---- */

/* Guarantee: The wallet that the shop holds is of a user of whom a subscription is due
 * under the plain lock, so that workers come to wait for it. */
CASE(held_wallet_is_of_a_user_who_is_to_be_charged)
{
    open_shop("256", "20");
    demo_press("hold-row");
    FIXTURE_AWAIT(super_ask("SELECT count(*) FROM pg_stat_activity WHERE "
                            "application_name = 'ledgerlock-shop hold' AND state = "
                            "'idle in transaction'") > 0,
                  "no wallet is held");
    fixture_pause_ms(LEASE_MS / 2); /* no worker holds one so long */
    assert_true(
        super_ask("SELECT count(*) FROM ledgerlock_plain.items WHERE kind = "
                  "'subscription' AND done < periods AND user_id NOT IN (SELECT "
                  "user_id FROM ledgerlock_plain.wallets FOR UPDATE SKIP "
                  "LOCKED)") > 0);
    close_shop();
}

static bool has_recovered(const char *title)
{
    return demo_recovered(title, NULL) >= 0;
}

static void assert_exact(void)
{
    runs(&demo_owner, 0, "audit --lag 30d");
    promise_int_equal(world_parked(), 0);
}

/* Guarantee: A mistake of the plain side stays on the page, also when a later delivery
 * puts the total right. */
CASE(mistake_of_the_plain_side_stays)
{
    int64_t wrong, charges;

    open_shop("256", "20");
    super_do("UPDATE ledgerlock_plain.stock SET received = received + 1");
    FIXTURE_AWAIT(plain("wrong_totals") > 0, "no total is wrong");
    wrong = plain("wrong_totals");
    super_do("UPDATE ledgerlock_plain.stock SET received = received - 1");
    charges = plain("charges");
    FIXTURE_AWAIT(plain("charges") > charges + 40, "nobody counts");
    assert_true(plain("wrong_totals") >= wrong);
    close_shop();
}

/* The counts that are kept as a charge is written are those of the charges, at any
 * moment. */
static void assert_counts_are_the_charges(void)
{
    promise_int_equal(
        super_ask(
            "SELECT count(*) FROM"
            " (SELECT count(*) AS n, count(DISTINCT (kind, item_id, period_no)) AS once,"
            "   sum(qty) AS sold FROM ledgerlock_plain.charges) AS c,"
            " (SELECT sum(charges) AS n FROM ledgerlock_plain.wallets) AS w,"
            " (SELECT sum(again) AS n FROM ledgerlock_plain.items) AS i,"
            " (SELECT sum(sold) AS n FROM ledgerlock_plain.stock) AS s"
            " WHERE c.n = w.n AND c.n - c.once = i.n AND c.sold = s.n"),
        1);
}

/* Guarantee: While the shop goes on, and no fault comes, the audit holds, and the plain
 * lock charges nothing twice either. */
CASE(shop_goes_on_and_the_totals_stay_exact)
{
    open_shop("256", "20");
    for (int i = 0; i < 3; i++)
        assert_exact();
    assert_int_equal(plain("charged_twice"), 0);
    assert_int_equal(plain("oversold"), 0);
    assert_int_equal(plain("wrong_totals"), 0);
    assert_counts_are_the_charges();
    close_shop();
    assert_exact();
}

/* Guarantee: A button in a real browser asks first; then the page shows the fault, the
 * recovery, ledgerlock in green and the plain lock in red. */
CASE(browser_breaks_the_plain_side_and_not_ours)
{
    open_shop("256", "20");
    http_browse(demo_port, "--chaos");
    assert_exact();
    close_shop();
}

static const struct button {
    const char *name, *title;
} buttons[] = {
    {"freeze-worker", "Freeze a worker"}, {"wipe-redis", "Wipe Redis"},
    {"hold-row", "Hold a row"},           {"kill-worker", "Kill a worker"},
    {"cut-redis", "Cut Redis off"},
};

enum { BREAKING = 3 }; /* of them, the first ones */

/* The page says of the first ones that they break a plain lock, and of the others that
 * they do not. */
static void assert_order(void)
{
    const char *at;

    assert_int_equal(http_get(demo_port, &page, "/state"), 200);
    at = page.body;
    for (size_t i = 0; i < sizeof buttons / sizeof buttons[0]; i++) {
        char name[64];

        (void)snprintf(name, sizeof name, "{\"name\":\"%s\"", buttons[i].name);
        at = strstr(at, name);
        assert_non_null(at);
        at = strstr(at, "\"breaks_plain\":");
        assert_non_null(at);
        assert_int_equal(at[strlen("\"breaks_plain\":")] == 't', i < BREAKING);
    }
}

/* On a busy machine they may do so before, when one of them stands still by itself. */
/* Guarantee: The workers under the plain lock charge something twice after each fault
 * of which the page says so, and within 30 s of the first one also sell units that were
 * never there. After each the pool is at work again by itself, and every invariant
 * holds. */
CASE(plain_lock_charges_twice_after_each_fault_that_breaks_it)
{
    open_shop("256", "20");
    assert_order();
    for (size_t i = 0; i < BREAKING; i++) {
        int64_t before = plain("charged_twice"), begun_ms = fixture_now_ms();

        demo_press(buttons[i].name);
        FIXTURE_AWAIT(plain("charged_twice") > before, "nothing was charged twice");
        print_message("%s: first double charge after %lld ms\n", buttons[i].name,
                      (long long)(fixture_now_ms() - begun_ms));
        FIXTURE_AWAIT(plain("oversold") > 0, "nothing was oversold");
        if (i == 0) {
            print_message("%s: first unit oversold after %lld ms\n", buttons[i].name,
                          (long long)(fixture_now_ms() - begun_ms));
            assert_in_range(fixture_now_ms() - begun_ms, 0, 30000);
        }
        FIXTURE_AWAIT(has_recovered(buttons[i].title), "%s", page.body);
        assert_exact();
    }
    assert_counts_are_the_charges();
    assert_int_equal(http_get(demo_port, &page, "/state"), 200);
    fixture_assert_contains(page.body,
                            "\"oversold\":0,\"wrong_totals\":0,\"charged_twice\":0");
    pool_logged(0, "event=pool.worker_died");
    assert_exact();
    close_shop();
}

/* The plain lock charged nothing more twice while the fault came and went. */
static bool is_harmless(const struct button *button)
{
    static const char charges[] = "SELECT count(*) FROM ledgerlock_plain.charges";
    int64_t before = plain("charged_twice"), done;
    int faults = (int)pool_log_count(&demo, "event=shop.fault");

    demo_press(button->name);
    FIXTURE_AWAIT(has_recovered(button->title), "%s: %s", button->name, page.body);
    FIXTURE_AWAIT((int)pool_log_count(&demo, "event=shop.fault") > faults,
                  "the plain side had no fault");
    fixture_pause_ms(2 * LEASE_MS); /* what the dead worker held is free again */
    done = super_ask(charges);
    FIXTURE_AWAIT(super_ask(charges) > done + 50, "the plain side does no more");
    return plain("charged_twice") == before;
}

/* A worker that a busy machine stops for longer than its lease charges twice as well,
 * so each button has three tries. */
/* Guarantee: A killed worker, and a Redis that answers nobody for a while, make the
 * plain lock charge nothing twice, as the page says. After each the pool is at work
 * again by itself, and every invariant holds. */
CASE(plain_lock_charges_nothing_twice_after_the_other_faults)
{
    open_shop("256", "20");
    for (size_t i = BREAKING; i < sizeof buttons / sizeof buttons[0]; i++) {
        int tries = 1;

        while (!is_harmless(&buttons[i])) {
            if (++tries > 3)
                fail_msg("charged twice after each of three: %s", buttons[i].name);
        }
        assert_exact();
        if (strcmp(buttons[i].name, "kill-worker") == 0)
            assert_int_equal(pool_log_count(&world.pool, "event=pool.worker_died"),
                             tries);
    }
    assert_true(pool_log_count(&world.pool, "event=pool.redis_down") > 0);
    close_shop();
}

/* Guarantee: The rows of the shop never take much more of the disk than they may; a
 * season ends while pool and audit go on, and both stay exact. */
CASE(seasons_keep_the_disk_small)
{
    static const char size[] =
        "SELECT sum(pg_total_relation_size(oid))::bigint >> 20 FROM pg_class WHERE "
        "relkind = 'r' AND relnamespace IN (to_regnamespace('ledgerlock'), "
        "to_regnamespace('ledgerlock_plain'))";
    int64_t most = 0, until_ms = fixture_now_ms() + SEASONS_MS;

    open_shop("5", "100");
    while (plain("seasons") < 3) {
        if (fixture_now_ms() > until_ms)
            fail_msg("%lld MiB, and no other season", (long long)most);
        int64_t now = super_ask("%s", size);

        most = now > most ? now : most;
        assert_exact();
        fixture_pause_ms(1000); /* a season does not end while an audit reads */
    }
    print_message("most: %lld MiB\n", (long long)most);
    assert_in_range(most, 2, 20);
    close_shop();
    assert_exact();
}

/* Guarantee: The shop refuses a database that its owner has not marked for it. */
CASE(shop_refuses_a_database_without_the_mark)
{
    world_do("DROP SCHEMA ledgerlock_shop");
    demo_owner = world.f;
    fixture_become(&demo_owner, "ledgerlock_owner");
    says(&demo_owner, 6, "CREATE SCHEMA ledgerlock_shop", "shop");
    world_is(0, "SELECT count(*) FROM users");
}
