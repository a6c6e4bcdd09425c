/* bell: what the doors announce reaches a pool that sleeps, costs nothing while it is
 * awake, and is never more than a hint. */
#include <unistd.h>

#include "tests/lib/idle_world.h"

/* ---- how soon ---- */

static void order_announced_to_a_sleeping_pool_is_served_at_once(void **state)
{
    (void)state;
    start_sleeping(&pool);
    assert_waits(NOTIFIED_MS, LONG_POLL_MS / 2, 150);
    stop_pool();
}

/* Each is placed the moment the one before was served: into the gap before the pool
 * sleeps again. */
static void order_announced_while_the_pool_lies_down_is_not_lost(void **state)
{
    (void)state;
    start_sleeping(&pool);
    for (int i = 0; i < 60; i++) {
        int64_t id = place();

        (void)await_order(id, LONG_POLL_MS / 2);
        fixture_pause_ms(i % 30);
    }
    stop_pool();
}

static void subscription_resumed_in_a_sleeping_pool_is_charged_at_once(void **state)
{
    (void)state;
    command(
        "INSERT INTO ledgerlock.subscriptions (subscription_id, user_id, plan, "
        "amount_minor, currency, anchor_at, unit, next_due_at, state) VALUES (1, 1, "
        "'p', 100, 'USD', now(), 'month', now(), 'parked')");
    start_sleeping(&pool);
    command("SELECT ledgerlock.resume_subscription(1)");
    assert_in_range(await("SELECT count(*) FROM ledgerlock.charges", LONG_POLL_MS / 2),
                    0, 20 * NOTIFIED_MS);
    stop_pool();
}

static void order_resumed_in_a_sleeping_pool_is_served_at_once(void **state)
{
    char sql[80];
    int64_t id = place();

    (void)state;
    command("UPDATE ledgerlock.orders SET state = 'parked'");
    start_sleeping(&pool);
    (void)snprintf(sql, sizeof sql, "SELECT ledgerlock.resume_order(%" PRId64 ")", id);
    command(sql);
    assert_in_range(await_order(id, LONG_POLL_MS / 2), 0, 20 * NOTIFIED_MS);
    stop_pool();
}

static void import_wakes_a_sleeping_pool(void **state)
{
    static struct fixture_output o;
    struct fixture as_owner = f;
    char csv[64];

    (void)state;
    fixture_become(&as_owner, "ledgerlock_owner");
    fixture_file(csv, sizeof csv,
                 "customer_ref,plan,amount,unit,every,anchor_at\n"
                 "new,p,1.00,year,1,2024-01-01T00:00:00Z\n",
                 0600);
    command("SELECT setval(pg_get_serial_sequence('ledgerlock.users', 'user_id'), 99)");
    start_sleeping(&pool);
    if (fixture_run(&as_owner, &o, "import", "--subscriptions", csv, "--deposit", "100",
                    NULL) != 0)
        fail_msg("import: exit %d: %s", o.code, o.err);
    (void)unlink(csv);
    assert_in_range(await("SELECT count(*) > 0 FROM ledgerlock.charges WHERE state = "
                          "'captured'",
                          LONG_POLL_MS / 2),
                    0, 20 * NOTIFIED_MS);
    stop_pool();
}

/* ---- the doors ---- */

static PGconn *listen_too(void)
{
    PGconn *conn = PQconnectdb(owner);
    PGresult *res = PQexec(conn, "LISTEN ledgerlock_due");

    assert_int_equal(PQresultStatus(res), PGRES_COMMAND_OK);
    PQclear(res);
    return conn;
}

static int count_notifications(PGconn *conn)
{
    int n = 0;

    assert_int_equal(PQconsumeInput(conn), 1);
    for (PGnotify *note; (note = PQnotifies(conn)) != NULL; n++)
        PQfreemem(note);
    return n;
}

static void doors_notify_only_a_pool_that_sleeps(void **state)
{
    PGconn *ear = listen_too();
    int heard;

    (void)state;
    (void)place(); /* no pool at all */
    assert_int_equal(count_notifications(ear), 0);
    start_sleeping(&pool);
    (void)count_notifications(ear);
    for (int i = 0; i < 500; i++)
        (void)place();
    fixture_pause_ms(300);
    heard = count_notifications(ear);
    print_message("500 orders, %d notifications\n", heard);
    assert_in_range(heard, 1, 100);
    PQfinish(ear);
    stop_pool();
}

