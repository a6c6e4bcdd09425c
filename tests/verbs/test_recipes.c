/* recipes: what docs/start.md tells about the roles and docs/operate.md about backups,
 * typed as it stands there, on servers that nobody has touched before. */
#include "tests/lib/private_pg.h"
#include "tests/lib/runs.h"
#include "tests/lib/typed.h"

#define START "docs/start.md"
#define OPERATE "docs/operate.md"

/* first: has database ledgerlock, filled, and keeps its WAL. other: of one case. */
static struct private_pg first, other;
static struct fixture f;
static char dir[64]; /* of whoever types */

/* ---- typing ---- */

static void write_file(const char *path, const char *text)
{
    FILE *file = fopen(path, "w");

    assert_non_null(file);
    assert_true(fputs(text, file) >= 0);
    assert_int_equal(fclose(file), 0);
}

/* The block of a page, at a server: addresses and folders of the examples are those of
 * the test, and a pool ends when all is done. `more` are further words of sed. Two
 * passwords are asked for, each twice, and there is no terminal. */
static void
type(const struct private_pg *pg, const char *page, const char *words, const char *more)
{
    char path[80];

    (void)snprintf(path, sizeof path, "%s/typed.sh", dir);
    write_file(path, typed_block(page, words));
    typed(
        "cd %s; export PGHOST=127.0.0.1 PGPORT=%d PGUSER=postgres"
        " LEDGERLOCK_LOCKS_PREFIX=%s; sed -i -e 's|@db.example|@127.0.0.1:%d|;"
        " s|@HOST|@127.0.0.1:%d|; s|redis://HOST:6379|%s|;"
        " s|redis://redis.example|%s|; s|/srv/wal|%s/wal|g;"
        " s|ledgerlock run *\\(#.*\\)*$|ledgerlock run --once|' %s typed.sh;"
        " printf 'a\\na\\nb\\nb\\n' | PATH=build/release:$PATH setsid -w sh -e typed.sh",
        dir, pg->port, f.prefix, pg->port, pg->port, f.redis_url, f.redis_url,
        first.dir, more);
}

static void become(const struct private_pg *pg, const char *role, const char *database)
{
    (void)snprintf(f.url, sizeof f.url, "postgresql://%s@127.0.0.1:%d/%s", role,
                   pg->port, database);
}

static void as_owner(const struct private_pg *pg)
{
    become(pg, "ledgerlock_migrate", "ledgerlock");
}

static void as_worker(const struct private_pg *pg)
{
    become(pg, "ledgerlock_worker", "ledgerlock");
}

static int64_t ask(const char *sql)
{
    return fixture_query_int8(f.url, sql);
}

static void assert_works(const struct private_pg *pg)
{
    as_owner(pg);
    says(&f, 0, "schema is up to date", "migrate");
    as_worker(pg);
    runs(&f, 0, "run --once");
    runs(&f, 0, "audit --sealed");
}

/* ---- the first server ---- */

/* "wal_level" is as it should be by itself. */
static void start_first(void)
{
    char commands[1024];

    first.port = fixture_free_port();
    (void)snprintf(commands, sizeof commands,
                   PRIVATE_PG_INIT "; mkdir wal; { echo archive_mode = on; sed \"s|"
                                   "/srv/wal|$PWD/wal|g\" <<'CONF'\n%sCONF\n} "
                                   ">>data/postgresql.conf",
                   typed_block(OPERATE, "archive_command"));
    private_pg_fill(&first, commands);
}

static void open_all(void)
{
    fixture_need_servers();
    (void)snprintf(f.redis_url, sizeof f.redis_url, "%s", getenv("LL_TEST_REDIS"));
    (void)snprintf(f.prefix, sizeof f.prefix, "recipes_%ld:", (long)getpid());
    fixture_folder(dir, sizeof dir, "typed");
    typed("cd %s; mkdir -p build/release; ln -s %s build/release/ledgerlock; ln -s "
          "%s/config config",
          dir, fixture_program(), getenv("LL_TEST_SOURCE"));
    start_first();
    type(&first, START, "10-roles.sql", "");
    as_owner(&first);
    fixture_exec(f.url,
                 "SET search_path = ledgerlock; SELECT create_user('ann', 'USD');"
                 "SELECT deposit(1, 'USD', 10000, 'first'); SELECT subscribe(1,"
                 " 'basic', 900, 'USD', 'month', 1, now(), 0, 's')");
    assert_works(&first);
}

static void close_all(void)
{
    private_pg_close(&first);
    fixture_remove(dir, "log");
}

static void close_other(void)
{
    if (other.dir[0] != '\0')
        private_pg_close(&other);
    if (first.pid == 0)
        private_pg_start(&first);
}

GROUP(.start = open_all, .stop = close_all, .close = close_other);

/* ---- roles ---- */

/* Guarantee: The recipe for the roles, typed as docs/start.md has it, works for each
 * database of a server, and the ones before it go on. */
CASE(recipe_for_the_roles_works_for_two_databases_of_a_server)
{
    type(&first, START, "10-roles.sql",
         "-e 's|UTF8 ledgerlock|UTF8 second|; s|-d ledgerlock|-d second|;"
         " s|\\(@[^/ ]*\\)/ledgerlock|\\1/second|'");
    become(&first, "ledgerlock_migrate", "second");
    says(&f, 0, "schema is up to date", "migrate");
    become(&first, "ledgerlock_worker", "second");
    runs(&f, 0, "audit");
    assert_works(&first);
}

/* Guarantee: The owner of a database who may make roles needs no superuser for that
 * recipe. */
