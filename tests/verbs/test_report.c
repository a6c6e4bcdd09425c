/* report: what is booked by month and currency, added up a second time by SQL of the
 * test. */
#include "tests/lib/audit_world.h"
#include "tests/lib/one_database.h"

static void open_world(void)
{
    one_open();
    audit_world_put(f.url, 4);
}

GROUP(.open = open_world, .close = one_close);

/* The lines of the CSV, once more by SQL: so many, of this form, with no line whose
 * figures are not those of ledger, or whose last wallets are not the balances;
 * all that was given up; what is owed, by month. */
static const char lines_sql[] =
    "WITH line AS (SELECT text, c[1] AS month, c[2] AS currency,"
    " ARRAY(SELECT replace(n, '.', '')::bigint FROM unnest(c[3:10]) AS n) AS minor,"
    " lead(c[2]) OVER (ORDER BY nr) IS DISTINCT FROM c[2] AS is_last"
    " FROM regexp_split_to_table('%s', E'\\n') WITH ORDINALITY AS t (text, nr),"
    " string_to_array(text, ',') AS c WHERE nr > 1 AND text <> ''),"
    " moved AS (SELECT *, to_char(moved_at, 'YYYY-MM') AS month,"
    " CASE debit WHEN 'wallet' THEN amount_minor ELSE -amount_minor END AS spent,"
    " CASE credit WHEN 'wallet' THEN amount_minor ELSE -amount_minor END AS got"
    " FROM ledgerlock.ledger),"
    " judged AS (SELECT *, minor[1:6] = (SELECT ARRAY[coalesce(sum(amount_minor) FILTER (WHERE kind = 'deposit' AND m.month = l.month), 0),"
    " coalesce(sum(spent) FILTER (WHERE kind IN ('charge', 'proration') AND m.month = l.month), 0),"
    " coalesce(sum(amount_minor) FILTER (WHERE kind = 'payment' AND m.month = l.month), 0),"
    " coalesce(sum(amount_minor) FILTER (WHERE kind IN ('refund', 'void') AND m.month = l.month), 0),"
    " coalesce(sum(amount_minor) FILTER (WHERE kind = 'withdrawal' AND m.month = l.month), 0),"
    " coalesce(sum(got) FILTER (WHERE m.month <= l.month), 0)]::bigint[]"
    " FROM moved AS m WHERE m.currency = l.currency) AND (NOT is_last OR minor[6] ="
    " (SELECT sum(balance_minor) FROM ledgerlock.users AS u WHERE u.currency = l.currency))"
    " AS is_right FROM line AS l)"
    " SELECT concat_ws('; ', count(*) BETWEEN 5 AND 40,"
    " bool_and(text ~ '^[0-9]{4}-[0-9]{2},[A-Z]{3}(,-?[0-9]+[.][0-9]{2}){8}$'),"
    " string_agg(text, ' ') FILTER (WHERE is_right IS NOT true), sum(minor[8]),"
    " string_agg(month || ' ' || currency || ' ' || minor[7], ', ' ORDER BY month) FILTER (WHERE minor[7] <> 0))"
    " FROM judged";

/* Guarantee: The report of each month is the sum of its entries, and its last line is
 * what the wallets hold. */
CASE(each_month_is_the_sum_of_its_entries)
{
    static char sql[FIXTURE_OUTPUT + sizeof lines_sql];
    char text[512];

    runs(&f, 0, "report --csv --now " AUDIT_NOW);
    shows("month,currency,deposits,subscription_revenue,order_revenue,refunds,"
          "withdrawals,wallets,owed,written_off\n");
    (void)snprintf(sql, sizeof sql, lines_sql, said.out);
    fixture_query_text(f.url, sql, text, sizeof text);
    /* The debts were counted by hand. */
    assert_string_equal(text, "t; t; 100; 2024-03 USD 10000, 2024-04 USD 9000");
}

CASE(text_has_months_and_sums_in_80_columns)
{
    runs(&f, 0, "report --now " AUDIT_NOW);
    shows("\nMONTHS in EUR\n");
    shows("\nMONTHS in USD\n");
    shows("total        115.00       44.00        9.00       9.00       9.00"
          "         62.00\n");
    shows("total        190.00          1.00\n");
    fits_80_columns();
}

/* Guarantee: A debt stays in the report and in the audit when its subscription is
 * parked; a parked subscription that was never declined owes nothing yet. */
CASE(debt_that_is_parked_is_owed)
{
    char before[4096], debts[80];

    runs(&f, 0, "report --now " AUDIT_NOW);
    (void)snprintf(before, sizeof before, "%.4095s", said.out);
    runs(&f, 0, "audit --lag 36500d --now " AUDIT_NOW);
    (void)snprintf(debts, sizeof debts, "%.79s", strstr(said.out, "declined, owed"));
    fixture_exec(f.url, "UPDATE ledgerlock.subscriptions SET state = 'parked'"
                        " WHERE state IN ('past_due', 'unpaid', 'active')");
    runs(&f, 0, "report --now " AUDIT_NOW);
    assert_string_equal(said.out, before);
    runs(&f, 1, "audit --lag 36500d --now " AUDIT_NOW);
    shows(debts);
}

CASE(wallet_that_no_entry_filled_is_told)
{
    fixture_exec(f.url,
                 "UPDATE ledgerlock.users SET balance_minor = 5701 WHERE user_id = 1");
    runs(&f, 1, "report --csv --now " AUDIT_NOW);
    fixture_assert_contains(said.err,
                            "the wallets in USD differ from the ledger by 0.01");
}

CASE(bad_words_are_usage_errors)
{
    says(&f, 2, "someday", "report --now someday");
    runs(&f, 2, "report word");
}

CASE(empty_database_has_nothing_booked, .alone = true)
{
    struct fixture empty;

    fixture_open_migrated(&empty);
    says(&empty, 0, "nothing has been booked\n", "report");
    says(&empty, 0, "month,currency,", "report --csv");
    fixture_close(&empty);
}

CASE(amounts_of_any_length_stand_apart, .alone = true)
{
    struct fixture rich;

    fixture_open_migrated(&rich);
    fixture_exec(rich.url,
                 "SELECT ledgerlock.deposit(ledgerlock.create_user('rich', 'JPY'),"
                 " 'JPY', 123456789012, 'much')");
    says(&rich, 0,
         "total   123,456,789,012           0           0          0          0 "
         "123,456,789,012\n",
         "report");
    fixture_close(&rich);
}
