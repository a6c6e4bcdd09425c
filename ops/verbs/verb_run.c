/* run: the verb that starts the pool, after both servers were checked once. */
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "common/base/cells.h"
#include "common/base/clock.h"
#include "common/base/log.h"
#include "common/base/registry.h"
#include "common/base/timestamp.h"
#include "ops/cli/cli.h"
#include "ops/cli/migrate.h"
#include "ops/http/companion_http.h"
#include "ops/verbs/run_checks.h"
#include "worker/batch/batch.h"
#include "worker/jobs/calls.h"
#include "worker/pool/pool.h"

#define JOB_WORD(name, ...) #name ", "

static struct {
    bool once;
    const char *now;
} flags;

static const struct cli_flag flag_rows[] = {
    {"once", CLI_BOOL, offsetof(__typeof__(flags), once), 0, 0,
     "work until nothing is due; then say on one line what was done, left and parked"},
    {"now", CLI_TIME, offsetof(__typeof__(flags), now), 0, 0,
     "time that counts as now (default: the database's clock, and no later one)"},
    {0},
};

/* Fixed once, so that every statement of the run counts the same time as now. */
static int fix_now(struct pool_order *order, struct err *e)
{
    static char fixed[TIMESTAMP_TEXT];

    if (flags.now == NULL)
        return 0;
    if (!timestamp_parse(flags.now, &order->now_us))
        return err_set(e, ERR_INVALID,
                       "LL-1002 --now %s is no time; write 2026-01-31T00:00:00Z",
                       flags.now);
    order->now = timestamp_format(order->now_us, fixed, sizeof fixed);
    return 0;
}

/* The job types named in a comma list, as bits of the registry. */
static int parse_jobs(const struct config *c, unsigned *bits, struct err *e)
{
    static const char known[] = JOB_TYPES(JOB_WORD); /* with a comma behind each */

    *bits = 0;
    for (const char *p = c->jobs; *p != '\0'; p += *p == ',') {
        size_t n = strcspn(p, ","), i = 0;

        while (i < JOB_TYPE_CT && (strlen(job_types[i]->name) != n ||
                                   strncmp(job_types[i]->name, p, n) != 0))
            i++;
        if (i == JOB_TYPE_CT) {
            (void)err_set(
                e, ERR_CONFIG,
                "LL-2017 pool.jobs: no job is called \"%.*s\"; there are: %.*s", (int)n,
                p, (int)sizeof known - 3, known);
            return config_refuse(c, "pool.jobs", e);
        }
        *bits |= 1u << i;
        p += n;
    }
    if (*bits != 0)
        return 0;
    (void)err_set(e, ERR_CONFIG, "LL-2017 pool.jobs names no job");
    return config_refuse(c, "pool.jobs", e);
}

/* Payments run where a gateway is named, unless the settings name the jobs. */
static void add_payments(struct config *c)
{
    size_t n = strlen(c->jobs);

    for (size_t row = 0; row < config_option_ct; row++) {
        if (strcmp(config_options[row].key, "pool.jobs") == 0 &&
            c->origin[row] == ORIGIN_DEFAULT && c->gateway_url[0] != '\0')
            (void)snprintf(c->jobs + n, sizeof c->jobs - n, ",%s", job_payments.name);
    }
}

/* A gateway that cannot be called is said here, and not by every worker. */
static int check_gateway(const struct config *c, struct err *e)
{
    struct calls *calls = NULL;
    int code = calls_open(&calls, c, e);

    calls_close(calls);
    return code;
}

/* Settings of which no server knows. */
static int check_settings(struct config *c, struct pool_order *order, struct err *e)
{
    unsigned *jobs = &order->jobs;
    int64_t workers = 0;

    add_payments(c);
    if (parse_jobs(c, jobs, e) != 0)
        return (int)e->code;
    for (int job = 0; job < JOB_TYPE_CT; job++) {
        if ((*jobs & 1u << job) != 0 && job_types[job]->calls != NULL &&
            check_gateway(c, e) != 0)
            return (int)e->code;
    }
    for (int job = 0; job < JOB_TYPE_CT; job++)
        workers += (*jobs & 1u << job) != 0 ? pool_workers(c, job) : 0;
    if (workers == 0) {
        (void)err_set(e, ERR_CONFIG, "LL-2017 pool.jobs %s: no worker works them",
                      c->jobs);
        return config_refuse(c, "pool.jobs", e);
    }
    return 0;
}

/* ---- one database ---- */

/* A pool of the one cell that is named, or that there was, is a pool of its database.
 */
static int reload_one(struct config *fresh, struct err *e)
{
    static struct cells now;

    if (cli_reload(fresh, e) != 0 || cells_read(fresh, &now, e) != 0)
        return (int)e->code;
    if (now.n > 1)
        return err_set(e, ERR_REFUSED,
                       "LL-2029 there are %zu cells by now, and the pool began with "
                       "one: start it again, or name that one by --cells",
                       now.n);
    return cells_enter_one(fresh, e);
}

static enum exit_code run_one(struct pool_order *order, struct config *c)
{
    struct err e = {0};

    order->config = c;
    if (run_check_database(c, order, &e) != 0 ||
        order->companion->open(c, &order->companion_fd, &e) != 0)
        return cli_fail(&e);
    cli_progress_end();
    return pool_run(order);
}

/* ---- cells ---- */

static struct cells served;             /* of a pool of several cells */
static const struct pool_order *run_of; /* for what the pool calls */

