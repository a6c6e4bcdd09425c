/* pool_world: rows by generate_series, processes by /proc, the log by reading it again.
 */
#include "tests/lib/pool_world.h"

#include <fcntl.h>
#include <time.h>

#include "tests/lib/gate.h"
#include "tests/lib/session.h"
#include "tests/lib/steps.h"

enum { DEPOSIT = 1000000, AMOUNT = 100, PRICE = 250, LOG_SIZE = 1 << 20 };

/* ---- work ---- */

void pool_work_put(const struct pool_work *work)
{
    world.work = *work;
    world_do(
        "INSERT INTO users (user_id, balance_minor, currency)"
        " SELECT g, %d, 'USD' FROM generate_series(1, %d) AS g; "
        "SELECT make_months('2024-01-01Z', '2024-01-01Z'); "
        "INSERT INTO wallet_entries (user_id, kind, idempotency_key, amount_minor, at)"
        " SELECT g, 'deposit', '', %d, '2024-01-01Z' FROM generate_series(1, %d) AS g; "
        "INSERT INTO subscriptions (user_id, plan, amount_minor, currency, anchor_at,"
        " unit, every, next_due_at)"
        " SELECT g, 'p', %d, 'USD', '2024-01-01Z', 'day', 1, '2024-01-01Z'"
        " FROM generate_series(1, %d) AS g WHERE %d > 0; "
        "INSERT INTO stock (sku, initial_qty, on_hand, unit_price_minor, currency)"
        " VALUES ('hot', %d, %d, %d, 'USD'); "
        "SELECT place_order(1 + g %% %d, 'k' || g, '[{\"sku\": \"hot\", \"qty\": 1}]',"
        " '2024-01-01Z') FROM generate_series(1, %d) AS g; ANALYZE",
        DEPOSIT, work->users, DEPOSIT, work->users, AMOUNT, work->users, work->periods,
        work->units, work->units, PRICE, work->users, work->orders);
}

const char *pool_work_now(void)
{
    const struct pool_work *work = &world.work;
    static char text[32];
    time_t at = 1704067200 + (work->periods - 1) * 86400 + 43200;
    struct tm tm;

    (void)gmtime_r(&at, &tm);
    (void)strftime(text, sizeof text, "%Y-%m-%dT%H:%M:%SZ", &tm);
    return text;
}

int64_t pool_work_done(void)
{
    return world_ask(
        "SELECT (SELECT count(*) FROM ledgerlock.charges) + (SELECT count(*)"
        " FROM ledgerlock.orders WHERE state <> 'pending')");
}

int64_t pool_work_all(void)
{
    const struct pool_work *work = &world.work;
    return (int64_t)work->users * work->periods + work->orders;
}

void pool_work_wait(int64_t done)
{
    FIXTURE_AWAIT(pool_work_done() >= done,
                  "only %" PRId64 " of %" PRId64 " are done: why %s", pool_work_done(),
                  done, world_show_log(&world.pool));
}

void pool_assert_stands_still(int ms)
{
    int64_t done = pool_work_done();

    fixture_pause_ms(ms);
    assert_int_equal(pool_work_done(), done);
}

static bool has_asked_for_the_place(const char *session, int64_t since_us)
{
    return super_ask("SELECT count(*) FROM pg_stat_activity WHERE %s AND query LIKE"
                     " '%%pg_try_advisory_lock%%' AND extract(epoch FROM query_start) *"
                     " 1000000 > %" PRId64,
                     session, since_us) == 1;
}

void pool_assert_stands_by(const char *session)
{
    int64_t done = pool_work_done();

    for (int asks = 0; asks < 2; asks++) {
        int64_t now_us = super_ask(
            "SELECT (extract(epoch FROM clock_timestamp()) * 1000000)::bigint");

        FIXTURE_AWAIT(pool_work_done() != done ||
                          has_asked_for_the_place(session, now_us),
                      "it asks for no place, and does not work");
    }
    assert_int_equal(pool_work_done(), done);
}

void pool_work_assert_exact(void)
{
    const struct pool_work *work = &world.work;
    int64_t charged = (int64_t)work->users * work->periods;
    int64_t sold = work->orders < work->units ? work->orders : work->units;

    world_is(charged, "SELECT count(*) FROM charges WHERE state = 'captured'");
    world_is(charged, "SELECT count(DISTINCT (subscription_id, period_no)) FROM"
                      " charges");
    world_is(charged * AMOUNT, "SELECT coalesce(sum(amount_minor), 0)::bigint FROM"
                               " ledger WHERE kind = 'charge'");
    world_is(sold, "SELECT count(*) FROM orders WHERE state = 'fulfilled'");
    world_is(work->orders - sold, "SELECT count(*) FROM orders WHERE state = 'rejected'"
                                  " AND reason = 'out_of_stock'");
    world_is(work->units - sold, "SELECT on_hand FROM stock");
    world_is((int64_t)work->users * DEPOSIT - charged * AMOUNT - sold * PRICE,
             "SELECT sum(balance_minor)::bigint FROM users");
    world_audit(pool_work_now(), NULL);
    checker_assert_rows(pool_work_now());
}

void pool_work_finish(void)
{
    gate_open();
    pool_work_wait(pool_work_all());
    pool_stop();
    pool_work_assert_exact();
}

