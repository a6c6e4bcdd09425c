/* The control of test_exactly_once: the same load, worked by naive SQL (read, compute,
 * write; no key, no constraint, no fence) in eight processes. Without locks it must
 * charge twice and oversell: so the check can fail. With only the Redis locks switched
 * on it must do neither: so the locks work. */
#define _DEFAULT_SOURCE /* MAP_ANONYMOUS */
#include "tests/lib/fixture.h"

#include <inttypes.h>
#include <libpq-fe.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include "common/lock/lock.h"
#include "tests/lib/load.h"

enum { PROCESSES = 8, LEASE_MS = 60000, HEAD = 20 };

/* One naive worker. lock NULL: no locks. */
struct naive {
    PGconn *conn;
    struct ll_client *client;
    struct ll_lock *lock;
    char now[32];
    int64_t busy;
};

static struct load load;

static PGresult *run(struct naive *n, const char *fmt, ...)
    __attribute__((format(printf, 2, 3)));

static PGresult *run(struct naive *n, const char *fmt, ...)
{
    char sql[512];
    va_list ap;
    PGresult *res;

    va_start(ap, fmt);
    (void)vsnprintf(sql, sizeof sql, fmt, ap);
    va_end(ap);
    res = PQexec(n->conn, sql);
    if (PQresultStatus(res) != PGRES_TUPLES_OK &&
        PQresultStatus(res) != PGRES_COMMAND_OK) {
        (void)fprintf(stderr, "%s: %s", sql, PQerrorMessage(n->conn));
        _exit(1);
    }
    return res;
}

static int64_t number(const PGresult *res, int row, int column)
{
    return strtoll(PQgetvalue(res, row, column), NULL, 10);
}

static void done(PGresult *res)
{
    PQclear(res);
}

/* Takes every name or none; without locks, always. */
static bool lock_all(struct naive *n, char names[][32], size_t ct)
{
    struct ll_key keys[LOAD_LINES + 1];
    int code;

    if (n->lock == NULL)
        return true;
    for (size_t i = 0; i < ct; i++)
        keys[i] = (struct ll_key){names[i], strlen(names[i])};
    code = ll_acquire(n->lock, keys, ct, LL_ALL, LEASE_MS);
    if (code < 0)
        _exit(2);
    n->busy += code == LL_BUSY;
    return code == LL_OK;
}

static void unlock(struct naive *n)
{
    if (n->lock != NULL && ll_release(n->lock) != LL_OK)
        _exit(3);
}

/* ---- naive billing ---- */

static void charge(struct naive *n, int64_t id)
{
    PGresult *s =
        run(n,
            "SELECT user_id, amount_minor, next_period_no, next_due_at <= '%s' FROM "
            "naive.subscriptions WHERE subscription_id = %" PRId64,
            n->now, id);
    int64_t user = number(s, 0, 0), amount = number(s, 0, 1), period = number(s, 0, 2);
    PGresult *u;
    int64_t balance;

    if (PQgetvalue(s, 0, 3)[0] != 't') {
        done(s);
        return;
    }
    done(s);
    u = run(n, "SELECT balance_minor FROM naive.users WHERE user_id = %" PRId64, user);
    balance = number(u, 0, 0);
    done(u);
    if (balance < amount) {
        done(run(
            n,
            "UPDATE naive.subscriptions SET next_due_at = 'infinity' WHERE subscription_id = %" PRId64,
            id));
        return;
    }
    done(run(n,
             "INSERT INTO naive.charges VALUES (%" PRId64 ", %" PRId64 ", %" PRId64 ")",
             id, period, amount));
    done(run(n,
             "UPDATE naive.users SET balance_minor = %" PRId64
             " WHERE user_id = %" PRId64,
             balance - amount, user));
    done(run(n,
             "UPDATE naive.subscriptions SET next_period_no = %" PRId64
             ", next_due_at = anchor_at + "
             "%" PRId64 " * ('1 ' || unit)::interval WHERE subscription_id = %" PRId64,
             period + 1, period + 1, id));
}

static int64_t bill_head(struct naive *n)
{
    PGresult *res = run(
        n,
        "SELECT subscription_id, user_id FROM naive.subscriptions WHERE next_due_at <= '%s' "
        "ORDER BY next_due_at LIMIT %d",
        n->now, HEAD);
    int64_t rows = PQntuples(res);

    for (int row = 0; row < rows; row++) {
        char name[1][32];

        (void)snprintf(name[0], sizeof name[0], "user:%" PRId64, number(res, row, 1));
        if (!lock_all(n, name, 1))
            continue;
        charge(n, number(res, row, 0));
        unlock(n);
    }
    done(res);
    return rows;
}

/* ---- naive orders ---- */

static bool is_pending(struct naive *n, int64_t order)
{
    PGresult *res = run(n,
                        "SELECT 1 FROM naive.orders WHERE order_id = %" PRId64
                        " AND state = 'pending'",
                        order);
    bool yes = PQntuples(res) == 1;

    done(res);
    return yes;
}

static void sell(struct naive *n, int64_t order)
{
    PGresult *lines;
    bool enough = true;

    if (!is_pending(n, order))
        return;
    lines = run(
        n,
        "SELECT l.sku_id, l.qty, s.on_hand FROM naive.order_lines l JOIN naive.stock s "
        "USING (sku_id) WHERE order_id = %" PRId64,
        order);
    for (int i = 0; i < PQntuples(lines); i++)
        enough = enough && number(lines, i, 2) >= number(lines, i, 1);
    for (int i = 0; enough && i < PQntuples(lines); i++) {
        done(run(n,
                 "UPDATE naive.stock SET on_hand = %" PRId64 " WHERE sku_id = %" PRId64,
                 number(lines, i, 2) - number(lines, i, 1), number(lines, i, 0)));
        done(run(
            n, "INSERT INTO naive.sales VALUES (%" PRId64 ", %" PRId64 ", %" PRId64 ")",
            order, number(lines, i, 0), number(lines, i, 1)));
    }
    done(lines);
    done(run(n, "UPDATE naive.orders SET state = '%s' WHERE order_id = %" PRId64,
             enough ? "fulfilled" : "rejected", order));
}

