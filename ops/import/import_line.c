/* import_line: the columns as tables, one check per type. */
#include "ops/import/import_line.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "common/base/money.h"
#include "common/base/timestamp.h"

/* The highest amount of a line: 9,000 such lines fit into the bigint of one order. */
static const int64_t amount_max = INT64_C(1000000000000000);

/* clang-format off */
static const struct import_column stock_columns[] = {
    {"sku",          IMPORT_REF,     0, 0},
    {"quantity",     IMPORT_COUNT,   0, INT64_C(1000000000000)},
    {"unit_price",   IMPORT_MONEY,   0, INT64_C(1000000000000000)},
};

static const struct import_column subscription_columns[] = {
    {"customer_ref", IMPORT_REF,     0, 0},
    {"plan",         IMPORT_REF,     0, 0},
    {"amount",       IMPORT_MONEY,   1, INT64_C(1000000000000000)},
    {"unit",         IMPORT_UNIT,    0, 0},
    {"every",        IMPORT_COUNT,   1, 1000},
    {"anchor_at",    IMPORT_TIMESTAMP, 0, 0},
};

static const struct import_column order_columns[] = {
    {"order_ref",    IMPORT_REF,     0, 0},
    {"customer_ref", IMPORT_REF,     0, 0},
    {"sku",          IMPORT_REF,     0, 0},
    {"quantity",     IMPORT_COUNT,   1, INT64_C(1000000000)},
    {"unit_price",   IMPORT_MONEY,   1, INT64_C(1000000000000000)},
    {"placed_at",    IMPORT_TIMESTAMP, 0, 0},
};

#define COLUMNS(c) c, sizeof(c) / sizeof((c)[0])
const struct import_kind import_kinds[IMPORT_KINDS] = {
    [IMPORT_STOCK]         = {"stock",         COLUMNS(stock_columns),        {-1, -1}},
    [IMPORT_SUBSCRIPTIONS] = {"subscriptions", COLUMNS(subscription_columns), {-1, -1}},
    [IMPORT_ORDERS]        = {"orders",        COLUMNS(order_columns),        {3, 4}},
};

/* clang-format on */

static const char *check_ref(const char *text)
{
    if (text[strspn(text, " \t\r\n")] == '\0')
        return "is empty";
    return strlen(text) > IMPORT_REF_MAX ? "is longer than 255 bytes" : NULL;
}

static const char *check_bounds(const struct import_column *column, int64_t value)
{
    if (value < 0 && column->min >= 0)
        return "is negative";
    if (value == 0 && column->min > 0)
        return "is zero";
    if (value < column->min)
        return "is too small";
    return value > column->max ? "is too large" : NULL;
}

static const char *
read_count(const struct import_column *column, const char *text, int64_t *value)
{
    const char *p = text + (text[0] == '-' ? 1 : 0);
    size_t n = strspn(p, "0123456789");

    if (n == 0 || p[n] != '\0')
        return "is not a whole number";
    errno = 0;
    *value = strtoll(text, NULL, 10);
    return errno != 0 && *value > 0 ? "is too large" : check_bounds(column, *value);
}

static bool is_unit(const char *text)
{
    static const char *const units[] = {"day", "week", "month", "year"};

    for (size_t i = 0; i < sizeof units / sizeof units[0]; i++) {
        if (strcmp(text, units[i]) == 0)
            return true;
    }
    return false;
}

/* NULL, or the fault of the field, maybe written into msg. */
static const char *read_field(const struct import_column *column,
                              const char *text,
                              const char *currency,
                              int64_t *number,
                              struct err *words)
{
    switch (column->type) {
    case IMPORT_REF:
        return check_ref(text);
    case IMPORT_COUNT:
        return read_count(column, text, number);
    case IMPORT_MONEY:
        if (money_parse(text, currency, number, words) != 0)
            return words->msg;
        return check_bounds(column, *number);
    case IMPORT_TIMESTAMP:
        return timestamp_parse(text, number)
                   ? NULL
                   : "is not a time like 2010-12-01T08:26:00Z";
    case IMPORT_UNIT:
        return is_unit(text) ? NULL : "is not day, week, month or year";
    }
    return "is of no known type";
}

static bool amount_fits(const struct import_kind *kind, const struct import_line *line)
{
    int64_t amount;

    if (kind->amount_of[0] < 0)
        return true;
    return money_multiply(line->number[kind->amount_of[0]],
                          line->number[kind->amount_of[1]], &amount) &&
           amount <= amount_max;
}

bool import_line_read(const struct import_kind *kind,
                      const struct import_header *header,
                      const struct csv_record *record,
                      const char *currency,
                      struct import_line *line,
                      char *reason,
                      size_t reason_size)
{
    struct err words = {0};

    if (record->fault != NULL) {
        (void)snprintf(reason, reason_size, "the line %s", record->fault);
        return false;
    }
    if (record->field_ct != header->field_ct) {
        (void)snprintf(reason, reason_size, "the line has %zu field%s, not %zu",
                       record->field_ct, record->field_ct == 1 ? "" : "s",
                       header->field_ct);
        return false;
    }
    for (size_t i = 0; i < kind->column_ct; i++) {
        const char *text = record->fields[header->field_of[i]];
        const char *wrong =
            read_field(&kind->columns[i], text, currency, &line->number[i], &words);

        line->text[i] = text;
        if (wrong != NULL) {
            (void)snprintf(reason, reason_size, "%s %s", kind->columns[i].name, wrong);
            return false;
        }
    }
    if (!amount_fits(kind, line)) {
        (void)snprintf(reason, reason_size, "quantity times unit_price is too large");
        return false;
    }
    return true;
}

/* ---- header ---- */

static int header_error(const struct import_kind *kind,
                        const char *what,
                        const char *name,
                        struct err *e)
{
    char columns[256] = "";

    for (size_t i = 0; i < kind->column_ct; i++) {
        size_t len = strlen(columns);

        (void)snprintf(columns + len, sizeof columns - len, "%s%s", i > 0 ? "," : "",
                       kind->columns[i].name);
    }
    return err_set(e, ERR_INVALID,
                   "LL-8006 the header %s%.60s; the first line must name: %s", what,
                   name, columns);
}

static size_t find_field(const struct csv_record *record, size_t n, const char *name)
{
    size_t i = 0;

    while (i < n && strcmp(record->fields[i], name) != 0)
        i++;
    return i;
}

int import_header_read(const struct import_kind *kind,
                       const struct csv_record *record,
                       struct import_header *header,
                       struct err *e)
{
    size_t n = record->field_ct;

    if (record->fault != NULL)
        return header_error(kind, record->fault, "", e);
    if (n > CSV_FIELDS_MAX)
        return header_error(kind, "has too many columns", "", e);
    header->field_ct = n;
    while (n > 1 && strcmp(record->fields[n - 1], "rejected") == 0)
        n--;
    for (size_t i = 0; i < kind->column_ct; i++) {
        header->field_of[i] = find_field(record, n, kind->columns[i].name);
        if (header->field_of[i] == n)
            return header_error(kind, "lacks the column ", kind->columns[i].name, e);
    }
    if (n !=
        kind->column_ct) /* no column is missing, so one is there twice or unknown */
        return header_error(kind, "names other columns or one twice", "", e);
    return 0;
}