int64_t pool_incidents(const char *kind, const char *detail)
{
    return world_ask("SELECT count(*) FROM lock_incidents WHERE kind = '%s' AND"
                     " position('%s' IN detail) > 0",
                     kind, detail);
}

int64_t pool_counter(const char *name)
{
    return pool_counter_of("%", name);
}

int64_t pool_counter_of(const char *job, const char *name)
{
    return world_ask("SELECT coalesce(sum((counters ->> '%s')::bigint), 0)::bigint FROM"
                     " workers WHERE job LIKE '%s'",
                     name, job);
}

/* When each session began its latest statement; returns how many have begun another
 * since `before`. */
static int count_begun(PGconn *conn, char before[POOL_CHILDREN][64])
{
    PGresult *res =
        session_ask(conn, "SELECT pid::text || ' ' || coalesce(query_start::text, '') "
                          "FROM pg_stat_activity WHERE usename = 'ledgerlock_worker' "
                          "AND datname = current_database() ORDER BY pid");
    int n = 0;

    for (int i = 0; i < PQntuples(res) && i < POOL_CHILDREN; i++) {
        n += strcmp(before[i], PQgetvalue(res, i, 0)) != 0;
        (void)snprintf(before[i], sizeof before[i], "%s", PQgetvalue(res, i, 0));
    }
    PQclear(res);
    return n;
}

int pool_asks(int64_t ms)
{
    char before[POOL_CHILDREN][64] = {""};
    int64_t since, took;
    PGconn *conn;
    int n = 0;

    conn = super_open();
    (void)count_begun(conn, before);
    since = fixture_now_ms();
    do {
        fixture_pause_ms(5);
        n += count_begun(conn, before);
        took = fixture_now_ms() - since;
    } while (took < ms || (n == 0 && took < POOL_WAIT_MS));
    PQfinish(conn);
    return took < 2 * ms ? n : (int)(n * ms / took);
}

/* ---- processes ---- */

const char *pool_proc(pid_t pid, const char *name)
{
    static char text[1 << 16];
    char path[64];
    ssize_t n;
    int fd;

    (void)snprintf(path, sizeof path, "/proc/%ld/%s", (long)pid, name);
    fd = open(path, O_RDONLY | O_CLOEXEC);
    n = fd >= 0 ? read(fd, text, sizeof text - 1) : 0;
    if (fd >= 0)
        (void)close(fd);
    text[n > 0 ? n : 0] = '\0';
    for (ssize_t i = 0; i < n; i++)
        text[i] = text[i] == '\0' ? ' ' : text[i];
    return text;
}

size_t pool_children(pid_t pid, pid_t pids[POOL_CHILDREN])
{
    char name[32], *end;
    const char *at;
    size_t n = 0;

    (void)snprintf(name, sizeof name, "task/%ld/children", (long)pid);
    at = pool_proc(pid, name);
    for (long child; n < POOL_CHILDREN && (child = strtol(at, &end, 10)) > 0; at = end)
        pids[n++] = (pid_t)child;
    return n;
}

pid_t pool_child(pid_t pid, const char *name)
{
    pid_t pids[POOL_CHILDREN];
    size_t n = pool_children(pid, pids);

    for (size_t i = 0; i < n; i++) {
        const char *own = pool_proc(pids[i], "comm");

        if (strlen(own) == strlen(name) + 1 && strncmp(own, name, strlen(name)) == 0)
            return pids[i];
    }
    return 0;
}

void pool_wait_children(pid_t pid, size_t n)
{
    pid_t pids[POOL_CHILDREN];

    FIXTURE_AWAIT(pool_children(pid, pids) == n,
                  "process %ld has %zu children, not %zu", (long)pid,
                  pool_children(pid, pids), n);
}

char pool_state(pid_t pid)
{
    const char *at = strrchr(pool_proc(pid, "stat"), ')');

    return at != NULL ? at[2] : 'X';
}

bool pool_is_alive(pid_t pid)
{
    return strchr("XZ", pool_state(pid)) == NULL;
}

/* ---- the log of a run ---- */

static const char *read_log(const struct fixture_child *child)
{
    static char text[LOG_SIZE];
    ssize_t n = pread(child->err_fd, text, sizeof text - 1, 0);

    text[n > 0 ? n : 0] = '\0';
    return text;
}

unsigned pool_log_count(const struct fixture_child *child, const char *text)
{
    unsigned n = 0;

    for (const char *p = read_log(child); (p = strstr(p, text)) != NULL; p++)
        n++;
    return n;
}

void pool_log_wait(const struct fixture_child *child, const char *text)
{
    FIXTURE_AWAIT(pool_log_count(child, text) > 0, "no \"%s\" %s", text,
                  world_show_log(child));
}

void pool_assert_ends(struct fixture_child *child, int code)
{
    int got = fixture_reap(child->pid, POOL_WAIT_MS / 1000);

    if (got == -1)
        promise_broken("the pool hangs: why %s", world_show_log(child));
    if (got != code)
        fail_msg("exit %d, not %d: why %s", got, code, world_show_log(child));
    child->pid = 0;
}

void pool_end(struct fixture_child *child)
{
    assert_true(child->pid > 0); /* else all processes of the test would be told */
    (void)kill(child->pid, SIGTERM);
    pool_assert_ends(child, 0);
}
