/* drift: the pool does not start over a schema that somebody changed by hand, and the
 * audit says what is changed. Objects that somebody added are left alone. */
#include <libpq-fe.h>

#include "audit_gen.h"
#include "objects_gen.h"
#include "tests/lib/runs.h"
#include "tests/lib/world.h"

WORLD(.batch = 10);

#define TRIGGER                                                                         \
    "CREATE FUNCTION drop_it() RETURNS trigger LANGUAGE plpgsql AS 'BEGIN RETURN NULL;" \
    " END'; CREATE TRIGGER more "
#define A_PARTITION "charges_2024_01"

/* clang-format off */
static const struct {
    const char *name, *sql, *what;
} changes[] = {
    {"primary_key",      "ALTER TABLE charges DROP CONSTRAINT one_charge_per_period",
     "constraint charges.one_charge_per_period: it is missing"},
    {"check",            "ALTER TABLE users DROP CONSTRAINT balance_never_negative",
     "constraint users.balance_never_negative: it is missing"},
    {"other_check",      "ALTER TABLE stock DROP CONSTRAINT on_hand_never_negative, ADD CONSTRAINT on_hand_never_negative CHECK (on_hand >= -9)",
     "constraint stock.on_hand_never_negative: it is now: CHECK"},
    {"unvalidated",      "ALTER TABLE stock DROP CONSTRAINT on_hand_never_negative, ADD CONSTRAINT on_hand_never_negative CHECK (on_hand >= 0) NOT VALID",
     "NOT VALID"},
    {"not_null",         "ALTER TABLE charges ALTER fence DROP NOT NULL",
     "column charges.fence: it is now: bigint"},
    {"index",            "DROP INDEX subscriptions_due",
     "index subscriptions_due: it is missing"},
    {"invalid_index",    "UPDATE pg_index SET indisvalid = false WHERE indexrelid = 'subscriptions_due'::regclass",
     "INVALID"},
    {"trigger_off",      "ALTER TABLE subscriptions DISABLE TRIGGER ALL",
     "DISABLED"},
    {"trigger_always",   "ALTER TABLE orders ENABLE ALWAYS TRIGGER decided_orders_stay_so",
     "EXECUTE FUNCTION refuse_change() ALWAYS"},
    {"trigger_replica",  "ALTER TABLE orders ENABLE REPLICA TRIGGER decided_orders_stay_so",
     "EXECUTE FUNCTION refuse_change() REPLICA"},
    {"foreign_key_off",  "ALTER TABLE wallet_entries DISABLE TRIGGER ALL; ALTER TABLE wallet_entries ENABLE TRIGGER USER",
     "REFERENCES users(user_id) DISABLED"},
    {"foreign_key_off_where_it_points", "ALTER TABLE stock DISABLE TRIGGER ALL; ALTER TABLE stock ENABLE TRIGGER USER",
     "REFERENCES stock(sku_id) DISABLED"},
    {"foreign_key_not_valid", "ALTER TABLE wallet_entries DROP CONSTRAINT wallet_entry_has_a_user, ADD CONSTRAINT wallet_entry_has_a_user FOREIGN KEY (user_id) REFERENCES users NOT VALID",
     "REFERENCES users(user_id) NOT VALID"},
    {"unlogged",         "ALTER TABLE lock_token SET UNLOGGED",
     "table lock_token: it is now: UNLOGGED"},
    {"hidden_rows",      "ALTER TABLE wallet_entries ENABLE ROW LEVEL SECURITY",
     "table wallet_entries: it is now: permanent, rows are hidden by policies"},
    {"default",          "ALTER TABLE batches ALTER recorded_at SET DEFAULT '2024-01-01Z'",
     "DEFAULT '2024-01-01"},
    {"no_default",       "ALTER TABLE orders ALTER fence DROP DEFAULT",
     "column orders.fence: it is now: bigint NOT NULL"},
    {"no_identity",      "ALTER TABLE batches ALTER batch_id DROP IDENTITY",
     "column batches.batch_id: it is now: bigint NOT NULL"},
    {"view_of_less",     "CREATE OR REPLACE VIEW open_ledger AS SELECT * FROM ledger WHERE amount_minor < 5",
     "view open_ledger: it is now"},
    {"function_body",    "CREATE OR REPLACE FUNCTION resume_order(p_user_id bigint, p_order_id bigint) RETURNS boolean LANGUAGE sql AS 'SELECT true'",
     "function resume_order(p_user_id bigint, p_order_id bigint): it is now"},
    {"right_less",       "REVOKE EXECUTE ON FUNCTION first_open FROM ledgerlock_reader",
     "grant ON FUNCTION first_open() TO ledgerlock_reader: it is missing"},
    {"right_more",       "GRANT DELETE ON charges TO ledgerlock_worker",
     "grant ON charges TO ledgerlock_worker: it is now: DELETE, SELECT"},
    {"trigger_more",     TRIGGER "BEFORE INSERT ON wallet_entries FOR EACH ROW EXECUTE FUNCTION drop_it()",
     "trigger wallet_entries.more: CREATE TRIGGER"},
    {"trigger_more_on_a_partition", TRIGGER "BEFORE INSERT ON " A_PARTITION " FOR EACH ROW EXECUTE FUNCTION drop_it()",
     "trigger more was added"},
    {"rule_more",        "CREATE RULE more AS ON DELETE TO workers DO INSTEAD NOTHING",
     "rule workers.more: CREATE RULE"},
    {"rule_more_on_a_partition", "CREATE RULE more AS ON INSERT TO " A_PARTITION " DO INSTEAD NOTHING",
     "rule more was added"},
    {"check_more_on_a_partition", "ALTER TABLE " A_PARTITION " ADD CONSTRAINT more CHECK (amount_minor < 5)",
     "constraint more was added"},
    {"right_of_public",  "GRANT SELECT ON users TO PUBLIC",
     "grant ON users TO PUBLIC: SELECT"},
};

