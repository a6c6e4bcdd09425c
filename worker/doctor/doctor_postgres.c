/* doctor_postgres: server, role, schema and tables. */
#include <string.h>
#include <time.h>

#include "worker/cli/cli.h"
#include "worker/cli/migrate.h"
#include "worker/doctor/doctor.h"
#include "worker/pool/pool.h"

enum { NAME, VERDICT, SAYS, REMEDY }; /* columns of the statements of doctor */

static bool find_in(const struct pg_result *res, const char *name, struct finding *f)
{
    for (size_t i = 0; res != NULL && i < pg_rows(res); i++) {
        if (strcmp(pg_get_text(res, i, NAME), name) != 0)
            continue;
        find(f, (enum verdict)pg_get_int8(res, i, VERDICT), pg_get_text(res, i, REMEDY),
             "%s", pg_get_text(res, i, SAYS));
        return true;
    }
    return false;
}

void find_row(const struct doctor *d, const char *name, struct finding *f)
{
    if (!find_in(d->server, name, f) && !find_in(d->tables, name, f))
        find(f, CHECK_SKIP, NULL, "not known: PostgreSQL was not asked");
}

static void check_reachable(struct doctor *d, struct finding *f)
{
    struct pg_param params[] = {pg_int8(2),
                                pg_text(d->config->postgres_durability),
                                {0},
                                pg_int8(d->config->clocks_apart_s * 1000)};
    struct timespec now;
    struct err e = {0};

    for (int i = 0; i < JOB_TYPE_CT; i++)
        params[0].int8 += pool_workers(d->config, i);
    if (cli_connect(d->config, "doctor", &d->pg, &e) == 0 &&
        pg_prepare(d->pg, SQL_DOCTOR_SERVER, &e) == 0) { /* before the clock is read */
        (void)clock_gettime(CLOCK_REALTIME, &now);
        params[2] = pg_int8((int64_t)now.tv_sec * 1000 + now.tv_nsec / 1000000);
        (void)!pg_exec(d->pg, SQL_DOCTOR_SERVER, params, 4, &d->server, &e);
    }
    if (e.code != 0)
        find(f, CHECK_FAIL,
             "start the server, or mend postgres.url, its role or its password "
             "(postgres.password_file)",
             "%s", e.msg);
    else
        find(f, CHECK_OK, NULL, "it answers");
}

/* Another function of the program, which `run` calls too, decides it. */
static void check_by(struct doctor *d,
                     struct finding *f,
                     int (*check)(struct pg *pg, struct err *e),
                     const char *good,
                     const char *remedy)
{
    struct err e = {0};

    if (d->server == NULL)
        find_row(d, "", f);
    else if (check(d->pg, &e) != 0)
        find(f, CHECK_FAIL, remedy, "%s", e.msg);
    else
        find(f, CHECK_OK, NULL, "%s", good);
}

static void check_schema(struct doctor *d, struct finding *f)
{
    check_by(d, f, migrate_check, "as this program needs it", "ledgerlock migrate");
}

static void check_drift(struct doctor *d, struct finding *f)
{
    check_by(d, f, migrate_check_objects,
             "nobody changed constraints, functions or rights",
             "ledgerlock audit names each (schema_as_built)");
}

/* Runs a statement, whose rows then answer this check and others. */
static void check_by_rows(struct doctor *d,
                          struct finding *f,
                          const char *name,
                          const struct sql_text *sql,
                          size_t param_ct)
{
    const struct pg_param lease = pg_int8(d->config->lease_ms);
    struct err e = {0};

    pg_result_free(d->tables);
    d->tables = NULL;
    if (d->server != NULL && pg_exec(d->pg, sql, &lease, param_ct, &d->tables, &e) != 0)
        find(f, CHECK_FAIL, "ledgerlock migrate", "%s", e.msg);
    else
        find_row(d, name, f);
}

static void check_role(struct doctor *d, struct finding *f)
{
    check_by_rows(d, f, "role_rights", SQL_DOCTOR_RIGHTS, 0);
}

static void check_dead_rows(struct doctor *d, struct finding *f)
{
    check_by_rows(d, f, "dead_rows", SQL_DOCTOR_TABLES, 1);
}

const struct check checks_of_postgres[] = {
    {"postgres_reachable", check_reachable},
    {"postgres_version", NULL},
    {"postgres_durability", NULL},
    {"postgres_connections", NULL},
    {"postgres_transport", NULL},
    {"schema_version", check_schema},
    {"schema_drift", check_drift},
    {"role_rights", check_role},
    {"dead_rows", check_dead_rows},
    {"oldest_transaction", NULL},
    {"months_ahead", NULL},
    {"lease_length", NULL},
    {"parked_rows", NULL},
    {"paused_jobs", NULL},
    {"workers_seen", NULL},
    {"postgres_clock", NULL},
    {NULL, NULL},
};
