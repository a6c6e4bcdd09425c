/* months: close-month and the audit of open months and seals; a pool and the partitions
 * of months. The rules by which a month is closed and stays as it is are told in
 * tests/sql. */
#include <jansson.h>
#include <libpq-fe.h>

#include "tests/lib/audit_world.h"
#include "tests/lib/runs.h"

/* Shared by all cases, which change a copy only. world: of the audit, in which three
 * months can be closed. closed: they are. */
static struct fixture world, closed, copy;

/* ---- helpers ---- */

static void forget(void)
{
    if (copy.database[0] != '\0')
        fixture_close(&copy);
    memset(&copy, 0, sizeof copy);
}

static void open_worlds(void)
{
    fixture_open_migrated(&world);
    audit_world_put(world.url, 4);
    fixture_copy(&closed, &world, "");
    says(&closed, 0, "closed 2023-04: 2 rows are proved and sealed",
         "close-month 2023-04");
    says(&closed, 0, "closed 2024-01: 6 rows", "close-month 2024-01");
    says(&closed, 0, "closed 2024-02: 6 rows", "close-month 2024-02");
}

static void close_worlds(void)
{
    fixture_close(&closed);
    fixture_close(&world);
}

GROUP(.start = open_worlds, .stop = close_worlds, .close = forget);

static void audit(const struct fixture *f, int code, const char *flags)
{
    runs(f, code, "audit --json --now " AUDIT_NOW " %s", flags);
}

static void assert_broken(const char *flags, const char *invariant)
{
    audit(&copy, 1, flags);
    if (!said_is_broken(invariant))
        fail_msg("%s holds", invariant);
}

/* Guarantee: The audit of open months and seals has the totals of the audit of all
 * rows. */
CASE(totals_with_closed_months_are_those_of_all_rows)
{
    json_t *expected = json_loads(audit_world_totals, 0, NULL), *doc;

    audit(&closed, 0, "--sealed");
    doc = json_loads(said.out, 0, NULL);
    if (!json_equal(expected, json_object_get(doc, "totals")))
        fail_msg("totals are %s", said.out);
    json_decref(doc);
    json_decref(expected);
}

/* ---- what keeps a month open ---- */

CASE(months_are_closed_in_their_order_and_once)
{
    says(&world, 6, "the month 2023-04 is open", "close-month 2024-01");
    says(&world, 2, "LL-7002 there is no month 2023-05", "close-month 2023-05");
    says(&closed, 6,
         "2024-01 cannot be closed: the month 2024-01 is closed "
         "already",
         "close-month 2024-01");
    says(&closed, 2, "name the month to close", "close-month 2024-13");
    runs(&closed, 2, "close-month");
}

/* Guarantee: A month is closed only when every invariant of the open months holds. */
CASE(month_is_not_closed_over_a_broken_invariant)
{
    fixture_copy(
        &copy, &world,
        "UPDATE users SET balance_minor = balance_minor + 1 WHERE user_id = 2");
    says(&copy, 6, "invariant balance_is_sum_of_ledger is broken",
         "close-month 2023-04");
    holds(&copy, 0, "SELECT count(*) FROM seals");
}

/* ---- partitions ---- */

/* clang-format off */
static const struct {
    const char *name, *sql, *says;
} changes[] = {
    {"a_partition", "ALTER TABLE charges DETACH PARTITION charges_2024_05", "the partition is missing"},
    {"a_check_off", "ALTER TABLE charges ADD CONSTRAINT x CHECK (tries < 9) NOT VALID; ALTER TABLE charges_2024_05 VALIDATE CONSTRAINT x", "constraint x is not that of its table"},
    {"a_trigger",   "ALTER TABLE charges_2024_05 DISABLE TRIGGER charges_are_never_deleted", "trigger charges_are_never_deleted is not that of its table"},
    {"a_truncate",  "DROP TRIGGER charges_are_never_emptied ON charges_2024_05", "trigger charges_are_never_emptied is not that of its table"},
    {"a_right",     "GRANT INSERT ON charges_2024_05 TO ledgerlock_worker", "role ledgerlock_worker may INSERT"},
    {"unlogged",    "ALTER TABLE charges_2024_05 SET UNLOGGED", "it is UNLOGGED, or hides rows by policies"},
    {"one_more",    "CREATE TABLE mine PARTITION OF charges FOR VALUES FROM ('1999-01-01') TO ('1999-02-01')", "it is of no month"},
    {"a_false_seal", "ALTER TABLE charges_2024_05 ADD CONSTRAINT month_is_closed CHECK (false) NOT VALID", "it is sealed, and its month is not closed"},
};

/* clang-format on */

/* Guarantee: A partition that is missing, or unlike its table, stops the pool at its
 * start with exit code 6, and the audit names it. */
CASE_ROWS(partition_unlike_its_table_is_found_by, changes)
{
    fixture_copy(&copy, &world, row->sql);
    assert_broken("", "months_as_built");
    fixture_assert_contains(said.out, row->says);
    says(&copy, 6, "the schema was changed by hand", "run --once");
}

/* The list of objects is the same, whatever months there are. */
CASE(months_more_change_no_object)
{
    fixture_copy(&copy, &world, "SELECT make_months('2010-01-01', '2010-12-31')");
    audit(&copy, 0, "");
    holds(&copy, 12, "SELECT count(*) FROM months WHERE month < '2011-01-01'");
}

CASE(migrate_makes_the_months_to_come_once)
{
    holds(
        &world, 12,
        "SELECT count(*) FROM months WHERE month > now() AND month < now() + interval "
        "'12 months'");
    says(&world, 0, "schema is up to date", "migrate");
}
