/* main: the program ledgerlock-bench: picks what to measure, and prints what came out.
 */
#include <signal.h>
#include <stdio.h>
#include <string.h>

#include "labs/bench/bench.h"
#include "ops/cli/json.h"

enum { LOCKS_SECONDS = 3 };

static struct bench_flags flags = {.repetitions = 5, .calls = 1000, .in_flight = 1};

/* clang-format off */
static const struct cli_flag rows[] = {
    {"rows",        CLI_INT,  offsetof(struct bench_flags, rows),        100, 100000000, "subscriptions, orders or buyers that are made"},
    {"shuffled",    CLI_BOOL, offsetof(struct bench_flags, shuffled),    0, 0,   "rows lie in no order of their ids; else in the order in which users signed up"},
    {"seconds",     CLI_INT,  offsetof(struct bench_flags, seconds),     1, 3600, "length of a timed part (default 10, locks 3), or most of a burn-down (default 600)"},
    {"steady",      CLI_BOOL, offsetof(struct bench_flags, steady),      0, 0,   "billing: every row is many periods behind, for --seconds; else burn down one each"},
    {"keep",        CLI_BOOL, offsetof(struct bench_flags, keep),        0, 0,   "billing: go on over the rows of an earlier --steady run: nothing is wiped, filled or checkpointed"},
    {"load-only",   CLI_BOOL, offsetof(struct bench_flags, load_only),   0, 0,   "wipe and fill, for something else to measure on"},
    {"no-audit",    CLI_BOOL, offsetof(struct bench_flags, no_audit),    0, 0,   "leave out the proof at the end"},
    {"repetitions", CLI_INT,  offsetof(struct bench_flags, repetitions), 1, 99,  "locks: medians are over this many"},
    {"quorum",      CLI_TEXT, offsetof(struct bench_flags, quorum),      0, 0,   "locks: three Redis URLs, by commas: also measure a quorum"},
    {"calls",       CLI_INT,  offsetof(struct bench_flags, calls),       1, 100000000, "calls: so many are made (default 1000)"},
    {"in-flight",   CLI_INT,  offsetof(struct bench_flags, in_flight),   1, 10000, "calls: so many are under way at once (default 1)"},
    {"json",        CLI_BOOL, offsetof(struct bench_flags, json),        0, 0,   "print one JSON document instead of the report"},
    {NULL,          CLI_BOOL, 0, 0, 0, NULL},
};

/* clang-format on */

/* ---- the report ---- */

/* "wal_bytes_per_charge" reads "wal bytes per charge". */
static void print_name(const char *key)
{
    char name[41];

    (void)snprintf(name, sizeof name, "%s", key);
    for (char *p = name; *p != '\0'; p++) {
        if (*p == '_')
            *p = ' ';
    }
    (void)printf("  %-40s ", name);
}

/* Rows of "name  value" under each section, in the order they were measured. */
static void print_section(const char *title, const json_t *section)
{
    const char *key;
    json_t *value;

    (void)printf("\n%s\n", title);
    json_object_foreach((json_t *)(uintptr_t)section, key, value)
    {
        print_name(key);
        if (json_is_string(value))
            (void)printf("%s\n", json_string_value(value));
        else if (json_is_boolean(value))
            (void)printf("%s\n", json_is_true(value) ? "yes" : "no");
        else if (json_is_integer(value))
            (void)printf("%lld\n", (long long)json_integer_value(value));
        else
            (void)printf("%.*f\n", json_real_value(value) < 0.1 ? 5 : 2,
                         json_real_value(value));
    }
}

static void print(const json_t *doc)
{
    const char *key;
    json_t *value;

    if (flags.json) {
        (void)json_dumpf(doc, stdout, JSON_INDENT(2) | JSON_REAL_PRECISION(6));
        (void)putchar('\n');
        return;
    }
    json_object_foreach((json_t *)(uintptr_t)doc, key, value) print_section(key, value);
}

/* ---- the verb ---- */

static enum exit_code wrong_flags(const struct bench_mode *mode)
{
    if (mode == NULL &&
        (flags.rows != 0 || flags.steady || flags.load_only || flags.shuffled))
        return cli_usage(
            "bench",
            "locks and calls take no --rows, --shuffled, --steady or --load-only");
    if (mode != NULL && flags.steady && strcmp(mode->job, "billing") != 0)
        return cli_usage("bench", "--steady is for billing: an order is served once");
    if (flags.keep &&
        (!flags.steady || flags.load_only || flags.rows != 0 || flags.shuffled))
        return cli_usage("bench",
                         "--keep goes with --steady and takes the rows that are there");
    return EXIT_OK;
}

static enum exit_code run(const struct config *c, int argc, char **argv)
{
    const struct bench_mode *mode = argc == 1 ? bench_find(argv[0]) : NULL;
    bool is_calls = argc == 1 && strcmp(argv[0], "calls") == 0;
    enum exit_code code = EXIT_OK;
    struct err e = {0};
    json_t *doc;

    if (mode == NULL && !is_calls && (argc != 1 || strcmp(argv[0], "locks") != 0))
        return cli_usage("bench",
                         "say what to measure: billing, orders, hot-sku, locks, calls");
    if (wrong_flags(mode) != EXIT_OK)
        return EXIT_USAGE;
    if (mode == NULL && flags.seconds == 0)
        flags.seconds = LOCKS_SECONDS;
    doc = json_object();
    if (doc == NULL)
        (void)err_set(&e, ERR_NOMEM, "out of memory");
    else if (mode != NULL)
        (void)!bench_pool(c, &flags, mode, doc, &code, &e);
    else if (is_calls)
        (void)!bench_calls(c, &flags, doc, &e);
    else if (bench_describe(NULL, c, doc, &e) == 0)
        (void)!bench_locks(c, &flags, doc, &e);
    if (e.code == ERR_OK)
        print(doc);
    else if (code == EXIT_OK)
        code = cli_fail(&e);
    else
        (void)cli_fail(&e);
    json_decref(doc);
    return code;
}

static const struct cli_verb verb_bench = {
    .name = "bench",
    .use = "billing|orders|hot-sku|locks|calls",
    .sentence =
        "measures, in a database marked for it: billing, orders, hot-sku; without one: locks, calls",
    .example = "ledgerlock-bench billing --workers 4 --batch 500 --rows 200000",
    .flags = rows,
    .values = &flags,
    .run = run,
    .max_words = 1,
};

static const struct cli_verb *const verbs[] = {&verb_bench};

static const struct cli_program program = {
    .name = "ledgerlock-bench",
    .sentence = "measures the locks and the pool",
    .verbs = verbs,
    .verb_ct = 1,
};

int main(int argc, char **argv)
{
    (void)signal(SIGPIPE, SIG_IGN);
    return (int)cli_main(&program, argc, argv);
}
