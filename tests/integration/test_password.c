/* A PostgreSQL that asks for a password: the wrong one, none, the right one. */
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "tests/lib/fixture.h"
#include "tests/lib/private_pg.h"

static struct private_pg postgres;
static struct fixture f;
static struct fixture_output o;
static char path[64];

/* From here on the worker role needs its password; the others come in as before. */
static int ask_for_password(void **state)
{
    char sql[512], hba[160];

    (void)state;
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
    fixture_pause_ms(300); /* the postmaster reads it in its own time */
    fixture_become(&f, "ledgerlock_worker");
    return 0;
}

static int close_all(void **state)
{
    (void)state;
    fixture_close(&f);
    private_pg_close(&postgres);
    return 0;
}

static int run_with_password(const char *password)
{
    int code;

    fixture_file(path, sizeof path, password, 0600);
    fixture_env("LEDGERLOCK_POSTGRES_PASSWORD_FILE", path);
    code = fixture_run(&f, &o, "run", "--once", NULL);
    fixture_env("LEDGERLOCK_POSTGRES_PASSWORD_FILE", NULL);
    (void)unlink(path);
    return code;
}

static void wrong_password_exits_with_4_and_is_not_repeated(void **state)
{
    (void)state;
    assert_int_equal(run_with_password("open-sesame\n"), 4);
    fixture_assert_contains(o.err, "password authentication failed");
    fixture_assert_contains(o.err, "postgres.url");
    assert_null(strstr(o.err, "open-sesame"));
}

static void missing_password_exits_with_4(void **state)
{
    (void)state;
    fixture_env("LEDGERLOCK_POSTGRES_PASSWORD_FILE", NULL);
    assert_int_equal(fixture_run(&f, &o, "run", "--once", NULL), 4);
    fixture_assert_contains(o.err, "password");
}

static void right_password_from_a_file_works(void **state)
{
    (void)state;
    assert_int_equal(run_with_password("right\n"), 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(wrong_password_exits_with_4_and_is_not_repeated),
        cmocka_unit_test(missing_password_exits_with_4),
        cmocka_unit_test(right_password_from_a_file_works),
    };

    fixture_need_servers();
    return cmocka_run_group_tests(tests, ask_for_password, close_all);
}
