/* lab_report: a line for each cell while it runs, the table at the end, JSON. */
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "worker/jdoc.h"
#include "worker/lab.h"

enum { TITLE = 23, CELL = 5 };

static int width(size_t fault)
{
    int n = (int)strlen(lab_faults[fault].name);

    return n > CELL ? n : CELL;
}

static const char *verdict(const struct lab_result *r)
{
    if (r->is_skipped)
        return "skipped";
    if (!r->is_right)
        return "UNEXPECTED";
    return r->expected.twice + r->expected.stuck > 0 ? "fails, as it must" : "holds";
}

void lab_print_cell(const struct lab_result *r)
{
    const struct lab_figures *f = &r->figures;
    static bool has_head;

    if (!has_head)
        (void)printf("%-13s %-10s %6s %6s %8s %6s %6s %8s  %s\n", "strategy", "fault",
                     "twice", "missed", "oversold", "stuck", "lost", "steps/s",
                     "verdict");
    has_head = true;
    if (r->is_skipped)
        (void)printf("%-13s %-10s %47s  skipped: not given the means\n",
                     r->strategy->name, r->fault->name, "");
    else
        (void)printf("%-13s %-10s %6" PRId64 " %6" PRId64 " %8" PRId64 " %6" PRId64
                     " %6" PRId64 " %8.0f  %s%s%s\n",
                     r->strategy->name, r->fault->name, f->twice, f->missed,
                     f->oversold, f->stuck, f->lost, f->rate, verdict(r),
                     r->is_right ? "" : ": ", r->why);
    (void)fflush(stdout);
}

/* ---- the table ---- */

static const struct lab_result *
find(const struct lab_result *results, size_t n, size_t strategy, size_t fault)
{
    for (size_t i = 0; i < n; i++) {
        if (results[i].strategy == &lab_strategies[strategy] &&
            results[i].fault == &lab_faults[fault])
            return &results[i];
    }
    return NULL;
}

static const char *cell(const struct lab_result *r, char *buf, size_t size)
{
    char twice[12] = "", stuck[12] = "";

    if (r == NULL)
        return "";
    if (r->is_skipped)
        return "skipped";
    if (r->figures.twice > 0)
        (void)snprintf(twice, sizeof twice, "%d", (int)r->figures.twice);
    if (r->figures.stuck > 0)
        (void)snprintf(stuck, sizeof stuck, "s%d", (int)r->figures.stuck);
    (void)snprintf(buf, size, "%s%s%s%s", r->is_right ? "" : "!", twice,
                   twice[0] != '\0' && stuck[0] != '\0' ? " " : "", stuck);
    return buf[0] == '\0' ? "." : buf;
}

static void print_row(const struct lab_result *results, size_t n, size_t strategy)
{
    char line[160] = "", buf[32];
    bool any = false;

    for (size_t f = 0; f < LAB_FAULTS; f++) {
        const struct lab_result *r = find(results, n, strategy, f);
        size_t at = strlen(line);

        any = any || r != NULL;
        (void)snprintf(line + at, sizeof line - at, "  %-*s", width(f),
                       cell(r, buf, sizeof buf));
    }
    if (any)
        (void)printf("%-*s%s\n", TITLE, lab_strategies[strategy].title, line);
}

static void print_races(const struct lab_result *results, size_t n)
{
    for (size_t i = 0; i < n; i++) {
        const struct lab_result *r = &results[i];

        if (!lab_is(r->strategy, LAB_SHIPPED) || r->is_skipped)
            continue;
        (void)printf("  %-10s", r->fault->name);
        for (size_t k = 0; k < r->race_ct; k++)
            (void)printf(" %s %" PRId64 "%s", r->races[k].name, r->races[k].ct,
                         k + 1 < r->race_ct ? "," : "");
        (void)putchar('\n');
    }
}

static size_t count(const struct lab_result *results, size_t n, bool is_skipped)
{
    size_t ct = 0;

    for (size_t i = 0; i < n; i++)
        ct += is_skipped ? results[i].is_skipped
                         : !results[i].is_skipped && results[i].is_right;
    return ct;
}

void lab_print(const struct lab_result *results, size_t n)
{
    size_t right = count(results, n, false), skipped = count(results, n, true);
    bool has_shipped = false;

    (void)printf("\n%-*s", TITLE, "");
    for (size_t f = 0; f < LAB_FAULTS; f++)
        (void)printf("  %-*s", width(f), lab_faults[f].name);
    (void)putchar('\n');
    for (size_t s = 0; s < LAB_STRATEGIES; s++)
        print_row(results, n, s);
    (void)printf(
        "\n .  nothing charged twice, nothing missed, nothing oversold, no key left\n"
        " N  periods charged twice, and for each a unit sold that was not there\n"
        "sN  keys stuck for ever, and the periods behind them missed\n");
    for (size_t i = 0; i < n; i++)
        has_shipped = has_shipped || lab_is(results[i].strategy, LAB_SHIPPED);
    if (has_shipped)
        (void)printf(
            "\nraces that the shipped pool met, and came out of with zeros:\n");
    print_races(results, n);
    (void)printf("\nlab: %zu of %zu cells came out as they must", right, n - skipped);
    if (skipped > 0)
        (void)printf(", %zu skipped", skipped);
    (void)putchar('\n');
}

/* ---- JSON ---- */

static json_t *races(const struct lab_result *r)
{
    json_t *o = json_object();

    for (size_t i = 0; o != NULL && i < r->race_ct; i++)
        (void)json_object_set_new(o, r->races[i].name, json_integer(r->races[i].ct));
    return o;
}

static json_t *document(const struct lab_result *r)
{
    const struct lab_figures *f = &r->figures;

    return json_pack(
        "{s:s,s:s,s:s,s:s,s:s,s:s,s:{s:I,s:I},s:I,s:I,s:I,s:I,s:I,s:I,s:f,s:o}",
        "strategy", r->strategy->name, "strategy_title", r->strategy->title, "fault",
        r->fault->name, "fault_title", r->fault->title, "verdict", verdict(r), "why",
        r->why, "expected", "charged_twice", (json_int_t)r->expected.twice,
        "keys_stuck", (json_int_t)r->expected.stuck, "charged_twice_by_schedule",
        (json_int_t)r->forced, "charged_twice", (json_int_t)f->twice, "periods_missed",
        (json_int_t)f->missed, "units_oversold", (json_int_t)f->oversold, "keys_stuck",
        (json_int_t)f->stuck, "batches_lost", (json_int_t)f->lost, "steps_per_s",
        f->rate, "races", races(r));
}

int lab_print_json(const struct lab_result *results,
                   size_t n,
                   int64_t seed,
                   struct err *e)
{
    json_t *doc = json_pack("{s:s,s:I}", "kind", "lab", "seed", (json_int_t)seed);
    json_t *cells = json_array();
    bool is_right = count(results, n, false) + count(results, n, true) == n;

    for (size_t i = 0; e->code == ERR_OK && i < n; i++)
        (void)!jdoc_append(cells, document(&results[i]), e);
    if (e->code == ERR_OK && jdoc_put(doc, "ok", json_boolean(is_right), e) == 0)
        (void)!jdoc_put(doc, "cells", json_incref(cells), e);
    if (e->code == ERR_OK)
        (void)(json_dumpf(doc, stdout, JSON_INDENT(2) | JSON_REAL_PRECISION(5)),
               putchar('\n'));
    json_decref(cells);
    json_decref(doc);
    return (int)e->code;
}
