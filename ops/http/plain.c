/* plain: the page as tables, for a browser without JavaScript. */
#include <inttypes.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "common/base/age.h"
#include "common/base/clock.h"
#include "ops/cli/json.h"
#include "ops/http/http.h"
#include "ops/http/view.h"

void plain_put(FILE *f, const char *text)
{
    for (const char *p = text; *p != '\0'; p++) {
        switch (*p) {
        case '&':
            (void)fputs("&amp;", f);
            break;
        case '<':
            (void)fputs("&lt;", f);
            break;
        case '>':
            (void)fputs("&gt;", f);
            break;
        case '"':
            (void)fputs("&quot;", f);
            break;
        default:
            (void)fputc(*p, f);
        }
    }
}

static bool is_put(const json_t *value)
{
    return json_is_integer(value) || json_is_string(value) || json_is_array(value);
}

/* Milliseconds since 1970 as a time of the day in UTC; what is below 0 is not there. */
static void put_value(FILE *f, const char *key, const json_t *value)
{
    json_int_t n = json_integer_value(value);

    if (json_is_integer(value) && strcmp(key, "at_ms") == 0)
        (void)fprintf(f, "<td class=n>%02d:%02d:%02d UTC</td>", (int)(n / 3600000 % 24),
                      (int)(n / 60000 % 60), (int)(n / 1000 % 60));
    else if (json_is_integer(value) && n < 0)
        (void)fputs("<td class=n>-</td>", f);
    else if (json_is_integer(value))
        (void)fprintf(f, "<td class=n>%" JSON_INTEGER_FORMAT "</td>", n);
    else if (is_put(value)) {
        json_t *text;
        size_t i;

        (void)fputs("<td>", f);
        if (json_is_string(value))
            plain_put(f, json_string_value(value));
        json_array_foreach(value, i, text)
        {
            (void)fputs(i > 0 ? " " : "", f);
            plain_put(f, json_string_value(text));
        }
        (void)fputs("</td>", f);
    }
}

/* An array of objects with the members of the first; texts, arrays of texts and
 * integers are shown. */
static void put_table(FILE *f, const char *title, const json_t *rows)
{
    const char *key;
    json_t *value, *row;
    size_t i;

    (void)fprintf(f, "<h2>%s</h2>\n", title);
    if (json_array_size(rows) == 0) {
        (void)fputs("<p>none</p>\n", f);
        return;
    }
    (void)fputs("<table><thead><tr>", f);
    json_object_foreach(json_array_get(rows, 0), key, value)
    {
        if (is_put(value)) {
            (void)fputs("<th>", f);
            plain_put(f, key);
        }
    }
    (void)fputs("</thead><tbody>\n", f);
    json_array_foreach(rows, i, row)
    {
        (void)fputs("<tr>", f);
        json_object_foreach(json_array_get(rows, 0), key, value)
        {
            put_value(f, key, json_object_get(row, key));
        }
        (void)fputs("\n", f);
    }
    (void)fputs("</tbody></table>\n", f);
}

static void put_figures(FILE *f, const json_t *of)
{
    char figures[VIEW_FIGURES];

    (void)fprintf(f, "%s</p>\n", view_figures(of, figures));
}

static void put_verdict(FILE *f, const json_t *doc, long long late_ms)
{
    const json_t *tables = json_object_get(doc, "tables");
    const json_t *newest = json_array_get(json_object_get(tables, "newest"), 0);
    const char *verdict = doc_text(doc, "verdict");
    long long age_ms = doc_int(doc, "tables_age_ms") + late_ms;
    char ago[AGE_TEXT];
    bool is_known = strcmp(verdict, "bad") == 0 || (strcmp(verdict, "good") == 0 &&
                                                    age_ms <= doc_int(doc, "stale_ms"));

    if (newest == NULL) {
        (void)fputs("<p>Not known: the tables were not read yet.</p>\n", f);
        return;
    }
    (void)fprintf(f, "<p%s>%s", is_known && verdict[0] == 'b' ? " class=bad" : "",
                  is_known ? "" : "Not known; it was: ");
    put_figures(f, newest);
    (void)fprintf(f,
                  "<p>Among the newest %lld charges, %lld wallets and %lld SKUs, read "
                  "%s ago.</p>\n",
                  doc_int(newest, "charges"), doc_int(newest, "wallets"),
                  doc_int(newest, "skus"), age_text(age_ms, ago));
}

