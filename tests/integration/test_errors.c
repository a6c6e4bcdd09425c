/* errors: every bad input has its own message, which says what to do, and its exit
 * code. */
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "tests/lib/fixture.h"

static struct fixture f;
static struct fixture_output o;
static struct fixture_redis redis;

static int empty(void **state)
{
    (void)state;
    fixture_open(&f);
    return 0;
}

static int migrated(void **state)
{
    (void)state;
    fixture_open_migrated(&f);
    return 0;
}

static int done(void **state)
{
    (void)state;
    fixture_redis_close(&redis);
    fixture_close(&f);
    return 0;
}

/* Runs `status` with a configuration file of this text. */
static int run_with_file(const char *text)
{
    char path[64];
    int code;

    fixture_file(path, sizeof path, text, 0600);
    code = fixture_run(&f, &o, "status", "--config", path, NULL);
    (void)unlink(path);
    return code;
}

/* ---- use and configuration ---- */

static void unknown_verb_is_wrong_use(void **state)
{
    (void)state;
    assert_int_equal(fixture_run(&f, &o, "adit", NULL), 2);
    fixture_assert_contains(o.err, "did you mean audit?");
}

static void unknown_flag_is_wrong_use(void **state)
{
    (void)state;
    assert_int_equal(fixture_run(&f, &o, "run", "--onc3", NULL), 2);
    fixture_assert_contains(o.err, "flag --onc3");
    fixture_assert_contains(o.err, "see ledgerlock run -h");
}

static void bad_flag_value_is_wrong_use(void **state)
{
    (void)state;
    assert_int_equal(fixture_run(&f, &o, "run", "-w", "many", NULL), 2);
    fixture_assert_contains(o.err, "must be a whole number, not \"many\"");
}

static void bad_job_name_is_refused(void **state)
{
    (void)state;
    assert_in_range(fixture_run(&f, &o, "run", "--once", "--jobs", "biling", NULL), 2,
                    3);
    fixture_assert_contains(o.err, "biling");
    fixture_assert_contains(o.err, "billing");
}

static void now_that_is_no_fixed_instant_is_refused(void **state)
{
    static const char *const texts[] = {"infinity", "tomorrow", "now", "01/02/2024"};

    (void)state;
    for (size_t i = 0; i < sizeof texts / sizeof texts[0]; i++) {
        assert_int_equal(fixture_run(&f, &o, "run", "--once", "--now", texts[i], NULL),
                         2);
        fixture_assert_contains(o.err, texts[i]);
    }
}

static void bad_environment_value_is_configuration(void **state)
{
    (void)state;
    fixture_env("LEDGERLOCK_LOCKS_LEASE_MS", "5");
    assert_int_equal(fixture_run(&f, &o, "status", NULL), 3);
    fixture_assert_contains(o.err,
                            "environment LEDGERLOCK_LOCKS_LEASE_MS: locks.lease_ms "
                            "must be from 1000 to 600000");
}

static void unknown_environment_variable_is_configuration(void **state)
{
    (void)state;
    fixture_env("LEDGERLOCK_WORKERS", "5");
    assert_int_equal(fixture_run(&f, &o, "status", NULL), 3);
    fixture_assert_contains(o.err, "unknown setting LEDGERLOCK_WORKERS");
}

static void bad_file_names_file_and_line(void **state)
{
    (void)state;
    assert_int_equal(run_with_file("pool: {\n workers = 0;\n};\n"), 3);
    fixture_assert_contains(o.err, ":2: pool.workers must be from 1 to 256");
    assert_int_equal(run_with_file("pool: {\n workes = 1;\n};\n"), 3);
    fixture_assert_contains(o.err, ":2: unknown setting pool.workes, did you mean");
    assert_int_equal(run_with_file("pool: {\n\n ]\n};\n"), 3);
    fixture_assert_contains(o.err, ":3: syntax error");
}

static void missing_file_is_configuration(void **state)
{
    (void)state;
    fixture_env("LEDGERLOCK_CONFIG", "/nowhere/ledgerlock.cfg");
    assert_int_equal(fixture_run(&f, &o, "status", NULL), 3);
    fixture_assert_contains(o.err,
                            "/nowhere/ledgerlock.cfg: No such file or directory");
}

static void password_file_that_others_read_is_refused(void **state)
{
    char path[64];

    (void)state;
    fixture_file(path, sizeof path, "secret\n", 0644);
    fixture_env("LEDGERLOCK_POSTGRES_PASSWORD_FILE", path);
    assert_int_equal(fixture_run(&f, &o, "status", NULL), 3);
    (void)unlink(path);
    fixture_assert_contains(o.err, "run: chmod 600 /");
    fixture_assert_contains(o.err, path);
}

/* ---- PostgreSQL ---- */

static void unreachable_postgres_names_its_place_without_password(void **state)
{
    (void)state;
    (void)strcpy(f.url, "postgresql://me:s3cret@127.0.0.1:1/shop");
    assert_int_equal(fixture_run(&f, &o, "status", NULL), 4);
    fixture_assert_contains(o.err, "postgresql://me:***@127.0.0.1:1/shop");
    fixture_assert_contains(o.err, "Connection refused");
    assert_null(strstr(o.err, "s3cret"));
}

