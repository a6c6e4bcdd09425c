/* doctor: each check finds what it is there for, planted on real servers. */
#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include "tests/lib/http.h"
#include "tests/lib/private_pg.h"
#include "tests/lib/runs.h"
#include "tests/lib/steps.h"

static const struct pool_work small = {
    .users = 20, .periods = 3, .orders = 30, .units = 10};

static void make_months(void)
{
    world_do("SELECT make_months(now(), now() + interval '2 months')");
}

WORLD(.work = &small, .redis = true, .also = make_months);

/* Runs it; asserts the exit code, and the verdict of one check. */
static void finds(int code, const char *check, const char *verdict, const char *says)
{
    char line[64];
    const char *at;

    runs(&world.f, code, "doctor");
    (void)snprintf(line, sizeof line, "%-4s  %-20s  ", verdict, check);
    at = strstr(said.out, line);
    if (at == NULL)
        fail_msg("no \"%s\" in:\n%s%s", line, said.out, said.err);
    fixture_assert_contains(at, says);
}

/* Guarantee: On a sound set-up no check of `doctor` fails, and it names what a person
 * should look at. */
CASE(sound_set_up_has_no_failure)
{
    finds(0, "workers_seen", "WARN", "0 workers have reported");
    finds(0, "postgres_durability", "OK", "fsync");
    finds(0, "role_rights", "OK", "no more");
    finds(0, "redis_user", "OK", "password");
    finds(0, "oldest_transaction", "OK", "s old");
    finds(0, "dead_rows", "OK", "dead rows in the hot tables");
    fixture_assert_contains(said.out, "26 ok, 1 to look at, 0 failed, 0 skipped");
    runs(&world.f, 0, "doctor --json");
    assert_string_equal(said_text("checks/0/check"), "postgres_reachable");
    assert_string_equal(said_text("checks/0/verdict"), "OK");
}

/* ---- rows and settings of the database ---- */

static const struct {
    const char *name, *plant; /* a statement of the superuser, in schema ledgerlock */
    int code;
    const char *check, *verdict, *says;
} planted[] = {
    {"a_constraint_is_gone", "ALTER TABLE stock DROP CONSTRAINT on_hand_never_negative",
     1, "schema_drift", "FAIL", "changed by hand"},
    {"a_schema_of_another_program", "UPDATE schema_migrations SET checksum = 'x'", 1,
     "schema_version", "FAIL", "migrat"},
    {"a_role_without_the_right_to_charge",
     "REVOKE EXECUTE ON FUNCTION apply_charges FROM ledgerlock_worker", 1,
     "role_rights", "FAIL", "ledgerlock_worker may not use apply_charges"},
    {"a_role_that_writes", "GRANT UPDATE ON users TO ledgerlock_worker", 1,
     "role_rights", "WARN", "it may write users"},
    {"a_parked_row",
     "UPDATE subscriptions SET state = 'parked' WHERE subscription_id = 1", 0,
     "parked_rows", "WARN", "1 rows are parked"},
    {"commits_that_do_not_wait",
     "ALTER ROLE ledgerlock_worker IN DATABASE @ SET synchronous_commit = off", 1,
     "postgres_durability", "FAIL", "synchronous_commit=off"},
    {"a_session_that_only_reads",
     "ALTER ROLE ledgerlock_worker IN DATABASE @ SET default_transaction_read_only = on",
     1, "postgres_writable", "FAIL", "default_transaction_read_only is on"},
};

static void plant(const char *sql)
{
    static char text[600];
    const char *at = strchr(sql, '@');
    char super[FIXTURE_URL], database[80];

    fixture_url_as(&world.f, "postgres", super, sizeof super);
    fixture_query_text(super, "SELECT quote_ident(current_database())", database,
                       sizeof database);
    (void)snprintf(text, sizeof text, "SET search_path = ledgerlock; %.*s%s%s",
                   at != NULL ? (int)(at - sql) : (int)strlen(sql), sql,
                   at != NULL ? database : "", at != NULL ? at + 1 : "");
    fixture_exec(super, text);
}

/* Guarantee: Each check of `doctor` finds what it is there for. */
CASE_ROWS(planted_fault_is_found, planted)
{
    plant(row->plant);
    finds(row->code, row->check, row->verdict, row->says);
}

/* ---- the program's own side ---- */

CASE(superuser_is_too_wide)
{
    fixture_become(&world.f, "postgres");
    finds(0, "role_rights", "WARN", "superuser");
}

CASE(server_that_is_gone_fails_its_checks_and_no_other)
{
    (void)snprintf(world.f.url, sizeof world.f.url, "postgresql:///x?host=/nowhere");
    finds(1, "postgres_reachable", "FAIL", "postgres.password_file");
    finds(1, "postgres_version", "SKIP", "not known");
    fixture_assert_contains(said.out, " 1 failed, 16 skipped");
    finds(1, "redis_reachable", "OK", "it answers");
    fixture_redis_kill(&world.redis);
    finds(1, "redis_reachable", "FAIL", "");
    finds(1, "redis_eviction", "SKIP", "not known");
}

CASE(redis_that_evicts_is_found)
{
    (void)redis_do("CONFIG SET maxmemory 1gb");
    (void)redis_do("CONFIG SET maxmemory-policy allkeys-lru");
    finds(1, "redis_eviction", "FAIL", "allkeys-lru");
}

CASE(redis_without_a_password_is_found)
{
    (void)snprintf(world.f.redis_url, sizeof world.f.redis_url, "%s",
                   getenv("LL_TEST_REDIS"));
    fixture_env("LEDGERLOCK_REDIS_PASSWORD_FILE", NULL);
    finds(0, "redis_user", "WARN", "no password");
}

CASE(redis_over_plain_tcp_is_found)
{
    (void)snprintf(world.f.redis_url, sizeof world.f.redis_url,
                   "redis://192.0.2.1:6379");
    fixture_env("LEDGERLOCK_LOCKS_MODE", "database-only");
    finds(0, "redis_transport", "OK", "not used");
}

CASE(too_few_connections_are_found)
{
    fixture_env("LEDGERLOCK_POOL_BILLING_WORKERS", "250");
    finds(1, "postgres_connections", "FAIL", "a pool of these settings takes 253");
}

CASE(configuration_that_others_write_is_found)
{
    char path[64];

    fixture_file(path, sizeof path, "pool: { batch = 7; };\n", 0600);
    assert_int_equal(chmod(path, 0622), 0);
    fixture_env("LEDGERLOCK_CONFIG", path);
    finds(1, "configuration_file", "FAIL", "may be written by others");
    fixture_env("LEDGERLOCK_CONFIG", NULL);
    finds(0, "configuration_file", "OK", "none is read");
    runs(&world.f, 1, "doctor --config %s", path);
    shows("may be written by others");
    (void)unlink(path);
}

CASE(port_that_is_taken_is_found)
{
    char port[16];
    int taken = fixture_free_port();

    (void)snprintf(port, sizeof port, "%d", taken);
    pool_start("run --now %s --http %s", pool_work_now(), port);
    pool_log_wait(&world.pool, "event=http.listening");
    fixture_env("LEDGERLOCK_HTTP_LISTEN", port);
    finds(0, "http_port", "WARN", "in use");
    fixture_env("LEDGERLOCK_HTTP_LISTEN", NULL);
    pool_stop();
}
