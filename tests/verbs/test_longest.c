/* longest: each setting that is text is used at its longest, and a password as well:
 * what the check takes, the program can use. */
#include <sys/stat.h>

#include "common/base/config.h"
#include "common/base/secret.h"
#include "tests/lib/private_pg.h"
#include "tests/lib/runs.h"

enum { SETTINGS_MAX = 64 };

static struct private_pg postgres;
static struct fixture_redis redis;
static struct fixture f;
static char secret[SECRET_MAX + 1], config[64], folder[64];
static char values[SETTINGS_MAX][CONFIG_TEXT]; /* by the rows of the options */

static size_t row_of(const char *key)
{
    size_t row = 0;

    while (strcmp(config_options[row].key, key) != 0)
        row++;
    assert_in_range(row, 0, SETTINGS_MAX - 1);
    return row;
}

/* begin, as many times c as the option has room for, and end. */
static const char *fill(const char *key, const char *begin, char c, const char *end)
{
    size_t row = row_of(key), max = (size_t)config_options[row].max;
    size_t n = strlen(begin), m = strlen(end);
    char *value = values[row];

    assert_in_range(n + m, 1, max);
    (void)strcpy(value, begin);
    memset(value + n, c, max - n - m);
    (void)strcpy(value + max - m, end);
    return value;
}

static void write_text(const char *path, const char *text)
{
    FILE *file = fopen(path, "w");

    assert_non_null(file);
    assert_int_equal(chmod(path, 0600), 0);
    assert_true(fputs(text, file) >= 0);
    assert_int_equal(fclose(file), 0);
}

static void fill_all(const char *role)
{
    char begin[1000], end[1024];

    (void)snprintf(begin, sizeof begin,
                   "postgresql:///%s?host=%s&user=%s&fallback_application_name=",
                   f.database, postgres.dir, role);
    (void)fill("postgres.url", begin, 'a', "");
    (void)snprintf(end, sizeof end, "0=%s", begin);
    (void)fill("cells.urls", end, 'a', "");
    (void)fill("cells.only", "0,0,0", '0', "");
    for (size_t i = 1; i < 255; i += 2)
        values[row_of("cells.only")][i] = ',';
    (void)fill("postgres.schema", "s", 'c', "");
    (void)fill("postgres.role_prefix", "r", 'r', "");
    (void)snprintf(begin, sizeof begin, "%s/", folder);
    write_text(fill("postgres.password_file", begin, 'p', ""), secret);
    write_text(fill("redis.password_file", begin, 'r', ""), secret);
    (void)fill("redis.tls_ca", begin, 't', "");
    (void)snprintf(end, sizeof end, "@%s?db=0", redis.url + strlen("unix://"));
    (void)fill("redis.url", "unix://long:", 'u', end);
    (void)fill("locks.prefix", f.prefix, 'l', ":");
    for (int i = 0; i < 32; i++)
        (void)strcpy(&values[row_of("pool.jobs")][i * 8],
                     i < 31 ? "billing," : "billing");
    (void)fill("gateway.url", "https://", 'g', "");
    write_text(fill("gateway.key_file", begin, 'k', ""), secret);
    (void)fill("gateway.tls_ca", begin, 'g', "");
    (void)fill("import.currency", "USD", ' ', "");
    (void)fill("http.hosts", "shop.example,", 'h', "");
    (void)fill("http.listen", "127.0.0.1:", '0', "");
}

static void write_group(FILE *file, const char *name, size_t n)
{
    (void)fprintf(file, "%.*s: {\n", (int)n, name);
    for (size_t row = 0; row < config_option_ct; row++) {
        const struct config_option *o = &config_options[row];

        if (o->type != OPTION_TEXT || strncmp(o->key, name, n) != 0 || o->key[n] != '.')
            continue;
        if (strcmp(o->key, "cells.citus") == 0)
            continue; /* not beside cells.urls */
        if (strlen(values[row]) != (size_t)o->max)
            fail_msg("%s has no longest value here", o->key);
        (void)fprintf(file, "  %s = \"%s\";\n", o->key + n + 1, values[row]);
    }
    (void)fputs("};\n", file);
}

