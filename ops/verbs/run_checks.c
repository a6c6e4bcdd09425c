/* run_checks: one connection a job as its workers open it, and one of the verb. */
#include "ops/verbs/run_checks.h"

#include <stdio.h>
#include <string.h>

#include "common/base/log.h"
#include "ops/cli/cli.h"
#include "ops/cli/migrate.h"
#include "ops/cli/rights.h"
#include "worker/batch/batch.h"

/* PostgreSQL's clock against ours, and --now against it: a wrong year would be charged.
 */
static int check_postgres_clock(const struct config *c,
                                struct pg *pg,
                                const struct pool_order *order,
                                struct err *e)
{
    const struct session s = {.config = c, .pg = pg};
    int64_t server_us;

    if (clocks_check_postgres(&s, &server_us, e) != 0)
        return (int)e->code;
    return order->now != NULL ? cli_check_now(order->now, order->now_us, server_us, e)
                              : 0;
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
 * is no error: the server may be read-only now, and a worker makes what it needs. Such
 * an answer ends its connection, so this one is of the months alone. */
static void make_months(const struct config *c, const struct pool_order *order)
{
    struct err e = {0};
    struct pg *pg;

    if (cli_connect(c, "run", &pg, &e) == 0) {
        cli_progress("making the months of what is due");
        (void)!months_begin(pg, order->now, c->is_distributed, &e);
    }
    if (e.code != 0)
        log_warn("pool.months_not_made", "code=LL-5004 err=%s", LOG_TEXT(e.msg));
    pg_close(pg);
}

static int count_to_do(struct pg *pg, struct pool_order *order, struct err *e)
{
    int code = 0;

    cli_progress("counting what is due");
    for (int job = 0; code == 0 && order->once && job < JOB_TYPE_CT; job++) {
        if ((order->jobs & 1u << job) != 0)
            code = job_to_do(job_types[job], pg, order->now, &order->to_do[job], e);
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

/* On the connection of the verb, whose statements may take longer than those of a
 * batch. */
static int check_tables(const struct config *c,
                        struct pg *pg,
                        struct pool_order *order,
                        struct err *e)
{
    if (migrate_check_prefix(pg, e) != 0 || migrate_check_database(pg, true, e) != 0 ||
        rights_check(pg, e) != 0 || migrate_check(pg, e) != 0 ||
        session_check_cell(c, pg, e) != 0 || check_durability(c, pg, e) != 0 ||
        check_postgres_clock(c, pg, order, e) != 0)
        return (int)e->code;
    make_months(c, order);
    cli_progress("comparing the schema with that of the program");
    if (migrate_check_objects(pg, e) != 0)
        return (int)e->code;
    tell_newer(pg);
    if (count_to_do(pg, order, e) == 0)
        forget_workers(pg); /* last: a server that is read-only ends the connection */
    return (int)e->code;
}

/* As the workers of each job open it, so that what is wrong is said here and not by
 * every worker; Redis with the first. */
static int
check_sessions(const struct config *c, const struct pool_order *order, struct err *e)
{
    bool is_first = true;

    for (int job = 0; e->code == 0 && job < JOB_TYPE_CT; job++) {
        struct session s = {.config = c, .job = job_types[job], .name = "preflight"};

        if ((order->jobs & 1u << job) == 0)
            continue;
        if (session_connect(&s, e) == 0 && is_first)
            (void)!check_redis(&s, e);
        else if (e->code == ERR_CONN || e->code == ERR_TIMEOUT || e->code == ERR_DENIED)
            (void)cli_name_server(c, e);
        is_first = false;
        session_close(&s);
    }
    return (int)e->code;
}

int run_check_database(const struct config *c, struct pool_order *order, struct err *e)
{
    struct pg *pg = NULL;

    if (cli_connect(c, "run", &pg, e) == 0)
        (void)!check_tables(c, pg, order, e);
    pg_close(pg);
    return e->code == 0 ? check_sessions(c, order, e) : (int)e->code;
}
