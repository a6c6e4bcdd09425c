/* bench: the verb; one mode a word. Figures only from what was really done. */
#include "worker/bench.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/utsname.h>
#include <unistd.h>

#include "worker/jdoc.h"

static struct bench_flags flags = {.seconds = 3, .repetitions = 5};

/* clang-format off */
static const struct cli_flag rows[] = {
    {"seconds",     CLI_INT,  offsetof(struct bench_flags, seconds),     1, 600, "length of each timed part"},
    {"repetitions", CLI_INT,  offsetof(struct bench_flags, repetitions), 1, 99,  "medians are over this many"},
    {"quorum",      CLI_TEXT, offsetof(struct bench_flags, quorum),      0, 0,   "three Redis URLs, by commas: also measure a quorum"},
    {"json",        CLI_BOOL, offsetof(struct bench_flags, json),        0, 0,   "print one JSON document instead of the report"},
    {NULL,          CLI_BOOL, 0, 0, 0, NULL},
};

/* clang-format on */

static int by_value(const void *a, const void *b)
{
    double x = *(const double *)a, y = *(const double *)b;

    return x < y ? -1 : x > y;
}

double bench_median(double *values, size_t n)
{
    qsort(values, n, sizeof *values, by_value);
    return n % 2 == 1 ? values[n / 2] : (values[n / 2 - 1] + values[n / 2]) / 2;
}

static int add_machine(json_t *doc, struct err *e)
{
    struct utsname u;
    long cores = sysconf(_SC_NPROCESSORS_ONLN);

    if (uname(&u) != 0)
        return err_set(e, ERR_BUG, "uname failed");
    return jdoc_put(doc, "machine",
                    json_pack("{s:s,s:s,s:s,s:I}", "system", u.sysname, "release",
                              u.release, "arch", u.machine, "cores", (json_int_t)cores),
                    e);
}

/* Rows of "name  value" under each section, in the order they were measured. */
static void print_section(const char *title, const json_t *section)
{
    const char *key;
    json_t *value;

    (void)printf("\n%s\n", title);
    json_object_foreach((json_t *)(uintptr_t)section, key, value)
    {
        if (json_is_string(value))
            (void)printf("  %-40s %s\n", key, json_string_value(value));
        else if (json_is_integer(value))
            (void)printf("  %-40s %lld\n", key, (long long)json_integer_value(value));
        else
            (void)printf("  %-40s %.2f\n", key, json_real_value(value));
    }
}

static void print(const json_t *doc)
{
    const char *key;
    json_t *value;

    json_object_foreach((json_t *)(uintptr_t)doc, key, value) print_section(key, value);
}

static enum exit_code run(const struct config *c, int argc, char **argv)
{
    struct err e = {0};
    json_t *doc;
    int code;

    if (argc != 1 || strcmp(argv[0], "locks") != 0)
        return cli_usage("bench", "say what to measure: locks");
    doc = json_object();
    code = doc == NULL ? err_set(&e, ERR_NOMEM, "out of memory") : add_machine(doc, &e);
    if (code == 0)
        code = bench_locks(c, &flags, doc, &e);
    if (code == 0 && flags.json)
        (void)(json_dumpf(doc, stdout, JSON_INDENT(2) | JSON_REAL_PRECISION(6)),
               putchar('\n'));
    else if (code == 0)
        print(doc);
    json_decref(doc);
    return code == 0 ? EXIT_OK : cli_fail(&e);
}

const struct cli_verb verb_bench = {
    .name = "bench",
    .sentence = "measures: `locks`, the lock library beside plain hiredis",
    .example = "ledgerlock bench locks --repetitions 5",
    .flags = rows,
    .values = &flags,
    .run = run,
    .max_words = 1,
};
