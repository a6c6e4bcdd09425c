/* logins: a PostgreSQL as docs/operate.md advises: the roles of config/postgres, no
 * way in but TLS and scram-sha-256, and clients that verify the server. */
#include "tests/lib/private_pg.h"
#include "tests/lib/runs.h"
#include "tests/lib/secrets.h"
#include "tests/lib/tls_world.h"

static struct private_pg postgres;
static struct fixture f;
static char super[FIXTURE_URL]; /* of the database, on the socket */

static const char *lacks(void)
{
    return tls_is_possible() ? NULL : "there is no openssl to make certificates with";
}

/* A URL that trusts the certificates of a file of tls_folder. */
static void
become(const char *role, const char *host, const char *mode, const char *trusted)
{
    (void)snprintf(
        f.url, sizeof f.url,
        "postgresql://%s@/%s?host=%s&hostaddr=127.0.0.1&port=%d&sslmode=%s%s%s/%s",
        role, f.database, host, postgres.port, mode,
        trusted != NULL ? "&sslrootcert=" : "", trusted != NULL ? tls_folder : "",
        trusted != NULL ? trusted : "");
    if (trusted == NULL)
        f.url[strlen(f.url) - 1] = '\0';
}

static void make_roles(void)
{
    char command[1024];

    (void)snprintf(command, sizeof command,
                   "psql -qX -d '%s' -f %s/config/postgres/10-roles.sql", super,
                   getenv("LL_TEST_SOURCE"));
    assert_int_equal(system(command), 0);
}

/* Only the superuser comes in by the socket. */
static void ask_for_passwords(void)
{
    char sql[512], hba[160];

    fixture_query_text(super, "SHOW hba_file", hba, sizeof hba);
    (void)snprintf(sql, sizeof sql,
                   "COPY (SELECT 'local all postgres trust' UNION ALL SELECT 'hostssl "
                   "all all 127.0.0.1/32 scram-sha-256') TO '%s'",
                   hba);
    fixture_exec(super, sql);
    fixture_exec(super, "ALTER ROLE ledgerlock_owner PASSWORD '" SECRET_OF_POSTGRES "';"
                        "ALTER ROLE ledgerlock_migrate PASSWORD '" SECRET_OF_POSTGRES
                        "'; ALTER ROLE ledgerlock_worker PASSWORD '" SECRET_OF_POSTGRES
                        "'; ALTER ROLE ledgerlock_reader PASSWORD '" SECRET_OF_POSTGRES
                        "'; CREATE ROLE stranger LOGIN PASSWORD '" SECRET_OF_POSTGRES
                        "'; SELECT pg_reload_conf()");
}

static void open_all(void)
{
    char path[96], sql[256];

    tls_make_certificates();
    postgres.port = fixture_free_port();
    private_pg_open(&postgres);
    fixture_open(&f);
    fixture_url_as(&f, "postgres", super, sizeof super);
    (void)snprintf(sql, sizeof sql, "ALTER DATABASE %s OWNER TO postgres", f.database);
    fixture_exec(super, sql);
    make_roles();
    make_roles(); /* it may run again */
    (void)snprintf(path, sizeof path, "%s/good", tls_folder);
    private_pg_certificate(&postgres, path);
    ask_for_passwords();
    become("ledgerlock_migrate", "localhost", "verify-full", "ca.crt");
    /* The postmaster reads its files in its own time. */
    FIXTURE_AWAIT(fixture_run(&f, &said, "migrate", NULL) == 0, "migrate: %s",
                  said.err);
}

static void close_all(void)
{
    fixture_close(&f);
    private_pg_close(&postgres);
    tls_remove_certificates();
}

GROUP(.missing = lacks, .start = open_all, .stop = close_all);

/* ---- TLS ---- */

/* clang-format off */
static const struct {
    const char *name, *role, *host, *mode, *trusted;
    int code;
    const char *part; /* of the error */
} ways[] = {
    {"of_the_right_authority",   "worker", "localhost",  "verify-full", "ca.crt",    0, ""},
    {"of_another_authority",     "worker", "localhost",  "verify-full", "other.crt", 4, "certificate verify failed"},
    {"of_another_host",          "worker", "db.example", "verify-full", "ca.crt",    4, "does not match host name \"db.example\""},
    {"without_any_authority",    "worker", "localhost",  "verify-full", "no.crt",    4, "no.crt\" does not exist"},
    {"without_tls",              "worker", "localhost",  "disable",     NULL,        4, "no encryption"},
    {"of_the_owner",             "owner",  "localhost",  "verify-full", "ca.crt",    4, "not permitted to log in"},
};

