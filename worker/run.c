/* run: the verb that starts the pool, after everything was looked at once. */
#include <stdio.h>
#include <string.h>

#include "common/log.h"
#include "worker/cli.h"
#include "worker/connect.h"
#include "worker/instant.h"
#include "worker/migrate.h"
#include "worker/pool.h"

static struct {
    bool once;
    const char *now;
} flags;

static const struct cli_flag flag_rows[] = {
    {"once", CLI_BOOL, offsetof(__typeof__(flags), once), 0, 0,
     "until nothing is due, then exit 0"},
    {"now", CLI_TEXT, offsetof(__typeof__(flags), now), 0, 0,
     "the instant that counts as now (ISO 8601) instead of the database's clock"},
    {NULL, CLI_BOOL, 0, 0, 0, NULL},
};

/* Fixed once, so that every statement of the run counts the same instant as now. */
static int fix_now(struct err *e)
{
    static char fixed[INSTANT_TEXT];
    int64_t us;

    if (flags.now == NULL)
        return 0;
    if (!instant_parse(flags.now, &us))
        return err_set(e, ERR_INVALID,
                       "--now %s is no instant; write 2026-01-31T00:00:00Z", flags.now);
    flags.now = instant_format(us, fixed, sizeof fixed);
    return 0;
}

static int check_redis(struct worker *w, struct err *e)
{
    int code;

    if (connect_locks(w, e) != 0)
        return (int)e->code;
    if (w->locks == NULL)
        return 0;
    code = ll_connect(w->locks);
    if (connect_is_refused(code))
        return err_set(e, ERR_REFUSED, "%s", ll_error(w->locks));
    if (code != LL_OK)
        return err_set(e, ERR_REDIS, "%s (redis.url %s)", ll_error(w->locks),
                       "see `ledgerlock config show`");
    return 0;
}

/* A server that forgets what it has committed breaks every promise after a crash. */
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
    return err_set(e, ERR_REFUSED,
                   "PostgreSQL has %s: a crash of the server would lose what was "
                   "committed; turn it on, or say postgres.durability = \"any\"",
                   off);
}

/* Old rows do no harm: a server that takes no writes for the moment is for the workers
 * to wait for, and the next pool that starts forgets them. */
static void forget_workers(struct pg *pg)
{
    struct err ignored = {0};

    (void)!pg_exec(pg, SQL_POOL_FORGET_WORKERS, NULL, 0, NULL, &ignored);
}

/* Looks at both servers once, so that what is wrong is said here and not by every
 * worker. */
static int preflight(const struct config *c, unsigned jobs, struct err *e)
{
    struct worker w = {.config = c, .jobs = jobs, .name = "preflight"};
    int code = connect_postgres(&w, e);
    char url[CONFIG_TEXT];

    if (code == ERR_CONN || code == ERR_TIMEOUT || code == ERR_DENIED)
        return err_wrap(e, "postgres.url %s",
                        config_mask(c->postgres_url, url, sizeof url));
    if (code == ERR_SCHEMA) { /* a statement did not prepare: say what is missing */
        struct pg *pg;
        struct err why = {0};

        if (cli_connect(c, "run", &pg, &why) == 0 && migrate_check(pg, &why) != 0)
            *e = why;
        pg_close(pg);
        code = (int)e->code;
    }
    if (code == 0)
        code = migrate_check(w.pg, e);
    if (code == 0)
        code = check_durability(c, w.pg, e);
    if (code == 0)
        forget_workers(w.pg);
    if (code == 0)
        code = check_redis(&w, e);
    connect_close(&w);
    return code;
}

static int prepare(const struct config *c, unsigned *jobs, struct err *e)
{
    if (job_parse_list(c->jobs, jobs, e) != 0)
        return (int)e->code;
    return preflight(c, *jobs, e);
}

/* What names a server does not change on reload, so no server is asked: the supervisor
 * must not wait while its workers may need it. */
static int reload(struct config *fresh, unsigned *jobs, struct err *e)
{
    if (cli_reload(fresh, e) != 0)
        return (int)e->code;
    return job_parse_list(fresh->jobs, jobs, e);
}

static enum exit_code run(const struct config *c, int argc, char **argv)
{
    struct config own = *c;
    struct pool_order order = {
        .config = &own, .now = flags.now, .once = flags.once, .reload = reload};
    struct err e = {0};

    (void)argv;
    if (argc > 0) {
        (void)err_set(&e, ERR_INVALID, "run takes flags only; see ledgerlock run -h");
        return cli_fail(&e);
    }
    if (fix_now(&e) != 0 || prepare(&own, &order.jobs, &e) != 0)
        return cli_fail(&e);
    order.now = flags.now;
    if (strcmp(own.lock_mode, "database-only") == 0)
        log_warn("pool.no_locks",
                 "reason=\"locks.mode is database-only: no Redis lock is held; "
                 "fences and constraints alone keep the totals\"");
    return pool_run(&order);
}

const struct cli_verb verb_run = {
    .name = "run",
    .sentence =
        "the pool: workers that charge due subscriptions and serve pending orders",
    .example = "ledgerlock run -w 4 --once",
    .flags = flag_rows,
    .values = &flags,
    .run = run,
};
