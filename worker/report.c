/* report: sections of label, count and note; then every invariant by name; then one
 * verdict. */
#include "worker/report.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "common/money.h"
#include "worker/jdoc.h"

enum { WIDTH = 80, NAME_WIDTH = 38 };

struct row {
    const char *label;
    const char *key;
};

static const char *const PLAIN = "\033[0m", *const BOLD = "\033[1m",
                         *const RED = "\033[1;31m", *const GREEN = "\033[32m";

/* Long enough for any sum, in groups of three. */
enum { DIGITS = 64 };

static const char *group(const char *digits, char *buf, size_t size)
{
    size_t len = strlen(digits), used = 0;
    bool negative = digits[0] == '-';

    for (size_t i = 0; i < len && used + 2 < size; i++) {
        if (i > (size_t)negative && (len - i) % 3 == 0)
            buf[used++] = ',';
        buf[used++] = digits[i];
    }
    buf[used] = '\0';
    return buf;
}

const char *report_count(int64_t n, char *buf, size_t size)
{
    char digits[24];

    (void)snprintf(digits, sizeof digits, "%" PRId64, n);
    return group(digits, buf, size);
}

bool report_has_colour(FILE *out)
{
    const char *no = getenv("NO_COLOR");

    return isatty(fileno(out)) == 1 && (no == NULL || no[0] == '\0');
}

static void paint(FILE *out, bool has_colour, const char *colour, const char *text)
{
    (void)fprintf(out, "%s%s%s", has_colour ? colour : "", text,
                  has_colour ? PLAIN : "");
}

void report_heading(FILE *out, bool has_colour, const char *text)
{
    (void)fputc('\n', out);
    paint(out, has_colour, BOLD, text);
    (void)fputc('\n', out);
}

void report_line(FILE *out, const char *label, int64_t n, const char *note)
{
    char count[32];

    (void)fprintf(out, "  %-24s%16s%s%s\n", label, report_count(n, count, sizeof count),
                  note[0] != '\0' ? "   " : "", note);
}

static void lines(FILE *out, json_t *of, const struct row *rows, size_t n)
{
    char digits[DIGITS], text[DIGITS];

    for (size_t i = 0; i < n; i++)
        (void)fprintf(out, "  %-24s%16s\n", rows[i].label,
                      group(jdoc_digits(of, rows[i].key, digits, sizeof digits), text,
                            sizeof text));
}

/* Members that are not 0, one line each, below what they are parts of. */
static void parts(FILE *out, json_t *of)
{
    const char *key;
    json_t *value;
    char label[40];

    json_object_foreach(of, key, value)
    {
        if (json_integer_value(value) == 0)
            continue;
        (void)snprintf(label, sizeof label, "  %s", key);
        report_line(out, label, json_integer_value(value), "");
    }
}

/* The sum over all members. */
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

/* A count with its amount in every currency, the further ones on lines of their own. */
static void
amounts(FILE *out, const char *label, int64_t n, json_t *money, const char *key)
{
    bool is_first = true;
    const char *currency;
    json_t *of;

    json_object_foreach(money, currency, of)
    {
        char buf[DIGITS], amount[DIGITS], note[DIGITS + 8];
        const char *digits = jdoc_digits(of, key, buf, sizeof buf);

        if (strcmp(digits, "0") == 0)
            continue;
        (void)snprintf(note, sizeof note, "%s %s",
                       money_format_digits(digits, currency, amount, sizeof amount),
                       currency);
        if (is_first)
            report_line(out, label, n, note);
        else
            (void)fprintf(out, "%45s%s\n", "", note);
        is_first = false;
    }
    if (is_first)
        report_line(out, label, n, "");
}

static void print_billing(FILE *out, bool has_colour, json_t *totals)
{
    json_t *of = json_object_get(totals, "billing");
    json_t *money = json_object_get(totals, "money");
    json_t *states = json_object_get(of, "subscriptions");

    report_heading(out, has_colour, "BILLING");
    report_line(out, "subscriptions", sum_of(states), "");
    parts(out, states);
    report_line(out, "periods due", jdoc_int(of, "periods_due"), "");
    amounts(out, "charged", jdoc_int(of, "charged"), money, "charged");
    amounts(out, "declined, owed", jdoc_int(of, "declined"), money, "declined");
    report_line(out, "still to do", jdoc_int(of, "still_to_do"), "");
    report_line(out, "charged twice", jdoc_int(of, "charged_twice"), "");
}

static void print_stock(FILE *out, bool has_colour, json_t *totals)
{
    static const struct row rows[] = {
        {"SKUs", "skus"}, {"units before", "before"}, {"sold", "sold"},
        {"left", "left"}, {"oversold", "oversold"},
    };

    report_heading(out, has_colour, "STOCK");
    lines(out, json_object_get(totals, "stock"), rows, sizeof rows / sizeof rows[0]);
}