/* clang-format on */

/* Guarantee: With `sslmode=verify-full` a pool runs over TLS with a private authority,
 * and refuses a server whose certificate another authority signed or that is made out
 * to another host. */
CASE_ROWS(login, ways)
{
    char role[64];

    (void)snprintf(role, sizeof role, "ledgerlock_%s", row->role);
    become(role, row->host, row->mode, row->trusted);
    runs(&f, row->code, "run --once");
    if (row->code == 0)
        return;
    shows(row->part);
    shows("postgres.url");
    assert_null(strstr(said.err, SECRET_OF_POSTGRES));
}

/* ---- passwords ---- */

/* Guarantee: With scram-sha-256 a wrong password and none are refused with exit code 4.
 */
CASE(password_that_is_wrong_or_missing_is_refused)
{
    char path[64];

    become("ledgerlock_worker", "localhost", "verify-full", "ca.crt");
    fixture_file(path, sizeof path, "open-sesame\n", 0600);
    fixture_env("LEDGERLOCK_POSTGRES_PASSWORD_FILE", path);
    says(&f, 4, "password authentication failed", "run --once");
    assert_null(strstr(said.err, "open-sesame"));
    shows(path);
    fixture_env("LEDGERLOCK_POSTGRES_PASSWORD_FILE", "");
    says(&f, 4, "no password supplied", "run --once");
    shows("name the file of the password in postgres.password_file");
    fixture_env("LEDGERLOCK_POSTGRES_PASSWORD_FILE", secrets_of_postgres());
    (void)unlink(path);
}

/* ---- roles ---- */

static void answers(const char *expected, const char *sql)
{
    char text[64];

    fixture_query_text(super, sql, text, sizeof text);
    assert_string_equal(text, expected);
}

/* Guarantee: All objects belong to a role that cannot log in; the role that migrates
 * acts as it. */
CASE(owner_has_everything_and_no_login)
{
    answers("ledgerlock_owner",
            "SELECT string_agg(DISTINCT relowner::regrole::text, ' ') FROM pg_class"
            " WHERE relnamespace = 'ledgerlock'::regnamespace");
    answers("ledgerlock_owner",
            "SELECT string_agg(DISTINCT proowner::regrole::text, ' ') FROM pg_proc"
            " WHERE pronamespace = 'ledgerlock'::regnamespace");
    answers("", "SELECT coalesce(string_agg(rolname, ' '), '') FROM pg_roles"
                " WHERE rolname LIKE 'ledgerlock%' AND (rolsuper OR rolcreatedb OR"
                " rolcreaterole OR rolreplication OR rolbypassrls"
                " OR (rolname = 'ledgerlock_owner' AND rolcanlogin))");
}

CASE(migrate_seeds_and_reader_audits)
{
    become("ledgerlock_migrate", "localhost", "verify-full", "ca.crt");
    runs(&f, 0, "seed --users 5 --subscriptions 5 --skus 2 --orders 5 --seed 1");
    become("ledgerlock_worker", "localhost", "verify-full", "ca.crt");
    runs(&f, 0, "run --once");
    become("ledgerlock_reader", "localhost", "verify-full", "ca.crt");
    runs(&f, 0, "audit");
    runs(&f, 0, "status");
}

/* Guarantee: PUBLIC may not even connect to the database. */
CASE(stranger_may_not_connect)
{
    become("stranger", "localhost", "verify-full", "ca.crt");
    says(&f, 4, "permission denied for database", "status");
    answers("0", "SELECT count(*) FROM pg_database, aclexplode(datacl) AS a WHERE"
                 " datname = current_database() AND a.grantee = 0");
}

CASE(worker_makes_no_temporary_table)
{
    answers("f", "SELECT has_database_privilege('ledgerlock_worker',"
                 " current_database(), 'TEMPORARY')");
}
