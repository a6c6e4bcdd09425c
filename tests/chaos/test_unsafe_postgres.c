/* A PostgreSQL whose COMMIT does not reach the disk is refused at start by name, unless
 * one says that one knows. */
#include <stdio.h>

#include "tests/lib/chaos_world.h"

static int open_small(void **state)
{
    (void)chaos_open_empty(state);
    chaos.work = (struct pool_work){.users = 20, .periods = 2, .units = 9};
    chaos_fill();
    return 0;
}

/* Of sessions that begin from now on, in this test's database. */
static void turn_off(const char *setting)
{
    char sql[256], url[FIXTURE_URL];

    (void)snprintf(sql, sizeof sql, "ALTER DATABASE %s SET %s = off", chaos.f.database,
                   setting);
    fixture_url_as(&chaos.f, "postgres", url, sizeof url);
    fixture_exec(url, sql);
}

static void unsafe_postgres_is_refused_by_name(void **state)
{
    static struct fixture_output o;

    (void)state;
    turn_off("synchronous_commit");
    assert_int_equal(fixture_run(&chaos.f, &o, "run", "--once", NULL), 6);
    fixture_assert_contains(o.err, "synchronous_commit=off");
    fixture_assert_contains(o.err, "postgres.durability");
    assert_int_equal(pool_work_done(&chaos.f), 0);
}

static void unsafe_postgres_is_worked_on_when_one_says_so(void **state)
{
    static struct fixture_output o;

    (void)state;
    turn_off("synchronous_commit");
    assert_int_equal(fixture_run(&chaos.f, &o, "run", "--once", "--postgres-durability",
                                 "any", "--now", pool_work_now(&chaos.work), NULL),
                     0);
    chaos_check();
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
    return cmocka_run_group_tests(tests, NULL, NULL);
}
