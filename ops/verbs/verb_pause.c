/* pause and resume: stop all pools on the database from working a job, without a
 * restart, and let them go on. */
#include <stdio.h>
#include <string.h>

#include "common/base/registry.h"
#include "ops/cli/cli.h"
#include "worker/jobs/job.h"

#define JOB_WORD(name, ...) #name " "

static struct values {
    const char *reason;
} values = {.reason = ""};

static const struct cli_flag flags[] = {
    {"reason", CLI_TEXT, offsetof(struct values, reason), 0, 0,
     "kept beside the pause, and shown by `status` and `explain`"},
    {0},
};

/* Since when and by whom a job is paused; nothing if it is not. */
static int pause_job(struct pg *pg, void *job, struct err *e)
{
    const struct pg_param params[] = {pg_text(job), pg_text(values.reason)};
    struct pg_result *res;

    if (pg_exec(pg, SQL_PAUSE_STOP_JOB, params, 2, NULL, e) != 0 ||
        pg_exec(pg, SQL_PAUSE_LIST_JOBS, NULL, 0, &res, e) != 0)
        return (int)e->code;
    cli_progress_end();
    for (size_t i = 0; i < pg_rows(res); i++) {
        const char *reason = pg_get_text(res, i, 3);

        if (strcmp(pg_get_text(res, i, 0), job) == 0)
            (void)printf("%s is paused since %s by %s%s%s\n", pg_get_text(res, i, 0),
                         pg_get_text(res, i, 1), pg_get_text(res, i, 2),
                         reason[0] != '\0' ? ": " : "", reason);
    }
    pg_result_free(res);
    return 0;
}

static int resume_job(struct pg *pg, void *job, struct err *e)
{
    const struct pg_param name = pg_text(job);
    int64_t was_paused;

    if (pg_ask(pg, SQL_PAUSE_RESUME_JOB, &name, 1, &was_paused, e) != 0)
        return (int)e->code;
    cli_progress_end();
    (void)printf(was_paused != 0 ? "%s is resumed\n" : "%s was not paused\n",
                 (const char *)job);
    return 0;
}

static enum exit_code
run(const struct config *c, const char *verb, cli_work *change, int argc, char **argv)
{
    if (argc != 1)
        return cli_usage(verb, "LL-1017 it takes the name of a job");
    for (size_t i = 0; i < JOB_TYPE_CT; i++) {
        if (strcmp(job_types[i]->name, argv[0]) == 0)
            return cli_on_tables(c, verb, change, argv[0]);
    }
    return cli_usage(verb, "LL-1017 no job is called \"%.40s\"", argv[0]);
}

static enum exit_code run_pause(const struct config *c, int argc, char **argv)
{
    return run(c, "pause", pause_job, argc, argv);
}

static enum exit_code run_resume(const struct config *c, int argc, char **argv)
{
    return run(c, "resume", resume_job, argc, argv);
}

const struct cli_verb verb_pause = {
    .name = "pause",
    .who = "members of ledgerlock_support",
    .use = "JOB",
    .sentence = "stops all pools from working a job, until it is resumed",
    .example = "ledgerlock pause billing --reason 'the bank is closed'",
    .flags = flags,
    .values = &values,
    .run = run_pause,
    .max_words = 1,
    .words = JOB_TYPES(JOB_WORD),
};

const struct cli_verb verb_resume = {
    .name = "resume",
    .who = "members of ledgerlock_support",
    .use = "JOB",
    .sentence = "lets the pools work a paused job again",
    .example = "ledgerlock resume billing",
    .run = run_resume,
    .max_words = 1,
    .words = JOB_TYPES(JOB_WORD),
};
