/* doctor_postgres: server, role, schema and tables. */
#include <inttypes.h>
#include <string.h>
#include <time.h>

#include "worker/cli/cli.h"
#include "worker/cli/migrate.h"
#include "worker/doctor/doctor.h"
#include "worker/pool/pool.h"

/* Columns of SQL_DOCTOR_SERVER and SQL_DOCTOR_TABLES. */
enum { VERSION, FREE, IS_SUPER, CLOCK_US, IS_REMOTE, HAS_TLS, HAS_AUTOVACUUM };

enum {
    DEAD,
    DEAD_PERCENT,
    OLDEST_S,
    MISSING_MONTHS,
    PARKED,
    PAUSED,
    WORKERS,
    BATCH_MS
};

enum { OLDEST_MAX_S = 600, DEAD_MAX = 10000, DEAD_MAX_PERCENT = 30 };

/* A check without what it needs says so, and says no more. */
static bool has(const struct pg_result *res, struct finding *f)
{
    if (res == NULL)
        find(f, CHECK_FAIL, "mend what the checks above name",
             "not known: PostgreSQL was not asked");
    return res != NULL;
}

static void check_reachable(struct doctor *d, struct finding *f)
{
    struct err e = {0};

    if (cli_connect(d->config, "doctor", &d->pg, &e) != 0 ||
        pg_exec(d->pg, SQL_DOCTOR_SERVER, NULL, 0, &d->server, &e) != 0)
        find(f, CHECK_FAIL, "start the server, or mend postgres.url", "%s", e.msg);
    else
        find(f, CHECK_OK, NULL, "it answers");
}

static void check_version(struct doctor *d, struct finding *f)
{
    int64_t version;

    if (!has(d->server, f))
        return;
    version = pg_get_int8(d->server, 0, VERSION) / 10000;
    find(f, version >= 15 ? CHECK_OK : CHECK_FAIL, "PostgreSQL 15 or newer is needed",
         "PostgreSQL %" PRId64, version);
}

static void check_durability(struct doctor *d, struct finding *f)
{
    struct pg_result *res;
    struct err e = {0};
    const char *off;

    if (!has(d->server, f))
        return;
    if (pg_exec(d->pg, SQL_RUN_READ_DURABILITY, NULL, 0, &res, &e) != 0) {
        find(f, CHECK_FAIL, NULL, "%s", e.msg);
        return;
    }
    off = pg_get_text(res, 0, 0);
    if (off[0] == '\0')
        find(f, CHECK_OK, NULL,
             "fsync, full_page_writes and synchronous_commit are on");
    else
        find(f,
             strcmp(d->config->postgres_durability, "any") == 0 ? CHECK_WARN
                                                                : CHECK_FAIL,
             "turn it on: a crash of the server loses what was committed", "%s", off);
    pg_result_free(res);
}

static void check_connections(struct doctor *d, struct finding *f)
{
    int64_t wanted = 2, left;

    if (!has(d->server, f))
        return;
    for (int i = 0; i < JOB_TYPE_CT; i++)
        wanted += pool_workers(d->config, i);
    left = pg_get_int8(d->server, 0, FREE);
    find(f,
         left < wanted       ? CHECK_FAIL
         : left < 2 * wanted ? CHECK_WARN
                             : CHECK_OK,
         "raise max_connections, or lower pool.workers",
         "%" PRId64 " connections are free, a pool of these settings takes %" PRId64,
         left, wanted);
}