static void print_orders(FILE *out, bool has_colour, json_t *totals)
{
    static const struct row before[] = {
        {"orders in", "in"},
        {"fulfilled", "fulfilled"},
        {"rejected", "rejected"},
    };
    static const struct row after[] = {{"pending", "pending"}, {"parked", "parked"}};
    json_t *of = json_object_get(totals, "orders");

    report_heading(out, has_colour, "ORDERS");
    lines(out, of, before, sizeof before / sizeof before[0]);
    parts(out, json_object_get(of, "rejected_by_reason"));
    lines(out, of, after, sizeof after / sizeof after[0]);
}

static void print_money(FILE *out, bool has_colour, json_t *totals)
{
    static const struct row rows[] = {
        {"deposited", "deposited"},
        {"in wallets", "in_wallets"},
        {"subscription revenue", "subscription_revenue"},
        {"order revenue", "order_revenue"},
        {"difference", "difference"},
    };
    json_t *of;
    const char *currency;

    json_object_foreach(json_object_get(totals, "money"), currency, of)
    {
        char digits[DIGITS], text[DIGITS];

        (void)snprintf(text, sizeof text, "MONEY in %s", currency);
        report_heading(out, has_colour, text);
        for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++)
            (void)fprintf(
                out, "  %-24s%16s\n", rows[i].label,
                money_format_digits(jdoc_digits(of, rows[i].key, digits, sizeof digits),
                                    currency, text, sizeof text));
    }
}

static void print_locks(FILE *out, bool has_colour, json_t *totals)
{
    static const struct row rows[] = {
        {"granted", "granted"},     {"met busy", "busy"},
        {"lost", "lost"},           {"fenced", "fenced"},
        {"uncertain", "uncertain"}, {"commits unknown", "commit_unknown"},
        {"batches", "batches"},     {"workers restarted", "restarts"},
    };
    json_t *incidents = json_object_get(totals, "incidents");

    report_heading(out, has_colour, "LOCKS");
    lines(out, json_object_get(totals, "locks"), rows, sizeof rows / sizeof rows[0]);
    report_line(out, "incidents", sum_of(incidents), "");
    parts(out, incidents);
}

/* Text in lines of at most WIDTH, broken at blanks, each behind an indent. */
static void wrap(FILE *out, int indent, const char *text)
{
    size_t room = (size_t)(WIDTH - indent);

    while (*text != '\0') {
        size_t n = strlen(text);

        if (n > room) {
            n = room;
            while (n > 0 && text[n] != ' ')
                n--;
            n = n == 0 ? room : n;
        }
        (void)fprintf(out, "%*s%.*s\n", indent, "", (int)n, text);
        text += n;
        text += strspn(text, " ");
    }
}

static void print_invariant(FILE *out, bool has_colour, json_t *row)
{
    json_t *examples = json_object_get(row, "examples");
    char count[32], text[48];

    (void)fprintf(out, "  %-*s", NAME_WIDTH, jdoc_text(row, "name"));
    if (json_is_true(json_object_get(row, "holds"))) {
        paint(out, has_colour, GREEN, "holds");
        (void)fputc('\n', out);
        return;
    }
    (void)snprintf(text, sizeof text, "BROKEN %s",
                   report_count(jdoc_int(row, "violations"), count, sizeof count));
    paint(out, has_colour, RED, text);
    (void)fputc('\n', out);
    wrap(out, 4, jdoc_text(row, "sentence"));
    for (size_t i = 0; i < json_array_size(examples); i++)
        wrap(out, 6, json_string_value(json_array_get(examples, i)));
}

static void print_invariants(FILE *out, bool has_colour, json_t *audit)
{
    json_t *rows = json_object_get(audit, "invariants");
    size_t n = json_array_size(rows), held = 0;
    char text[80];

    report_heading(out, has_colour, "INVARIANTS");
    for (size_t i = 0; i < n; i++) {
        json_t *row = json_array_get(rows, i);

        print_invariant(out, has_colour, row);
        held += json_is_true(json_object_get(row, "holds"));
    }
    (void)snprintf(text, sizeof text, "audit: %zu of %zu invariants hold", held, n);
    (void)fputc('\n', out);
    paint(out, has_colour, held == n ? GREEN : RED, text);
    (void)fputc('\n', out);
}

void report_print(json_t *audit, bool has_colour, FILE *out)
{
    json_t *totals = json_object_get(audit, "totals");

    (void)fprintf(out, "ledgerlock audit as of %s\n", jdoc_text(audit, "now"));
    print_billing(out, has_colour, totals);
    print_stock(out, has_colour, totals);
    print_orders(out, has_colour, totals);
    print_money(out, has_colour, totals);
    print_locks(out, has_colour, totals);
    print_invariants(out, has_colour, audit);
}
