/* status: verdict, backlog, rates, workers, waits, parked rows, stock and incidents, as
 * they stand in the tables; once, or again and again. */
#define _DEFAULT_SOURCE
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <unistd.h>

#include "common/base/cells.h"
#include "common/base/clock.h"
#include "ops/cli/cli.h"
#include "ops/cli/json.h"
#include "ops/cli/view.h"
#include "ops/verbs/status_text.h"
#include "ops/verbs/verb_cells.h"
#include "worker/jobs/job.h"

enum { EACH_MS = 1000, STALE_MS = 12000 };

static struct values {
    bool json, watch;
} values;

static const struct cli_flag flags[] = {
    {"json", CLI_BOOL, offsetof(struct values, json), 0, 0,
     "print one JSON document instead of the report"},
    {"watch", CLI_BOOL, offsetof(struct values, watch), 0, 0,
     "print again every second until interrupted"},
    {0},
};

/* The tables as they were read. With --watch a thread reads again and again, so that a
 * server that does not answer stops no clock. */
static struct reading {
    const struct config *config;
    json_t *before; /* the counters of the reading before, by job */
    int64_t before_us;
    pthread_mutex_t mutex; /* of all below */
    json_t *doc;
    int64_t read_ms;
    int64_t stale_ms;  /* it is read again before it is so old */
    char trouble[300]; /* why it is not newer; "" */
} reading = {.mutex = PTHREAD_MUTEX_INITIALIZER};

/* ---- reading ---- */

/* A counter that began anew has not grown. */
static json_int_t per_second(json_int_t grown, int64_t passed_us)
{
    return grown > 0 ? (json_int_t)((double)grown * 1e6 / (double)passed_us) : 0;
}

/* Adds to each job its workers, its counters and their growth a second since the
 * reading before. With run --now the times in the rows may be in the past, so a rate
 * cannot be read from rows. */
