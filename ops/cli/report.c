/* report: sections of label, count and note; then every invariant by name; then one
 * verdict. */
#include "ops/cli/report.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "common/base/digits.h"
#include "common/base/money.h"
#include "ops/cli/json.h"
#include "ops/cli/wrap.h"

enum { NAME_WIDTH = 38 };

static const char *const BOLD = "\033[1m", *const RED = "\033[1;31m",
                         *const GREEN = "\033[32m";

/* A line in colour, on a terminal and without NO_COLOR. */
static void paint(const char *colour, const char *text)
{
    const char *no = getenv("NO_COLOR");
    bool has_colour = isatty(STDOUT_FILENO) == 1 && (no == NULL || no[0] == '\0');

    (void)printf("%s%s%s\n", has_colour ? colour : "", text,
                 has_colour ? "\033[0m" : "");
}

void report_text(const char *text, bool is_heading)
{
    if (is_heading)
        paint(BOLD, text);
    else
        (void)puts(text);
}

void report_heading(const char *text)
{
    (void)putchar('\n');
    paint(BOLD, text);
}

void report_line(const char *label, int64_t n, const char *note)
{
    char count[DIGITS];

    (void)printf("  %-24s%16s%s%s\n", label, digits_of(n, count),
                 note[0] != '\0' ? "   " : "", note);
}

void report_members(const char *indent, json_t *of)
{
    const char *key;
    json_t *value;
    char label[40];

    json_object_foreach(of, key, value)
    {
        (void)snprintf(label, sizeof label, "%s%s", indent, key);
        if (json_integer_value(value) != 0)
            report_line(label, json_integer_value(value), "");
    }
}

/* ---- totals ---- */

/* One line of a section: a number, or the sum of the members of an object; without a
 * label, those members as details of the line before. */
struct row {
    const char *label, *key;
};

/* clang-format off */
static const struct row billing_rows[] = {
    {"subscriptions", "subscriptions"}, {NULL, "subscriptions"}, {"periods due", "periods_due"}, {"charged", "charged"},
    {"waived", "waived"}, {"skipped", "skipped"}, {"written off", "written_off"}, {"declined, owed", "declined"},
    {"still to do", "still_to_do"}, {"charged twice", "charged_twice"}, {0}};
static const struct row stock_rows[] = {
    {"SKUs", "skus"}, {"units before", "before"}, {"returned", "returned"}, {"adjusted", "adjusted"}, {"sold", "sold"}, {"left", "left"}, {"held for cards", "held"}, {"between cells", "under_way"}, {"oversold", "oversold"}, {0}};
static const struct row order_rows[] = {
    {"orders in", "in"}, {"fulfilled", "fulfilled"}, {"rejected", "rejected"}, {NULL, "rejected_by_reason"},
    {"cancelled", "cancelled"}, {"pending", "pending"}, {"card is asked", "paying"}, {"parked", "parked"}, {0}};
static const struct row money_rows[] = {
    {"deposited", "deposited"}, {"captured from cards", "by_card"}, {"paid out", "withdrawn"}, {"in wallets", "in_wallets"}, {"subscription revenue", "subscription_revenue"},
    {"order revenue", "order_revenue"}, {"refunded", "refunded"}, {"difference", "difference"}, {0}};
static const struct row lock_rows[] = {
    {"granted", "granted"}, {"met busy", "busy"}, {"rows locked", "row_locked"}, {"lost", "lost"}, {"fenced", "fenced"}, {"uncertain", "uncertain"},
    {"commits unknown", "commit_unknown"}, {"batches", "batches"}, {"workers restarted", "restarts"}, {0}};

/* clang-format on */

static int64_t sum_of(json_t *of)
{
    const char *key;
    json_t *value;
    int64_t sum = 0;

    json_object_foreach(of, key, value)
    {
        sum += json_integer_value(value);
    }
    return sum;
}

/* A count with its amount in every currency; one line for each currency. */
static void print_amounts(const char *label, int64_t n, json_t *money, const char *key)
{
    bool is_first = true;
    const char *currency;
    json_t *of;

    json_object_foreach(money, currency, of)
    {
        char buf[DIGITS], amount[DIGITS], note[DIGITS + 8];
        const char *digits = doc_digits(of, key, buf, sizeof buf);

        if (strcmp(digits, "0") == 0)
            continue;
        (void)snprintf(note, sizeof note, "%s %s",
                       money_format_digits(digits, currency, amount, sizeof amount),
                       currency);
        if (is_first)
            report_line(label, n, note);
        else
            (void)printf("%45s%s\n", "", note);
        is_first = false;
    }
    if (is_first)
        report_line(label, n, "");
}

