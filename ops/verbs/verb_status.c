/* status: backlog, rates and number of workers of each job; the workers; the last
 * incidents. */
#include <stdio.h>

#include "common/base/age.h"
#include "common/base/clock.h"
#include "ops/cli/cli.h"
#include "ops/cli/json.h"
#include "ops/cli/report.h"
#include "worker/jobs/job.h"

enum { SAMPLE_MS = 1000, WATCH_MS = 1000 };

static struct values {
    bool json, watch;
} values;

static const struct cli_flag flags[] = {
    {"json", CLI_BOOL, offsetof(struct values, json), 0, 0,
     "print one JSON document instead of the report"},
    {"watch", CLI_BOOL, offsetof(struct values, watch), 0, 0,
     "print again every two seconds until interrupted"},
    {0},
};

/* ---- gathering ---- */

/* Adds to each job its workers, its pause, its counters and their growth. With run
 * --now the times in the rows may be in the past, so a rate cannot be read from rows:
 * it is the difference of two samples of the counters. */
static int add_more(struct pg *pg, json_t *doc, struct err *e)
{
    json_t *nothing =
               json_pack("{s:i,s:{},s:{}}", "workers", 0, "rates_per_s", "counters"),
           *more = NULL, *job;
    struct pg_result *before, *res = NULL;
    int64_t from = clk_us();
    const char *name;
    int code = pg_exec(pg, SQL_STATUS_COUNTERS, NULL, 0, &before, e);

    if (code == 0) {
        struct pg_param params[] = {pg_text(pg_get_text(before, 0, 0)), {0}};

        clk_pause_ms(SAMPLE_MS);
        params[1] = pg_int8(clk_us() - from);
        code = pg_exec(pg, SQL_STATUS_JOBS, params, 2, &res, e);
    }
    if (code == 0) {
        more = json_loads(pg_get_text(res, 0, 0), 0, NULL);
        if (more == NULL || nothing == NULL)
            code = err_set(e, ERR_NOMEM, "LL-9001 out of memory");
    }
    json_object_foreach(json_object_get(doc, "jobs"), name, job)
    {
        (void)json_object_update(job, nothing);
        (void)json_object_update(job, json_object_get(more, name));
        if (json_is_null(json_object_get(job, "paused")))
            (void)json_object_del(job, "paused");
    }
    json_decref(nothing);
    json_decref(more);
    pg_result_free(before);
    pg_result_free(res);
    return code;
}

/* How long it takes until nothing is due, if the rate stays as it is. */
static int add_burn_down(struct pg *pg, json_t *doc, struct err *e)
{
    json_t *jobs = json_object_get(doc, "jobs");
    int code = 0;

    for (int i = 0; code == 0 && i < JOB_TYPE_CT; i++) {
        const struct job_type *job = job_types[i];
        json_t *of = json_object_get(jobs, job->name);
        const json_t *rates = json_object_get(of, "rates_per_s");
        int64_t rate = 0, to_do;

        for (size_t c = 0; job->counters[c].name != NULL; c++)
            rate +=
                job->counters[c].stays_due ? 0 : doc_int(rates, job->counters[c].name);
        if (rate == 0 || doc_int(of, "due") == 0)
            continue;
        code = job_to_do(job, pg, doc_text(doc, "now"), &to_do, e);
        if (code == 0)
            code =
                doc_put(of, "burn_down_s", json_integer((to_do + rate - 1) / rate), e);
    }
    return code;
}

static int gather(struct pg *pg, json_t *doc, struct err *e)
{
    struct pg_result *res;
    int code;

    if (doc_read(doc, "now", pg, SQL_STATUS_READ_NOW, e) != 0 ||
        doc_jobs(doc, pg, doc_text(doc, "now"), e) != 0 || add_more(pg, doc, e) != 0 ||
        add_burn_down(pg, doc, e) != 0 ||
        doc_read(doc, "workers", pg, SQL_STATUS_WORKERS, e) != 0 ||
        pg_exec(pg, SQL_AUDIT_TOTALS_INCIDENTS, NULL, 0, &res, e) != 0)
        return (int)e->code;
    code = doc_put(doc, "incidents", doc_pairs(res), e);
    pg_result_free(res);
    return code == 0 ? doc_read(doc, "last_incidents", pg, SQL_STATUS_INCIDENTS, e)
                     : code;
}

/* ---- printing ---- */

