/* audit: one snapshot beside writers, a lost connection, a statement over its time, and
 * other servers: behind a pooler, a standby. */
#include "tests/lib/one_database.h"

#include <jansson.h>

#include "audit_gen.h"
#include "tests/lib/audit_world.h"
#include "tests/lib/private_pg.h"
#include "tests/lib/session.h"

static void open_world(void)
{
    one_open();
    audit_world_put(f.url, 4);
}

GROUP(.open = open_world, .close = one_close);

/* Holds a table that every audit reads, until it is closed. */
static PGconn *hold(const char *table)
{
    PGconn *holder = session_open(f.url);
    char sql[96];

    (void)snprintf(sql, sizeof sql, "BEGIN; LOCK TABLE %s IN ACCESS EXCLUSIVE MODE",
                   table);
    session_do(holder, sql);
    return holder;
}

/* ---- one snapshot ---- */

/* Guarantee: A row that was written after BEGIN and before the snapshot of an audit is
 * not of the future. */
CASE(snapshot_is_later_than_the_begin_of_its_transaction)
{
    const char *text = (const char *)audit_texts[AUDIT_NOTHING_AFTER_NOW].text;
    PGconn *reader = session_open(f.url), *writer = session_open(f.url);
    PGresult *res;

    session_do(reader, "BEGIN ISOLATION LEVEL REPEATABLE READ");
    session_do(reader, "SHOW server_version"); /* now() is that of this moment */
    session_do(writer, "SELECT deposit(1, 'USD', 5, 'in between')");
    res = session_ask(reader, text);
    promise_int_equal(PQntuples(res), 0);
    PQclear(res);
    PQfinish(reader);
    PQfinish(writer);
}

/* Says it again and again, beside the test, until it fails. */
static pid_t keep_saying(const char *sql)
{
    pid_t pid = fixture_fork();
    PGconn *conn;

    if (pid != 0)
        return pid;
    conn = session_open(f.url);
    PQclear(PQexec(conn, "SET ledgerlock.repair = on"));
    do
        PQclear(PQexec(conn, sql));
    while (PQtransactionStatus(conn) == PQTRANS_IDLE);
    _exit(1);
}

static void end(pid_t pid)
{
    assert_int_equal(kill(pid, SIGKILL), 0);
    assert_int_equal(waitpid(pid, NULL, 0), pid);
}

/* A unit received and a coin paid in, always together: audit_totals_stock and
 * audit_totals_money tell, one after the other, how often. */
static const char add[] =
    "BEGIN; UPDATE users SET balance_minor = balance_minor + 1 WHERE user_id = 1;"
    "UPDATE wallet_entries SET amount_minor = amount_minor + 1 WHERE (user_id, kind, idempotency_key) = (1, 'deposit', '1');"
    "UPDATE stock SET on_hand = on_hand + 1 WHERE sku_id = 1;"
    "UPDATE stock_entries SET qty = qty + 1 WHERE kind = 'delivery'; COMMIT";

/* How often, as the audit says it. */
static json_int_t count_added(void)
{
    json_int_t deposited, received;
    json_t *doc;

    runs(&f, 0, "audit --json --now " AUDIT_NOW);
    doc = json_loads(said.out, 0, NULL);
    assert_int_equal(json_unpack(doc, "{s:{s:{s:{s:I}}, s:{s:I}}}", "totals", "money",
                                 "USD", "deposited", &deposited, "stock", "received",
                                 &received),
                     0);
    json_decref(doc);
    assert_int_equal(received - 5, deposited - 11500); /* before the first was added */
    return received - 5;
}

CASE(totals_of_all_statements_are_of_one_snapshot)
{
    json_int_t last = 0;
    char sql[200];
    pid_t pid = keep_saying(add);

    for (int i = 0; i < 20; i++) {
        (void)snprintf(
            sql, sizeof sql,
            "SELECT sum(amount_minor) > 11500 + %lld FROM ledgerlock.ledger WHERE"
            " kind = 'deposit' AND currency = 'USD'",
            (long long)last);
        FIXTURE_AWAIT(fixture_query_int8(f.url, sql) != 0, "not within two minutes");
        last = count_added();
    }
    end(pid);
}

#define MOVE_BOTH(by)                                                                  \
    "BEGIN; UPDATE users SET balance_minor = balance_minor " by " WHERE user_id = 1;"  \
    "UPDATE stock SET on_hand = on_hand " by " WHERE sku_id = 1; COMMIT;"

/* A wallet and a SKU are both wrong, or both right: always together. */
static const char spoil_and_mend[] = MOVE_BOTH("+ 1") MOVE_BOTH("- 1");

/* Until it was met in both states, and often enough. */
/* Guarantee: All invariants of an audit are of one snapshot, over whichever connection
 * they are read. */
