/* reconcile: what the payment gateway has, against the table payments, both ways. The
 * database compares (function reconcile). */
#include <inttypes.h>
#include <jansson.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "common/base/money.h"
#include "common/base/replace.h"
#include "ops/cli/cli.h"
#include "ops/cli/json.h"
#include "ops/verbs/orphans.h"
#include "worker/jobs/asks.h"

static struct values {
    bool json;
    const char *since, *export, *adopt, *refund;
} values;

static const struct cli_flag flags[] = {
    {"since", CLI_TIME, offsetof(struct values, since), 0, 0,
     "compare what was asked for since then (default: 30 days ago)"},
    {"export", CLI_FILE, offsetof(struct values, export), 0, 0,
     "write all entries with their classes into this file, as CSV"},
    {"adopt", CLI_TEXT, offsetof(struct values, adopt), 0, 0,
     "let an orphan pay the period that it was taken for, by its reference there"},
    {"refund", CLI_TEXT, offsetof(struct values, refund), 0, 0,
     "give an orphan or a duplicate back at the gateway, by its reference there"},
    {"json", CLI_BOOL, offsetof(struct values, json), 0, 0,
     "print one JSON document instead of the table"},
    {0},
};

enum { ENTRIES_SHOWN = 100 };

struct work {
    struct calls *calls;
    struct gateway_list list;
    struct replace file;
    char since[64];
    bool is_faulty;
};

/* ---- a list of both sides ---- */

static void tell(int64_t ct)
{
    cli_progress_of(ct, 0);
}

static int gather(struct pg *pg, struct work *w, struct pg_result **res, struct err *e)
{
    const struct pg_param begin = pg_text(values.since);
    char asked_before[64];

    *res = NULL;
    if (pg_exec(pg, SQL_RECONCILE_BEGIN, &begin, 1, res, e) != 0) {
        if (strncmp(e->sqlstate, "22", 2) == 0)
            e->code = ERR_INVALID;
        return (int)e->code;
    }
    (void)snprintf(w->since, sizeof w->since, "%s", pg_get_text(*res, 0, 0));
    (void)snprintf(asked_before, sizeof asked_before, "%s", pg_get_text(*res, 0, 1));
    w->list.since_s = pg_get_int8(*res, 0, 2);
    pg_result_free(*res);
    *res = NULL;
    cli_progress("reading what the gateway has, entries");
    if (asks_all(w->calls, &w->list, tell, e) == 0) {
        const struct pg_param params[] = {
            pg_text(w->since), pg_text(asked_before),
            pg_text(w->list.text != NULL ? w->list.text : ""),
            pg_int8(values.export != NULL || values.refund != NULL ||
                    values.adopt != NULL)};

        cli_progress("comparing");
        (void)!pg_exec(pg, SQL_RECONCILE_COMPARE, params, 4, res, e);
    }
    return (int)e->code;
}

/* ---- show ---- */

/* An array for the sums, and another one for the entries that are a fault. */
static int make_document(const struct work *w,
                         const struct pg_result *res,
                         json_t *doc,
                         struct err *e)
{
    json_t *sums = json_array(), *entries = json_array();
    int code = doc_put(doc, "ok", json_boolean(!w->is_faulty), e) != 0 ||
                       doc_put(doc, "since", json_string(w->since), e) != 0
                   ? (int)e->code
                   : 0;

    for (size_t i = 0; code == 0 && i < pg_rows(res); i++) {
        bool is_sum = !pg_is_null(res, i, COUNT);
        json_t *row, *minors;

        if (!is_sum && pg_get_int8(res, i, FAULT) == 0)
            continue;
        row = doc_row(res, i, 0);
        minors = doc_sums(res, i, HERE_MINOR, 2);
        if (json_object_update_existing(row, minors) != 0)
            code = err_set(e, ERR_NOMEM, "LL-9001 out of memory");
        json_decref(minors);
        code = doc_append(is_sum ? sums : entries, row, e) != 0 ? (int)e->code : code;
    }
    if (doc_put(doc, "sums", sums, e) != 0 || doc_put(doc, "entries", entries, e) != 0)
        code = (int)e->code;
    return code;
}

/* The state of an entry on one side. */
static const char *state(const json_t *row, const char *side)
{
    return json_object_get(row, side) != NULL ? doc_text(row, side) : "nothing";
}

/* "12.00 USD"; "-" where that side has nothing. */
static const char *amount(const json_t *row, const char *side, char buf[DIGITS])
{
    char digits[DIGITS];
    size_t n;

    if (json_object_get(row, side) == NULL)
        return "-";
    (void)money_format_digits(doc_digits(row, side, digits, sizeof digits),
                              doc_text(row, "currency"), buf, DIGITS - 8);
    n = strlen(buf);
    (void)snprintf(buf + n, DIGITS - n, " %.4s", doc_text(row, "currency"));
    return buf;
}