static void write_config(const char *role)
{
    FILE *file = fopen(config, "w");

    assert_non_null(file);
    fill_all(role);
    for (size_t row = 0; row < config_option_ct; row++) {
        const char *key = config_options[row].key;
        size_t n = strcspn(key, ".");

        if (config_options[row].type == OPTION_TEXT &&
            (row == 0 || strncmp(config_options[row - 1].key, key, n + 1) != 0))
            write_group(file, key, n);
    }
    assert_int_equal(fclose(file), 0);
}

/* ---- servers that ask for the longest password ---- */

static void ask_for_passwords(void)
{
    char hba[160], sql[SECRET_MAX + 200], super[FIXTURE_URL];

    fixture_url_as(&f, "postgres", super, sizeof super);
    fixture_query_text(super, "SHOW hba_file", hba, sizeof hba);
    (void)snprintf(sql, sizeof sql, "ALTER ROLE ledgerlock_owner PASSWORD '%s'",
                   secret);
    fixture_exec(super, sql);
    (void)snprintf(sql, sizeof sql, "ALTER ROLE ledgerlock_worker PASSWORD '%s'",
                   secret);
    fixture_exec(super, sql);
    (void)snprintf(
        sql, sizeof sql,
        "COPY (SELECT 'local all postgres trust' UNION ALL SELECT 'local all all "
        "scram-sha-256') TO '%s'",
        hba);
    fixture_exec(super, sql);
    fixture_exec(super, "SELECT pg_reload_conf()");
}

static void open_all(void)
{
    char rule[SECRET_MAX + 2];

    memset(secret, 's', SECRET_MAX);
    private_pg_open(&postgres);
    (void)snprintf(rule, sizeof rule, ">%s", secret);
    fixture_redis_start(&redis, "--user", "long", "on", rule, "~*", "&*", "+@all",
                        NULL);
    fixture_open(&f);
    fixture_folder(folder, sizeof folder, "long");
    fixture_file(config, sizeof config, "", 0600);
    ask_for_passwords();
    fixture_env("LEDGERLOCK_POSTGRES_URL", NULL);
    fixture_env("LEDGERLOCK_POSTGRES_PASSWORD_FILE", NULL);
    fixture_env("LEDGERLOCK_REDIS_URL", NULL);
    fixture_env("LEDGERLOCK_LOCKS_PREFIX", NULL);
    fixture_env("LEDGERLOCK_CONFIG", config);
}

static void close_all(void)
{
    (void)unlink(config);
    fixture_remove(folder, NULL);
    fixture_redis_close(&redis);
    fixture_close(&f);
    private_pg_close(&postgres);
}

GROUP(.start = open_all, .stop = close_all);

/* The role that logs in may do what that of the settings may. */
static void join_the_worker(void)
{
    char super[FIXTURE_URL], sql[160];

    fixture_url_as(&f, "postgres", super, sizeof super);
    (void)snprintf(sql, sizeof sql, "GRANT %s_worker TO ledgerlock_worker",
                   values[row_of("postgres.role_prefix")]);
    fixture_exec(super, sql);
}

/* Guarantee: Each setting that is text, and each password (4096 characters), is used at
 * the longest that its check takes. */
CASE(longest_settings_are_used)
{
    write_config("ledgerlock_owner");
    fixture_env("LEDGERLOCK_CELLS_URLS", ""); /* postgres.url is used first */
    fixture_env("LEDGERLOCK_CELLS_ONLY", "all");
    runs(&f, 0, "config check");
    runs(&f, 0, "config show");
    /* The postmaster reads its files in its own time. */
    FIXTURE_AWAIT(fixture_run(&f, &said, "migrate", NULL) == 0, "migrate: %s",
                  said.err);
    runs(&f, 0, "seed --users 20 --subscriptions 20 --skus 2 --orders 5 --seed 1");
    join_the_worker();
    write_config("ledgerlock_worker");
    runs(&f, 0, "run --once");
    runs(&f, 0, "audit");
    runs(&f, 0, "status");
    runs(&f, 0, "locks");
    runs(&f, 0, "report");
    runs(&f, 0, "explain subscription 1");
    fixture_env("LEDGERLOCK_CELLS_URLS", NULL);
    fixture_env("LEDGERLOCK_CELLS_ONLY", NULL);
    runs(&f, 0, "run --once");
    runs(&f, 0, "cells");
}
