/* months: a month that is over is proved and sealed; what is sealed never changes, and
 * the audit of open months and seals says what the audit of all rows said. */
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
         "2024-01 cannot be closed: close_seal_month: the month 2024-01 is closed "
         "already",
         "close-month 2024-01");
    says(&closed, 2, "name the month to close", "close-month 2024-13");
    runs(&closed, 2, "close-month");
}

/* Subscription 3 is past due and 6 unpaid with a period of March. */
CASE(month_with_a_period_that_is_not_settled_stays_open)
{
    says(&closed, 6,
         "2024-03 has 2 subscriptions with a period that is not settled, and 0 ",
         "close-month 2024-03");
}

CASE(month_with_an_order_that_is_not_decided_stays_open)
{
    fixture_copy(&copy, &closed,
                 "SET ledgerlock.repair = on;"
                 "UPDATE orders SET placed_at = '2024-03-09' WHERE order_id = 6");
    says(&copy, 6, "and 1 orders that are not decided", "close-month 2024-03");
}

/* Guarantee: A month is closed only when every invariant of the open months holds. */
CASE(month_is_not_closed_over_a_broken_invariant)
{
    fixture_copy(
        &copy, &world,
        "UPDATE users SET balance_minor = balance_minor + 1 WHERE user_id = 2");
    says(&copy, 6, "invariant balance_is_sum_of_transfers is broken",
         "close-month 2023-04");
    holds(&copy, 0, "SELECT count(*) FROM seals");
}

/* Alone in its database, so that it is the first. */
CASE(month_is_not_closed_before_it_is_over_for_a_day)
{
    struct fixture empty;
    char month[16];

    fixture_open_migrated(&empty);
    fixture_exec(
        empty.url,
        "SET search_path = ledgerlock; SET ledgerlock.repair = on; DO $$ DECLARE"
        " m date; t text; BEGIN FOR m IN DELETE FROM months WHERE month <"
        " date_trunc('month', now() AT TIME ZONE 'UTC') RETURNING month LOOP"
        " FOREACH t IN ARRAY ARRAY['charges', 'stock_movements', 'transfers']"
        " LOOP EXECUTE 'DROP TABLE ' || t || to_char(m, '_YYYY_MM'); END LOOP;"
        " END LOOP; END $$");
    fixture_query_text(empty.url, "SELECT to_char(now() AT TIME ZONE 'UTC', 'YYYY-MM')",
                       month, sizeof month);
    runs(&empty, 6, "close-month %s", month);
    shows("is not over for a day yet");
    fixture_close(&empty);
}

/* ---- what is closed stays as it is ---- */

/* clang-format off */
static const struct {
    const char *name, *sql;
} writes[] = {
    {"a_charge",              "UPDATE charges SET worker = 'mallory' WHERE subscription_id = 5"},
    {"a_transfer",            "UPDATE transfers SET amount_minor = 1 WHERE (kind, source) = ('charge', 5)"},
    {"a_row_deleted",         "DELETE FROM transfers WHERE (kind, source) = ('charge', 5)"},
    {"a_row_more",            "INSERT INTO transfers SELECT kind, 77, leg, user_id, source_at, debit, credit, amount_minor, currency, moved_at"
                              " FROM transfers WHERE (kind, source) = ('charge', 5)"},
    {"a_row_moved_in",        "UPDATE stock_movements SET source_at = '2024-02-05' WHERE kind = 'receive'"},
    {"a_row_moved_out",       "UPDATE transfers SET source_at = '2024-03-05' WHERE (kind, source, leg) = ('deposit', 1, 2)"},
    {"a_partition_emptied",   "TRUNCATE charges_2023_04"},
    {"a_table_emptied",       "TRUNCATE transfers"},
    {"an_order_placed_in_it", "SELECT place_order(1, 'late', '[{\"sku\": \"A\", \"qty\": 1}]', '2024-02-05')"},
    {"a_subscription_of_it",  "INSERT INTO subscriptions (user_id, plan, amount_minor, currency, anchor_at, unit, next_due_at)"
                              " VALUES (1, 'old', 1, 'USD', '2024-02-05', 'month', '2024-02-05')"},
    {"a_deposit_of_it",       "SELECT deposit(1, 'USD', 5, 'late', '2024-02-05')"},
    {"a_month_before_it",     "SELECT make_months('2023-06-01', '2023-06-01')"},
    {"a_seal",                "UPDATE seals SET total = 0"},
    {"a_seal_deleted",        "DELETE FROM seals"},
    {"a_sealed_wallet",       "UPDATE sealed_wallets SET net_minor = 0"},
};

/* clang-format on */

/* True if the session that begins so is refused this. */
static void assert_refused(const char *url, const char *before, const char *sql)
{
    PGconn *conn = PQconnectdb(url);
    PGresult *res;

    PQclear(PQexec(conn, "SET search_path = ledgerlock"));
    PQclear(PQexec(conn, before));
    res = PQexec(conn, sql);
    if (PQresultStatus(res) != PGRES_FATAL_ERROR)
        fail_msg("nothing refuses: %s", sql);
    PQclear(res);
    PQfinish(conn);
}

/* Guarantee: A closed month never changes: no write of anybody's adds, changes, moves
 * or deletes a row of it, and the owner may not repair it either. */
