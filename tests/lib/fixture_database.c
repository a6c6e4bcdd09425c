/* fixture: databases, each of its own, by libpq; and what only the program needs. */
#include <libpq-fe.h>
#include <sys/stat.h>

#include "tests/lib/fixture.h"
#include "tests/lib/secrets.h"
#include "tests/lib/session.h"

static const char *super_url(void)
{
    return getenv("LL_TEST_PG");
}

void fixture_need_servers(void)
{
    if (super_url() != NULL && getenv("LL_TEST_REDIS") != NULL)
        return;
    (void)printf("skipped: LL_TEST_PG and LL_TEST_REDIS are not set; "
                 "scripts/test starts servers and sets them\n");
    exit(77);
}

void fixture_server(char *text, size_t size, const char *sep)
{
    PQconninfoOption *options = PQconninfoParse(super_url(), NULL);
    size_t n = 0;

    assert_non_null(options);
    text[0] = '\0';
    for (PQconninfoOption *o = options; o->keyword != NULL; o++) {
        bool is_place =
            strcmp(o->keyword, "host") == 0 || strcmp(o->keyword, "port") == 0;

        if (is_place && o->val != NULL && n < size)
            n += (size_t)snprintf(text + n, size - n, "%s%s=%s", sep, o->keyword,
                                  o->val);
    }
    PQconninfoFree(options);
    assert_true(n < size);
}

void fixture_url_as(const struct fixture *f, const char *role, char *url, size_t size)
{
    size_t n =
        (size_t)snprintf(url, size, "postgresql:///%s?user=%s", f->database, role);

    assert_true(n < size);
    fixture_server(url + n, size - n, "&");
}

void fixture_become(struct fixture *f, const char *role)
{
    fixture_url_as(f, role, f->url, sizeof f->url);
}

/* In memory: 40 ms of CPU for a database of ours; by the WAL it takes 200. */
#define BY_FILES " STRATEGY FILE_COPY"

/* A database like `model`, or empty. */
static void open_like(struct fixture *f, const char *model)
{
    static unsigned count;
    char sql[256], state[6];

    fixture_need_servers();
    memset(f, 0, sizeof *f);
    fixture_forget_env();
    (void)snprintf(f->database, sizeof f->database, "lltest_%ld_%u", (long)getpid(),
                   ++count);
    (void)snprintf(f->prefix, sizeof f->prefix, "%s:", f->database);
    (void)snprintf(f->redis_url, sizeof f->redis_url, "%s", getenv("LL_TEST_REDIS"));
    (void)snprintf(sql, sizeof sql,
                   "CREATE DATABASE %s OWNER ledgerlock_owner TEMPLATE %s" BY_FILES,
                   f->database, model != NULL ? model : "template1");
    for (int i = 0; i < 60; i++) { /* a session that ends is in the model for a while */
        if (strcmp(fixture_sqlstate(super_url(), sql, state), "55006") != 0)
            break;
    }
    assert_string_equal(state, "00000");
    fixture_become(f, "ledgerlock_owner");
}

void fixture_open(struct fixture *f)
{
    open_like(f, NULL);
}

void fixture_close(struct fixture *f)
{
    char sql[256];

    fixture_forget_env();
    if (f->database[0] != '\0') {
        (void)snprintf(sql, sizeof sql, "DROP DATABASE IF EXISTS %s WITH (FORCE)",
                       f->database);
        fixture_exec(super_url(), sql);
    }
    f->database[0] = '\0';
    secrets_close();
}

/* All migrated databases are copies of a model, which the first program that needs it
 * makes, for each server and each build of the program under test: to copy takes a
 * fraction of the time of a migration. A second model has the months since the start of
 * 2024, too. A model is a template from when it is whole. */
static struct model {
    struct fixture f;
    char server[FIXTURE_URL], program[512];
} models[2];

static void change_database(const char *verb, const struct model *m, const char *words)
{
    char sql[256];

    (void)snprintf(sql, sizeof sql, "%s %s %s", verb, m->f.database, words);
    fixture_exec(super_url(), sql);
}

static void make_model(struct model *m, bool has_months)
{
    static struct fixture_output o;

    fixture_forget_env();
    change_database("DROP DATABASE IF EXISTS", m, "WITH (FORCE)");
    change_database("CREATE DATABASE", m, "OWNER ledgerlock_owner");
    fixture_become(&m->f, "ledgerlock_owner");
    if (fixture_run(&m->f, &o, "migrate", NULL) != 0)
        fail_msg("migrate: exit %d: %s", o.code, o.err);
    if (has_months)
        fixture_exec(m->f.url, "SELECT ledgerlock.make_months('2024-01-01Z', now() +"
                               " interval '2 months')");
    change_database("ALTER DATABASE", m, "IS_TEMPLATE true");
}

