/* report: a row for each cell while it runs, two tables at the end, JSON. */
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "labs/lab/lab.h"
#include "ops/cli/json.h"

enum { TITLE = 24, CELL = 5 };

static const char *verdict(const struct lab_result *r)
{
    if (r->is_skipped)
        return "skipped";
    if (!r->is_right)
        return "UNEXPECTED";
    return r->expected.twice + r->expected.stuck > 0 ? "fails, as it must" : "holds";
}

/* Periods charged twice by chance: in the free run, by nobody's schedule. */
static int64_t by_chance(const struct lab_result *r)
{
    return r->figures.twice - r->forced;
}

/* Work that was done and thrown away. */
static int64_t in_vain(const int64_t count[LAB_COUNTS])
{
    return count[LAB_REFUSED] + count[LAB_LOST] + count[LAB_DEAD];
}

void lab_print_cell(const struct lab_result *r)
{
    const struct lab_figures *f = &r->figures;
    static bool has_head;

    if (!has_head)
        (void)printf("%-13s %-10s %6s %6s %6s %8s %6s %6s  %s\n", "strategy", "fault",
                     "forced", "chance", "missed", "oversold", "stuck", "vain",
                     "verdict");
    has_head = true;
    if (r->is_skipped)
        (void)printf("%-13s %-10s %46s  skipped: not given the means\n",
                     r->strategy->name, r->fault->name, "");
    else
        (void)printf("%-13s %-10s %6" PRId64 " %6" PRId64 " %6" PRId64 " %8" PRId64
                     " %6" PRId64 " %6" PRId64 "  %s%s%s\n",
                     r->strategy->name, r->fault->name, r->forced, by_chance(r),
                     f->missed, f->oversold, f->stuck, in_vain(r->met), verdict(r),
                     r->is_right ? "" : ": ", r->why);
    (void)fflush(stdout);
}

/* ---- what each prevents ---- */

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

static int width(size_t fault)
{
    int n = (int)strlen(lab_faults[fault].name);

    return n > CELL ? n : CELL;
}

/* Marks, since the numbers of different rows are numbers of different things. */
static const char *mark(const struct lab_result *r, char *buf, size_t size)
{
    if (r == NULL)
        return "";
    if (r->is_skipped)
        return "-";
    (void)snprintf(buf, size, "%s%s%s%s", r->is_right ? "" : "!",
                   r->forced > 0 ? "X" : "", by_chance(r) > 0 ? "~" : "",
                   r->figures.stuck > 0 ? "s" : "");
    return buf[0] == '\0' ? "." : buf;
}

static void print_row(const struct lab_result *results, size_t n, size_t strategy)
{
    char row[160] = "", buf[32];
    bool any = false;

    for (size_t f = 0; f < LAB_FAULTS; f++) {
        const struct lab_result *r = find(results, n, strategy, f);
        size_t at = strlen(row);

        any = any || r != NULL;
        (void)snprintf(row + at, sizeof row - at, "  %-*s", width(f),
                       mark(r, buf, sizeof buf));
    }
    if (any)
        (void)printf("%-*s%s\n", TITLE, lab_strategies[strategy].title, row);
}

static void print_prevented(const struct lab_result *results, size_t n)
{
    (void)printf("\nwhat each prevents\n%-*s", TITLE, "");
    for (size_t f = 0; f < LAB_FAULTS; f++)
        (void)printf("  %-*s", width(f), lab_faults[f].name);
    (void)putchar('\n');
    for (size_t s = 0; s < LAB_STRATEGIES; s++)
        print_row(results, n, s);
    (void)printf(
        "\n .  nothing charged twice, nothing missed, nothing oversold, no key left\n"
        " X  the schedule charged twice, and sold a unit that was not there: every time\n"
        " ~  four workers left to themselves did so too, by chance\n"
        " s  keys stuck for ever, and the periods behind them missed\n");
}

/* ---- what each saves ---- */

static void print_saved_row(const struct lab_result *results, size_t n, size_t strategy)
{
    int64_t count[LAB_COUNTS] = {0}, periods = 0, twice = 0;
    double per;

    for (size_t i = 0; i < n; i++) {
        const struct lab_result *r = &results[i];

        if (r->strategy != &lab_strategies[strategy] || r->is_skipped)
            continue;
        periods += r->free_run.periods;
        twice += by_chance(r);
        for (size_t k = 0; k < LAB_COUNTS; k++)
            count[k] += r->free_run.count[k];
    }
    if (periods == 0)
        return;
    per = 100.0 / (double)periods;
    (void)printf("%-*s %8.1f %8.1f %8.1f", TITLE, lab_strategies[strategy].title,
                 (double)twice * per, (double)in_vain(count) * per,
                 (double)count[LAB_AWAY] * per);
    if (!lab_is(&lab_strategies[strategy], LAB_SHIPPED))
        (void)printf(" %10.1f", (double)count[LAB_WAITED_US] * per / 1000);
    (void)putchar('\n');
}

