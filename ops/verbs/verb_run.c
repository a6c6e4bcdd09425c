/* run: the verb that starts the pool, after both servers were checked once. */
#include <stdio.h>
#include <string.h>

#include "common/base/log.h"
#include "common/base/registry.h"
#include "common/base/timestamp.h"
#include "ops/cli/cli.h"
#include "ops/cli/migrate.h"
#include "ops/cli/rights.h"
#include "ops/http/companion_http.h"
#include "worker/batch/batch.h"
#include "worker/jobs/calls.h"
#include "worker/pool/pool.h"

#define JOB_WORD(name, ...) #name ", "

static struct {
    bool once;
    const char *now;
    int64_t now_us; /* --now as a number */
} flags;

static const struct cli_flag flag_rows[] = {
    {"once", CLI_BOOL, offsetof(__typeof__(flags), once), 0, 0,
     "work until nothing is due; then say on one line what was done, left and parked"},
    {"now", CLI_TIME, offsetof(__typeof__(flags), now), 0, 0,
     "time that counts as now (default: the database's clock, and no later one)"},
    {0},
};

/* Fixed once, so that every statement of the run counts the same time as now. */
static int fix_now(struct err *e)
{
    static char fixed[TIMESTAMP_TEXT];

    if (flags.now == NULL)
        return 0;
    if (!timestamp_parse(flags.now, &flags.now_us))
        return err_set(e, ERR_INVALID,
                       "LL-1002 --now %s is no time; write 2026-01-31T00:00:00Z",
                       flags.now);
    flags.now = timestamp_format(flags.now_us, fixed, sizeof fixed);
    return 0;
}

/* ---- servers ---- */

/* PostgreSQL's clock against ours, and --now against it: a wrong year would be charged.
 */
static int check_postgres_clock(const struct session *s, struct err *e)
{
    int64_t server_us;

    if (clocks_check_postgres(s, &server_us, e) != 0)
        return (int)e->code;
    return flags.now != NULL ? cli_check_now(flags.now, flags.now_us, server_us, e) : 0;
}

static int check_redis(struct session *s, struct err *e)
{
    int code;

    cli_progress("connecting to Redis");
    if (session_open_locks(s, e) != 0)
        return (int)e->code;
    if (s->locks == NULL)
        return 0;
    code = rlock_connect(s->locks);
    if (code == RLOCK_E_EVICTING || code == RLOCK_E_CLUSTER || code == RLOCK_E_VERSION)
        return err_set(e, ERR_REFUSED, "LL-4007 %s", rlock_error(s->locks));
    if (code != RLOCK_OK)
        return err_set(e, ERR_REDIS,
                       "LL-4008 %s; see redis.url in `ledgerlock config show`",
                       rlock_error(s->locks));
    code = batch_try_lock(s, e);
    if (code != 0 && code != RLOCK_E_UNCERTAIN && !s->is_early)
        return (int)e->code; /* an answer that was lost refuses nothing */
    *e = (struct err){0};
    return clocks_check_redis(s, e);
}

/* A server that may lose commits in a crash would break every promise. */
static int check_durability(const struct config *c, struct pg *pg, struct err *e)
{
    struct pg_result *res;
    char off[160];

    if (strcmp(c->postgres_durability, "any") == 0)
        return 0;
    if (pg_exec(pg, SQL_RUN_READ_DURABILITY, NULL, 0, &res, e) != 0)
        return (int)e->code;
    (void)snprintf(off, sizeof off, "%s", pg_get_text(res, 0, 0));
    pg_result_free(res);
    if (off[0] == '\0')
        return 0;
    return err_set(
        e, ERR_REFUSED,
        "LL-3007 PostgreSQL has %s: a crash of the server would lose what was "
        "committed; turn it on, or say postgres.durability = \"any\"",
        off);
}

/* Removes counters of old pools. Its failure is no error: old rows do no harm, and the
 * next start removes them. */
static void forget_workers(struct pg *pg)
{
    struct err ignored = {0};

    (void)!pg_exec(pg, SQL_POOL_FORGET_WORKERS, NULL, 0, NULL, &ignored);
}

/* Before a worker needs them; the first worker goes on, beside its batches. A failure
 * is no error: the server may be read-only now, and a worker makes what it needs. */
static void make_months(const struct config *c)
{
    struct err e = {0};
    struct pg *pg;

    if (cli_connect(c, "run", &pg, &e) == 0) {
        cli_progress("making the months of what is due");
        (void)!months_begin(pg, flags.now, &e);
    }
    if (e.code != 0)
        log_warn("pool.months_not_made", "code=LL-5004 err=%s", LOG_TEXT(e.msg));
    pg_close(pg);
}

