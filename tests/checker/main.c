/* checker: whether the final tables and the histories of the workers can both be true.
 * It shares no code with the workers; it reads rows, lines and the clock of periods for
 * itself. */
#include <getopt.h>
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
    "               [--set-aside N] [--kills] [--quorum] [--lease-ms MS]\n"
    "               [--first SQL]\n\n"
    "Compares the final tables with what the workers of a test build wrote into\n"
    "FOLDER (LL_TEST_HISTORY). Exit code 0: everything holds, 1: a rule is\n"
    "broken, 2: usage, 3: the check could not be made.\n\n"
    "  --now TIME      the instant that the pool was given as --now\n"
    "  --bound-ms MS   longest time until work is taken up again\n"
    "  --set-aside N   rows that may be parked (default 0)\n"
    "  --lease-ms MS   longest lease of a lock (default 0): what Redis forgot is forgiven\n"
    "                  to those who took it so long before\n"
    "  --first SQL     is done before the rows are read, and undone\n"
    "  --kills         workers were killed that no line tells of: an invoke may lack\n"
    "                  its end\n"
    "  --quorum        the locks were those of several servers: batches of different\n"
    "                  rows may have one token\n";

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

void *room_for(size_t n, size_t size)
{
    void *room = calloc(n + 1, size);

    if (room == NULL)
        die("out of memory");
    return room;
}

size_t first_from(const void *elements, size_t n, size_t size, int64_t key)
{
    size_t low = 0, high = n;

    while (low < high) {
        size_t middle = (low + high) / 2;
        int64_t found;

        memcpy(&found, (const char *)elements + middle * size, sizeof found);
        low = found < key ? middle + 1 : low;
        high = found < key ? high : middle;
    }
    return low;
}

static void tell_history(const struct history *h, int64_t longest_us)
{
    size_t n[END_UNKNOWN + 1] = {0};

    for (size_t i = 0; i < h->n; i++)
        n[h->attempts[i].end]++;
    (void)printf("history: %zu workers, %zu invokes, %zu ok, %zu fail, %zu unknown, %zu"
                 " without an end, %zu lines torn; longest recovery " N " ms\n",
                 h->workers, h->n, n[END_OK], n[END_FAIL], n[END_UNKNOWN], n[END_NONE],
                 h->torn, longest_us / 1000);
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
    const char *url, *folder, *now, *first;
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
        {"lease-ms", required_argument, NULL, 'l'},
        {"first", required_argument, NULL, 'f'},
        {"kills", no_argument, NULL, 'k'},
        {"quorum", no_argument, NULL, 'q'},
        {NULL, 0, NULL, 0},
    };
    int c;

    while ((c = getopt_long(argc, argv, "", options, NULL)) != -1) {
        int64_t n = optarg != NULL ? strtoll(optarg, NULL, 10) : 0;

        o->url = c == 'p' ? optarg : o->url;
        o->folder = c == 'h' ? optarg : o->folder;
        o->now = c == 'n' ? optarg : o->now;
        o->first = c == 'f' ? optarg : o->first;
        o->limits.lease_us = c == 'l' ? n * 1000 : o->limits.lease_us;
        o->limits.bound_us = c == 'b' ? n * 1000 : o->limits.bound_us;
        o->limits.set_aside = c == 's' ? n : o->limits.set_aside;
        o->limits.kills = c == 'k' || o->limits.kills;
        o->limits.quorum = c == 'q' || o->limits.quorum;
        if (c == '?')
            return 2;
    }
    return o->url != NULL && optind == argc ? 0 : 2;
}

static void check_history(const struct tables *t, const struct order *order)
{
    const struct limits *limits = &order->limits;
    struct history h = {0};
    bool in_parts;

    history_read(&h, order->folder);
    in_parts = limits->set_aside > 0 || limits->kills ||
               history_mark(&h, MARK_KILLED, 0, 0) != INT64_MAX;
    rules_of_tokens(t, &h, in_parts);
    rules_of_truth(t, &h);
    rules_of_keys(&h, limits);
    tell_history(&h, rules_of_history(t, &h, limits));
    history_free(&h);
}

int main(int argc, char **argv)
{
    struct order order = {0};
    struct tables tables = {0};

    if (parse(&order, argc, argv) != 0) {
        (void)fputs(usage, stderr);
        return 2;
    }
    tables_read(&tables, order.url, order.now, order.first);
    rules_of_tables(&tables, &order.limits);
    (void)printf("tables: %zu charges, %zu orders, %zu subscriptions\n",
                 tables.charges.rows, tables.orders.rows, tables.subs.rows);
    if (order.folder != NULL)
        check_history(&tables, &order);
    tables_free(&tables);
    return conclude();
}
