/* status: what waits, how fast it goes, who works, where locks did not do their work.
 */
#include <inttypes.h>
#include <stdio.h>

#include "common/clock.h"
#include "worker/cli.h"
#include "worker/jdoc.h"
#include "worker/migrate.h"
#include "worker/report.h"

enum { SAMPLE_MS = 1000, WATCH_MS = 1000 };

/* clang-format off */
static struct values {
    bool json;
    bool watch;
} values;

static const struct cli_flag flags[] = {
    {"json",  CLI_BOOL, offsetof(struct values, json),  0, 0, "print one JSON document instead of the report"},
    {"watch", CLI_BOOL, offsetof(struct values, watch), 0, 0, "print again every two seconds until interrupted"},
    {NULL,    CLI_BOOL, 0, 0, 0, NULL},
};

/* clang-format on */

/* ---- gathering ---- */

/* All rows as an array of objects under key, the first text_ct columns as text. */
static int add_rows(struct pg *pg,
                    enum sql_id id,
                    size_t text_ct,
                    json_t *doc,
                    const char *key,
                    struct err *e)
{
    json_t *array = json_array();
    struct pg_result *res = NULL;

    if (jdoc_put(doc, key, array, e) != 0 || pg_exec(pg, id, NULL, 0, &res, e) != 0)
        return (int)e->code;
    for (size_t i = 0; i < pg_rows(res); i++) {
        if (jdoc_append(array, jdoc_object(res, i, 0, text_ct), e) != 0)
            break;
    }
    pg_result_free(res);
    return (int)e->code;
}

static int add_backlog(struct pg *pg, json_t *doc, struct err *e)
{
    struct pg_result *res;
    int code;

    if (pg_exec(pg, SQL_STATUS_BACKLOG, NULL, 0, &res, e) != 0)
        return (int)e->code;
    code = jdoc_put(doc, "now", json_string(pg_get_text(res, 0, 0)), e);
    if (code == 0)
        code = jdoc_put(doc, "backlog", jdoc_object(res, 0, 1, 0), e);
    pg_result_free(res);
    return code;
}

static int add_incidents(struct pg *pg, json_t *doc, struct err *e)
{
    struct pg_result *res;
    int code;

    if (pg_exec(pg, SQL_AUDIT_TOTALS_INCIDENTS, NULL, 0, &res, e) != 0)
        return (int)e->code;
    code = jdoc_put(doc, "incidents", jdoc_pairs(res), e);
    pg_result_free(res);
    return code != 0 ? code
                     : add_rows(pg, SQL_STATUS_INCIDENTS, 6, doc, "last_incidents", e);
}

static int sample(struct pg *pg, json_t **counted, struct err *e)
{
    struct pg_result *res;

    if (pg_exec(pg, SQL_STATUS_RATES, NULL, 0, &res, e) != 0)
        return (int)e->code;
    *counted = jdoc_object(res, 0, 0, 0);
    pg_result_free(res);
    return *counted == NULL ? err_set(e, ERR_NOMEM, "out of memory") : 0;
}

static int put_rate(json_t *rates,
                    const json_t *before,
                    const json_t *after,
                    const char *key,
                    int64_t us,
                    struct err *e)
{
    int64_t n = jdoc_int(after, key) - jdoc_int(before, key);

    if (n < 0) /* a pool began to count anew */
        n = 0;
    return jdoc_put(rates, key, json_integer(n * 1000000 / (us > 0 ? us : 1)), e);
}

/* Counts per second between two samples: due dates may lie in a past that run --now
 * counts as now, so the rows themselves do not tell when they were written. */
static int add_rates(struct pg *pg, json_t *doc, struct err *e)
{
    json_t *before = NULL, *after = NULL, *rates = json_object();
    int64_t from = clk_us();
    int code = jdoc_put(doc, "rates_per_s", rates, e);

    if (code == 0)
        code = sample(pg, &before, e);
    clk_pause_ms(SAMPLE_MS);
    if (code == 0)
        code = sample(pg, &after, e);
    if (code == 0) {
        int64_t us = clk_us() - from;

        if (put_rate(rates, before, after, "charges", us, e) != 0 ||
            put_rate(rates, before, after, "orders", us, e) != 0 ||
            put_rate(rates, before, after, "batches", us, e) != 0)
            code = (int)e->code;
    }
    json_decref(before);
    json_decref(after);
    return code;
}

static int gather(struct pg *pg, json_t *doc, struct err *e)
{
    if (add_rates(pg, doc, e) != 0 || add_backlog(pg, doc, e) != 0 ||
        add_rows(pg, SQL_STATUS_WORKERS, 2, doc, "workers", e) != 0)
        return (int)e->code;
    return add_incidents(pg, doc, e);
}

/* ---- printing ---- */

