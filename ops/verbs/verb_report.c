/* report: what an accountant books, by currency and month. The database adds up. */
#include <stdio.h>
#include <string.h>

#include "common/base/money.h"
#include "ops/cli/cli.h"
#include "ops/cli/report.h"

static struct values {
    bool csv;
    const char *now;
} values;

static const struct cli_flag flags[] = {
    {"csv", CLI_BOOL, offsetof(struct values, csv), 0, 0,
     "print comma-separated values, one line a month and currency, without sums"},
    {"now", CLI_TIME, offsetof(struct values, now), 0, 0,
     "time up to which periods are owed (default: the database's clock)"},
    {0},
};

enum {
    CURRENCY,
    MONTH,
    FIRST,
    WALLETS = 7,
    OWED,
    WRITTEN_OFF,
    BY_CARD,
    DIFFERENCE,
    DIGITS = 64
};

static bool is_sums(const struct pg_result *res, size_t row)
{
    return pg_is_null(res, row, MONTH);
}

/* An amount as it is written in its currency, in groups of three digits or not. */
static const char *
amount(const struct pg_result *res, size_t row, size_t column, char buf[DIGITS])
{
    size_t kept = 0;

    (void)money_format_digits(pg_get_text(res, row, column),
                              pg_get_text(res, row, CURRENCY), buf, DIGITS);
    if (values.csv) {
        for (size_t i = 0; buf[i] != '\0'; i++) {
            if (buf[i] != ',')
                buf[kept++] = buf[i];
        }
        buf[kept] = '\0';
    }
    return buf;
}

static void print_csv(const struct pg_result *res)
{
    char buf[DIGITS];

    (void)puts("month,currency,deposits,subscription_revenue,order_revenue,refunds,"
               "withdrawals,wallets,owed,written_off,by_card");
    for (size_t row = 0; row < pg_rows(res); row++) {
        if (is_sums(res, row))
            continue;
        (void)printf("%s,%s", pg_get_text(res, row, MONTH),
                     pg_get_text(res, row, CURRENCY));
        for (size_t column = FIRST; column <= BY_CARD; column++)
            (void)printf(",%s", amount(res, row, column, buf));
        (void)putchar('\n');
    }
}

static const struct {
    const char *name;
    size_t width; /* of amounts that are not longer */
} columns[] = {
    [FIRST] = {"deposits", 12},
    {"subscribed", 12},
    {"orders", 12},
    {"refunds", 11},
    {"paid out", 11},
    [WALLETS] = {"in wallets", 14},
    [OWED] = {"owed", 12},
    [WRITTEN_OFF] = {"written off", 14},
    [BY_CARD] = {"by card", 14},
};

/* A blank stands between the amounts of two columns, however long they are. */
static int width_of(const struct pg_result *res, size_t from, size_t to, size_t column)
{
    size_t width = columns[column].width;
    char buf[DIGITS];

    for (size_t row = from; row < to; row++) {
        size_t needs = strlen(amount(res, row, column, buf)) + 1;

        width = needs > width ? needs : width;
    }
    return (int)width;
}

/* One block of a currency: the columns from first to last of its rows. */
static void print_block(
    const struct pg_result *res, size_t from, size_t to, size_t first, size_t last)
{
    int widths[DIFFERENCE];
    char buf[DIGITS];

    (void)printf("%-7s", "month");
    for (size_t column = first; column <= last; column++) {
        widths[column] = width_of(res, from, to, column);
        (void)printf("%*s", widths[column], columns[column].name);
    }
    (void)putchar('\n');
    for (size_t row = from; row < to; row++) {
        (void)printf("%-7s",
                     is_sums(res, row) ? "total" : pg_get_text(res, row, MONTH));
        for (size_t column = first; column <= last; column++)
            (void)printf("%*s", widths[column], amount(res, row, column, buf));
        (void)putchar('\n');
    }
}

/* The bookings, and below them the debts: together they are too wide for a
 * terminal. */
static void print_text(const struct pg_result *res)
{
    size_t to;

    for (size_t from = 0; from < pg_rows(res); from = to) {
        const char *currency = pg_get_text(res, from, CURRENCY);
        char text[32];

        for (to = from + 1;
             to < pg_rows(res) && strcmp(currency, pg_get_text(res, to, CURRENCY)) == 0;
             to++)
            continue;
        (void)snprintf(text, sizeof text, "MONTHS in %s", currency);
        report_heading(text);
        print_block(res, from, to, FIRST, WALLETS);
        (void)snprintf(text, sizeof text, "OWED, AND TAKEN FROM CARDS in %s", currency);
        report_heading(text);
        print_block(res, from, to, OWED, BY_CARD);
    }
    if (pg_rows(res) == 0)
        (void)puts("nothing has been booked");
}

/* False, with a line for each, if wallets hold what no entry of the ledger brought. */
static bool adds_up(const struct pg_result *res)
{
    bool is_even = true;
    char buf[DIGITS];

    for (size_t row = 0; row < pg_rows(res); row++) {
        if (strcmp(pg_get_text(res, row, DIFFERENCE), "0") == 0)
            continue;
        is_even = false;
        (void)fprintf(stderr,
                      "ledgerlock: the wallets in %s differ from the ledger by %s; "
                      "see ledgerlock audit\n",
                      pg_get_text(res, row, CURRENCY),
                      amount(res, row, DIFFERENCE, buf));
    }
    return is_even;
}

static int report(struct pg *pg, void *is_even, struct err *e)
{
    const struct pg_param now = pg_text(values.now);
    struct pg_result *res;

    if (pg_exec(pg, SQL_REPORT_MONTHS, &now, 1, &res, e) != 0) {
        if (strncmp(e->sqlstate, "22", 2) == 0)
            e->code = ERR_INVALID;
        return (int)e->code;
    }
    cli_progress_end();
    if (values.csv)
        print_csv(res);
    else
        print_text(res);
    *(bool *)is_even = adds_up(res);
    pg_result_free(res);
    return 0;
}

static enum exit_code run(const struct config *c, int argc, char **argv)
{
    bool is_even = true;
    enum exit_code code = cli_on_tables(c, "report", report, &is_even);

    (void)argc;
    (void)argv;
    return code == EXIT_OK && !is_even ? EXIT_AUDIT : code;
}

const struct cli_verb verb_report = {
    .name = "report",
    .who = "members of ledgerlock_reader",
    .sentence = "prints revenue, deposits, refunds and debts by month and currency",
    .example = "ledgerlock report --csv > months.csv",
    .flags = flags,
    .values = &values,
    .run = run,
};