static void check_clock(struct doctor *d, struct finding *f)
{
    struct timespec now;
    int64_t apart_ms;

    if (!has(d->server, f))
        return;
    pg_result_free(d->server); /* read again: the other checks took their time */
    d->server = NULL;
    if (pg_exec(d->pg, SQL_DOCTOR_SERVER, NULL, 0, &d->server, &(struct err){0}) != 0) {
        (void)has(d->server, f);
        return;
    }
    (void)clock_gettime(CLOCK_REALTIME, &now);
    apart_ms = pg_get_int8(d->server, 0, CLOCK_US) / 1000 - (int64_t)now.tv_sec * 1000 -
               now.tv_nsec / 1000000;
    apart_ms = apart_ms < 0 ? -apart_ms : apart_ms;
    find(f,
         d->config->clocks_apart_s > 0 && apart_ms > d->config->clocks_apart_s * 1000
             ? CHECK_FAIL
         : apart_ms > 1000 ? CHECK_WARN
                           : CHECK_OK,
         "put both right by NTP: PostgreSQL's clock decides what is due",
         "%" PRId64 " ms from ours", apart_ms);
}

static void check_transport(struct doctor *d, struct finding *f)
{
    if (!has(d->server, f))
        return;
    if (pg_get_int8(d->server, 0, HAS_TLS) != 0)
        find(f, CHECK_OK, NULL, "TLS");
    else
        find(f, pg_get_int8(d->server, 0, IS_REMOTE) != 0 ? CHECK_WARN : CHECK_OK,
             "use sslmode=verify-full (docs/security.md)", "%s",
             pg_get_int8(d->server, 0, IS_REMOTE) != 0
                 ? "money travels unencrypted between two machines"
                 : "on this machine, without TLS");
}

/* ---- role and schema ---- */

static void check_schema(struct doctor *d, struct finding *f)
{
    struct err e = {0};

    if (!has(d->server, f))
        return;
    if (migrate_check(d->pg, &e) != 0)
        find(f, CHECK_FAIL, "ledgerlock migrate", "%s", e.msg);
    else
        find(f, CHECK_OK, NULL, "as this program needs it");
}

static void check_drift(struct doctor *d, struct finding *f)
{
    struct err e = {0};

    if (!has(d->server, f))
        return;
    if (migrate_check_objects(d->pg, &e) != 0)
        find(f, CHECK_FAIL, "ledgerlock audit names each (schema_as_built)", "%s",
             e.msg);
    else
        find(f, CHECK_OK, NULL, "nobody changed constraints, functions or rights");
}

static void check_role(struct doctor *d, struct finding *f)
{
    struct pg_result *res;
    struct err e = {0};

    if (!has(d->server, f))
        return;
    if (pg_exec(d->pg, SQL_DOCTOR_RIGHTS, NULL, 0, &res, &e) != 0) {
        find(f, CHECK_FAIL, "ledgerlock migrate", "%s", e.msg);
        return;
    }
    if (pg_get_text(res, 0, 0)[0] != '\0')
        find(f, CHECK_FAIL, "run as a member of ledgerlock_worker", "it may not use %s",
             pg_get_text(res, 0, 0));
    else if (pg_get_int8(d->server, 0, IS_SUPER) != 0)
        find(f, CHECK_WARN, "run as a member of ledgerlock_worker, and nothing else",
             "it is a superuser: no constraint or grant binds it");
    else if (pg_get_text(res, 0, 1)[0] != '\0')
        find(f, CHECK_WARN, "run as a member of ledgerlock_worker, and nothing else",
             "it may write %s beside the functions", pg_get_text(res, 0, 1));
    else
        find(f, CHECK_OK, NULL, "it may do the work of a worker and no more");
    pg_result_free(res);
}

/* ---- tables ---- */

/* The first check over the tables reads them. */
static void check_dead_rows(struct doctor *d, struct finding *f)
{
    struct err e = {0};
    int64_t dead, percent;

    if (!has(d->server, f))
        return;
    if (pg_exec(d->pg, SQL_DOCTOR_TABLES, NULL, 0, &d->tables, &e) != 0) {
        find(f, CHECK_FAIL, NULL, "%s", e.msg);
        return;
    }
    dead = pg_get_int8(d->tables, 0, DEAD);
    percent = pg_get_int8(d->tables, 0, DEAD_PERCENT);
    if (pg_get_int8(d->server, 0, HAS_AUTOVACUUM) == 0)
        find(f, CHECK_FAIL, "turn autovacuum on", "autovacuum is off");
    else
        find(f, dead > DEAD_MAX && percent > DEAD_MAX_PERCENT ? CHECK_WARN : CHECK_OK,
             "end old transactions; let autovacuum run more often",
             "%" PRId64 " dead rows in the hot tables, %" PRId64 " %%", dead, percent);
}