/* clang-format on */

static void do_as_superuser(const char *sql)
{
    char url[FIXTURE_URL];

    fixture_url_as(&world.f, "postgres", url, sizeof url);
    strncat(url, "&options=-csearch_path%3Dledgerlock", sizeof url - strlen(url) - 1);
    fixture_exec(url, sql);
}

/* Guarantee: Tables, columns, constraints, indexes, triggers, functions and grants that
 * somebody changed by hand stop the pool at its start with exit code 6, and the audit
 * names them. */
CASE_ROWS(finds, changes)
{
    world_do("SELECT make_months('2024-01-01', '2024-01-01')");
    do_as_superuser(row->sql);
    runs(&world.f, 1, "audit");
    shows("_as_built");
    shows(row->what);
    says(&world.f, 6, "the schema was changed by hand", "run --once");
}

CASE(additions_are_left_alone)
{
    world_do("CREATE INDEX mine ON charges (charged_at); ALTER TABLE charges ADD CHECK "
             "(amount_minor < 1000000000); ALTER TABLE users ADD COLUMN mine text; "
             "CREATE VIEW report AS SELECT * FROM users;" TRIGGER
             "AFTER INSERT ON wallet_entries FOR EACH ROW EXECUTE FUNCTION drop_it()");
    runs(&world.f, 0, "audit");
    runs(&world.f, 0, "run --once");
}

/* A newer program has expanded the schema, and replaced a function. */
static void expand(void)
{
    world_do(
        "INSERT INTO schema_migrations (kind, name, checksum) VALUES "
        "('migration', '003_expand_notes', 'x'), ('function', 'note', 'x'); "
        "UPDATE schema_migrations SET checksum = 'x' WHERE name = 'resume_order'; "
        "ALTER TABLE charges ADD COLUMN note text; CREATE TABLE notes (note text); "
        "GRANT SELECT ON notes TO ledgerlock_worker; "
        "CREATE OR REPLACE FUNCTION resume_order(p_user_id bigint, p_order_id "
        "bigint) RETURNS boolean LANGUAGE sql SECURITY DEFINER "
        "SET search_path = ledgerlock, pg_temp AS 'SELECT true'");
}

/* Guarantee: A schema that a newer program has expanded is worked with, and `run`,
 * `audit` and `doctor` say so, since they do not compare what its functions do. */