/* By the worker that comes first to a cell which could not be reached at the start. */
static int check_cell(const struct config *c, struct err *e)
{
    struct pool_order order = {
        .jobs = run_of->jobs, .now = run_of->now, .now_us = run_of->now_us};
    int code = run_check_database(c, &order, e);

    cli_progress_end();
    return code;
}

/* Cells that the cluster got since the start come behind the others, whose places in
 * the list the workers know. */
static int reload_cells(struct config *fresh, struct err *e)
{
    static struct cells now;

    if (cli_reload(fresh, e) != 0 || cells_read(fresh, &now, e) != 0 ||
        config_needs_restart(run_of->config, fresh) != NULL)
        return (int)e->code;
    for (size_t i = 0; i < served.n; i++) {
        if (!cells_have(&now, served.of[i].number))
            return err_set(e, ERR_REFUSED,
                           "LL-2029 there is no cell %" PRId64
                           " any more, and the pool began with it: start it again",
                           served.of[i].number);
    }
    for (size_t i = 0; i < now.n; i++) {
        if (!cells_have(&served, now.of[i].number))
            served.of[served.n++] = now.of[i];
    }
    return 0;
}

/* The pool says so, and when it is back. */
static void note_away(struct pool_order *order,
                      size_t cell,
                      const struct config *c,
                      const struct err *e)
{
    struct cell_state *of = &order->cells.of[cell];

    (void)snprintf(of->trouble, sizeof of->trouble, "%.299s", e->msg);
    for (int job = 0; job < JOB_TYPE_CT; job++) {
        if ((order->jobs & 1u << job) != 0 && pool_workers(c, job) > 0)
            of->jobs[job].away_ms = clk_ms();
    }
}

/* A server that is away stops its own cell alone; what a person has to mend stops the
 * start. */
static int check_cells(const struct config *c, struct pool_order *order, struct err *e)
{
    static struct config of_cell;
    const struct cells *cells = order->cells.list;
    size_t away = 0;

    for (size_t i = 0; i < cells->n; i++) {
        cells_enter(c, &cells->of[i], &of_cell);
        *e = (struct err){0};
        order->cells.of[i].is_checked = check_cell(&of_cell, e) == 0;
        if (e->code != 0)
            (void)err_wrap(e, "cell %" PRId64, cells->of[i].number);
        if (e->code == ERR_CONN || e->code == ERR_TIMEOUT) {
            note_away(order, i, c, e);
            away++;
        } else if (e->code != 0) {
            return (int)e->code;
        }
    }
    return away < cells->n ? 0 : (int)e->code;
}

/* Work until nothing is due: each cell has the whole pool. A failure in a cell counts
 * before rows that were left or parked in another. */
static enum exit_code run_each(struct pool_order *order, const struct config *c)
{
    static const struct cells none;
    static struct config of_cell;
    const struct cells *cells = order->cells.list;
    enum exit_code worst = EXIT_OK, code;
    bool was_told = false, is_failure, was_failure = false;

    order->reload = NULL; /* the next cell begins with what the call said */
    order->was_told = &was_told;
    for (size_t i = 0; i < cells->n && !was_told; i++) {

        cells_enter(c, &cells->of[i], &of_cell);
        order->cells.list = &none;
        (void)printf("cell %" PRId64 ": ", cells->of[i].number);
        (void)fflush(stdout);
        code = run_one(order, &of_cell);
        is_failure = code != EXIT_OK && code != EXIT_LEFT && code != EXIT_PARKED;
        if (is_failure ? !was_failure : !was_failure && code > worst)
            worst = code;
        was_failure = was_failure || is_failure;
    }
    return worst;
}

static enum exit_code run_cells(struct pool_order *order, struct config *c)
{
    struct err e = {0};

    order->cells.list = &served;
    if (order->once)
        return run_each(order, c);
    order->reload = reload_cells;
    run_of = order;
    order->cells.check = check_cell;
    if (check_cells(c, order, &e) != 0 ||
        order->companion->open(c, &order->companion_fd, &e) != 0)
        return cli_fail(&e);
    cli_progress_end();
    return pool_run(order);
}

static enum exit_code run(const struct config *c, int argc, char **argv)
{
    struct config own = *c, base = *c;
    struct pool_order order = {.config = &own,
                               .cells.list = &served,
                               .once = flags.once,
                               .reload = reload_one,
                               .companion = &companion_http,
                               .companion_fd = -1};
    struct err e = {0};

    (void)argv;
    if (argc > 0) {
        (void)err_set(&e, ERR_INVALID,
                      "LL-1018 run takes flags only; see ledgerlock run -h");
        return cli_fail(&e);
    }
    if (fix_now(&order, &e) != 0 || check_settings(&own, &order, &e) != 0 ||
        cells_read(&own, &served, &e) != 0)
        return cli_fail(&e);
    if (strcmp(own.lock_mode, "database-only") == 0)
        log_warn(
            "pool.no_locks",
            "code=LL-5005 reason=\"locks.mode is database-only: no Redis lock is held; "
            "fences and constraints alone keep the totals\"");
    if (served.n > 1)
        return run_cells(&order, &own);
    base = own;
    if (served.n == 1)
        cells_enter(&base, &served.of[0], &own);
    served.n = 0;
    return run_one(&order, &own);
}

const struct cli_verb verb_run = {
    .name = "run",
    .sentence =
        "runs the pool: workers that charge due subscriptions and serve pending orders",
    .example = "ledgerlock run -w 4 --once",
    .flags = flag_rows,
    .values = &flags,
    .settings = "pool. locks. billing. gateway. http. cells.",
    .run = run,
    .all_cells = true,
    .who = "members of ledgerlock_worker",
};
