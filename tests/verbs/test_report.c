/* report: what is booked by month and currency, as it is printed. The sums are told in
 * tests/sql/windows.sql. */
#include "tests/lib/audit_world.h"
#include "tests/lib/one_database.h"

static void open_world(void)
{
    one_open();
    audit_world_put(f.url, 4);
}

GROUP(.open = open_world, .close = one_close);

CASE(text_has_months_and_sums_in_80_columns)
{
    says(&f, 0,
         "month,currency,deposits,subscription_revenue,order_revenue,refunds,"
         "withdrawals,wallets,owed,written_off\n2023-04,EUR,",
         "report --csv --now " AUDIT_NOW);
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
