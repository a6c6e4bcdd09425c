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

enum {
    DEPOSITS,
    SUBSCRIPTIONS,
    ORDERS,
    REFUNDS,
    WITHDRAWALS,
    WALLETS,
    OWED,
    WRITTEN_OFF,
    FIGURES
};

/* One line of the CSV, in minor units of a currency with two decimals. */
struct line {
    char month[8], currency[4];
    int64_t minor[FIGURES];
};

static int64_t to_minor(const char *text)
{
    char digits[32];
    size_t n = 0;
    const char *point = strchr(text, '.');

    assert_non_null(point);
    assert_int_equal(strlen(point), 3);
    for (; *text != '\0' && n + 1 < sizeof digits; text++) {
        if (*text != '.')
            digits[n++] = *text;
    }
    digits[n] = '\0';
    return strtoll(digits, NULL, 10);
}

static size_t read_lines(struct line *lines, size_t max)
{
    size_t n = 0;
    char *save = NULL;
    char *text = strtok_r(said.out, "\n", &save);

    assert_string_equal(text,
                        "month,currency,deposits,subscription_revenue,"
                        "order_revenue,refunds,withdrawals,wallets,owed,written_off");
    while ((text = strtok_r(NULL, "\n", &save)) != NULL) {
        char figures[FIGURES][24];

        assert_true(n < max);
        assert_int_equal(sscanf(text,
                                "%7[^,],%3[^,],%23[^,],%23[^,],%23[^,],%23[^,],%23[^,],"
                                "%23[^,],%23[^,],%23[^,]",
                                lines[n].month, lines[n].currency, figures[0],
                                figures[1], figures[2], figures[3], figures[4],
                                figures[5], figures[6], figures[7]),
                         2 + FIGURES);
        for (size_t i = 0; i < FIGURES; i++)
            lines[n].minor[i] = to_minor(figures[i]);
        n++;
    }
    return n;
}

/* Asks for a figure of a month, or of all months up to it. */
static void expect(const struct line *l, int figure, const char *select)
{
    char sql[700];
    int64_t n;

    (void)snprintf(sql, sizeof sql,
                   "WITH l AS (SELECT '%s'::text AS month, '%s'::text AS currency) %s",
                   l->month, l->currency, select);
    n = fixture_query_int8(f.url, sql);
    if (n != l->minor[figure])
        fail_msg("%s %s, figure %d: %" PRId64 ", by SQL %" PRId64, l->month,
                 l->currency, figure, l->minor[figure], n);
}

#define OF_KIND(kind)                                                                  \
    "SELECT coalesce(sum(amount_minor), 0)::bigint FROM ledgerlock.transfers AS t, l"  \
    " WHERE t.kind = '" kind "' AND t.currency = l.currency"                           \
    " AND to_char(t.moved_at, 'YYYY-MM') = l.month"

/* Guarantee: The report of each month is the sum of its transfers, and its last line is
 * what the wallets hold. */
CASE(each_month_is_the_sum_of_its_transfers)
{
    struct line lines[40];
    int64_t owed = 0, given_up = 0;
    size_t n;

    runs(&f, 0, "report --csv --now " AUDIT_NOW);
    n = read_lines(lines, 40);
    assert_in_range(n, 5, 40);
    for (size_t i = 0; i < n; i++) {
        expect(&lines[i], DEPOSITS, OF_KIND("deposit"));
        expect(&lines[i], SUBSCRIPTIONS,
               "SELECT coalesce(sum(CASE debit WHEN 'wallet' THEN amount_minor ELSE"
               " -amount_minor END), 0)::bigint FROM ledgerlock.transfers AS t, l WHERE"
               " t.kind IN ('charge', 'proration') AND t.currency = l.currency AND"
               " to_char(t.moved_at, 'YYYY-MM') = l.month");
        expect(&lines[i], ORDERS, OF_KIND("payment"));
        expect(&lines[i], REFUNDS,
               "SELECT coalesce(sum(amount_minor), 0)::bigint FROM ledgerlock.transfers"
               " AS t, l WHERE t.kind IN ('refund', 'void') AND t.currency = l.currency"
               " AND to_char(t.moved_at, 'YYYY-MM') = l.month");
        expect(&lines[i], WITHDRAWALS, OF_KIND("withdrawal"));
        given_up += lines[i].minor[WRITTEN_OFF];
        expect(
            &lines[i], WALLETS,
            "SELECT coalesce(sum(CASE credit WHEN 'wallet' THEN amount_minor ELSE"
            " -amount_minor END), 0)::bigint FROM ledgerlock.transfers AS t, l WHERE"
            " t.currency = l.currency AND to_char(t.moved_at, 'YYYY-MM') <= l.month");
        owed += lines[i].minor[OWED];
        if (i + 1 == n || strcmp(lines[i].currency, lines[i + 1].currency) != 0)
            expect(&lines[i], WALLETS,
                   "SELECT sum(balance_minor)::bigint FROM ledgerlock.users JOIN l"
                   " USING (currency)");
    }
    assert_int_equal(given_up, 100);
    assert_int_equal(owed, 19000); /* of March, as counted by hand */
    for (size_t i = 0; i < n; i++)
        assert_int_equal(lines[i].minor[OWED],
                         strcmp(lines[i].currency, "USD") == 0 &&
                                 strcmp(lines[i].month, "2024-03") == 0
                             ? 10000
                         : strcmp(lines[i].currency, "USD") == 0 &&
                                 strcmp(lines[i].month, "2024-04") == 0
                             ? 9000
                             : 0);
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

CASE(wallet_that_no_transfer_filled_is_told)
{
    fixture_exec(f.url,
                 "UPDATE ledgerlock.users SET balance_minor = 5701 WHERE user_id = 1");
    runs(&f, 1, "report --csv --now " AUDIT_NOW);
    fixture_assert_contains(said.err,
                            "the wallets in USD differ from their transfers by 0.01");
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