CASE(invariants_of_both_connections_are_of_one_snapshot)
{
    int met[2] = {0};
    pid_t pid = keep_saying(spoil_and_mend);

    for (int i = 0; i < 10 || met[0] == 0 || met[1] == 0; i++) {
        bool right;

        assert_true(i < 200);
        (void)fixture_run(&f, &said, "audit", "--json", "--now", AUDIT_NOW, NULL);
        right = !said_is_broken("balance_is_sum_of_ledger");
        promise_int_equal(!said_is_broken("on_hand_is_sum_of_stock_ledger"), right);
        met[right]++;
    }
    end(pid);
}

/* Guarantee: The audit reads over two connections at once. */
CASE(audit_reads_over_two_connections_at_once)
{
    struct fixture_child child;
    PGconn *holder = hold("users");

    fixture_spawn(&f, &child, "audit", "--now", AUDIT_NOW, NULL);
    FIXTURE_AWAIT(
        fixture_query_int8(
            f.url,
            "SELECT count(*) = 2 FROM pg_stat_activity WHERE datname ="
            " current_database() AND application_name LIKE 'ledgerlock audit%' AND"
            " wait_event_type = 'Lock'") != 0,
        "not within two minutes");
    PQfinish(holder);
    assert_int_equal(fixture_wait(&child, 60, &said), 0);
}

/* ---- connections that fail ---- */

#define THE_AUDIT                                                                      \
    " FROM pg_stat_activity WHERE datname = current_database() AND application_name = 'ledgerlock audit'"

/* An audit comes to a table that is locked and that only invariants read, and this is
 * done to it: it says so and ends. */
static void
fails_at_a_lock(const char *then, const char *sqlstate, const char *statement)
{
    struct fixture_child child;
    PGconn *holder = hold("contracts");

    fixture_spawn(&f, &child, "audit", "--now", AUDIT_NOW, NULL);
    FIXTURE_AWAIT(fixture_query_int8(f.url, "SELECT count(*) = 1" THE_AUDIT
                                            " AND wait_event_type = 'Lock'") != 0,
                  "not within two minutes");
    fixture_exec(f.url, then);
    assert_int_equal(fixture_wait(&child, 60, &said), 4);
    shows(sqlstate);
    shows(statement);
    assert_string_equal(said.out, "");
    PQfinish(holder);
}

static const struct {
    const char *name, *and;
} lost[] = {{"first_connection", ""}, {"second_connection", " beside"}};

CASE_ROWS(audit_ends_when_it_loses_its, lost)
{
    char sql[240];

    (void)snprintf(
        sql, sizeof sql,
        "SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE datname"
        " = current_database() AND application_name = 'ledgerlock audit%s'",
        row->and);
    fails_at_a_lock(sql, "SQLSTATE 57P01", "audit/");
}

/* That of the two connections which comes to the locked table first has it. */
CASE(statement_that_was_cancelled_is_named)
{
    const char *path = NULL;
    char query[2048];

    fails_at_a_lock(
        "CREATE TABLE waited AS SELECT query, pg_cancel_backend(pid)" THE_AUDIT,
        "SQLSTATE 57014", "audit/");
    fixture_query_text(f.url, "SELECT query FROM waited", query, sizeof query);
    for (size_t i = 0; i < AUDIT_COUNT; i++) {
        const char *text = (const char *)audit_texts[i].text; /* begins with its rule */
        char *rule = strndup(text, strcspn(text, "\n"));

        assert_non_null(rule);
        if (strstr(query, rule) != NULL)
            path = audit_texts[i].path;
        free(rule);
    }
    assert_non_null(path);
    shows(path);
    fixture_exec(f.url, "DROP TABLE waited");
}

/* ---- other servers ---- */

CASE(pooler_of_transactions_may_have_one_session)
{
    struct pgbouncer bouncer = {0};

    if (!pgbouncer_is_there())
        skip();
    pgbouncer_open(&bouncer, "transaction", 1);
    fixture_env("LEDGERLOCK_POSTGRES_PASSWORD_FILE", bouncer.password_file);
    fixture_env("LEDGERLOCK_POSTGRES_POOLING", "transaction");
    pgbouncer_url(&bouncer, &f, "ledgerlock_worker", f.url, sizeof f.url);
    (void)count_added();
    said_no_complaint();
    pgbouncer_close(&bouncer);
}

/* Read only to the bone, and its snapshots are made otherwise. */
CASE(standby_is_audited_like_its_primary, .alone = true)
{
    struct private_pg primary = {0}, standby = {0};

    private_pg_open(&primary); /* every fixture stands on it now: keep this test last */
    open_world();
    private_pg_follow(&standby, &primary);
    (void)snprintf(f.url, sizeof f.url,
                   "postgresql:///%s?host=%s&user=ledgerlock_worker", f.database,
                   standby.dir);
    assert_int_equal(1, fixture_query_int8(f.url, "SELECT pg_is_in_recovery()::int"));
    (void)count_added();
    said_no_complaint();
    private_pg_close(&standby);
    private_pg_close(&primary);
}