static void print_saved(const struct lab_result *results, size_t n)
{
    (void)printf("\nwhat each saves: four workers left to themselves, per 100 periods\n"
                 "%-*s %8s %8s %8s %10s\n",
                 TITLE, "", "twice", "in vain", "away", "waited ms");
    for (size_t s = 0; s < LAB_STRATEGIES; s++)
        print_saved_row(results, n, s);
    (void)printf(
        "\ntwice   charged twice by chance    in vain    computed, then refused\n"
        "away    turned away by the lock before any work; of the pool: keys met busy\n"
        "waited  in calls of the lock, and in pauses after it turned everybody away\n");
}

static void print_races(const struct lab_result *results, size_t n)
{
    (void)printf(
        "\nThe tables of the shipped pool refuse a second charge by themselves, so it\n"
        "cannot be marked X: its marks say that nothing was missed, sold without stock or\n"
        "left behind, that the audit holds, and that the pool met what the fault brings\n"
        "(busy, and free for the four workers left to themselves: keys met busy, by job):\n");
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

/* ---- all of it ---- */

static size_t count_cells(const struct lab_result *results, size_t n, bool is_skipped)
{
    size_t ct = 0;

    for (size_t i = 0; i < n; i++)
        ct += is_skipped ? results[i].is_skipped
                         : !results[i].is_skipped && results[i].is_right;
    return ct;
}

void lab_print(const struct lab_result *results, size_t n)
{
    size_t right = count_cells(results, n, false);
    size_t skipped = count_cells(results, n, true);

    print_prevented(results, n);
    print_saved(results, n);
    for (size_t i = 0; i < n; i++) {
        if (lab_is(results[i].strategy, LAB_SHIPPED)) {
            print_races(results, n);
            break;
        }
    }
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

static json_t *counts(const int64_t count[LAB_COUNTS])
{
    return json_pack(
        "{s:I,s:I,s:I,s:I,s:I,s:I,s:f}", "turned_away", (json_int_t)count[LAB_AWAY],
        "blocked", (json_int_t)count[LAB_BLOCKED], "refused",
        (json_int_t)count[LAB_REFUSED], "lost", (json_int_t)count[LAB_LOST],
        "unanswered", (json_int_t)count[LAB_UNANSWERED], "in_vain",
        (json_int_t)in_vain(count), "waited_ms", (double)count[LAB_WAITED_US] / 1000);
}

static json_t *document(const struct lab_result *r)
{
    const struct lab_figures *f = &r->figures;
    const struct lab_free_run *x = &r->free_run;

    return json_pack(
        "{s:s,s:s,s:s,s:s,s:s,s:s,s:I,s:I,s:I,s:I,s:I,s:I,s:I,s:f,s:o,s:o,s:o}",
        "strategy", r->strategy->name, "strategy_title", r->strategy->title, "fault",
        r->fault->name, "fault_title", r->fault->title, "verdict", verdict(r), "why",
        r->why, "charged_twice_by_schedule", (json_int_t)r->forced,
        "charged_twice_by_chance", (json_int_t)by_chance(r), "periods_missed",
        (json_int_t)f->missed, "units_oversold", (json_int_t)f->oversold, "keys_stuck",
        (json_int_t)f->stuck, "must_charge_twice", (json_int_t)r->expected.twice,
        "free_periods", (json_int_t)x->periods, "free_per_s",
        (double)x->periods * 1e6 / (double)(x->us + 1), "met", counts(r->met),
        "free_run", counts(x->count), "races", races(r));
}

int lab_print_json(const struct lab_result *results,
                   size_t n,
                   int64_t seed,
                   struct err *e)
{
    json_t *doc = json_pack("{s:s,s:I}", "kind", "lab", "seed", (json_int_t)seed);
    json_t *cells = json_array();
    bool is_right = count_cells(results, n, false) + count_cells(results, n, true) == n;

    for (size_t i = 0; e->code == ERR_OK && i < n; i++)
        (void)!doc_append(cells, document(&results[i]), e);
    if (e->code == ERR_OK && doc_put(doc, "ok", json_boolean(is_right), e) == 0)
        (void)!doc_put(doc, "cells", json_incref(cells), e);
    if (e->code == ERR_OK)
        (void)(json_dumpf(doc, stdout, JSON_INDENT(2) | JSON_REAL_PRECISION(5)),
               putchar('\n'));
    json_decref(cells);
    json_decref(doc);
    return (int)e->code;
}