/* By the file of the program, and when it was built. */
static void name_model(struct model *m, bool has_months)
{
    struct stat st;

    assert_int_equal(stat(fixture_program(), &st), 0);
    (void)snprintf(m->f.database, sizeof m->f.database, "lltest_%s_%llx_%llx_%lx",
                   has_months ? "months" : "model", (unsigned long long)st.st_ino,
                   (unsigned long long)st.st_mtim.tv_sec,
                   (unsigned long)st.st_mtim.tv_nsec);
}

static bool is_whole(const struct model *m)
{
    char sql[160];

    (void)snprintf(sql, sizeof sql,
                   "SELECT count(*) FROM pg_database WHERE datname = '%s' AND"
                   " datistemplate",
                   m->f.database);
    return fixture_query_int8(super_url(), sql) > 0;
}

/* Programs that run at once wait for the one that makes it. */
static const char *need_model(bool has_months)
{
    struct model *m = &models[has_months];
    static PGconn *lock; /* still there when a case ended over the model */

    if (strcmp(m->server, super_url()) == 0 &&
        strcmp(m->program, fixture_program()) == 0)
        return m->f.database;
    memset(m, 0, sizeof *m);
    name_model(m, has_months);
    (void)snprintf(m->f.prefix, sizeof m->f.prefix, "model:");
    (void)snprintf(m->f.redis_url, sizeof m->f.redis_url, "%s",
                   getenv("LL_TEST_REDIS"));
    PQfinish(lock);
    lock = PQconnectdb(super_url());
    session_do(lock, "SELECT pg_advisory_lock(hashtext('ledgerlock test model'))");
    if (!is_whole(m))
        make_model(m, has_months);
    PQfinish(lock);
    lock = NULL;
    (void)snprintf(m->server, sizeof m->server, "%s", super_url());
    (void)snprintf(m->program, sizeof m->program, "%s", fixture_program());
    return m->f.database;
}

void fixture_open_migrated(struct fixture *f)
{
    fixture_need_servers();
    open_like(f, need_model(false));
}

void fixture_open_with_months(struct fixture *f)
{
    fixture_need_servers();
    open_like(f, need_model(true));
}

void fixture_copy(struct fixture *f, const struct fixture *from, const char *sql)
{
    static unsigned count;
    char text[8192];

    *f = *from;
    (void)snprintf(f->database, sizeof f->database, "%.50s_c%u", from->database,
                   ++count);
    (void)snprintf(text, sizeof text,
                   "CREATE DATABASE %s OWNER ledgerlock_owner TEMPLATE %s" BY_FILES,
                   f->database, from->database);
    fixture_exec(super_url(), text);
    fixture_become(f, "ledgerlock_owner");
    assert_in_range(
        snprintf(text, sizeof text, "SET search_path = ledgerlock; %s", sql), 0,
        sizeof text - 1);
    fixture_exec(f->url, text);
}

void fixture_unguard(const struct fixture *f)
{
    char url[FIXTURE_URL];

    fixture_url_as(f, "ledgerlock_owner", url, sizeof url);
    fixture_exec(
        url,
        "DO $$ DECLARE c record; BEGIN FOR c IN SELECT conrelid::regclass AS tab,"
        " conname FROM pg_constraint WHERE connamespace = 'ledgerlock'::regnamespace"
        " AND conrelid <> 0 AND coninhcount = 0 ORDER BY contype <> 'f' LOOP EXECUTE"
        " format('ALTER TABLE %s DROP CONSTRAINT %I', c.tab, c.conname); END LOOP;"
        " FOR c IN SELECT indexrelid::regclass AS name FROM pg_index JOIN pg_class AS i ON"
        " i.oid = indexrelid WHERE indisunique AND NOT relispartition AND relnamespace ="
        " 'ledgerlock'::regnamespace LOOP EXECUTE format('DROP INDEX %s', c.name); END LOOP;"
        " FOR c IN SELECT tgrelid::regclass AS tab, tgname FROM pg_trigger WHERE NOT"
        " tgisinternal AND tgparentid = 0 AND tgrelid::regclass::text LIKE"
        " 'ledgerlock.%' LOOP EXECUTE format('DROP TRIGGER %I ON %s', c.tgname, c.tab);"
        " END LOOP; END $$");
}

void fixture_preload_calls(void)
{
    fixture_env("LD_PRELOAD", CALL_SHIM);
}
