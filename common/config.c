/* config: the option table, its environment and the checks of its values. */
#include "common/config.h"

#include <assert.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "common/secret.h"

extern char **environ;

enum { VARIABLE = 64 };

#define ROW_TEXT(member) OPTION_TEXT, offsetof(struct config, member)
#define ROW_INT(member) OPTION_INT, offsetof(struct config, member)
#define ROW_CHOICE(member) OPTION_CHOICE, offsetof(struct config, member)

/* min and max bound the value of an integer and the length of a text. */
/* clang-format off */
const struct config_option config_options[] = {
    {"postgres.url", ROW_TEXT(postgres_url), "postgresql:///ledgerlock", 1, 255, NULL,
     "LEDGERLOCK_POSTGRES_URL", "postgres-url", 0, OPTION_SECRET,
     "PostgreSQL, as libpq reads it: URL or key=value words"},
    {"postgres.password_file", ROW_TEXT(postgres_password_file), "", 0, 255, NULL,
     "LEDGERLOCK_POSTGRES_PASSWORD_FILE", "postgres-password-file", 0, 0,
     "file whose first line is the PostgreSQL password"},
    {"postgres.pooling", ROW_CHOICE(postgres_pooling), "session", 0, 0,
     "session|transaction",
     "LEDGERLOCK_POSTGRES_POOLING", "pooling", 0, 0,
     "transaction: behind a pooler that gives a session to a transaction only"},
    {"postgres.durability", ROW_CHOICE(postgres_durability), "required", 0, 0, "required|any",
     "LEDGERLOCK_POSTGRES_DURABILITY", "postgres-durability", 0, 0,
     "any: run also where fsync, full_page_writes or synchronous_commit is off"},
    {"redis.url", ROW_TEXT(redis_url), "redis://127.0.0.1:6379", 1, 255, NULL,
     "LEDGERLOCK_REDIS_URL", "redis-url", 0, OPTION_SECRET,
     "Redis: redis://[user[:password]@]host[:port][/db], rediss://, unix:///path or "
     "redis+sentinel://host,host/name"},
    {"redis.password_file", ROW_TEXT(redis_password_file), "", 0, 255, NULL,
     "LEDGERLOCK_REDIS_PASSWORD_FILE", "redis-password-file", 0, 0,
     "file whose first line is the Redis password"},
    {"redis.tls_ca", ROW_TEXT(redis_tls_ca), "", 0, 255, NULL,
     "LEDGERLOCK_REDIS_TLS_CA", "redis-tls-ca", 0, 0,
     "file of trusted certificates for rediss://; empty: the system's"},
    {"redis.replicas", ROW_INT(redis_replicas), "0", 0, 100, NULL,
     "LEDGERLOCK_REDIS_REPLICAS", "redis-replicas", 0, 0,
     "replicas that must have a lock before it counts; too few: it is given back"},
    {"redis.scripts", ROW_CHOICE(redis_scripts), "lua", 0, 0, "lua|none",
     "LEDGERLOCK_REDIS_SCRIPTS", "redis-scripts", 0, 0,
     "none: the server forbids scripts, locks use WATCH/MULTI/EXEC (slower)"},
    {"locks.mode", ROW_CHOICE(lock_mode), "redis", 0, 0, "redis|database-only",
     "LEDGERLOCK_LOCKS_MODE", "lock-mode", 0, 0,
     "where locks are held; database-only relies on fences and constraints alone"},
    {"locks.prefix", ROW_TEXT(lock_prefix), "lock:", 1, 64, NULL,
     "LEDGERLOCK_LOCKS_PREFIX", "lock-prefix", 0, 0,
     "what every lock key in Redis starts with"},
    {"locks.lease_ms", ROW_INT(lease_ms), "10000", 1000, 600000, NULL,
     "LEDGERLOCK_LOCKS_LEASE_MS", "lease-ms", 0, OPTION_RELOAD,
     "how long a lock lasts; PostgreSQL's timeouts are kept below it"},
    {"pool.workers", ROW_INT(workers), "4", 1, 256, NULL,
     "LEDGERLOCK_POOL_WORKERS", "workers", 'w', 0,
     "worker processes"},
    {"pool.batch", ROW_INT(batch), "500", 1, 1000, NULL,
     "LEDGERLOCK_POOL_BATCH", "batch", 0, OPTION_RELOAD,
     "most rows of one transaction"},
    {"pool.poll_ms", ROW_INT(poll_ms), "1000", 10, 60000, NULL,
     "LEDGERLOCK_POOL_POLL_MS", "poll-ms", 0, OPTION_RELOAD,
     "pause of a worker that found nothing due"},
    {"pool.notify", ROW_CHOICE(notify), "on", 0, 0, "on|off",
     "LEDGERLOCK_POOL_NOTIFY", "notify", 0, 0,
     "on: the doors wake an idle pool; never with pooling transaction"},
    {"pool.grace_ms", ROW_INT(grace_ms), "8000", 100, 60000, NULL,
     "LEDGERLOCK_POOL_GRACE_MS", "grace-ms", 0, OPTION_RELOAD,
     "longest drain after TERM or INT; Docker kills after 10 s"},
    {"pool.quarantine_after", ROW_INT(quarantine_after), "3", 0, 100, NULL,
     "LEDGERLOCK_POOL_QUARANTINE_AFTER", "quarantine-after", 0, OPTION_RELOAD,
     "deaths of its worker after which a row is set aside; 0: never"},
    {"pool.jobs", ROW_TEXT(jobs), "billing,orders", 1, 255, NULL,
     "LEDGERLOCK_POOL_JOBS", "jobs", 0, OPTION_RELOAD,
     "jobs to work on, separated by commas"},
    {"billing.retry_after", ROW_TEXT(retry_after), "1d,3d,5d,7d", 1, 255, NULL,
     "LEDGERLOCK_BILLING_RETRY_AFTER", "retry-after", 0, OPTION_RELOAD,
     "pauses after each declined charge (s m h d); after the last it is given up"},
    {"import.currency", ROW_TEXT(currency), "USD", 3, 3, NULL,
     "LEDGERLOCK_IMPORT_CURRENCY", "currency", 0, 0,
     "ISO code of the money in imported files"},
    {"log.level", ROW_CHOICE(log_level), "info", 0, 0, "debug|info|warn|error",
     "LEDGERLOCK_LOG_LEVEL", "log-level", 0, OPTION_RELOAD,
     "least important events that are written"},
    {"log.format", ROW_CHOICE(log_format), "auto", 0, 0, "auto|logfmt|human",
     "LEDGERLOCK_LOG_FORMAT", "log-format", 0, OPTION_RELOAD,
     "auto is human on a terminal and logfmt elsewhere"},
};
/* clang-format on */