CASE(recipe_for_the_roles_works_without_a_superuser)
{
    other.port = fixture_free_port();
    private_pg_fill(&other, PRIVATE_PG_INIT);
    fixture_exec(other.url, "CREATE ROLE hoster LOGIN CREATEDB CREATEROLE");
    type(&other, START, "10-roles.sql", "-e '1i export PGUSER=hoster'");
    assert_works(&other);
}

/* ---- backups ---- */

static void dump_and_restore(void)
{
    other.port = fixture_free_port();
    private_pg_fill(&other, PRIVATE_PG_INIT);
    type(&first, OPERATE, "CREATE ROLE backup", "");
    type(&first, OPERATE, "pg_dump -Fc", "-e '1i export PGUSER=backup'");
    type(&other, OPERATE, "pg_restore --exit-on-error", "");
    type(&other, OPERATE, "ledgerlock audit --sealed", "");
}

/* Guarantee: A shop that is dumped and restored on another server, typed as
 * docs/operate.md has it, is audited and runs; numbers that are skipped are not given
 * again. */
CASE(dump_is_restored_on_another_server)
{
    dump_and_restore();
    as_owner(&other);
    assert_int_equal(ask("SELECT count(*) FROM ledgerlock.charges"), 1);
    type(&other, OPERATE, "FROM pg_sequences", "");
    assert_true(ask("SELECT ledgerlock.create_user('bob', 'USD')") > 1000000);
    assert_works(&other);
}

static void deposit(const char *key)
{
    char sql[128];

    as_owner(&first);
    (void)snprintf(sql, sizeof sql, "SELECT ledgerlock.deposit(1, 'USD', 100, '%s')",
                   key);
    (void)ask(sql);
}

/* All that is committed by now is in the archive. */
static void archive(void)
{
    char segment[32], sql[160];

    fixture_query_text(first.url, "SELECT pg_walfile_name(pg_switch_wal())", segment,
                       sizeof segment);
    (void)snprintf(sql, sizeof sql,
                   "SELECT coalesce(last_archived_wal, '') >= '%s' FROM "
                   "pg_stat_archiver",
                   segment);
    FIXTURE_AWAIT(fixture_query_int8(first.url, sql) != 0, "no %s in the archive",
                  segment);
}

/* Guarantee: A shop returns to a moment, typed as docs/operate.md has it: what was
 * committed before is there, what came later is not, and it runs. */
CASE(shop_returns_to_a_point_in_time)
{
    char moment[64], more[160], commands[160];

    type(&first, OPERATE, "-D base -X stream", "");
    deposit("before");
    fixture_query_text(first.url, "SELECT now()::text", moment, sizeof moment);
    deposit("after");
    archive();
    (void)snprintf(more, sizeof more, "-e \"s|2026-11-26 12:00:00+00|%s|\"", moment);
    type(&first, OPERATE, "base/recovery.signal", more);
    typed("chown -R --reference=%s %s/base", first.dir, dir);
    typed("mv %s/base %s", dir, first.dir);
    other.port = fixture_free_port();
    (void)snprintf(commands, sizeof commands, "mv %s/base data", first.dir);
    private_pg_fill(&other, commands);
    FIXTURE_AWAIT(fixture_query_int8(other.url, "SELECT NOT pg_is_in_recovery()") != 0,
                  "it is not promoted");
    type(&other, OPERATE, "RESET recovery_target_time", "");
    assert_int_equal(fixture_query_int8(other.url,
                                        "SELECT count(*) FROM pg_file_settings WHERE "
                                        "name ~ 'recovery_target|restore_command'"),
                     0);
    as_owner(&other);
    promise_int_equal(ask("SELECT count(*) FROM ledgerlock.wallet_entries WHERE "
                          "idempotency_key IN ('before', 'after')"),
                      1);
    assert_works(&other);
    promise_int_equal(ask("SELECT count(*) FROM ledgerlock.charges"), 1);
}

/* Guarantee: A standby is audited, and refuses `migrate`; promoted, typed as
 * docs/operate.md has it, it has the shop, which pools find by a URL of both. */
CASE(standby_is_promoted_and_has_the_shop)
{
    char commands[TYPED_LINE];

    (void)snprintf(commands, sizeof commands,
                   "export PGPORT=%d PGUSER=postgres; sed 's|db.example|127.0.0.1|' "
                   "<<'TYPED' | sh -e\n%sTYPED\n",
                   first.port, typed_block(OPERATE, "-D data -R"));
    other.port = fixture_free_port();
    private_pg_fill(&other, commands);
    as_worker(&other);
    runs(&f, 0, "audit");
    says(&f, 1, "a standby, on which no pool can work", "doctor");
    as_owner(&other);
    says(&f, 6, "LL-3111", "migrate");
    private_pg_kill(&first);
    type(&other, OPERATE, "pg_promote", "");
    (void)snprintf(f.url, sizeof f.url,
                   "postgresql://ledgerlock_worker@127.0.0.1:%d,127.0.0.1:%d/"
                   "ledgerlock?target_session_attrs=read-write",
                   first.port, other.port);
    runs(&f, 0, "run --once");
    assert_works(&other);
}

/* Guarantee: A shop that went through pg_upgrade runs. */
CASE(upgraded_server_has_the_shop)
{
    char commands[512];

    private_pg_stop(&first);
    other.port = fixture_free_port();
    (void)snprintf(commands, sizeof commands,
                   PRIVATE_PG_INIT "; bin=$(dirname $(command -v initdb)); pg_upgrade "
                                   "-b $bin -B $bin -d %s/data -D data -U postgres",
                   first.dir);
    private_pg_fill(&other, commands);
    assert_works(&other);
}