static void print_backlog(FILE *out, bool has_colour, const json_t *doc)
{
    const json_t *of = json_object_get(doc, "backlog");
    char age[64];

    report_heading(out, has_colour, "BACKLOG");
    (void)snprintf(age, sizeof age, "oldest for %lld s", jdoc_int(of, "oldest_due_s"));
    report_line(out, "subscriptions due", jdoc_int(of, "due"),
                jdoc_int(of, "due") > 0 ? age : "");
    (void)snprintf(age, sizeof age, "oldest for %lld s",
                   jdoc_int(of, "oldest_pending_s"));
    report_line(out, "orders pending", jdoc_int(of, "pending"),
                jdoc_int(of, "pending") > 0 ? age : "");
}

static void print_rates(FILE *out, bool has_colour, const json_t *doc)
{
    const json_t *of = json_object_get(doc, "rates_per_s");

    report_heading(out, has_colour, "RATES PER SECOND");
    report_line(out, "periods decided", jdoc_int(of, "charges"), "");
    report_line(out, "orders decided", jdoc_int(of, "orders"), "");
    report_line(out, "batches", jdoc_int(of, "batches"), "");
}

static void print_workers(FILE *out, bool has_colour, const json_t *doc)
{
    const json_t *workers = json_object_get(doc, "workers");
    size_t n = json_array_size(workers);

    report_heading(out, has_colour, "WORKERS");
    if (n == 0)
        (void)fputs("  none seen within ten seconds\n", out);
    else
        (void)fprintf(out, "  %-16.16s %4s %7s %7s %10s %9s %8s %8s\n", "pool", "slot",
                      "pid", "seen ms", "periods", "orders", "busy", "fenced");
    for (size_t i = 0; i < n; i++) {
        const json_t *w = json_array_get(workers, i);

        (void)fprintf(out, "  %-16.16s %4lld %7lld %7lld %10lld %9lld %8lld %8lld\n",
                      jdoc_text(w, "pool"), jdoc_int(w, "slot"), jdoc_int(w, "pid"),
                      jdoc_int(w, "seen_ms"),
                      jdoc_int(w, "charged") + jdoc_int(w, "declined"),
                      jdoc_int(w, "fulfilled") + jdoc_int(w, "rejected"),
                      jdoc_int(w, "busy"), jdoc_int(w, "fenced"));
    }
}

static void print_incidents(FILE *out, bool has_colour, const json_t *doc)
{
    const json_t *last = json_object_get(doc, "last_incidents");
    const char *kind;
    json_t *n;

    report_heading(out, has_colour, "INCIDENTS");
    json_object_foreach(json_object_get(doc, "incidents"), kind, n)
    {
        if (json_integer_value(n) > 0)
            report_line(out, kind, json_integer_value(n), "");
    }
    if (json_array_size(last) == 0)
        (void)fputs("  none\n", out);
    for (size_t i = 0; i < json_array_size(last); i++) {
        const json_t *row = json_array_get(last, i);

        (void)fprintf(out, "  %s %s %s\n", jdoc_text(row, "at"), jdoc_text(row, "kind"),
                      jdoc_text(row, "resource"));
    }
}

static void print(const json_t *doc, FILE *out)
{
    bool has_colour = report_has_colour(out);

    if (values.json) {
        (void)json_dumpf(doc, out, JSON_INDENT(2) | JSON_PRESERVE_ORDER);
        (void)fputc('\n', out);
    } else {
        (void)fprintf(out, "ledgerlock status at %s\n", jdoc_text(doc, "now"));
        print_backlog(out, has_colour, doc);
        print_rates(out, has_colour, doc);
        print_workers(out, has_colour, doc);
        print_incidents(out, has_colour, doc);
    }
    (void)fflush(out);
}

/* ---- the verb ---- */

static int show(struct pg *pg, struct err *e)
{
    json_t *doc = json_object();
    int code = gather(pg, doc, e);

    if (code == 0)
        print(doc, stdout);
    json_decref(doc);
    return code;
}

static enum exit_code run(const struct config *c, int argc, char **argv)
{
    struct err e = {0};
    struct pg *pg = NULL;
    int code;

    (void)argv;
    if (argc > 0)
        return cli_usage("status", "status takes no words");
    code = cli_connect(c, "status", &pg, &e);
    if (code == 0)
        code = migrate_check(pg, &e);
    if (code == 0)
        code = show(pg, &e);
    while (code == 0 && values.watch && ferror(stdout) == 0) {
        clk_pause_ms(WATCH_MS);
        (void)fputc('\n', stdout);
        code = show(pg, &e);
    }
    pg_close(pg);
    return code == 0 ? EXIT_OK : cli_fail(&e);
}

const struct cli_verb verb_status = {
    .name = "status",
    .sentence = "shows the backlog, rates, workers and incidents",
    .example = "ledgerlock status --json",
    .flags = flags,
    .values = &values,
    .run = run,
};
