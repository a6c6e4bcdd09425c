/* backup: a shop that PostgreSQL's own programs dumped and restored is the same shop,
 * whoever owns it then; what a restore leaves out is given again, or named. */
#include <jansson.h>

#include "tests/lib/audit_world.h"
#include "tests/lib/runs.h"
#include "tests/lib/typed.h"

/* shop: with two closed months, shared by all cases, which change nothing of it. copy:
 * restored from it. */
static struct fixture shop, copy;
static char dir[64];

static void open_shop(void)
{
    fixture_folder(dir, sizeof dir, "backup");
    fixture_open_migrated(&shop);
    audit_world_put(shop.url, 4);
    runs(&shop, 0, "close-month 2023-04");
    runs(&shop, 0, "close-month 2024-01");
}

static void close_shop(void)
{
    fixture_close(&shop);
    fixture_remove(dir, "log");
}

static void forget(void)
{
    if (copy.database[0] != '\0')
        fixture_close(&copy);
    memset(&copy, 0, sizeof copy);
}

GROUP(.start = open_shop, .stop = close_shop, .close = forget);

/* ---- helpers ---- */

/* Both are done by the role. */
static void restore(const char *dump, const char *restore, const char *role)
{
    char from[FIXTURE_URL], to[FIXTURE_URL];

    fixture_open(&copy);
    fixture_url_as(&shop, role, from, sizeof from);
    fixture_url_as(&copy, role, to, sizeof to);
    typed("cd %s; FROM='%s'; TO='%s'; rm -rf dump; %s; %s", dir, from, to, dump,
          restore);
}

/* The program as one of the roles, in the copy. */
static void become(const char *role)
{
    fixture_become(&copy, role);
}

/* The copy has every row, and every object is the one of the program; it goes on. */
static void assert_is_the_shop(void)
{
    json_t *expected = json_loads(audit_world_totals, 0, NULL), *doc;

    become("ledgerlock_worker");
    runs(&copy, 0, "audit --json --sealed --now " AUDIT_NOW);
    doc = json_loads(said.out, 0, NULL);
    if (!json_equal(expected, json_object_get(doc, "totals")))
        promise_broken("totals are %s", said.out);
    json_decref(doc);
    json_decref(expected);
    runs(&copy, 0, "run --once -w 1 --now " AUDIT_NOW);
    runs(&copy, 0, "audit --sealed --now " AUDIT_NOW);
}

/* PostgreSQL prints every object of the copy as it does those of the shop: what it
 * reads back is what it has written. The rights of an object have no order. */
static void assert_reads_as_it_was_written(void)
{
    char from[FIXTURE_URL], to[FIXTURE_URL];

    fixture_url_as(&shop, "postgres", from, sizeof from);
    fixture_url_as(&copy, "postgres", to, sizeof to);
    typed(
        "cd %s; for u in '%s' '%s'; do pg_dump --schema-only -n ledgerlock -d \"$u\" |"
        " grep -v '^.\\(un\\)\\?restrict ' | sort >now; [ -e first ] || mv now first; done;"
        " diff first now; rm first now",
        dir, from, to);
}

/* ---- restores ---- */

/* clang-format off */
#define BY_PSQL "psql -XqAt -v ON_ERROR_STOP=1 -d \"$TO\" -f dump"
#define BY_PG_RESTORE "pg_restore --exit-on-error -d \"$TO\" dump"
static const struct {
    const char *name, *dump, *restore, *role;
} ways[] = {
    {"custom",        "pg_dump -Fc -f dump -d \"$FROM\"",          BY_PG_RESTORE,           "postgres"},
    {"plain",         "pg_dump -f dump -d \"$FROM\"",              BY_PSQL,                 "postgres"},
    {"in_parallel",   "pg_dump -Fd -j2 -f dump -d \"$FROM\"", BY_PG_RESTORE " -j2", "postgres"},
    {"by_the_owner",  "pg_dump -Fc -f dump -d \"$FROM\"",          BY_PG_RESTORE,           "ledgerlock_owner"},
};

/* clang-format on */

/* Guarantee: A shop that was dumped and restored, with closed months, is audited with
 * the same totals, runs, and has the schema of the program. */
CASE_ROWS(restored_shop_is_the_same, ways)
{
    restore(row->dump, row->restore, row->role);
    assert_reads_as_it_was_written();
    become("ledgerlock_owner");
    says(&copy, 0, "schema is up to date", "migrate");
    assert_null(strstr(said.out, "gave"));
    assert_is_the_shop();
}

/* ---- what a restore leaves out ---- */

#define WITHOUT_RIGHTS "pg_dump -Fc --no-privileges -f dump -d \"$FROM\""

/* Guarantee: In a shop that was restored without rights, no role can do its work, every
 * verb says whose work it is, and `migrate` gives each role its own rights again. */
CASE(rights_that_a_restore_left_out_are_given_again)
{
    restore(WITHOUT_RIGHTS, BY_PG_RESTORE " --no-owner", "ledgerlock_owner");
    become("ledgerlock_worker");
    says(&copy, 6, "LL-3107 the role ledgerlock_worker may not use the schema", "run");
    shows("run `ledgerlock migrate` as ledgerlock_owner");
    says(&copy, 6,
         "LL-3108 checking the schema: role ledgerlock_worker may not use schema "
         "ledgerlock, whose owner is ledgerlock_owner",
         "audit");
    become("ledgerlock_owner");
    says(&copy, 0, "gave the roles their rights again", "migrate");
    says(&copy, 0, "schema is up to date", "migrate");
    assert_null(strstr(said.out, "gave"));
    assert_reads_as_it_was_written();
    assert_is_the_shop();
}