/* Counts, or amounts if a currency is given. A count that is also an amount of `money`
 * has that behind it. */
static void print_section(const char *heading,
                          const json_t *of,
                          const struct row *row,
                          const char *currency,
                          json_t *money)
{
    const json_t *amounts = json_object_iter_value(json_object_iter(money));
    char digits[DIGITS], text[DIGITS];

    report_heading(heading);
    for (; row->key != NULL; row++) {
        const char *sum = doc_digits(of, row->key, digits, sizeof digits);
        json_t *value = json_object_get(of, row->key);

        if (value == NULL)
            continue;
        if (row->label == NULL)
            report_members("  ", value);
        else if (json_is_object(value))
            report_line(row->label, sum_of(value), "");
        else if (json_object_get(amounts, row->key) != NULL)
            print_amounts(row->label, doc_int(of, row->key), money, row->key);
        else
            (void)printf("  %-24s%16s\n", row->label,
                         currency == NULL
                             ? digits_group(sum, text)
                             : money_format_digits(sum, currency, text, sizeof text));
    }
}

static void print_totals(const json_t *totals)
{
    json_t *incidents = json_object_get(totals, "incidents");
    json_t *money = json_object_get(totals, "money"), *of;
    const char *currency;
    char heading[32];

    print_section("BILLING", json_object_get(totals, "billing"), billing_rows, NULL,
                  money);
    print_section("STOCK", json_object_get(totals, "stock"), stock_rows, NULL, NULL);
    print_section("ORDERS", json_object_get(totals, "orders"), order_rows, NULL, NULL);
    json_object_foreach(money, currency, of)
    {
        (void)snprintf(heading, sizeof heading, "MONEY in %s", currency);
        print_section(heading, of, money_rows, currency, NULL);
    }
    print_section("LOCKS", json_object_get(totals, "locks"), lock_rows, NULL, NULL);
    report_line("incidents", sum_of(incidents), "");
    report_members("  ", incidents);
}

/* ---- invariants ---- */

static void print_invariant(const json_t *row)
{
    json_t *examples = json_object_get(row, "examples");
    char count[DIGITS], text[DIGITS + 8];

    (void)printf("  %-*s", NAME_WIDTH, doc_text(row, "name"));
    if (json_is_true(json_object_get(row, "holds"))) {
        paint(GREEN, "holds");
        return;
    }
    (void)snprintf(text, sizeof text, "BROKEN %s",
                   digits_of(doc_int(row, "violations"), count));
    paint(RED, text);
    wrap_print(4, "", doc_text(row, "sentence"));
    for (size_t i = 0; i < json_array_size(examples); i++)
        wrap_print(6, "", json_string_value(json_array_get(examples, i)));
}

/* Of an audit of several. */
static void print_cells(json_t *cells)
{
    const char *number;
    json_t *cell;

    if (cells == NULL)
        return;
    report_heading("CELLS");
    json_object_foreach(cells, number, cell)
    {
        (void)printf("  %-*s", NAME_WIDTH, number);
        if (json_is_true(json_object_get(cell, "ok")))
            paint(GREEN, "holds");
        else
            paint(RED, "BROKEN");
    }
}

void report_print(const json_t *audit)
{
    const json_t *rows = json_object_get(audit, "invariants");
    size_t n = json_array_size(rows), held = 0;
    char text[80];

    (void)printf("ledgerlock audit as of %s\n", doc_text(audit, "now"));
    print_totals(json_object_get(audit, "totals"));
    report_heading("INVARIANTS");
    for (size_t i = 0; i < n; i++) {
        const json_t *row = json_array_get(rows, i);

        print_invariant(row);
        held += json_is_true(json_object_get(row, "holds"));
    }
    print_cells(json_object_get(audit, "cells"));
    (void)snprintf(text, sizeof text, "audit: %zu of %zu invariants hold", held, n);
    (void)putchar('\n');
    paint(held == n ? GREEN : RED, text);
}