static void missing_database_is_named(void **state)
{
    struct fixture other = f;

    (void)state;
    (void)strcpy(other.database, "lltest_missing");
    fixture_become(&other, "ledgerlock_worker");
    assert_int_equal(fixture_run(&other, &o, "status", NULL), 4);
    fixture_assert_contains(o.err, "database \"lltest_missing\" does not exist");
}

static void missing_role_is_named(void **state)
{
    (void)state;
    fixture_become(&f, "ledgerlock_nobody");
    assert_int_equal(fixture_run(&f, &o, "status", NULL), 4);
    fixture_assert_contains(o.err, "role \"ledgerlock_nobody\" does not exist");
}

static void missing_schema_says_migrate_in_every_verb(void **state)
{
    static const char *const verbs[] = {"status", "audit", "run", "seed"};

    (void)state;
    for (size_t i = 0; i < sizeof verbs / sizeof verbs[0]; i++) {
        assert_int_equal(fixture_run(&f, &o, verbs[i], NULL), 6);
        fixture_assert_contains(o.err, "run `ledgerlock migrate`");
    }
}

static void newer_schema_is_refused_by_every_verb(void **state)
{
    static const char *const verbs[] = {"status", "audit", "run", "seed"};

    (void)state;
    fixture_exec(f.url,
                 "INSERT INTO ledgerlock.schema_migrations (kind, name, checksum) "
                 "VALUES ('migration', '999_future', 'x')");
    for (size_t i = 0; i < sizeof verbs / sizeof verbs[0]; i++) {
        assert_int_equal(fixture_run(&f, &o, verbs[i], NULL), 6);
        fixture_assert_contains(o.err, "install the newer one");
    }
}

static void missing_table_is_named(void **state)
{
    (void)state;
    fixture_exec(f.url, "DROP TABLE ledgerlock.charges");
    assert_int_equal(fixture_run(&f, &o, "audit", NULL), 6);
    fixture_assert_contains(o.err, "\"ledgerlock.charges\" does not exist");
}

/* ---- Redis ---- */

static void unreachable_redis_stops_run_at_start(void **state)
{
    (void)state;
    (void)strcpy(f.redis_url, "redis://:s3cret@127.0.0.1:1");
    assert_int_equal(fixture_run(&f, &o, "run", "--once", NULL), 5);
    fixture_assert_contains(o.err, "127.0.0.1");
    assert_null(strstr(o.err, "s3cret"));
}

static void evicting_redis_is_refused_by_run(void **state)
{
    (void)state;
    fixture_redis_start(&redis, "--maxmemory", "50mb", "--maxmemory-policy",
                        "allkeys-lru", NULL);
    (void)strcpy(f.redis_url, redis.url);
    assert_int_equal(fixture_run(&f, &o, "run", "--once", NULL), 6);
    fixture_assert_contains(o.err, "maxmemory-policy");
    fixture_assert_contains(o.err, "noeviction");
}

static void redis_that_wants_a_password_says_so(void **state)
{
    (void)state;
    fixture_redis_start(&redis, "--requirepass", "s3cret", NULL);
    (void)strcpy(f.redis_url, redis.url);
    assert_int_equal(fixture_run(&f, &o, "run", "--once", NULL), 5);
    fixture_assert_contains(o.err, "NOAUTH");
}

/* ---- output ---- */

static void result_that_cannot_be_written_is_an_error(void **state)
{
    char command[5000];
    char said[256] = "";
    FILE *p;

    (void)state;
    (void)snprintf(command, sizeof command, "'%s' version 2>&1 >/dev/full",
                   fixture_program());
    p = popen(command, "r");
    assert_non_null(p);
    assert_non_null(fgets(said, sizeof said, p));
    assert_int_not_equal(pclose(p), 0);
    fixture_assert_contains(said, "cannot write the result: No space left on device");
}

#define EMPTY(name) cmocka_unit_test_setup_teardown(name, empty, done)
#define MIGRATED(name) cmocka_unit_test_setup_teardown(name, migrated, done)

int main(void)
{
    const struct CMUnitTest tests[] = {
        EMPTY(unknown_verb_is_wrong_use),
        EMPTY(unknown_flag_is_wrong_use),
        EMPTY(bad_flag_value_is_wrong_use),
        MIGRATED(bad_job_name_is_refused),
        EMPTY(now_that_is_no_fixed_instant_is_refused),
        EMPTY(bad_environment_value_is_configuration),
        EMPTY(unknown_environment_variable_is_configuration),
        EMPTY(bad_file_names_file_and_line),
        EMPTY(missing_file_is_configuration),
        EMPTY(password_file_that_others_read_is_refused),
        EMPTY(unreachable_postgres_names_its_place_without_password),
        EMPTY(missing_database_is_named),
        EMPTY(missing_role_is_named),
        EMPTY(missing_schema_says_migrate_in_every_verb),
        MIGRATED(newer_schema_is_refused_by_every_verb),
        MIGRATED(missing_table_is_named),
        MIGRATED(unreachable_redis_stops_run_at_start),
        MIGRATED(evicting_redis_is_refused_by_run),
        MIGRATED(redis_that_wants_a_password_says_so),
        EMPTY(result_that_cannot_be_written_is_an_error),
    };

    fixture_need_servers();
    return cmocka_run_group_tests(tests, NULL, NULL);
}
