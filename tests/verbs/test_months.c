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

CASE(migrate_makes_the_months_to_come_once)
{
    holds(
        &world, 12,
        "SELECT count(*) FROM months WHERE month > now() AND month < now() + interval "
        "'12 months'");
    says(&world, 0, "schema is up to date", "migrate");
}