CASE(expansion_is_no_drift)
{
    runs(&world.f, 0, "audit");
    assert_null(strstr(said.err, "newer than this program"));
    runs(&world.f, 0, "run --once");
    assert_null(strstr(said.err, "pool.schema_newer"));
    expand();
    runs(&world.f, 0, "audit");
    fixture_assert_contains(said.err, "newer than this program (003_expand_notes)");
    runs(&world.f, 0, "run --once");
    fixture_assert_contains(said.err, "event=pool.schema_newer");
    fixture_assert_contains(said.err, "expansion=003_expand_notes");
    (void)fixture_run(&world.f, &said, "doctor", NULL);
    fixture_assert_contains(said.out, "which can work with it (003_expand_notes)");
}

/* clang-format off */
static const struct {
    const char *name, *sql, *what;
} under_expansion[] = {
    {"check",    "ALTER TABLE users DROP CONSTRAINT balance_never_negative", "balance_never_negative: it is missing"},
    {"column",   "ALTER TABLE charges ALTER fence DROP NOT NULL", "column charges.fence: it is now: bigint"},
    {"function", "ALTER FUNCTION deposit(bigint, text, bigint, text, timestamptz) SECURITY INVOKER", "function deposit("},
    {"right",    "GRANT DELETE ON charges TO ledgerlock_worker", "it is now: DELETE, SELECT"},
    {"trigger",  "ALTER TABLE orders DISABLE TRIGGER orders_are_never_deleted", "DISABLED"},
};

/* clang-format on */

/* Guarantee: A changed object that a program expects is found, also in a schema that a
 * newer program has expanded. */
CASE_ROWS(finds_in_an_expanded_schema, under_expansion)
{
    expand();
    do_as_superuser(row->sql);
    runs(&world.f, 1, "audit");
    shows("schema_as_built");
    shows(row->what);
    says(&world.f, 6, "the schema was changed by hand", "run --once");
}

static PGresult *ask_objects(PGconn *conn)
{
    PQclear(PQexec(conn, "SET search_path TO ledgerlock, pg_temp"));
    return PQexec(conn, (const char *)audit_texts[AUDIT_SCHEMA_AS_BUILT].text);
}

/* clang-format off */
static const struct {
    const char *name, *sql, *detail;
} powers[] = {
    {"another_of_our_roles", "GRANT ledgerlock_support TO ledgerlock_worker", "it is now: member of ledgerlock_support"},
    {"the_owner",     "GRANT ledgerlock_owner TO ledgerlock_worker", "it is now: member of ledgerlock_owner"},
    {"all_rights",    "ALTER ROLE ledgerlock_worker SUPERUSER", "it is now: superuser"},
    {"every_row",     "ALTER ROLE ledgerlock_worker BYPASSRLS", "it is now: passes policies"},
    {"other_rights",  "ALTER ROLE ledgerlock_worker CREATEROLE", "it is now: makes roles"},
    {"statistics",    "GRANT pg_monitor TO ledgerlock_worker", NULL},
};

/* clang-format on */

/* Guarantee: A role of ours that may more than its rights is found. Roles belong to the
 * whole server, so the change is seen by its own transaction alone. */
CASE_ROWS(finds_a_role_with, powers)
{
    const char *list[] = {(const char *)objects_texts[0].text};
    char url[FIXTURE_URL];
    PGconn *conn;
    PGresult *res;

    fixture_url_as(&world.f, "postgres", url, sizeof url);
    conn = PQconnectdb(url);
    PQclear(PQexec(conn, "BEGIN"));
    PQclear(PQexec(conn, row->sql));
    PQclear(PQexecParams(conn, "SELECT set_config('ledgerlock.objects', $1, true)", 1,
                         NULL, list, NULL, NULL, 0));
    res = ask_objects(conn);
    assert_int_equal(PQntuples(res), row->detail != NULL);
    if (row->detail != NULL) {
        assert_string_equal(PQgetvalue(res, 0, 0), "role ledgerlock_worker");
        assert_string_equal(PQgetvalue(res, 0, 1), row->detail);
    }
    PQclear(res);
    PQfinish(conn);
}

/* scripts/schema-objects writes the list anew. */
CASE(list_of_objects_is_complete)
{
    PGconn *conn = PQconnectdb(world.owner);
    PGresult *res = ask_objects(conn);
    int lines = 0;

    for (const unsigned char *p = objects_texts[0].text; *p != '\0'; p++)
        lines += *p == '\n';
    assert_true(lines > 200);
    assert_int_equal(PQntuples(res), lines);
    PQclear(res);
    PQfinish(conn);
}
