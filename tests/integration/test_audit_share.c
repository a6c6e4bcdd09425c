/* audit over several connections: one snapshot, one document, and a lost connection
 * ends it or is done without. */
#include "tests/lib/fixture.h"

#include <jansson.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "common/pg.h"
#include "tests/lib/audit_world.h"
#include "tests/lib/pgbouncer.h"
#include "tests/lib/private_pg.h"

static struct fixture f;
static struct fixture_output o;

/* ---- helpers ---- */

static void open_on_the_server(void)
{
    fixture_open_migrated(&f);
    fixture_exec(f.url, audit_world[0]);
    fixture_exec(f.url, audit_world[1]);
}

static int open_world(void **state)
{
    (void)state;
    open_on_the_server();
    return 0;
}

static int close_world(void **state)
{
    (void)state;
    fixture_close(&f);
    return 0;
}

static int audit(const char *connections)
{
    return fixture_run(&f, &o, "audit", "--json", "--now", AUDIT_NOW, "--connections",
                       connections, NULL);
}

static struct pg *open_pg(const char *url)
{
    struct pg_options options = {.url = url, .name = "test", .answer_ms = 20000};
    struct err e = {0};
    struct pg *pg;

    if (pg_open(&pg, &options, &e) != 0)
        fail_msg("%s", e.msg);
    return pg;
}

/* Runs it on a connection of the test, in whatever transaction that is. */
static void tell(struct pg *pg, const char *sql)
{
    struct err e = {0};

    if (pg_exec_text(pg, sql, NULL, &e) != 0)
        fail_msg("%s: %s", sql, e.msg);
}

static void ask(struct pg *pg, const char *sql, char *buf, size_t size)
{
    struct err e = {0};
    struct pg_result *res;

    if (pg_exec_text(pg, sql, &res, &e) != 0)
        fail_msg("%s: %s", sql, e.msg);
    (void)snprintf(buf, size, "%s", pg_get_text(res, 0, 0));
    pg_result_free(res);
}

/* The answer of a statement that was sent. */
static void finish(struct pg *pg)
{
    struct err e = {0};

    if (pg_take(pg, NULL, &e) != 0)
        fail_msg("%s", e.msg);
}

/* Starts an audit over two connections that both come to a locked table; the lock is
 * the caller's to end. */
static struct pg *hold_two(struct fixture_child *child)
{
    struct pg *holder = open_pg(f.url);

    tell(holder, "BEGIN; LOCK TABLE ledgerlock.users IN ACCESS EXCLUSIVE MODE");
    fixture_spawn(&f, child, "audit", "--now", AUDIT_NOW, "--connections", "2", NULL);
    for (int i = 0; i < 1000; i++, fixture_pause_ms(10)) {
        if (fixture_query_int8(
                f.url,
                "SELECT count(*) FROM pg_stat_activity"
                " WHERE datname = current_database() AND wait_event_type = 'Lock'"
                " AND application_name = 'ledgerlock audit'") == 2)
            return holder;
    }
    fail_msg("two connections of the audit did not come to the lock");
    return NULL;
}

static void assert_word(const char *where, const char *part, int code)
{
    if (strstr(where, part) == NULL || o.code != code)
        fail_msg("exit %d, no \"%s\" in: %s", o.code, part, where);
}

/* ---- one snapshot, one document ---- */

static void document_does_not_depend_on_the_connections(void **state)
{
    static const char *const counts[] = {"2", "3", "16"};
    static char alone[FIXTURE_OUTPUT];

    (void)state;
    assert_int_equal(audit("1"), 0);
    memcpy(alone, o.out, sizeof alone);
    for (size_t i = 0; i < sizeof counts / sizeof counts[0]; i++) {
        assert_int_equal(audit(counts[i]), 0);
        assert_string_equal(o.out, alone);
        assert_string_equal(o.err, "");
    }
}

