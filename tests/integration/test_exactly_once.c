/* What the project is known by: eight workers, thousands of due periods and orders, hot
 * SKUs, and workers killed with -9 again and again. Then every total is compared with
 * what the load itself says must come out, in both directions: nothing twice, nothing
 * missed. */
#include "tests/lib/fixture.h"

#include <inttypes.h>
#include <libpq-fe.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>

#include "tests/lib/load.h"

enum { WORKERS = 8, KILLS = 60, LIMIT_SECONDS = 120 };

static struct fixture f;
static struct load load;
static unsigned kills;

/* ---- killing ---- */

static size_t children_of(pid_t parent, pid_t *pids, size_t max)
{
    char path[64];
    FILE *file;
    size_t n = 0;
    long pid;

    (void)snprintf(path, sizeof path, "/proc/%ld/task/%ld/children", (long)parent,
                   (long)parent);
    file = fopen(path, "r");
    while (file != NULL && n < max && fscanf(file, "%ld", &pid) == 1)
        pids[n++] = (pid_t)pid;
    if (file != NULL)
        (void)fclose(file);
    return n;
}

/* Kills a worker every few ms until the pool is done. */
static int run_and_kill(void)
{
    struct fixture_child pool;
    char now[32];
    unsigned seed = 7;
    int status;

    load_now(&load, now, sizeof now);
    fixture_become(&f, "ledgerlock_worker");
    fixture_env("LEDGERLOCK_LOCKS_LEASE_MS", "1500");
    fixture_env("LEDGERLOCK_POOL_QUARANTINE_AFTER", "100"); /* no row is to blame */
    fixture_spawn(&f, &pool, "run", "-w", "8", "--batch", "40", "--once", "--now", now,
                  NULL);
    for (int ms = 0; ms < LIMIT_SECONDS * 1000; ms += 20) {
        pid_t workers[WORKERS];
        size_t n = children_of(pool.pid, workers, WORKERS);

        if (waitpid(pool.pid, &status, WNOHANG) == pool.pid)
            return WIFEXITED(status) ? WEXITSTATUS(status) : -1;
        if (n > 0 && kills < KILLS && ms % 40 == 0 &&
            kill(workers[(unsigned)rand_r(&seed) % n], SIGKILL) == 0)
            kills++;
        fixture_pause_ms(20);
    }
    (void)kill(pool.pid, SIGKILL);
    return -1;
}

/* ---- comparing ---- */

static PGresult *query(const char *sql)
{
    PGconn *conn = PQconnectdb(f.url);
    PGresult *res = PQexec(conn, sql);

    if (PQresultStatus(res) != PGRES_TUPLES_OK)
        fail_msg("%s", PQerrorMessage(conn));
    PQfinish(conn);
    return res;
}

static int64_t number(const PGresult *res, int row, int column)
{
    return strtoll(PQgetvalue(res, row, column), NULL, 10);
}

static void every_period_that_was_due_is_charged_once_and_no_other(void **state)
{
    PGresult *res =
        query("SELECT s.subscription_id, count(c.period_no), "
              "coalesce(sum(c.amount_minor), 0), coalesce(max(c.period_no), -1) "
              "FROM ledgerlock.subscriptions s LEFT JOIN ledgerlock.charges c "
              "ON c.subscription_id = s.subscription_id AND c.state = 'captured' "
              "GROUP BY 1 ORDER BY 1");
    int64_t charged = 0;

    (void)state;
    for (int row = 0; row < PQntuples(res); row++) {
        const struct load_subscription *s =
            &load.subscriptions[number(res, row, 0) - 1];

        assert_int_equal(number(res, row, 1), s->paid);
        assert_int_equal(number(res, row, 2), s->paid * s->amount_minor);
        assert_int_equal(number(res, row, 3), s->paid - 1);
        charged += number(res, row, 1);
    }
    assert_int_equal(charged, load.periods_paid);
    assert_true(load.periods_paid > 3000 && load.periods_due > load.periods_paid);
    PQclear(res);
}

static void every_hot_unit_is_sold_once_and_none_is_left_over(void **state)
{
    PGresult *res =
        query("SELECT k.sku_id, k.on_hand, coalesce(-sum(m.qty), 0) "
              "FROM ledgerlock.stock k LEFT JOIN ledgerlock.stock_movements m "
              "USING (sku_id) GROUP BY 1, 2 ORDER BY 1");
    int64_t hot = 0;

    (void)state;
    for (int row = 0; row < PQntuples(res); row++) {
        const struct load_sku *sku = &load.skus[number(res, row, 0) - 1];

        assert_int_equal(number(res, row, 1), sku->qty - number(res, row, 2));
        assert_true(number(res, row, 1) >= 0);
        if (sku->hot) {
            assert_true(sku->wanted > 3 * sku->qty); /* hot indeed */
            assert_int_equal(number(res, row, 1), 0);
            hot += number(res, row, 2);
        }
    }
    assert_int_equal(hot, load.hot_units);
    PQclear(res);
}