CASE_ROWS(closed_month_refuses, writes)
{
    bool is_of_seals = strstr(row->sql, "seal") != NULL;

    assert_refused(closed.url, "SET ledgerlock.repair = off", row->sql);
    if (!is_of_seals) /* these the audit finds */
        assert_refused(closed.url, "SET ledgerlock.repair = on", row->sql);
}

/* A CHECK is no trigger: it holds for a superuser as well, whatever is switched off. */
CASE(superuser_without_triggers_changes_nothing_either)
{
    char url[FIXTURE_URL];

    fixture_url_as(&closed, "postgres", url, sizeof url);
    for (size_t i = 0; i < 2; i++)
        assert_refused(url, "SET session_replication_role = replica", writes[i].sql);
}

/* ---- what is changed all the same ---- */

/* clang-format off */
static const struct {
    const char *name, *sql, *flags, *invariant;
} tampers[] = {
    {"a_seal_taken_off",  "ALTER TABLE charges_2024_01 DROP CONSTRAINT month_is_closed", "", "months_as_built"},
    {"a_trigger_off",     "ALTER TABLE transfers_2024_01 DISABLE TRIGGER month_is_closed", "", "months_as_built"},
    {"a_partition_gone",  "DROP TABLE transfers_2023_04", "", "months_as_built"},
    {"a_row_deleted",     "ALTER TABLE charges_2023_04 DISABLE TRIGGER ALL; DELETE FROM charges_2023_04;"
                          "ALTER TABLE charges_2023_04 ENABLE TRIGGER ALL", "--sealed", "sealed_rows_keep_their_sums"},
    {"two_rows_exchanged", "ALTER TABLE transfers_2024_01 DROP CONSTRAINT month_is_closed; ALTER TABLE transfers_2024_01 DISABLE TRIGGER ALL;"
                          "UPDATE transfers_2024_01 SET moved_at = moved_at + interval '1 hour' WHERE (kind, source, leg) = ('deposit', 1, 1);"
                          "ALTER TABLE transfers_2024_01 ENABLE TRIGGER ALL;"
                          "ALTER TABLE transfers_2024_01 ADD CONSTRAINT month_is_closed CHECK (false) NOT VALID", "--sealed", "sealed_rows_keep_their_sums"},
    {"the_sum_of_a_seal", "SET ledgerlock.repair = on; UPDATE seals SET total = total + 1 WHERE table_name = 'transfers' AND kind LIKE 'charge %'", "", "seals_add_up"},
    {"a_seal_deleted",    "SET ledgerlock.repair = on; DELETE FROM seals WHERE (month, table_name) = ('2024-01-01', 'charges')", "", "seals_add_up"},
    {"a_month_unsealed",  "SET ledgerlock.repair = on; DELETE FROM seals WHERE month = '2024-01-01'", "", "seals_add_up"},
    {"a_sealed_wallet",   "SET ledgerlock.repair = on; UPDATE sealed_wallets SET net_minor = net_minor + 1 WHERE user_id = 2;"
                          "UPDATE users SET balance_minor = balance_minor + 1 WHERE user_id = 2", "", "seals_add_up"},
    {"wallets_exchanged", "SET ledgerlock.repair = on; UPDATE sealed_wallets SET net_minor = net_minor + 1 WHERE user_id = 2;"
                          "UPDATE sealed_wallets SET net_minor = net_minor - 1 WHERE user_id = 1", "", "balance_is_sum_of_transfers"},
    {"sealed_stock",      "SET ledgerlock.repair = on; INSERT INTO sealed_stock VALUES (1, 5, 0, 0, 0)", "", "seals_add_up"},
    {"a_sealed_batch",    "SET ledgerlock.repair = on; INSERT INTO sealed_batches VALUES (7, '2024-03-02', 'w', 1)", "", "charges_have_their_batch"},
    {"a_charge_of_an_open_month_twice", "SET ledgerlock.repair = on; INSERT INTO charges SELECT subscription_id, 0, user_id, period_start, period_end,"
                          " amount_minor, state, tries, fence, worker, charged_at FROM charges WHERE (subscription_id, period_no) = (1, 2)", "", "boundaries_from_anchor"},
};

/* clang-format on */

/* Guarantee: A change of what is sealed, or of a seal, is found. */
CASE_ROWS(audit_finds, tampers)
{
    fixture_copy(&copy, &closed, row->sql);
    assert_broken(row->flags, row->invariant);
}

/* ---- partitions ---- */

/* clang-format off */
static const struct {
    const char *name, *sql, *says;
} changes[] = {
    {"a_partition", "ALTER TABLE charges DETACH PARTITION charges_2024_05", "the partition is missing"},
    {"a_check_off", "ALTER TABLE transfers ADD CONSTRAINT x CHECK (leg < 9) NOT VALID; ALTER TABLE transfers_2024_05 VALIDATE CONSTRAINT x", "constraint x is not that of its table"},
    {"a_trigger",   "ALTER TABLE charges_2024_05 DISABLE TRIGGER charges_are_never_deleted", "trigger charges_are_never_deleted is not that of its table"},
    {"a_truncate",  "DROP TRIGGER transfers_are_never_emptied ON transfers_2024_05", "trigger transfers_are_never_emptied is not that of its table"},
    {"a_right",     "GRANT INSERT ON transfers_2024_05 TO ledgerlock_worker", "role ledgerlock_worker may INSERT"},
    {"unlogged",    "ALTER TABLE transfers_2024_05 SET UNLOGGED", "it is UNLOGGED, or hides rows by policies"},
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