static void shared_snapshot_does_not_see_what_was_committed_since(void **state)
{
    static const char sum[] = "SELECT sum(balance_minor) FROM ledgerlock.users";
    struct pg *first = open_pg(f.url), *second = open_pg(f.url);
    char name[64], before[32], shared[32], now[32];
    struct err e = {0};

    (void)state;
    assert_int_equal(pg_begin_snapshot(first, &e), 0);
    ask(first, "SELECT pg_export_snapshot()", name, sizeof name);
    ask(first, sum, before, sizeof before);
    fixture_exec(f.url, "UPDATE ledgerlock.users SET balance_minor = 1");
    assert_int_equal(pg_send_begin_shared(second, name, &e), 0);
    finish(second);
    ask(second, sum, shared, sizeof shared);
    pg_rollback(second);
    ask(second, sum, now, sizeof now);
    assert_string_equal(shared, before);
    assert_string_not_equal(now, before);
    pg_close(first);
    pg_close(second);
}

/* A unit received and a coin paid in, always together: audit_totals_stock and
 * audit_totals_money tell, each on its own connection, how often. */
static void keep_adding(const char *url)
{
    static const char add[] =
        "BEGIN; UPDATE ledgerlock.users SET balance_minor = balance_minor + 1"
        " WHERE user_id = 1;"
        "UPDATE ledgerlock.transfers SET amount_minor = amount_minor + 1"
        " WHERE (kind, source, leg) = ('deposit', 1, 1);"
        "UPDATE ledgerlock.stock SET on_hand = on_hand + 1 WHERE sku_id = 1;"
        "UPDATE ledgerlock.stock_movements SET qty = qty + 1 WHERE kind = 'receive';"
        "COMMIT";
    struct pg_options options = {.url = url, .name = "adder", .answer_ms = 10000};
    struct err e = {0};
    struct pg *pg;

    if (pg_open(&pg, &options, &e) != 0)
        _exit(1);
    while (pg_exec_text(pg, add, NULL, &e) == 0)
        ;
    _exit(1);
}

/* How often, as that document says it. */
static json_int_t count_added(void)
{
    json_int_t deposited, received;
    json_t *doc = json_loads(o.out, 0, NULL);

    if (json_unpack(doc, "{s:{s:{s:{s:I}}, s:{s:I}}}", "totals", "money", "USD",
                    "deposited", &deposited, "stock", "received", &received) != 0)
        fail_msg("no totals in %s%s", o.out, o.err);
    json_decref(doc);
    assert_int_equal(received - 5, deposited - 11500); /* before the first was added */
    return received - 5;
}

/* The one who adds may stand behind a slow disk for a while, but not for long. */
static void wait_for_more(json_int_t than)
{
    for (int i = 0; i < 2000; i++, fixture_pause_ms(5)) {
        if (fixture_query_int8(f.url, "SELECT sum(amount_minor)::bigint - 11500 FROM"
                                      " ledgerlock.transfers WHERE kind = 'deposit'"
                                      " AND currency = 'USD'") > than)
            return;
    }
    fail_msg("nothing was added for 10 s");
}

static void totals_of_all_connections_are_of_one_instant(void **state)
{
    json_int_t last = 0;
    pid_t pid = fork();

    (void)state;
    if (pid == 0)
        keep_adding(f.url);
    for (int i = 0; i < 30; i++) {
        wait_for_more(last);
        assert_int_equal(audit("4"), 0);
        last = count_added();
    }
    assert_int_equal(kill(pid, SIGKILL), 0);
    assert_int_equal(waitpid(pid, NULL, 0), pid);
}

/* ---- connections that fail ---- */

static void lose_one_of_two(const char *which)
{
    struct fixture_child child;
    struct pg *holder = hold_two(&child);
    char sql[256];

    (void)snprintf(sql, sizeof sql,
                   "SELECT pg_terminate_backend(pid)::int FROM pg_stat_activity"
                   " WHERE datname = current_database()"
                   " AND application_name = 'ledgerlock audit'"
                   " ORDER BY backend_start %s LIMIT 1",
                   which);
    assert_int_equal(fixture_query_int8(f.url, sql), 1);
    (void)fixture_wait(&child, 10,
                       &o); /* while the other one still waits for the lock */
    assert_word(o.err, "SQLSTATE 57P01", 4);
    assert_word(o.err, "audit", 4); /* the statement */
    pg_close(holder);
}

static void connection_lost_on_the_way_ends_the_audit(void **state)
{
    (void)state;
    lose_one_of_two("ASC");
    lose_one_of_two("DESC");
}

