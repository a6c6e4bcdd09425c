/* doctor_postgres: server, role, schema and tables. */
#include <string.h>
#include <time.h>

#include "ops/cli/cli.h"
#include "ops/cli/migrate.h"
#include "ops/cli/rights.h"
#include "ops/doctor/doctor.h"
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

    for (int i = 0; i < JOB_TYPE_CT; i++) /* no calls are made without a gateway */
        params[0].int8 +=
            job_types[i]->calls == NULL || d->config->gateway_url[0] != '\0'
                ? pool_workers(d->config, i)
                : 0;
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
    char newer[MIGRATE_NAME];
    struct err e = {0};

    check_by(d, f, migrate_check, "as this program needs it", "ledgerlock migrate");
    if (f->verdict == CHECK_OK && migrate_read_newer(d->pg, newer, &e) == 0 &&
        newer[0] != '\0')
        find(
            f, CHECK_WARN,
            "install the program that expanded it: bodies of functions and views are not "
            "compared until then",
            "newer than this program, which can work with it (%s)", newer);
}

static void check_drift(struct doctor *d, struct finding *f)
{
    check_by(d, f, migrate_check_objects,
             "nobody changed constraints, functions or rights that this program knows",
             "ledgerlock audit names each (schema_as_built)");
}

/* The rows that a check has asked for answer it, and others behind it. */
static void find_asked(struct doctor *d,
                       struct finding *f,
                       const char *name,
                       struct pg_result *rows,
                       const struct err *e)
{
    pg_result_free(d->tables);
    d->tables = rows;
    if (e->code != 0)
        find(f, CHECK_FAIL, "ledgerlock migrate", "%s", e->msg);
    else
        find_row(d, name, f);
}

static void check_role(struct doctor *d, struct finding *f)
{
    struct pg_result *rows = NULL;
    struct err e = {0};

    if (d->server != NULL)
        (void)!rights_read(d->pg, &rows, &e);
    find_asked(d, f, "role_rights", rows, &e);
}

static void check_dead_rows(struct doctor *d, struct finding *f)
{
    const struct pg_param lease = pg_int8(d->config->lease_ms);
    struct pg_result *rows = NULL;
    struct err e = {0};

    if (d->server != NULL)
        (void)!pg_exec(d->pg, SQL_DOCTOR_TABLES, &lease, 1, &rows, &e);
    find_asked(d, f, "dead_rows", rows, &e);
}

const struct check checks_of_postgres[] = {
    {"postgres_reachable", check_reachable},
    {"postgres_version", NULL},
    {"postgres_writable", NULL},
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
