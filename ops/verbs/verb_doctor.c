/* doctor: runs every check and prints what it found. */
#include <stdio.h>

#include "ops/cli/cli.h"
#include "ops/cli/json.h"
#include "ops/doctor/doctor.h"

static struct values {
    bool json;
} values;

static const struct cli_flag flags[] = {
    {"json", CLI_BOOL, offsetof(struct values, json), 0, 0,
     "print one JSON document instead of the lines"},
    {0},
};

static const char *const words[] = {"OK", "WARN", "FAIL", "SKIP"};

static void print(const char *name, const struct finding *f)
{
    (void)printf("%-4s  %-20s  %s\n", words[f->verdict], name, f->says);
    if (f->remedy != NULL)
        (void)printf("      %-20s  -> %s\n", "", f->remedy);
}

static json_t *document(const char *name, const struct finding *f)
{
    return json_pack("{s:s,s:s,s:s,s:s?}", "check", name, "verdict", words[f->verdict],
                     "says", f->says, "remedy", f->remedy);
}

static void run_checks(struct doctor *d,
                       const struct check *checks,
                       json_t *rows,
                       int counts[VERDICTS])
{
    for (size_t i = 0; checks[i].name != NULL; i++) {
        struct finding f = {0};

        cli_progress("%s", checks[i].name);
        if (checks[i].run != NULL)
            checks[i].run(d, &f);
        else
            find_row(d, checks[i].name, &f);
        cli_progress_end();
        counts[f.verdict]++;
        if (values.json)
            (void)json_array_append_new(rows, document(checks[i].name, &f));
        else
            print(checks[i].name, &f);
    }
}

static enum exit_code run(const struct config *c, int argc, char **argv)
{
    static const struct check *const lists[] = {checks_of_postgres, checks_of_redis,
                                                checks_of_host};
    struct doctor d = {.config = c};
    json_t *doc = json_pack("{s:[]}", "checks");
    int counts[VERDICTS] = {0};

    (void)argc;
    (void)argv;
    for (size_t i = 0; i < sizeof lists / sizeof lists[0]; i++)
        run_checks(&d, lists[i], json_object_get(doc, "checks"), counts);
    if (values.json)
        doc_print(doc);
    else
        (void)printf("doctor: %d ok, %d to look at, %d failed, %d skipped\n",
                     counts[CHECK_OK], counts[CHECK_WARN], counts[CHECK_FAIL],
                     counts[CHECK_SKIP]);
    json_decref(doc);
    pg_result_free(d.server);
    pg_result_free(d.tables);
    pg_close(d.pg);
    session_close(&d.session);
    return counts[CHECK_FAIL] > 0 ? EXIT_AUDIT : EXIT_OK;
}

const struct cli_verb verb_doctor = {
    .name = "doctor",
    .sentence =
        "checks settings, servers and tables; says what is wrong and what to do",
    .example = "ledgerlock doctor",
    .flags = flags,
    .values = &values,
    .run = run,
};