/* The dump says nothing of a partition's rights, on which nobody has one: the database
 * that is restored into gives its own. */
/* Guarantee: A shop that was restored where default privileges give rights on each new
 * table runs after `migrate`. */
CASE(rights_that_a_restore_brought_are_taken_away)
{
    restore("pg_dump -Fc -f dump -d \"$FROM\"",
            "psql -Xq -d \"$TO\" -c 'ALTER DEFAULT PRIVILEGES GRANT SELECT ON TABLES"
            " TO pg_monitor'; " BY_PG_RESTORE " --no-owner",
            "ledgerlock_owner");
    become("ledgerlock_worker");
    says(&copy, 6, "role pg_monitor may SELECT", "run --once -w 1");
    become("ledgerlock_owner");
    says(&copy, 0, "gave the roles their rights again", "migrate");
    assert_is_the_shop();
}

/* A login with this name of the test, which owns the copy: a function of ours never
 * asks who that is. */
static void restore_as_another(const char *dump)
{
    char super[FIXTURE_URL], sql[256], to[FIXTURE_URL];

    fixture_open(&copy);
    fixture_url_as(&copy, "postgres", super, sizeof super);
    (void)snprintf(sql, sizeof sql,
                   "CREATE ROLE %s_anna LOGIN; ALTER DATABASE %s OWNER TO %s_anna",
                   copy.database, copy.database, copy.database);
    fixture_exec(super, sql);
    (void)snprintf(sql, sizeof sql, "%s_anna", copy.database);
    fixture_url_as(&copy, sql, to, sizeof to);
    fixture_url_as(&shop, "postgres", super, sizeof super);
    typed("cd %s; FROM='%s'; TO='%s'; rm -rf dump; %s; " BY_PG_RESTORE " --no-owner",
          dir, super, to, dump);
    memcpy(copy.url, to, sizeof to);
}

static void drop_another(void)
{
    char sql[128];

    (void)snprintf(sql, sizeof sql, "DROP ROLE IF EXISTS %s_anna", copy.database);
    forget();
    fixture_exec(getenv("LL_TEST_PG"), sql);
}

/* Guarantee: A shop may be restored under another owner, with rights and without. */
CASE(restored_shop_may_have_another_owner, .close = drop_another)
{
    restore_as_another("pg_dump -Fc -f dump -d \"$FROM\"");
    says(&copy, 0, "schema is up to date", "migrate");
    assert_is_the_shop();
}

CASE(restored_shop_may_have_another_owner_who_gives_rights, .close = drop_another)
{
    restore_as_another(WITHOUT_RIGHTS);
    says(&copy, 0, "gave the roles their rights again", "migrate");
    assert_is_the_shop();
}

/* Guarantee: A superuser who restores a shop gives it to its usual owner by `--role`.
 */
CASE(restored_shop_may_be_given_to_its_usual_owner)
{
    restore("pg_dump -Fc -f dump -d \"$FROM\"",
            BY_PG_RESTORE " --no-owner --no-privileges --role=ledgerlock_owner",
            "postgres");
    become("ledgerlock_owner");
    says(&copy, 0, "gave the roles their rights again", "migrate");
    assert_reads_as_it_was_written();
    assert_is_the_shop();
}

/* The superuser has made all of it, so our owner may not even look at it. */
CASE(shop_that_was_restored_to_the_superuser_says_whose_it_is)
{
    restore("pg_dump -Fc -f dump -d \"$FROM\"", BY_PG_RESTORE " --no-owner",
            "postgres");
    become("ledgerlock_owner");
    says(&copy, 6,
         "LL-3108 role ledgerlock_owner may not use schema ledgerlock, whose owner is "
         "postgres",
         "migrate");
}

/* Guarantee: `migrate` does not call a schema up to date in which an object is not the
 * one of the program. */
CASE(migrate_names_what_was_changed)
{
    fixture_copy(&copy, &shop,
                 "ALTER TABLE users DROP CONSTRAINT balance_never_negative");
    says(&copy, 6, "LL-3106", "migrate");
    shows("constraint users.balance_never_negative: it is missing");
}

/* Guarantee: `migrate` takes away rights of our roles and of PUBLIC that are too many,
 * and leaves those of others alone. */
CASE(rights_that_are_too_many_are_taken_away)
{
    fixture_copy(
        &copy, &shop,
        "GRANT DELETE ON charges TO ledgerlock_worker; GRANT SELECT ON users TO"
        " PUBLIC; GRANT SELECT ON orders TO pg_monitor; CREATE"
        " TABLE mine (a int); GRANT SELECT ON mine TO ledgerlock_shop");
    says(&copy, 0, "gave the roles their rights again", "migrate");
    holds(&copy, 1,
          "SELECT (NOT has_table_privilege('ledgerlock_worker', 'charges', 'DELETE')"
          " AND NOT has_table_privilege('ledgerlock_shop', 'users', 'SELECT')"
          " AND has_table_privilege('pg_monitor', 'orders', 'SELECT')"
          " AND has_table_privilege('ledgerlock_shop', 'mine', 'SELECT'))::int");
}
