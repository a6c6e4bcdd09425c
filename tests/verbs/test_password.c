/* A PostgreSQL that asks for a password: the wrong one, none, the right one. */
#include "tests/lib/private_pg.h"
#include "tests/lib/runs.h"

static struct private_pg postgres;
static struct fixture f;
static char path[64];

/* From here on the worker role needs its password; the others come in as before. */
static void ask_for_password(void)
{
    char sql[512], hba[160];

    private_pg_open(&postgres);
    fixture_open_migrated(&f);
    fixture_query_text(postgres.url, "SHOW hba_file", hba, sizeof hba);
    (void)snprintf(
        sql, sizeof sql,
        "ALTER ROLE ledgerlock_worker PASSWORD 'right';"
        "COPY (SELECT 'local all ledgerlock_worker scram-sha-256' UNION ALL SELECT "
        "'local all all trust') TO '%s'; SELECT pg_reload_conf()",
        hba);
    fixture_exec(postgres.url, sql);
    fixture_become(&f, "ledgerlock_worker");
    for (int i = 0; i < 600 && fixture_run(&f, &said, "status", NULL) != 4; i++)
        fixture_pause_ms(100); /* the postmaster reads it in its own time */
}

static void close_all(void)
{
    fixture_close(&f);
    private_pg_close(&postgres);
}

GROUP(.start = ask_for_password, .stop = close_all);

static void run_with_password(int code, const char *password)
{
    fixture_file(path, sizeof path, password, 0600);
    fixture_env("LEDGERLOCK_POSTGRES_PASSWORD_FILE", path);
    runs(&f, code, "run --once");
    fixture_env("LEDGERLOCK_POSTGRES_PASSWORD_FILE", NULL);
    (void)unlink(path);
}

CASE(wrong_password_exits_with_4_and_is_not_repeated)
{
    run_with_password(4, "open-sesame\n");
    shows("password authentication failed");
    shows("postgres.url");
    assert_null(strstr(said.err, "open-sesame"));
}

CASE(missing_password_exits_with_4)
{
    says(&f, 4, "password", "run --once");
}

CASE(right_password_from_a_file_works)
{
    run_with_password(0, "right\n");
}
