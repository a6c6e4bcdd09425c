/* drift: the pool does not start over a schema that somebody changed by hand, and the
 * audit says what is changed. Objects that somebody added are left alone. */
#include "audit_gen.h"
#include "objects_gen.h"
#include "tests/lib/runs.h"
#include "tests/lib/world.h"

WORLD(.batch = 10);

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
    {"function_body",    "CREATE OR REPLACE FUNCTION resume_order(p_user_id bigint, p_order_id bigint) RETURNS boolean LANGUAGE sql AS 'SELECT true'",
     "function resume_order(p_user_id bigint, p_order_id bigint): it is now"},
    {"right_less",       "REVOKE EXECUTE ON FUNCTION forget_workers FROM ledgerlock_worker",
     "grant ON FUNCTION forget_workers() TO ledgerlock_worker: it is missing"},
    {"right_more",       "GRANT DELETE ON charges TO ledgerlock_worker",
     "grant ON charges TO ledgerlock_worker: it is now: DELETE, SELECT"},
    {"right_of_public",  "GRANT SELECT ON users TO PUBLIC",
     "grant ON users TO PUBLIC: SELECT"},
};

/* clang-format on */

/* Guarantee: Constraints, indexes, triggers, functions and grants that somebody changed
 * by hand stop the pool at its start with exit code 6, and the audit names them. */
CASE_ROWS(finds, changes)
{
    char url[FIXTURE_URL];

    fixture_url_as(&world.f, "postgres", url, sizeof url);
    strncat(url, "&options=-csearch_path%3Dledgerlock", sizeof url - strlen(url) - 1);
    fixture_exec(url, row->sql);
    runs(&world.f, 1, "audit");
    shows("schema_as_built");
    shows(row->what);
    says(&world.f, 6, "the schema was changed by hand", "run --once");
}

CASE(additions_are_left_alone)
{
    world_do("CREATE INDEX mine ON charges (charged_at); ALTER TABLE charges ADD CHECK "
             "(amount_minor < 1000000000); ALTER TABLE users ADD COLUMN mine text; "
             "CREATE VIEW report AS SELECT * FROM users");
    runs(&world.f, 0, "audit");
    runs(&world.f, 0, "run --once");
}

/* scripts/schema-objects writes the list anew. */
CASE(list_of_objects_is_complete)
{
    PGconn *conn = PQconnectdb(world.owner);
    PGresult *set = PQexec(conn, "SET search_path TO ledgerlock, pg_temp");
    PGresult *res = PQexec(conn, (const char *)audit_texts[AUDIT_SCHEMA_AS_BUILT].text);
    int lines = 0;

    for (const unsigned char *p = objects_texts[0].text; *p != '\0'; p++)
        lines += *p == '\n';
    assert_true(lines > 200);
    assert_int_equal(PQntuples(res), lines);
    PQclear(set);
    PQclear(res);
    PQfinish(conn);
}
