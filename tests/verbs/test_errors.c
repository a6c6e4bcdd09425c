/* errors: every bad input has its own message, which says what to do, and its exit
 * code. */
#include "tests/lib/one_database.h"

static struct fixture_redis redis;

static void empty(void)
{
    fixture_open(&f);
}

static void done(void)
{
    fixture_redis_close(&redis);
    fixture_close(&f);
}

GROUP(.open = empty, .close = done);

/* ---- use and configuration ---- */

/* clang-format off */
static const struct {
    const char *name;
    int code;
    const char *says, *words;
    const char *variable, *value; /* of the environment */
    const char *file;             /* the text of the configuration */
    bool open;                    /* to be read by others */
} inputs[] = {
    {"verb",          2, "did you mean audit?",                       .words = "adit"},
    {"flag",          2, "flag --onc3",                               .words = "run --onc3"},
    {"flag_and_help", 2, "see ledgerlock run -h",                     .words = "run --onc3"},
    {"no_worker",     2, "pool.jobs orders: no worker works them",    .words = "run --jobs orders --orders 0 -w 4"},
    {"flag_value",    2, "must be a whole number, not \"many\"",      .words = "run -w many"},
    {"redis_url",     2, "flag --redis-url: redis.url must start with redis://", .words = "status --redis-url http://foo"},
    {"postgres_url",  2, "LL-3001 postgres.url cannot be read",       .words = "status --postgres-url postgresql://["},
    {"schema",        2, "flag --schema: postgres.schema must",       .words = "status --schema pg_catalog"},
    {"redis_url_of_the_environment", 3, "redis.url must start with redis://",
     .words = "status", .variable = "LEDGERLOCK_REDIS_URL", .value = "http://foo"},
    {"postgres_url_of_the_environment", 3, "LL-3001",
     .words = "status", .variable = "LEDGERLOCK_POSTGRES_URL", .value = "postgresql://["},
    {"job",           2, "no job is called \"biling\"; there are: billing",            .words = "run --once --jobs biling"},
    {"now_infinity",  2, "infinity",                                  .words = "run --once --now infinity"},
    {"now_tomorrow",  2, "tomorrow",                                  .words = "run --once --now tomorrow"},
    {"now_now",       2, "now is no time",                                      .words = "run --once --now now"},
    {"now_in_words",  2, "01/02/2024",                                .words = "run --once --now 01/02/2024"},
    {"environment",   3, "environment LEDGERLOCK_LOCKS_LEASE_MS: locks.lease_ms must be from 1000 to 600000",
     .words = "status", .variable = "LEDGERLOCK_LOCKS_LEASE_MS", .value = "999"},
    {"environment_above", 3, "environment LEDGERLOCK_LOCKS_LEASE_MS: locks.lease_ms must be from 1000 to 600000",
     .words = "run --once", .variable = "LEDGERLOCK_LOCKS_LEASE_MS", .value = "600001"},
    {"variable",      3, "unknown setting LEDGERLOCK_WORKERS",        .words = "status", .variable = "LEDGERLOCK_WORKERS", .value = "5"},
    {"file_value",    3, ":2: pool.workers must be from 0 to 256",    .words = "status", .file = "pool: {\n workers = 300;\n};\n"},
    {"file_key",      3, ":2: unknown setting pool.workes, did you mean", .words = "status", .file = "pool: {\n workes = 1;\n};\n"},
    {"file_syntax",   3, ":3: syntax error",                          .words = "status", .file = "pool: {\n\n ]\n};\n"},
    {"file_missing",  3, "/nowhere/ledgerlock.cfg: No such file or directory",
     .words = "status", .variable = "LEDGERLOCK_CONFIG", .value = "/nowhere/ledgerlock.cfg"},
    {"password_file_that_others_read", 3, "run: chmod 600 /", "status", "LEDGERLOCK_POSTGRES_PASSWORD_FILE", .file = "secret\n", .open = true},
};

/* clang-format on */

/* Guarantee: Wrong use and wrong settings are refused in words that say what is right;
 * a lease out of bounds with the bounds. */