static void print_text(const json_t *doc)
{
    const json_t *sums = json_object_get(doc, "sums"),
                 *entries = json_object_get(doc, "entries");
    char here[DIGITS], there[DIGITS];
    size_t i;
    json_t *row;

    (void)printf("%-17s %-8s %8s %21s %21s\n", "CLASS", "KIND", "COUNT", "HERE",
                 "AT THE GATEWAY");
    json_array_foreach(sums, i, row)
    {
        (void)printf("%-17s %-8s %8lld %21s %21s\n", doc_text(row, "class"),
                     doc_text(row, "kind"), doc_int(row, "n"),
                     amount(row, "here_minor", here),
                     amount(row, "there_minor", there));
    }
    json_array_foreach(entries, i, row)
    {
        if (i == ENTRIES_SHOWN)
            break;
        (void)printf("%s%s: %s, %s\n    here %s %s; there %s %s\n", i == 0 ? "\n" : "",
                     doc_text(row, "class"), doc_text(row, "paid"),
                     doc_text(row, "reference"), state(row, "here"),
                     amount(row, "here_minor", here), state(row, "there"),
                     amount(row, "there_minor", there));
    }
    if (json_array_size(entries) > ENTRIES_SHOWN)
        (void)printf("... and %zu more: --export FILE has all\n",
                     json_array_size(entries) - ENTRIES_SHOWN);
    (void)printf("since %.19s: %s\n", doc_text(doc, "since"),
                 json_is_true(json_object_get(doc, "ok"))
                     ? "gateway and tables agree"
                     : "gateway and tables differ");
}

/* A field that is not a number stands in quotes: strangers may have written it. */
static void put_field(FILE *f, const char *text, bool is_last)
{
    (void)fputc('"', f);
    for (; *text != '\0'; text++)
        (void)fprintf(f, *text == '"' ? "%c\"" : "%c", *text);
    (void)fprintf(f, is_last ? "\"\n" : "\",");
}

static int
export_entries(struct replace *file, const struct pg_result *res, struct err *e)
{
    for (size_t column = CLASS; column < COLUMNS; column++)
        (void)fprintf(file->file, "%s%c", pg_column_name(res, column),
                      column + 1 < COLUMNS ? ',' : '\n');
    for (size_t i = 0; i < pg_rows(res); i++) {
        for (size_t column = CLASS; pg_is_null(res, i, COUNT) && column < COLUMNS;
             column++) {
            if (pg_is_number(res, column) && !pg_is_null(res, i, column))
                (void)fprintf(file->file, "%" PRId64 ",", pg_get_int8(res, i, column));
            else
                put_field(file->file,
                          pg_is_number(res, column) ? "" : pg_get_text(res, i, column),
                          column + 1 == COLUMNS);
        }
    }
    return replace_write(file, e) != 0 ? (int)e->code : replace_publish(file, e);
}

/* ---- the verb ---- */

static int reconcile(struct pg *pg, void *arg, struct err *e)
{
    struct work *w = arg;
    struct pg_result *res;
    json_t *doc = NULL;

    if (gather(pg, w, &res, e) != 0)
        return (int)e->code;
    for (size_t i = 0; i < pg_rows(res); i++)
        w->is_faulty = w->is_faulty || pg_get_int8(res, i, FAULT) != 0;
    if (values.refund != NULL || values.adopt != NULL) {
        w->is_faulty = false;
        (void)!(values.adopt != NULL
                    ? orphan_adopt(pg, res, values.adopt, e)
                    : orphan_refund(pg, w->calls, res, values.refund, e));
    } else if (w->file.file == NULL || export_entries(&w->file, res, e) == 0) {
        doc = json_object();
        if (make_document(w, res, doc, e) == 0)
            doc_show(doc, values.json, print_text);
    }
    json_decref(doc);
    pg_result_free(res);
    return (int)e->code;
}

static enum exit_code run(const struct config *c, int argc, char **argv)
{
    struct work w = {.calls = NULL};
    struct err e = {0};
    enum exit_code code;

    (void)argc;
    (void)argv;
    if ((values.refund != NULL || values.adopt != NULL) &&
        (values.json || values.export != NULL ||
         (values.refund != NULL && values.adopt != NULL)))
        return cli_usage("reconcile",
                         "LL-1022 --adopt and --refund go with --since alone");
    if (calls_open(&w.calls, c, &e) != 0 ||
        (values.export != NULL &&
         replace_open(&w.file, "the export", values.export, &e) != 0))
        code = cli_fail(&e);
    else
        code = cli_on_tables(c, "reconcile", reconcile, &w);
    replace_close(&w.file);
    calls_close(w.calls);
    free(w.list.text);
    return code == EXIT_OK && w.is_faulty ? EXIT_AUDIT : code;
}

const struct cli_verb verb_reconcile = {
    .name = "reconcile",
    .who = "members of ledgerlock_reader; --adopt, --refund: of ledgerlock_support",
    .sentence = "compares payments by card with what the payment gateway has",
    .example = "ledgerlock reconcile --since 2026-11-01 --export november.csv",
    .settings = "gateway.",
    .flags = flags,
    .values = &values,
    .run = run,
};