static void statement_over_its_time_is_named(void **state)
{
    struct fixture_child child;
    struct pg *holder;
    char sql[160];

    (void)state;
    (void)snprintf(sql, sizeof sql, "ALTER DATABASE %s SET statement_timeout = '1s'",
                   f.database);
    fixture_exec(f.url, sql);
    holder = hold_two(&child);
    (void)fixture_wait(&child, 10, &o);
    assert_word(o.err, "SQLSTATE 57014", 4);
    assert_word(o.err, "audit_totals_", 4);
    assert_string_equal(o.out, "");
    pg_close(holder);
}

static void connection_that_is_refused_is_done_without(void **state)
{
    char sql[160];

    (void)state;
    (void)snprintf(sql, sizeof sql, "ALTER DATABASE %s CONNECTION LIMIT 1", f.database);
    fixture_exec(f.url, sql);
    assert_int_equal(audit("3"), 0);
    assert_word(o.err, "event=audit.left_out", 0);
    assert_word(o.err, "too many connections", 0);
}

static void connections_are_one_to_sixteen(void **state)
{
    (void)state;
    assert_int_equal(audit("0"), 2);
    assert_int_equal(audit("17"), 2);
    fixture_assert_contains(o.err, "--connections");
}

/* ---- other servers ---- */

static void empty_database_holds(void **state)
{
    struct fixture empty;

    (void)state;
    fixture_open_migrated(&empty);
    assert_int_equal(0, fixture_run(&empty, &o, "audit", NULL));
    fixture_assert_contains(o.out, "audit: 37 of 37 invariants hold");
    fixture_close(&empty);
}

/* With one session for both, the second never begins: the first does all of it. */
static void pooler_of_transactions_may_have_one_session_or_two(void **state)
{
    (void)state;
    if (!pgbouncer_is_there())
        skip();
    for (int sessions = 1; sessions <= 2; sessions++) {
        struct pgbouncer bouncer = {0};

        open_on_the_server();
        pgbouncer_open(&bouncer, "transaction", sessions);
        fixture_env("LEDGERLOCK_POSTGRES_PASSWORD_FILE", bouncer.password_file);
        fixture_env("LEDGERLOCK_POSTGRES_POOLING", "transaction");
        pgbouncer_url(&bouncer, &f, "ledgerlock_worker", f.url, sizeof f.url);
        assert_int_equal(audit("2"), 0);
        assert_string_equal(o.err, "");
        pgbouncer_close(&bouncer);
        fixture_close(&f);
    }
}

/* Read only to the bone, and its snapshots are made otherwise. */
static void standby_is_audited_like_its_primary(void **state)
{
    struct private_pg primary = {0}, standby = {0};

    (void)state;
    private_pg_open(&primary); /* every fixture stands on it now: keep this test last */
    open_on_the_server();
    private_pg_follow(&standby, &primary);
    (void)snprintf(f.url, sizeof f.url,
                   "postgresql:///%s?host=%s&user=ledgerlock_worker", f.database,
                   standby.dir);
    assert_int_equal(1, fixture_query_int8(f.url, "SELECT pg_is_in_recovery()::int"));
    assert_int_equal(audit("2"), 0);
    assert_string_equal(o.err, "");
    private_pg_close(&standby);
    private_pg_close(&primary);
}

#define IN_WORLD(name) cmocka_unit_test_setup_teardown(name, open_world, close_world)

int main(void)
{
    const struct CMUnitTest tests[] = {
        IN_WORLD(document_does_not_depend_on_the_connections),
        IN_WORLD(shared_snapshot_does_not_see_what_was_committed_since),
        IN_WORLD(totals_of_all_connections_are_of_one_instant),
        IN_WORLD(connection_lost_on_the_way_ends_the_audit),
        IN_WORLD(statement_over_its_time_is_named),
        IN_WORLD(connection_that_is_refused_is_done_without),
        IN_WORLD(connections_are_one_to_sixteen),
        cmocka_unit_test(empty_database_holds),
        cmocka_unit_test(pooler_of_transactions_may_have_one_session_or_two),
        cmocka_unit_test(standby_is_audited_like_its_primary),
    };

    fixture_need_servers();
    return cmocka_run_group_tests(tests, NULL, NULL);
}
