/* fixture: databases, each of its own, by libpq. */
#include <libpq-fe.h>

#include "tests/lib/fixture.h"
#include "tests/lib/secrets.h"

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
    (void)snprintf(sql, sizeof sql, "CREATE DATABASE %s OWNER ledgerlock_owner%s%s",
                   f->database, model != NULL ? " STRATEGY FILE_COPY TEMPLATE " : "",
                   model != NULL ? model : "");
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

/* All migrated databases of a test program are copies of this one: to copy takes a
 * fraction of the time of a migration. Another server, or another program, has another
 * one. */
static struct {
    struct fixture f;
    char server[FIXTURE_URL], program[512];
    pid_t owner;
} model;

static void drop_model(void)
{
    PGconn *conn;
    char sql[256];

    if (model.owner != getpid())
        return;
    (void)snprintf(sql, sizeof sql, "DROP DATABASE IF EXISTS %s WITH (FORCE)",
                   model.f.database);
    conn = PQconnectdb(model.server);
    PQclear(PQexec(conn, sql)); /* its server may have ended before */
    PQfinish(conn);
}

static void need_model(void)
{
    static struct fixture_output o;
    static bool is_dropped_at_exit;

    if (model.owner == getpid() && strcmp(model.server, super_url()) == 0 &&
        strcmp(model.program, fixture_program()) == 0)
        return;
    drop_model();
    model.owner = 0;
    open_like(&model.f, NULL);
    if (fixture_run(&model.f, &o, "migrate", NULL) != 0)
        fail_msg("migrate: exit %d: %s", o.code, o.err);
    (void)snprintf(model.server, sizeof model.server, "%s", super_url());
    (void)snprintf(model.program, sizeof model.program, "%s", fixture_program());
    model.owner = getpid();
    if (!is_dropped_at_exit)
        is_dropped_at_exit = atexit(drop_model) == 0;
}

void fixture_open_migrated(struct fixture *f)
{
    fixture_need_servers();
    need_model();
    open_like(f, model.f.database);
}

void fixture_copy(struct fixture *f, const struct fixture *from, const char *sql)
{
    static unsigned count;
    char text[8192];

    *f = *from;
    (void)snprintf(f->database, sizeof f->database, "%.50s_c%u", from->database,
                   ++count);
    (void)snprintf(text, sizeof text,
                   "CREATE DATABASE %s TEMPLATE %s OWNER ledgerlock_owner", f->database,
                   from->database);
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
        " FOR c IN SELECT tgrelid::regclass AS tab, tgname FROM pg_trigger WHERE NOT"
        " tgisinternal AND tgparentid = 0 AND tgrelid::regclass::text LIKE"
        " 'ledgerlock.%' LOOP EXECUTE format('DROP TRIGGER %I ON %s', c.tgname, c.tab);"
        " END LOOP; END $$");
}
