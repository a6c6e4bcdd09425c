/* languages: what the program decides is the same whatever the language of the server's
 * messages, and whatever order their words have in it. */
#include "tests/lib/private_pg.h"
#include "tests/lib/secrets.h"
#include "tests/lib/shop.h"
#include "tests/lib/steps.h"

#define LOCALES "/tmp/ledgerlock-test-locales"

/* The server's messages are translated where its package has them; a locale is made
 * from the sources of glibc. */
static bool make_locale(const char *language)
{
    char command[256];

    (void)snprintf(command, sizeof command,
                   "mkdir -p " LOCALES " && localedef -i %s -f UTF-8 " LOCALES
                   "/%s.utf8 >/dev/null 2>&1; test -e " LOCALES
                   "/%s.utf8/LC_MESSAGES && chmod -R a+rX " LOCALES,
                   language, language, language);
    return system(command) == 0;
}

static const char *lacks(void)
{
    return make_locale("de_DE") && make_locale("tr_TR")
               ? NULL
               : "localedef and its sources are not there (package locales)";
}

static void start(void)
{
    (void)setenv("LOCPATH", LOCALES, 1);
    private_pg_begin();
    (void)unsetenv("LOCPATH"); /* the server has it; programs leak in glibc with it */
}

static void stop(void)
{
    private_pg_end();
    (void)!system("rm -rf " LOCALES);
}

GROUP(.missing = lacks,
      .start = start,
      .stop = stop,
      .open = shop_open,
      .end = world_end,
      .close = shop_close);

static const struct language {
    const char *name, *locale;
    const char *words; /* of the context of an error */
} languages[] = {
    {"german", "de_DE.utf8", "PL/pgSQL-Funktion inline_code_block"},
    {"turkish", "tr_TR.utf8", "inline_code_block PL/pgSQL fonksiyonu"},
};

static void speak(const struct language *language)
{
    super_do("ALTER DATABASE %s SET lc_messages = '%s'", world.f.database,
             language->locale);
}

/* "PL/pgSQL function refuse() line 1": in Turkish the signature comes first. */
/* Guarantee: Whose error it is does not depend on the language of the server's
 * messages: an overflow in somebody's trigger parks nothing in any. */
CASE_ROWS(overflow_in_a_trigger_parks_nothing_in, languages)
{
    PGconn *conn;
    PGresult *res;

    speak(row);
    conn = super_open();
    res = PQexec(conn, "DO $$ BEGIN PERFORM 1 / 0; END $$");
    fixture_assert_contains(PQresultErrorField(res, PG_DIAG_CONTEXT), row->words);
    PQclear(res);
    PQfinish(conn);
    world_do(
        "CREATE TABLE tally AS SELECT 2147483647 AS n; GRANT ALL ON tally TO PUBLIC;"
        " CREATE FUNCTION refuse() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN IF"
        " NEW.user_id = 7 THEN UPDATE ledgerlock.tally SET n = n + 1; END IF; RETURN"
        " NULL; END $$; CREATE TRIGGER refuse AFTER INSERT ON charges FOR EACH ROW"
        " EXECUTE FUNCTION refuse(); CREATE TRIGGER refuse AFTER UPDATE ON orders FOR"
        " EACH ROW EXECUTE FUNCTION refuse()");
    (void)shop_run_met();
    assert_int_equal(said.code, 7);
    promise_int_equal(world_parked(), 0);
    world_is(SHOP_USERS - 1, "SELECT count(*) FROM charges");
}

/* Guarantee: A login that is refused ends the program with exit code 4 at its start, in
 * any language of the server. */
CASE_ROWS(login_is_refused_at_the_start_with_4_in, languages)
{
    char sql[160];

    (void)snprintf(sql, sizeof sql, "ALTER SYSTEM SET lc_messages = '%s'", row->locale);
    fixture_exec(private_pg.url, sql);
    fixture_exec(private_pg.url, "SELECT pg_reload_conf()");
    fixture_exec(private_pg.url, "ALTER ROLE ledgerlock_worker NOLOGIN");
    runs(&world.f, 4, "run --once");
    shows("LL-3003");
    runs(&world.f, 4, "status");
    fixture_exec(private_pg.url, "ALTER ROLE ledgerlock_worker LOGIN");
    (void)snprintf(sql, sizeof sql,
                   "postgresql:///nowhere?host=%s&user=ledgerlock_worker",
                   private_pg.dir);
    (void)snprintf(world.f.url, sizeof world.f.url, "%s", sql);
    runs(&world.f, 4, "run --once");
    fixture_exec(private_pg.url, "ALTER SYSTEM SET lc_messages = 'C'");
    fixture_exec(private_pg.url, "SELECT pg_reload_conf()");
}