CASE_ROWS(wrong, inputs)
{
    const char *variable = row->variable;
    char path[64] = "";

    if (row->file != NULL)
        fixture_file(path, sizeof path, row->file, row->open ? 0644 : 0600);
    if (variable != NULL || row->file != NULL)
        fixture_env(variable != NULL ? variable : "LEDGERLOCK_CONFIG",
                    row->file != NULL ? path : row->value);
    says(&f, row->code, row->says, "%s", row->words);
    (void)unlink(path);
    shows(row->open ? path : "");
}

/* ---- PostgreSQL ---- */

CASE(unreachable_postgres_names_its_place)
{
    (void)strcpy(f.url, "postgresql://me@127.0.0.1:1/shop");
    says(&f, 4, "postgresql://me@127.0.0.1:1/shop", "status");
    shows("Connection refused");
}

CASE(missing_database_is_named)
{
    struct fixture other = f;

    (void)strcpy(other.database, "lltest_missing");
    fixture_become(&other, "ledgerlock_worker");
    says(&other, 4, "database \"lltest_missing\" does not exist", "status");
}

CASE(missing_role_is_named)
{
    fixture_become(&f, "ledgerlock_nobody");
    says(&f, 4, "role \"ledgerlock_nobody\" does not exist", "status");
}

static void all_say(const char *what)
{
    says(&f, 6, what, "status");
    says(&f, 6, what, "audit");
    says(&f, 6, what, "run");
    says(&f, 6, what, "seed");
}

CASE(missing_schema_says_migrate_in_every_verb)
{
    all_say("run `ledgerlock migrate`");
}

CASE(newer_schema_is_refused_by_every_verb, .open = one_open)
{
    fixture_exec(f.url,
                 "INSERT INTO ledgerlock.schema_migrations (kind, name, checksum) "
                 "VALUES ('migration', '999_future', 'x')");
    all_say("install the newer one");
}

CASE(missing_table_is_named, .open = one_open)
{
    fixture_exec(f.url, "DROP TABLE ledgerlock.batches");
    says(&f, 6, "\"batches\" does not exist", "audit");
}

/* ---- Redis ---- */

CASE(unreachable_redis_is_named_with_its_port, .open = one_open)
{
    (void)strcpy(f.redis_url, "redis://127.0.0.1:1");
    says(&f, 5, "LL-4008 Redis at 127.0.0.1:1: Connection refused; see redis.url in",
         "run --once");
}

/* Guarantee: A Redis that evicts is refused at start. */
CASE(run_refuses_a_redis_that_evicts, .open = one_open)
{
    fixture_redis_start(&redis, "--maxmemory", "1gb", "--maxmemory-policy",
                        "allkeys-lru", NULL);
    (void)strcpy(f.redis_url, redis.url);
    says(&f, 6, "maxmemory-policy", "run --once");
    shows("allkeys-lru");
    shows("noeviction");
}

/* ---- output ---- */

/* Guarantee: A result that cannot be written is an error with a code and its reason, of
 * every verb. */
CASE(result_that_cannot_be_written_is_an_error, .open = one_open)
{
    static const char *const verbs[] = {
        "version",      "config show", "config sample", "help",
        "help --man 1", "status",      "status --json", "audit",
        "audit --json", "report",      "report --csv",  "doctor",
        "locks",        "parked",      "migrate"};
    char command[5000], line[256] = "";
    FILE *p;

    for (size_t i = 0; i < sizeof verbs / sizeof verbs[0]; i++) {
        (void)snprintf(command, sizeof command,
                       "LEDGERLOCK_POSTGRES_URL='%s' LEDGERLOCK_REDIS_URL='%s' '%s' %s "
                       "2>&1 >/dev/full",
                       f.url, f.redis_url, fixture_program(), verbs[i]);
        p = popen(command, "r");
        assert_non_null(p);
        assert_non_null(fgets(line, sizeof line, p));
        assert_int_not_equal(pclose(p), 0);
        fixture_assert_contains(
            line, "LL-9005 cannot write the result: No space left on device");
    }
}