const size_t config_option_ct = sizeof config_options / sizeof config_options[0];

static_assert(sizeof config_options / sizeof config_options[0] <=
                  sizeof((struct config *)NULL)->origin,
              "origin has a place for every option");

/* ---- setting one value ---- */

static void *member(struct config *c, size_t row)
{
    return (char *)c + config_options[row].offset;
}

static bool is_choice(const char *choices, const char *value)
{
    size_t n = strlen(value);

    for (const char *p = choices; p != NULL; p = strchr(p, '|')) {
        p += *p == '|';
        if (n > 0 && strchr(value, '|') == NULL && strncmp(p, value, n) == 0 &&
            (p[n] == '|' || p[n] == '\0'))
            return true;
    }
    return false;
}

static int set_int(
    struct config *c, size_t row, const char *value, const char *where, struct err *e)
{
    const struct config_option *o = &config_options[row];
    char *end;
    long long n;

    errno = 0;
    n = strtoll(value, &end, 10);
    if (end == value || *end != '\0')
        return err_set(e, ERR_CONFIG, "%s: %s must be a whole number, not \"%.40s\"",
                       where, o->key, value);
    if (errno != 0 || n < o->min || n > o->max)
        return err_set(e, ERR_CONFIG, "%s: %s must be from %lld to %lld, not %.40s",
                       where, o->key, (long long)o->min, (long long)o->max, value);
    *(int64_t *)member(c, row) = n;
    return 0;
}

static int set_text(
    struct config *c, size_t row, const char *value, const char *where, struct err *e)
{
    const struct config_option *o = &config_options[row];
    size_t n = strlen(value);

    if (o->type == OPTION_CHOICE && !is_choice(o->choices, value))
        return err_set(e, ERR_CONFIG, "%s: %s must be one of %s, not \"%.40s\"", where,
                       o->key, o->choices, value);
    if (o->type == OPTION_TEXT && (n < (size_t)o->min || n > (size_t)o->max))
        return err_set(e, ERR_CONFIG,
                       "%s: %s must have %lld to %lld characters, this one has %zu",
                       where, o->key, (long long)o->min, (long long)o->max, n);
    (void)snprintf(member(c, row), CONFIG_TEXT, "%s", value);
    return 0;
}

int config_set(struct config *c,
               size_t row,
               const char *value,
               enum config_origin origin,
               const char *where,
               struct err *e)
{
    int code = config_options[row].type == OPTION_INT
                   ? set_int(c, row, value, where, e)
                   : set_text(c, row, value, where, e);

    if (code == 0)
        c->origin[row] = (unsigned char)origin;
    return code;
}

void config_defaults(struct config *c)
{
    struct err e = {0};

    memset(c, 0, sizeof *c);
    for (size_t row = 0; row < config_option_ct; row++) {
        int code = config_set(c, row, config_options[row].fallback, ORIGIN_DEFAULT,
                              "default", &e);

        assert(code == 0);
        (void)code;
    }
}

/* ---- the environment ---- */

static bool is_ours_but_no_option(const char *name)
{
    return strcmp(name, "LEDGERLOCK_CONFIG") == 0 ||
           strncmp(name, "LEDGERLOCK_TEST_", strlen("LEDGERLOCK_TEST_")) == 0;
}

static int
read_variable(struct config *c, const char *name, const char *value, struct err *e)
{
    char where[VARIABLE + 16];

    (void)snprintf(where, sizeof where, "environment %s", name);
    for (size_t row = 0; row < config_option_ct; row++) {
        if (strcmp(config_options[row].env, name) == 0)
            return config_set(c, row, value, ORIGIN_ENV, where, e);
    }
    return config_unknown(e, "environment", name, true);
}

