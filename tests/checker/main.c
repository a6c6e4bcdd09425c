/* checker: whether the final tables and the histories of the workers can both be true.
 * It shares no code with the workers; it reads rows, lines and the clock of periods for
 * itself. */
#include <getopt.h>
#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "tests/checker/rules.h"
#include "tests/checker/say.h"

enum { SHOWN = 5, RULES = 32 };

static struct {
    const char *rule;
    unsigned n;
} counts[RULES];

static const char usage[] =
    "Usage: checker --postgres URL [--history FOLDER] [--now TIME] [--bound-ms MS]\n"
    "               [--set-aside N] [--kills]\n\n"
    "Compares the final tables with what the workers of a test build wrote into\n"
    "FOLDER (LEDGERLOCK_TEST_HISTORY). Exit code 0: everything holds, 1: a rule is\n"
    "broken, 2: usage, 3: the check could not be made.\n\n"
    "  --now TIME      the instant that the pool was given as --now\n"
    "  --bound-ms MS   longest time until work is taken up again\n"
    "  --set-aside N   rows that may be parked (default 0)\n"
    "  --kills         workers were killed that no line tells of: an invoke may lack\n"
    "                  its end\n";

void broken(const char *rule, const char *fmt, ...)
{
    size_t i = 0;
    va_list ap;

    while (counts[i].rule != NULL && strcmp(counts[i].rule, rule) != 0)
        i++;
    counts[i].rule = rule;
    if (++counts[i].n > SHOWN)
        return;
    (void)printf("broken: %s: ", rule);
    va_start(ap, fmt);
    (void)vprintf(fmt, ap);
    va_end(ap);
    (void)printf("\n");
}

unsigned broken_ct(void)
{
    unsigned n = 0;

    for (size_t i = 0; i < RULES; i++)
        n += counts[i].n;
    return n;
}

void die(const char *fmt, ...)
{
    va_list ap;

    (void)fprintf(stderr, "checker: ");
    va_start(ap, fmt);
    (void)vfprintf(stderr, fmt, ap);
    va_end(ap);
    (void)fprintf(stderr, "\n");
    exit(3);
}

static size_t count_ends(const struct history *h, enum end end)
{
    size_t n = 0;

    for (size_t i = 0; i < h->n; i++)
        n += h->attempts[i].end == end;
    return n;
}

static void tell_history(const struct history *h, int64_t longest_us)
{
    (void)printf("history: %zu workers, %zu invokes, %zu ok, %zu fail, %zu unknown, %zu"
                 " without an end, %zu lines torn; longest recovery %" PRId64 " ms\n",
                 h->workers, h->n, count_ends(h, END_OK), count_ends(h, END_FAIL),
                 count_ends(h, END_UNKNOWN), count_ends(h, END_NONE), h->torn,
                 longest_us / 1000);
}

static int conclude(void)
{
    for (size_t i = 0; i < RULES && counts[i].rule != NULL; i++) {
        if (counts[i].n > SHOWN)
            (void)printf("broken: %s: %u times\n", counts[i].rule, counts[i].n);
    }
    (void)printf("checker: %u broken\n", broken_ct());
    return broken_ct() == 0 ? 0 : 1;
}

/* The words of the command line. */
struct order {
    const char *url, *folder, *now;
    struct limits limits;
};

static int parse(struct order *o, int argc, char **argv)
{
    static const struct option options[] = {
        {"postgres", required_argument, NULL, 'p'},
        {"history", required_argument, NULL, 'h'},
        {"now", required_argument, NULL, 'n'},
        {"bound-ms", required_argument, NULL, 'b'},
        {"set-aside", required_argument, NULL, 's'},
        {"kills", no_argument, NULL, 'k'},
        {NULL, 0, NULL, 0},
    };
    int c;

    while ((c = getopt_long(argc, argv, "", options, NULL)) != -1) {
        o->url = c == 'p' ? optarg : o->url;
        o->folder = c == 'h' ? optarg : o->folder;
        o->now = c == 'n' ? optarg : o->now;
        o->limits.kills = o->limits.kills || c == 'k';
        if (c == 'b')
            o->limits.bound_us = strtoll(optarg, NULL, 10) * 1000;
        if (c == 's')
            o->limits.set_aside = strtoll(optarg, NULL, 10);
        if (c == '?')
            return 2;
    }
    return o->url != NULL && optind == argc ? 0 : 2;
}

int main(int argc, char **argv)
{
    struct order order = {0};
    struct tables tables = {0};
    struct history history = {0};

    if (parse(&order, argc, argv) != 0) {
        (void)fputs(usage, stderr);
        return 2;
    }
    tables_read(&tables, order.url, order.now);
    rules_of_tables(&tables, &order.limits);
    (void)printf("tables: %zu charges, %zu orders, %zu subscriptions\n",
                 tables.charges.rows, tables.orders.rows, tables.subs.rows);
    if (order.folder != NULL) {
        history_read(&history, order.folder);
        rules_of_tokens(&tables, &history, &order.limits);
        tell_history(&history, rules_of_history(&tables, &history, &order.limits));
    }
    tables_free(&tables);
    history_free(&history);
    return conclude();
}