static void put_trouble(FILE *f, const char *of, const char *trouble)
{
    if (trouble[0] == '\0')
        return;
    (void)fprintf(f, "<p class=bad>%s: ", of);
    plain_put(f, trouble);
    (void)fputs("</p>\n", f);
}

static void put_audit(FILE *f, const json_t *audit, long long late_ms)
{
    json_t *broken = json_object_get(audit, "broken"), *name;
    char ago[AGE_TEXT];
    size_t i;

    if (!json_is_object(audit)) {
        (void)fputs("<p>No whole audit has ended yet.</p>\n", f);
        return;
    }
    (void)fprintf(f, "<p>The last whole audit (%lld invariants, %s ago): %s",
                  doc_int(audit, "invariants"),
                  age_text(doc_int(audit, "age_ms") + late_ms, ago),
                  json_array_size(broken) == 0 ? "no promise is broken." : "BROKEN:");
    json_array_foreach(broken, i, name)
    {
        (void)fputc(' ', f);
        plain_put(f, json_string_value(name));
    }
    (void)fputs("</p>\n", f);
}

/* The unguarded side, and the faults that were started. */
static void put_chaos(FILE *f, const json_t *doc)
{
    const json_t *plain = json_object_get(json_object_get(doc, "tables"), "plain");
    const json_t *chaos = json_object_get(doc, "chaos");

    if (plain != NULL) {
        (void)fputs("<p class=bad>The same work under the plain lock, over tables "
                    "without guards: ",
                    f);
        put_figures(f, plain);
    }
    if (chaos == NULL)
        return;
    (void)fputs("<p><a href=chaos>Break it</a></p>\n", f);
    put_table(f, "Faults", json_object_get(chaos, "faults"));
}

static void put_document(FILE *f, const json_t *doc)
{
    static const char *const tables[][2] = {{"Paused jobs", "paused"},
                                            {"Most wanted SKUs", "stock"},
                                            {"Waits for a row lock", "waits"},
                                            {"Incidents", "incidents"},
                                            {"Parked rows", "parked"}};
    json_t *read = json_object_get(doc, "tables"), *job;
    long long late_ms = document_now_ms() - doc_int(doc, "at_ms"); /* the document */
    const char *name;
    char old[AGE_TEXT];

    put_verdict(f, doc, late_ms);
    put_trouble(f, "PostgreSQL", doc_text(doc, "trouble"));
    put_trouble(f, "Redis", doc_text(doc, "redis_trouble"));
    put_trouble(f, "The last try of a whole audit", doc_text(doc, "audit_trouble"));
    put_audit(f, json_object_get(doc, "audit"), late_ms);
    put_chaos(f, doc);
    json_object_foreach(json_object_get(read, "jobs"), name, job)
    {
        (void)fprintf(f, "<p>%s: %lld due, the oldest for %s; %lld parked</p>\n", name,
                      doc_int(job, "due"), age_text(doc_int(job, "oldest_due_ms"), old),
                      doc_int(job, "parked"));
    }
    put_table(f, "Workers", json_object_get(doc, "workers"));
    put_table(f, "Timeline", json_object_get(doc, "timeline"));
    put_table(f, "Waits for a key", json_object_get(doc, "busy"));
    for (size_t i = 0; i < sizeof tables / sizeof tables[0]; i++)
        put_table(f, tables[i][0], json_object_get(read, tables[i][1]));
}

bool plain_write(const struct http *h, FILE *f)
{
    json_t *doc = json_loads(h->document != NULL ? h->document : "{}", 0, NULL);

    (void)fputs("<!doctype html>\n<html lang=en><meta charset=utf-8>"
                "<meta http-equiv=refresh content=5>"
                "<link rel=stylesheet href=style.css>"
                "<title>ledgerlock</title><h1>ledgerlock</h1>\n",
                f);
    put_document(f, doc);
    json_decref(doc);
    return true;
}