static int add_more(struct reading *r, json_t *doc, struct err *e)
{
    json_t *working = json_object_get(doc, "working"), *counted, *job, *n;
    int64_t now_us = clk_us(), passed_us = now_us - r->before_us + 1;
    const char *name, *counter;
    int code = 0;

    counted = json_incref(json_object_get(doc, "counted"));
    json_object_foreach(json_object_get(doc, "jobs"), name, job)
    {
        json_t *counters = json_object_get(counted, name), *rates = json_object();
        const json_t *before = json_object_get(r->before, name);

        json_object_foreach(counters, counter, n)
        {
            json_int_t grown = json_integer_value(n) - doc_int(before, counter);

            if (code == 0)
                code = doc_put(rates, counter,
                               json_integer(per_second(grown, passed_us)), e);
        }
        if (code == 0)
            code = doc_put(job, "workers", json_integer(doc_int(working, name)), e);
        if (code == 0)
            code = doc_put(job, "counters",
                           counters != NULL ? json_incref(counters) : json_object(), e);
        if (code == 0)
            code = doc_put(job, "rates_per_s", json_incref(rates), e);
        json_decref(rates);
    }
    json_decref(r->before);
    r->before = counted;
    r->before_us = now_us;
    (void)json_object_del(doc, "counted");
    (void)json_object_del(doc, "working");
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

static int gather(struct pg *pg, struct reading *r, json_t **out, struct err *e)
{
    int code = view_read_tables(pg, NULL, out, e);
    bool is_first;

    if (code != 0)
        return code;
    is_first = r->before == NULL;
    if (add_more(r, *out, e) != 0 || is_first)
        return (int)e->code;
    return add_burn_down(pg, *out, e);
}

static void note_trouble(struct reading *r, const char *words)
{
    (void)pthread_mutex_lock(&r->mutex);
    (void)snprintf(r->trouble, sizeof r->trouble, "%.299s", words);
    (void)pthread_mutex_unlock(&r->mutex);
}

/* Takes the new document in the place of the one before, or notes why there is none. */
static int read_tables(struct pg *pg, struct reading *r, struct err *e)
{
    int64_t begun_ms = clk_ms();
    json_t *doc = NULL;
    int code = gather(pg, r, &doc, e);

    note_trouble(r, code == 0 ? "" : e->msg);
    if (code != 0) {
        json_decref(doc);
        return code;
    }
    (void)pthread_mutex_lock(&r->mutex);
    json_decref(r->doc);
    r->doc = doc;
    r->read_ms = begun_ms;
    r->stale_ms = STALE_MS + (2 + 2 * VIEW_REST_WATCHED) * (clk_ms() - begun_ms);
    (void)pthread_mutex_unlock(&r->mutex);
    return 0;
}

/* A server that is gone for a while is asked again. */
static void *read_again_and_again(void *arg)
{
    struct reading *r = arg;
    struct pg *pg = NULL;

    for (;;) {
        struct err e = {0};
        bool is_first = !pg_is_usable(pg);
        int64_t begun_ms = clk_ms();

        if (view_connect(r->config, "status", &pg, &e) != 0)
            note_trouble(r, e.msg);
        else
            (void)!read_tables(pg, r, &e);
        view_drop(&pg, &e);
        if (e.code == ERR_CONFLICT || e.code == ERR_CONN)
            begun_ms = clk_ms(); /* that has cost nobody anything */
        clk_pause_ms(view_pause_ms(VIEW_REST_WATCHED, is_first, clk_ms() - begun_ms));
    }
    return NULL;
}

/* ---- the verb ---- */

/* The text that is watched on a terminal takes the place of the one before. */
static void show(struct reading *r)
{
    struct status_view v = {.is_watched = values.watch,
                            .age_ms = clk_ms() - r->read_ms,
                            .stale_ms = r->stale_ms,
                            .trouble = r->trouble};
    struct winsize size;

    if (values.watch && isatty(STDOUT_FILENO) == 1 &&
        ioctl(STDOUT_FILENO, TIOCGWINSZ, &size) == 0 && size.ws_row > 1) {
        v.lines = (size_t)size.ws_row - 1;
        v.columns = size.ws_col;
    }
    cli_progress_end();
    if (values.json) {
        (void)json_object_set_new(r->doc, "age_ms", json_integer(v.age_ms));
        (void)json_object_set_new(r->doc, "trouble", doc_string(r->trouble));
        doc_print(r->doc);
    } else {
        (void)fputs(v.lines > 0 ? "\033[H\033[J" : "", stdout);
        status_print(r->doc, &v);
        (void)fputs(values.watch && v.lines == 0 ? "\n" : "", stdout);
    }
    (void)fflush(stdout);
}

/* Until nobody reads what is printed. */
static int watch(struct reading *r, struct err *e)
{
    pthread_t thread;

    if (pthread_create(&thread, NULL, read_again_and_again, r) != 0)
        return err_set(e, ERR_NOMEM, "LL-9001 out of memory");
    while (ferror(stdout) == 0) {
        (void)pthread_mutex_lock(&r->mutex);
        show(r);
        (void)pthread_mutex_unlock(&r->mutex);
        clk_pause_ms(EACH_MS);
    }
    return 0;
}

static int work(struct pg *pg, void *arg, struct err *e)
{
    struct reading *r = arg;
    int code = read_tables(pg, r, e);

    if (code == 0) {
        clk_pause_ms(EACH_MS); /* a rate is of two readings */
        code = read_tables(pg, r, e);
    }
    if (code == 0 && values.watch)
        return watch(r, e);
    if (code == 0)
        show(r);
    json_decref(r->doc);
    json_decref(r->before);
    return code;
}

static enum exit_code run(const struct config *c, int argc, char **argv)
{
    static struct cells cells;
    static struct config own;
    struct err e = {0};

    (void)argc;
    (void)argv;
    if (cells_read(c, &cells, &e) != 0)
        return cli_fail(&e);
    if (cells.n > 1)
        return cells_show(c, values.json, values.watch);
    own = *c;
    if (cells.n == 1)
        cells_enter(c, &cells.of[0], &own);
    reading.config = &own;
    return cli_on_tables(&own, "status", work, &reading);
}

const struct cli_verb verb_status = {
    .name = "status",
    .who = "members of ledgerlock_reader",
    .sentence = "shows the verdict, backlog, rates, workers, stock and incidents",
    .example = "ledgerlock status --watch",
    .flags = flags,
    .values = &values,
    .run = run,
    .all_cells = true,
};