int config_load_env(struct config *c, struct err *e)
{
    for (char **p = environ; p != NULL && *p != NULL; p++) {
        const char *equals = strchr(*p, '=');
        char name[VARIABLE];

        if (strncmp(*p, "LEDGERLOCK_", strlen("LEDGERLOCK_")) != 0 || equals == NULL)
            continue;
        (void)snprintf(name, sizeof name, "%.*s", (int)(equals - *p), *p);
        if (!is_ours_but_no_option(name) && read_variable(c, name, equals + 1, e) != 0)
            return (int)e->code;
    }
    return 0;
}

/* ---- values that concern several ---- */

static size_t row_of(const char *key)
{
    size_t row = 0;

    while (strcmp(config_options[row].key, key) != 0)
        row++;
    return row;
}

static int
wrong(const struct config *c, const char *key, const char *rule, struct err *e)
{
    char where[VARIABLE + 16];

    return err_set(e, ERR_CONFIG, "%s: %s must %s",
                   config_where(c, row_of(key), where, sizeof where), key, rule);
}

/* One pause such as "90m"; moves *p behind it. 0 when it is none. */
static int64_t take_pause(const char **p)
{
    static const struct {
        char letter;
        int64_t seconds;
    } units[] = {{'s', 1}, {'m', 60}, {'h', 3600}, {'d', 86400}};

    int64_t n = 0;
    int digits = 0;

    for (; **p >= '0' && **p <= '9' && digits < 7; (*p)++, digits++)
        n = n * 10 + (**p - '0');
    for (size_t i = 0; i < sizeof units / sizeof units[0]; i++) {
        if (**p == units[i].letter && digits > 0) {
            (*p)++;
            return n * units[i].seconds;
        }
    }
    return 0;
}

static int check_retries(struct config *c, struct err *e)
{
    const char *p = c->retry_after;

    c->retry_ct = 0;
    for (;;) {
        int64_t seconds = take_pause(&p);

        if (seconds < 1 || (*p != ',' && *p != '\0') || c->retry_ct == CONFIG_RETRIES)
            return wrong(
                c, "billing.retry_after",
                "be 1 to 16 pauses of at least 1s with units s m h d, separated "
                "by commas: \"1d,3d,5d,7d\"",
                e);
        c->retry_s[c->retry_ct++] = seconds;
        if (*p++ == '\0')
            return 0;
    }
}

static bool is_printable(const char *text)
{
    for (; *text != '\0'; text++) {
        if (*text <= ' ' || *text > '~')
            return false;
    }
    return true;
}

/* Password files are looked at before anything starts, and again on reload. */
static int check_secret(const char *path, struct err *e)
{
    char password[CONFIG_TEXT];
    int code = path[0] == '\0' ? 0 : secret_read(path, password, sizeof password, e);

    secret_wipe(password, sizeof password);
    return code;
}

/* A quorum (several URLs) gives every key a token of its own; a batch has one. */
static bool is_redis_url(const char *url)
{
    static const char sentinel[] = "redis+sentinel://";

    if (strncmp(url, sentinel, sizeof sentinel - 1) == 0)
        return true;
    return strchr(url, ',') == NULL &&
           (strncmp(url, "redis://", 8) == 0 || strncmp(url, "rediss://", 9) == 0 ||
            strncmp(url, "unix:///", 8) == 0);
}

int config_check(struct config *c, struct err *e)
{
    if (check_retries(c, e) != 0 || check_secret(c->postgres_password_file, e) != 0 ||
        check_secret(c->redis_password_file, e) != 0)
        return (int)e->code;
    if (!is_redis_url(c->redis_url))
        return wrong(c, "redis.url",
                     "name one server and start with redis://, rediss://, unix:/// or "
                     "redis+sentinel://",
                     e);
    if (!is_printable(c->lock_prefix))
        return wrong(c, "locks.prefix", "be printable ASCII without blanks", e);
    if (strspn(c->currency, "ABCDEFGHIJKLMNOPQRSTUVWXYZ") != 3)
        return wrong(c, "import.currency", "be three capital letters such as EUR", e);
    c->transaction_pooling = strcmp(c->postgres_pooling, "transaction") == 0;
    c->has_listener = strcmp(c->notify, "on") == 0 && !c->transaction_pooling;
    return 0;
}

static bool
is_same(const struct config *a, const struct config *b, const struct config_option *o)
{
    const char *x = (const char *)a + o->offset, *y = (const char *)b + o->offset;

    return o->type == OPTION_INT ? memcmp(x, y, sizeof(int64_t)) == 0
                                 : strcmp(x, y) == 0;
}

const char *config_needs_restart(const struct config *old, const struct config *fresh)
{
    for (size_t i = 0; i < config_option_ct; i++) {
        if ((config_options[i].flags & OPTION_RELOAD) == 0 &&
            !is_same(old, fresh, &config_options[i]))
            return config_options[i].key;
    }
    return NULL;
}