/* Its transaction stays open, so the listener cannot know what it will bring. */
static void client_that_stays_open_delays_nobody_beyond_a_poll(void **state)
{
    PGconn *slow = PQconnectdb(owner);

    (void)state;
    PQclear(PQexec(slow, "BEGIN; SELECT ledgerlock.announce_work()"));
    assert_int_equal(PQtransactionStatus(slow), PQTRANS_INTRANS);
    start_pool(&pool, "400", "on");
    fixture_pause_ms(600);
    assert_int_equal(ask(asks_the_doors), 0); /* the race is on */
    for (int i = 0; i < 5; i++)
        assert_in_range(await_order(place(), 2000), 0, 600);
    PQfinish(slow);
    wait_asleep();
    assert_in_range(await_order(place(), 2000), 0, 20 * NOTIFIED_MS);
    stop_pool();
}

static void door_that_commits_while_the_pool_lies_down_is_seen(void **state)
{
    PGconn *slow = PQconnectdb(owner);

    (void)state;
    PQclear(PQexec(slow, "BEGIN; SELECT ledgerlock.place_order(1, 'slow', '[{\"sku\": "
                         "\"hot\", \"qty\": 1}]')"));
    start_pool(&pool, "10000", "on");
    fixture_pause_ms(60); /* the listener waits for it, or will */
    PQclear(PQexec(slow, "COMMIT"));
    (void)await("SELECT count(*) FROM ledgerlock.orders WHERE state = 'fulfilled'",
                LONG_POLL_MS / 2);
    PQfinish(slow);
    stop_pool();
}

/* ---- faults ---- */

static pid_t other_listener(pid_t was)
{
    int64_t deadline = pool_now_ms() + 15000;

    for (;;) {
        pid_t is = pool_listener(pool.pid);

        if (is != 0 && is != was)
            return is;
        if (pool_now_ms() > deadline)
            fail_msg("listener %ld was not replaced", (long)was);
        fixture_pause_ms(5);
    }
}

static void listener_that_is_killed_is_replaced_and_hears(void **state)
{
    (void)state;
    start_sleeping(&pool);
    for (int i = 0; i < 4; i++) {
        pid_t pid = pool_listener(pool.pid);

        (void)kill(pid, SIGKILL);
        (void)other_listener(pid);
    }
    wait_asleep();
    assert_waits(NOTIFIED_MS, LONG_POLL_MS / 2, 150);
    (void)kill(pool.pid, SIGTERM);
    pool_assert_ends(&pool, 0, 10);
}

static void listener_that_lost_its_session_listens_again(void **state)
{
    char url[FIXTURE_URL];

    (void)state;
    start_sleeping(&pool);
    fixture_url_as(&f, "postgres", url, sizeof url);
    fixture_exec(url, "SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE "
                      "application_name LIKE 'ledgerlock listener%' AND datname = "
                      "current_database()");
    fixture_pause_ms(300);
    wait_asleep();
    assert_waits(NOTIFIED_MS, LONG_POLL_MS / 2, 150);
    assert_int_equal(pool_log_count(&pool, "event=pool.worker_died"), 0);
    stop_pool();
}

static void listener_that_hangs_leaves_the_polling(void **state)
{
    pid_t pid;

    (void)state;
    start_pool(&pool, "400", "on");
    wait_asleep();
    pid = pool_listener(pool.pid);
    (void)kill(pid, SIGSTOP);
    for (int i = 0; i < 5; i++)
        assert_in_range(await_order(place(), 2000), 0, 600);
    (void)kill(pid, SIGCONT);
    stop_pool();
}

static void pool_that_is_not_the_one_that_asks_wakes_as_well(void **state)
{
    struct fixture_child first;

    (void)state;
    start_sleeping(&pool);
    first = pool;
    start_pool(&pool, "2000", "on");
    fixture_pause_ms(300);
    kill_pool(&first);
    (void)await_order(place(), 3000); /* at its next poll, when it asks as well */
    wait_asleep();
    assert_waits(NOTIFIED_MS, 1500, 150);
    stop_pool();
}

#define IDLE(name) cmocka_unit_test_setup_teardown(name, open_world, close_world)

int main(void)
{
    const struct CMUnitTest tests[] = {
        IDLE(order_announced_to_a_sleeping_pool_is_served_at_once),
        IDLE(order_announced_while_the_pool_lies_down_is_not_lost),
        IDLE(subscription_resumed_in_a_sleeping_pool_is_charged_at_once),
        IDLE(order_resumed_in_a_sleeping_pool_is_served_at_once),
        IDLE(import_wakes_a_sleeping_pool),
        IDLE(doors_notify_only_a_pool_that_sleeps),
        IDLE(client_that_stays_open_delays_nobody_beyond_a_poll),
        IDLE(door_that_commits_while_the_pool_lies_down_is_seen),
        IDLE(listener_that_is_killed_is_replaced_and_hears),
        IDLE(listener_that_lost_its_session_listens_again),
        IDLE(listener_that_hangs_leaves_the_polling),
        IDLE(pool_that_is_not_the_one_that_asks_wakes_as_well),
    };

    fixture_need_servers();
    return cmocka_run_group_tests(tests, NULL, NULL);
}
