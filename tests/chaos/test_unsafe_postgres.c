/* A PostgreSQL whose COMMIT does not reach the disk is refused at start by name, unless
 * one says that one knows. */
#include <stdio.h>
#include <string.h>

#include "tests/lib/chaos_world.h"
#include "tests/lib/private_pg.h"

static struct private_pg postgres;

static int open_small(void **state)
{
    (void)chaos_open_empty(state);
    chaos.work = (struct pool_work){.users = 20, .periods = 2, .units = 9};
    chaos_fill();
    return 0;
}

/* A setting of the whole server; returns when new sessions have it. */
static void set(const char *setting, const char *value)
{
    char sql[128], answer[16] = "";

    (void)snprintf(sql, sizeof sql, "ALTER SYSTEM SET %s = %s", setting, value);
    fixture_exec(postgres.url, sql);
    fixture_exec(postgres.url, "SELECT pg_reload_conf()");
    (void)snprintf(sql, sizeof sql, "SHOW %s", setting);
    for (int i = 0; strcmp(answer, value) != 0; i++) {
        assert_true(i < 500);
        fixture_query_text(postgres.url, sql, answer, sizeof answer);
        fixture_pause_ms(10);
    }
}

static void assert_refused_without(const char *setting)
{
    static struct fixture_output o;
    char words[64];

    set(setting, "off");
    assert_int_equal(fixture_run(&chaos.f, &o, "run", "--once", NULL), 6);
    (void)snprintf(words, sizeof words, "PostgreSQL has %s=off:", setting);
    fixture_assert_contains(o.err, words);
    fixture_assert_contains(o.err, "postgres.durability");
    assert_int_equal(pool_work_done(&chaos.f), 0);
    set(setting, "on");
}

static void unsafe_postgres_is_refused_by_name(void **state)
{
    (void)state;
    assert_refused_without("fsync");
    assert_refused_without("full_page_writes");
    assert_refused_without("synchronous_commit");
}

static void unsafe_postgres_is_worked_on_when_one_says_so(void **state)
{
    static struct fixture_output o;

    (void)state;
    set("synchronous_commit", "off");
    assert_int_equal(fixture_run(&chaos.f, &o, "run", "--once", "--postgres-durability",
                                 "any", "--now", pool_work_now(&chaos.work), NULL),
                     0);
    chaos_check();
}

static int open_server(void **state)
{
    (void)state;
    private_pg_open(&postgres);
    return 0;
}

static int close_server(void **state)
{
    (void)state;
    private_pg_close(&postgres);
    return 0;
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(unsafe_postgres_is_refused_by_name, open_small,
                                        chaos_close),
        cmocka_unit_test_setup_teardown(unsafe_postgres_is_worked_on_when_one_says_so,
                                        open_small, chaos_close),
    };

    fixture_need_servers();
    return cmocka_run_group_tests(tests, open_server, close_server);
}