static int64_t sell_head(struct naive *n)
{
    PGresult *res = run(
        n,
        "SELECT order_id FROM naive.orders WHERE state = 'pending' ORDER BY order_id LIMIT %d",
        HEAD);
    int64_t rows = PQntuples(res);

    for (int row = 0; row < rows; row++) {
        const struct load_order *o = &load.orders[number(res, row, 0) - 1];
        char names[LOAD_LINES + 1][32];

        (void)snprintf(names[0], sizeof names[0], "user:%" PRId64, o->user_id);
        for (size_t k = 0; k < o->lines; k++)
            (void)snprintf(names[k + 1], sizeof names[0], "sku:%" PRId64, o->sku_id[k]);
        if (!lock_all(n, names, o->lines + 1))
            continue;
        sell(n, number(res, row, 0));
        unlock(n);
    }
    done(res);
    return rows;
}

/* ---- processes ---- */

static int64_t *busy_total;

static void be_naive(const struct fixture *f, bool with_locks)
{
    struct ll_options o = {.size = sizeof o, .url = f->redis_url, .prefix = f->prefix};
    struct naive n = {.conn = PQconnectdb(f->url)};
    int64_t current;

    load_now(&load, n.now, sizeof n.now);
    done(run(&n, "SET timezone TO 'UTC'"));
    if (with_locks) {
        if (ll_open(&n.client, &o, NULL, 0) != LL_OK ||
            ll_install_epoch(n.client, 1, &current) != LL_OK)
            _exit(4);
        n.lock = ll_new(n.client);
    }
    while (bill_head(&n) + sell_head(&n) > 0)
        continue;
    (void)__atomic_add_fetch(busy_total, n.busy, __ATOMIC_SEQ_CST);
    _exit(0);
}

static void work_naively(struct fixture *f, bool with_locks)
{
    pid_t pids[PROCESSES];
    int status;

    fixture_open(f);
    load_fill_naive(&load, f->url);
    *busy_total = 0;
    for (int i = 0; i < PROCESSES; i++) {
        pids[i] = fork();
        if (pids[i] == 0)
            be_naive(f, with_locks);
    }
    for (int i = 0; i < PROCESSES; i++) {
        assert_int_equal(waitpid(pids[i], &status, 0), pids[i]);
        assert_int_equal(status, 0);
    }
}

/* ---- what came out ---- */

static int64_t charged_twice(const struct fixture *f)
{
    return fixture_query_int8(
        f->url,
        "SELECT count(*) - count(DISTINCT (subscription_id, period_no)) FROM naive.charges");
}

static int64_t oversold(const struct fixture *f)
{
    return fixture_query_int8(
        f->url, "SELECT coalesce(sum(greatest(sold - initial_qty, 0)), 0)::bigint FROM "
                "(SELECT sku_id, sum(qty) AS sold FROM naive.sales GROUP BY 1) AS s "
                "JOIN naive.stock USING (sku_id)");
}

static int64_t charged(const struct fixture *f)
{
    return fixture_query_int8(f->url, "SELECT count(*) FROM naive.charges");
}

static int64_t hot_sold(const struct fixture *f)
{
    char sql[160];

    (void)snprintf(
        sql, sizeof sql,
        "SELECT coalesce(sum(qty), 0)::bigint FROM naive.sales WHERE sku_id <= %zu",
        load.hot_ct);
    return fixture_query_int8(f->url, sql);
}

static void negative_control_without_locks_charges_twice_and_oversells(void **state)
{
    struct fixture f;

    (void)state;
    work_naively(&f, false);
    print_message("without locks: %" PRId64 " charged twice, %" PRId64 " oversold\n",
                  charged_twice(&f), oversold(&f));
    assert_true(charged_twice(&f) > 0);
    assert_true(oversold(&f) > 0);
    fixture_close(&f);
}

static void negative_control_with_only_the_redis_locks_is_exact(void **state)
{
    struct fixture f;

    (void)state;
    work_naively(&f, true);
    print_message("with locks: %" PRId64 " charged twice, %" PRId64
                  " oversold, %" PRId64 " met busy\n",
                  charged_twice(&f), oversold(&f), *busy_total);
    assert_int_equal(charged_twice(&f), 0);
    assert_int_equal(oversold(&f), 0);
    assert_int_equal(charged(&f), load.periods_paid);
    assert_int_equal(hot_sold(&f), load.hot_units);
    assert_true(*busy_total > 100);
    fixture_close(&f);
}

static int make_load(void **state)
{
    (void)state;
    busy_total = mmap(NULL, sizeof *busy_total, PROT_READ | PROT_WRITE,
                      MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    load_make(&load, 20261120, 450, 600, 1200);
    return busy_total == MAP_FAILED;
}

static int free_load(void **state)
{
    (void)state;
    load_free(&load);
    return 0;
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(negative_control_without_locks_charges_twice_and_oversells),
        cmocka_unit_test(negative_control_with_only_the_redis_locks_is_exact),
    };

    fixture_need_servers();
    return cmocka_run_group_tests(tests, make_load, free_load);
}