static void
every_order_is_whole_or_nothing_and_refused_only_for_its_hot_sku(void **state)
{
    PGresult *res =
        query("SELECT o.order_id, o.state = 'fulfilled', coalesce(o.skus[1], ''), "
              "coalesce((SELECT -sum(qty) FROM ledgerlock.stock_movements m WHERE "
              "m.source = o.order_id AND m.kind = 'sale'), 0), coalesce((SELECT "
              "sum(amount_minor) FROM ledgerlock.transfers t WHERE t.kind = 'payment' "
              "AND t.source = o.order_id), 0) FROM ledgerlock.orders o ORDER BY 1");

    (void)state;
    assert_int_equal((size_t)PQntuples(res), load.order_ct);
    for (int row = 0; row < PQntuples(res); row++) {
        const struct load_order *o = &load.orders[number(res, row, 0) - 1];
        bool fulfilled = PQgetvalue(res, row, 1)[0] == 't';
        int64_t pieces = 0;
        char hot[32];

        for (size_t k = 0; k < o->lines; k++)
            pieces += o->qty[k];
        (void)snprintf(hot, sizeof hot, "sku-%" PRId64, o->hot_sku_id);
        assert_true(fulfilled || o->hot_sku_id != 0);
        assert_string_equal(PQgetvalue(res, row, 2), fulfilled ? "" : hot);
        assert_int_equal(number(res, row, 3), fulfilled ? pieces : 0);
        assert_int_equal(number(res, row, 4), fulfilled ? o->total_minor : 0);
    }
    PQclear(res);
}

static void every_wallet_holds_what_was_not_spent(void **state)
{
    int64_t *left = calloc(load.user_ct + 1, sizeof *left);
    PGresult *res =
        query("SELECT order_id FROM ledgerlock.orders WHERE state = 'fulfilled'");

    (void)state;
    for (size_t i = 0; i < load.user_ct; i++)
        left[i + 1] = load.users[i].balance_minor;
    for (size_t i = 0; i < load.subscription_ct; i++)
        left[load.subscriptions[i].user_id] -=
            load.subscriptions[i].paid * load.subscriptions[i].amount_minor;
    for (int row = 0; row < PQntuples(res); row++) {
        const struct load_order *o = &load.orders[number(res, row, 0) - 1];

        left[o->user_id] -= o->total_minor;
    }
    PQclear(res);
    res = query("SELECT user_id, balance_minor FROM ledgerlock.users ORDER BY 1");
    assert_int_equal((size_t)PQntuples(res), load.user_ct);
    for (int row = 0; row < PQntuples(res); row++)
        assert_int_equal(number(res, row, 1), left[number(res, row, 0)]);
    PQclear(res);
    free(left);
}

/* A run without races proves nothing. */
static void races_really_happened(void **state)
{
    int64_t busy = fixture_query_int8(
        f.url, "SELECT sum((counters->>'busy')::bigint) FROM ledgerlock.workers");
    int64_t restarts = fixture_query_int8(
        f.url, "SELECT sum((counters->>'restarts')::bigint) FROM ledgerlock.workers");

    (void)state;
    print_message("killed %u workers, restarted %" PRId64 ", met %" PRId64
                  " busy keys\n",
                  kills, restarts, busy);
    assert_true(kills >= KILLS / 2);
    assert_true(restarts >= kills / 2);
    assert_true(busy >= 100);
}

static void audit_holds(void **state)
{
    struct fixture_output *o = malloc(sizeof *o);
    char now[32];

    (void)state;
    load_now(&load, now, sizeof now);
    assert_int_equal(fixture_run(&f, o, "audit", "--now", now, NULL), 0);
    free(o);
}

static int drain_under_kills(void **state)
{
    (void)state;
    fixture_open_migrated(&f);
    load_make(&load, 20261120, 450, 1500, 3000);
    load_fill_ledgerlock(&load, f.url);
    return run_and_kill();
}

static int close_all(void **state)
{
    (void)state;
    load_free(&load);
    fixture_close(&f);
    return 0;
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(every_period_that_was_due_is_charged_once_and_no_other),
        cmocka_unit_test(every_hot_unit_is_sold_once_and_none_is_left_over),
        cmocka_unit_test(
            every_order_is_whole_or_nothing_and_refused_only_for_its_hot_sku),
        cmocka_unit_test(every_wallet_holds_what_was_not_spent),
        cmocka_unit_test(races_really_happened),
        cmocka_unit_test(audit_holds),
    };

    fixture_need_servers();
    return cmocka_run_group_tests(tests, drain_under_kills, close_all);
}