/* A statement could not be prepared: reports a role without rights, or a schema that is
 * missing, older or of other roles. */
static void explain(const struct config *c, struct err *e)
{
    struct err why = {0};
    struct pg *pg;

    if (cli_connect(c, "run", &pg, &why) == 0 &&
        (migrate_check_prefix(pg, &why) != 0 || rights_check(pg, &why) != 0 ||
         migrate_check(pg, &why) != 0))
        *e = why;
    pg_close(pg);
}

/* Checks both servers once, so that what is wrong is said here and not by every
 * worker. */
static int preflight(const struct config *c, const struct job_type *job, struct err *e)
{
    struct session s = {.config = c, .job = job, .name = "preflight"};
    int code;

    cli_progress("connecting to PostgreSQL");
    code = session_connect(&s, e);
    if (code == ERR_CONN || code == ERR_TIMEOUT || code == ERR_DENIED)
        return cli_name_server(c, e);
    if (code == ERR_SCHEMA)
        explain(c, e);
    code = (int)e->code;
    if (code == 0)
        code = migrate_check_prefix(s.pg, e);
    if (code == 0)
        code = migrate_check_database(s.pg, true, e);
    if (code == 0)
        code = rights_check(s.pg, e);
    if (code == 0)
        code = migrate_check(s.pg, e);
    if (code == 0)
        code = check_durability(c, s.pg, e);
    if (code == 0)
        code = check_postgres_clock(&s, e);
    if (code == 0)
        make_months(c);
    if (code == 0)
        forget_workers(s.pg);
    if (code == 0)
        code = check_redis(&s, e);
    session_close(&s);
    return code;
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

static int count_to_do(struct pg *pg, struct pool_order *order, struct err *e)
{
    int code = 0;

    cli_progress("counting what is due");
    for (int job = 0; code == 0 && order->once && job < JOB_TYPE_CT; job++) {
        if ((order->jobs & 1u << job) != 0)
            code = job_to_do(job_types[job], pg, flags.now, &order->to_do[job], e);
    }
    return code;
}

/* The bodies that a newer program gave to functions cannot be compared: the log says
 * so.
 */
static void tell_newer(struct pg *pg)
{
    char newer[MIGRATE_NAME];
    struct err e = {0};

    if (migrate_read_newer(pg, newer, &e) == 0 && newer[0] != '\0')
        log_warn("pool.schema_newer", "code=LL-3115 expansion=%s", LOG_TEXT(newer));
}

/* On a connection whose statements may take longer than those of a batch. */
static int
check_objects(const struct config *c, struct pool_order *order, struct err *e)
{
    struct pg *pg;

    if (cli_connect(c, "run", &pg, e) == 0) {
        cli_progress("comparing the schema with that of the program");
        if (migrate_check_objects(pg, e) == 0) {
            tell_newer(pg);
            (void)!count_to_do(pg, order, e);
        }
    }
    pg_close(pg);
    return (int)e->code;
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

static int prepare(struct config *c, struct pool_order *order, struct err *e)
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
    for (int job = 0; job < JOB_TYPE_CT; job++) {
        if ((*jobs & 1u << job) != 0 && preflight(c, job_types[job], e) != 0)
            return (int)e->code;
    }
    return check_objects(c, order, e);
}

static enum exit_code run(const struct config *c, int argc, char **argv)
{
    struct config own = *c;
    struct pool_order order = {.config = &own,
                               .now = flags.now,
                               .once = flags.once,
                               .reload = cli_reload,
                               .companion = &companion_http,
                               .companion_fd = -1};
    struct err e = {0};

    (void)argv;
    if (argc > 0) {
        (void)err_set(&e, ERR_INVALID,
                      "LL-1018 run takes flags only; see ledgerlock run -h");
        return cli_fail(&e);
    }
    if (fix_now(&e) != 0 || prepare(&own, &order, &e) != 0)
        return cli_fail(&e);
    order.now = flags.now;
    if (order.companion->open(&own, &order.companion_fd, &e) != 0)
        return cli_fail(&e);
    if (strcmp(own.lock_mode, "database-only") == 0)
        log_warn(
            "pool.no_locks",
            "code=LL-5005 reason=\"locks.mode is database-only: no Redis lock is held; "
            "fences and constraints alone keep the totals\"");
    cli_progress_end();
    return pool_run(&order);
}

const struct cli_verb verb_run = {
    .name = "run",
    .sentence =
        "runs the pool: workers that charge due subscriptions and serve pending orders",
    .example = "ledgerlock run -w 4 --once",
    .flags = flag_rows,
    .values = &flags,
    .settings = "pool. locks. billing. gateway. http.",
    .run = run,
    .who = "members of ledgerlock_worker",
};
