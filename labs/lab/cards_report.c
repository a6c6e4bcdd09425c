/* cards_report: the table of the ways to ask for money, and what the lock saves. */
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "labs/lab/cards.h"

enum { TITLE = 24, CELL = 4 };

static bool is_right(const struct lab_card_result *r)
{
    return strcmp(r->came_out, r->expected) == 0;
}

static int width(size_t behaviour)
{
    int n = (int)strlen(lab_behaviours[behaviour].name);

    return n > CELL ? n : CELL;
}

static const struct lab_card_result *
find(const struct lab_cards_report *report, size_t row, size_t behaviour)
{
    for (size_t i = 0; i < report->n; i++) {
        const struct lab_card_result *r = &report->results[i];

        if (r->way == &lab_ways[row / 2] && r->is_locked == (row % 2 == 1) &&
            r->behaviour == &lab_behaviours[behaviour])
            return r;
    }
    return NULL;
}

static const char *title(size_t row)
{
    return row % 2 == 1 ? "  with a lock" : lab_ways[row / 2].title;
}

static void print_row(const struct lab_cards_report *report, size_t row)
{
    char text[200] = "";
    bool any = false;

    for (size_t b = 0; b < LAB_BEHAVIOURS; b++) {
        const struct lab_card_result *r = find(report, row, b);
        size_t at = strlen(text);
        char cell[32] = "";

        any = any || r != NULL;
        if (r != NULL)
            (void)snprintf(cell, sizeof cell, "%s%c %s", is_right(r) ? "" : "!",
                           r->came_out[0], r->came_out + 1);
        (void)snprintf(text + at, sizeof text - at, "  %-*s", width(b), cell);
    }
    if (any)
        (void)printf("%-*s%s\n", TITLE, title(row), text);
}

static void print_wrong(const struct lab_cards_report *report)
{
    for (size_t i = 0; i < report->n; i++) {
        const struct lab_card_result *r = &report->results[i];

        if (!is_right(r))
            (void)printf("!  %s, %s, %s: must be %s and is %s\n", r->way->name,
                         r->is_locked ? "lock" : "no lock", r->behaviour->name,
                         r->expected, r->came_out);
    }
}

static void print_table(const struct lab_cards_report *report)
{
    (void)printf("\nwhat each way to ask for money prevents, and its calls\n%-*s",
                 TITLE, "");
    for (size_t b = 0; b < LAB_BEHAVIOURS; b++)
        (void)printf("  %-*s", width(b), lab_behaviours[b].name);
    (void)putchar('\n');
    for (size_t row = 0; row < LAB_CARD_ROWS; row++)
        print_row(report, row);
    (void)printf(
        "\n .  charged once, and known to be    X  charged twice: every time\n"
        " d  the same, but not before the gateway forgot the key, a day later\n\n");
    for (size_t b = 0; b < LAB_BEHAVIOURS; b++)
        (void)printf("%-10s %s\n", lab_behaviours[b].name, lab_behaviours[b].title);
    print_wrong(report);
}

static int64_t calls_of(const struct lab_cards_report *report, size_t row)
{
    int64_t calls = 0;

    for (size_t i = 0; i < report->n; i++)
        calls += report->results[i].way == &lab_ways[row / 2] &&
                         report->results[i].is_locked == (row % 2 == 1)
                     ? report->results[i].calls
                     : 0;
    return calls;
}

static void print_saved(const struct lab_cards_report *report)
{
    const double per = 100.0 / LAB_FREE_CHARGES;

    (void)printf(
        "\nwhat the lock saves: calls of the table, and of four workers left to"
        "\nthemselves at a gateway that is well, per 100 charges\n"
        "%-*s %6s %8s %8s %8s\n",
        TITLE, "", "table", "calls", "twice", "away");
    for (size_t row = 0; row < LAB_CARD_ROWS; row++) {
        const struct lab_card_free *f = &report->free[row];

        if (f->calls > 0)
            (void)printf("%-*s %6" PRId64 " %8.0f %8.0f %8.0f%s\n", TITLE, title(row),
                         calls_of(report, row), (double)f->calls * per,
                         (double)f->twice * per, (double)f->away * per,
                         f->is_right ? "" : "  !");
    }
}

void lab_cards_print(const struct lab_cards_report *report)
{
    print_table(report);
    if (report->free_n > 0)
        print_saved(report);
    (void)printf("\nlab: %zu of %zu cells came out as they must\n", report->right,
                 report->n);
}
