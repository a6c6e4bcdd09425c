/* drift: the pool does not start over a schema that somebody changed by hand, and the
 * audit says what is changed. Which changes are found is told in tests/sql/drift.sql.
 */
#include "tests/lib/steps.h"

WORLD(.batch = 10);

#define TRIGGER                                                                         \
    "CREATE FUNCTION drop_it() RETURNS trigger LANGUAGE plpgsql AS 'BEGIN RETURN NULL;" \
    " END'; CREATE TRIGGER more "

/* clang-format off */
static const struct {
    const char *name, *sql, *what;
} changes[] = {
    {"check",    "ALTER TABLE users DROP CONSTRAINT balance_never_negative", "constraint users.balance_never_negative: it is missing"},
    {"function", "CREATE OR REPLACE FUNCTION resume_order(p_user_id bigint, p_order_id bigint) RETURNS boolean LANGUAGE sql AS 'SELECT true'",
     "function resume_order(p_user_id bigint, p_order_id bigint): it is now"},
    {"right",    "GRANT DELETE ON charges TO ledgerlock_worker", "grant ON charges TO ledgerlock_worker: it is now: DELETE, SELECT"},
};

/* Guarantee: Tables, columns, constraints, indexes, triggers, functions and grants that
 * somebody changed by hand stop the pool at its start with exit code 6, and the audit
 * names them. */
CASE_ROWS(finds, changes)
{
    super_do("SET search_path = ledgerlock; %s", row->sql);
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

/* Guarantee: A partition that is missing, or unlike its table, stops the pool at its
 * start with exit code 6, and the audit names it. */
CASE(partition_that_is_missing_is_found)
{
    world_do("SELECT make_months('2024-01-01', '2024-01-01')");
    super_do("ALTER TABLE ledgerlock.charges DETACH PARTITION ledgerlock.charges_2024_01");
    says(&world.f, 1, "months_as_built", "audit");
    shows("charges_2024_01: the partition is missing");
    says(&world.f, 6, "the schema was changed by hand", "run --once");
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