static void print_job(const char *name, json_t *job)
{
    json_t *rates = json_object_get(job, "rates_per_s"), *n;
    const json_t *paused = json_object_get(job, "paused");
    const char *counter;
    char note[64], old[AGE_TEXT];

    (void)snprintf(note, sizeof note, "JOB %s", name);
    report_heading(note);
    if (paused != NULL)
        (void)printf("  paused since %s by %.20s\n", doc_text(paused, "since"),
                     doc_text(paused, "by"));
    if (doc_text(paused, "reason")[0] != '\0')
        (void)printf("  because: %.69s\n", doc_text(paused, "reason"));
    report_line("workers", doc_int(job, "workers"), "");
    (void)snprintf(note, sizeof note, "oldest for %s",
                   age_text(doc_int(job, "oldest_due_ms"), old));
    report_line("due", doc_int(job, "due"), doc_int(job, "due") > 0 ? note : "");
    if (json_object_get(job, "burn_down_s") != NULL)
        (void)printf("  all due rows in about %s, at the rate of the last second\n",
                     age_text(doc_int(job, "burn_down_s") * 1000, old));
    report_line("future", doc_int(job, "future"), "");
    report_line("parked", doc_int(job, "parked"), "");
    json_object_foreach(json_object_get(job, "counters"), counter, n)
    {
        (void)snprintf(note, sizeof note, "%lld per second", doc_int(rates, counter));
        report_line(counter, json_integer_value(n),
                    doc_int(rates, counter) > 0 ? note : "");
    }
}

static void print_workers(json_t *workers)
{
    char seen[AGE_TEXT], up[AGE_TEXT];
    size_t i;
    json_t *w;

    report_heading("WORKERS");
    if (json_array_size(workers) == 0)
        (void)puts("  none seen within ten seconds");
    else
        (void)printf("  %-16s %-10s %4s %7s %7s %10s %9s %8s\n", "pool", "job", "slot",
                     "pid", "seen", "up", "batches", "busy");
    json_array_foreach(workers, i, w)
    {
        (void)printf("  %-16.16s %-10.10s %4lld %7lld %7s %10s %9lld %8lld\n",
                     doc_text(w, "pool"), doc_text(w, "job"), doc_int(w, "slot"),
                     doc_int(w, "pid"), age_text(doc_int(w, "seen_ms"), seen),
                     age_text(doc_int(w, "up_s") * 1000, up), doc_int(w, "batches"),
                     doc_int(w, "busy"));
    }
}

static void print_incidents(const json_t *doc)
{
    json_t *last = json_object_get(doc, "last_incidents"), *row;
    size_t i;

    report_heading("INCIDENTS");
    report_members("", json_object_get(doc, "incidents"));
    if (json_array_size(last) == 0)
        (void)puts("  none");
    json_array_foreach(last, i, row)
    {
        (void)printf("  %s %s %s\n", doc_text(row, "at"), doc_text(row, "kind"),
                     doc_text(row, "resource"));
    }
}

static void print(const json_t *doc)
{
    const char *name;
    json_t *job;

    (void)printf("ledgerlock status at %s\n", doc_text(doc, "now"));
    json_object_foreach(json_object_get(doc, "jobs"), name, job)
    {
        print_job(name, job);
    }
    print_workers(json_object_get(doc, "workers"));
    print_incidents(doc);
}

/* ---- the verb ---- */

static int show(struct pg *pg, struct err *e)
{
    json_t *doc = json_object();
    int code = gather(pg, doc, e);

    if (code == 0)
        doc_show(doc, values.json, print);
    (void)fflush(stdout);
    json_decref(doc);
    return code;
}

static int watch(struct pg *pg, void *arg, struct err *e)
{
    int code = show(pg, e);

    (void)arg;
    while (code == 0 && values.watch && ferror(stdout) == 0) {
        clk_pause_ms(WATCH_MS);
        (void)putchar('\n');
        code = show(pg, e);
    }
    return code;
}

static enum exit_code run(const struct config *c, int argc, char **argv)
{
    (void)argc;
    (void)argv;
    return cli_on_tables(c, "status", watch, NULL);
}

const struct cli_verb verb_status = {
    .name = "status",
    .who = "members of ledgerlock_reader",
    .sentence = "shows the backlog, rates, workers and incidents",
    .example = "ledgerlock status --json",
    .flags = flags,
    .values = &values,
    .run = run,
};