static void check_snapshot(struct doctor *d, struct finding *f)
{
    int64_t s;

    if (!has(d->tables, f))
        return;
    s = pg_get_int8(d->tables, 0, OLDEST_S);
    find(f, s > OLDEST_MAX_S ? CHECK_WARN : CHECK_OK,
         "end it: dead rows cannot be cleared while it is open",
         "the oldest open transaction is %" PRId64 " s old", s);
}

static void check_months(struct doctor *d, struct finding *f)
{
    int64_t n;

    if (!has(d->tables, f))
        return;
    n = pg_get_int8(d->tables, 0, MISSING_MONTHS);
    find(f, n > 0 ? CHECK_WARN : CHECK_OK, "ledgerlock migrate, or start a pool",
         n > 0 ? "%" PRId64 " of this month and the next have no partition"
               : "this month and the next have partitions (%" PRId64 " missing)",
         n);
}

static void check_lease(struct doctor *d, struct finding *f)
{
    int64_t ms;

    if (!has(d->tables, f))
        return;
    ms = pg_get_int8(d->tables, 0, BATCH_MS);
    if (ms < 0)
        find(f, CHECK_OK, NULL, "%" PRId64 " ms; no batch was made yet",
             d->config->lease_ms);
    else
        find(f,
             ms > d->config->lease_ms       ? CHECK_FAIL
             : ms > d->config->lease_ms / 3 ? CHECK_WARN
                                            : CHECK_OK,
             "a longer locks.lease_ms, or a smaller pool.batch",
             "%" PRId64 " ms; of the last batches 99 %% took at most %" PRId64 " ms",
             d->config->lease_ms, ms);
}

static void check_count(struct doctor *d,
                        struct finding *f,
                        int column,
                        const char *what,
                        const char *remedy)
{
    int64_t n;

    if (!has(d->tables, f))
        return;
    n = pg_get_int8(d->tables, 0, (size_t)column);
    find(f, n > 0 ? CHECK_WARN : CHECK_OK, remedy, "%" PRId64 " %s", n, what);
}

static void check_parked(struct doctor *d, struct finding *f)
{
    check_count(d, f, PARKED, "rows are parked", "ledgerlock parked");
}

static void check_paused(struct doctor *d, struct finding *f)
{
    check_count(d, f, PAUSED, "jobs are paused", "ledgerlock resume JOB");
}

static void check_workers(struct doctor *d, struct finding *f)
{
    int64_t n;

    if (!has(d->tables, f))
        return;
    n = pg_get_int8(d->tables, 0, WORKERS);
    find(f, n == 0 ? CHECK_WARN : CHECK_OK, "ledgerlock run",
         "%" PRId64 " workers have reported within ten seconds", n);
}

const struct check checks_of_postgres[] = {
    {"postgres_reachable", check_reachable},
    {"postgres_version", check_version},
    {"postgres_durability", check_durability},
    {"postgres_connections", check_connections},
    {"postgres_transport", check_transport},
    {"schema_version", check_schema},
    {"schema_drift", check_drift},
    {"role_rights", check_role},
    {"dead_rows", check_dead_rows},
    {"oldest_transaction", check_snapshot},
    {"months_ahead", check_months},
    {"lease_length", check_lease},
    {"parked_rows", check_parked},
    {"paused_jobs", check_paused},
    {"workers_seen", check_workers},
    {"postgres_clock", check_clock},
    {NULL, NULL},
};
