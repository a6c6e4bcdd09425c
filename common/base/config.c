/* config: the option table and the checks of its values. */
#include "common/base/config.h"

#include <assert.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "common/base/registry.h"
#include "common/base/secret.h"
#include "common/base/timestamp.h"

#define ROW_TEXT(member) OPTION_TEXT, offsetof(struct config, member)
#define ROW_INT(member) OPTION_INT, offsetof(struct config, member)
#define ROW_CHOICE(member) OPTION_CHOICE, offsetof(struct config, member)

/* Rows of the registry, in its order. */
enum {

#define JOB_ROW(name, ...) JOB_ROW_##name,
    JOB_TYPES(JOB_ROW)
#undef JOB_ROW
        JOB_ROWS
};

static_assert((int)JOB_ROWS <= (int)CONFIG_JOBS,
              "every job has a place in the settings");

/* min and max bound the value of an integer and the length of a text. */
/* clang-format off */
const struct config_option config_options[] = {
    {"postgres.url", ROW_TEXT(postgres_url), "postgresql:///ledgerlock", 1, 1023, NULL,
     "LEDGERLOCK_POSTGRES_URL", "postgres-url", 0, OPTION_SECRET,
     "PostgreSQL, as libpq reads it: URL or key=value words"},
    {"postgres.password_file", ROW_TEXT(postgres_password_file), "", 0, 255, NULL,
     "LEDGERLOCK_POSTGRES_PASSWORD_FILE", "postgres-password-file", 0, 0,
     "file whose first line is the PostgreSQL password"},
    {"postgres.schema", ROW_TEXT(postgres_schema), "ledgerlock", 1, 63, NULL,
     "LEDGERLOCK_POSTGRES_SCHEMA", "schema", 0, 0,
     "schema of the tables; each schema of a database is a shop of its own"},
    {"postgres.role_prefix", ROW_TEXT(postgres_role_prefix), "ledgerlock", 1, 30, NULL,
     "LEDGERLOCK_POSTGRES_ROLE_PREFIX", "role-prefix", 0, 0,
     "what the names of the roles begin with, as in ledgerlock_worker; roles belong to a whole server"},
    {"postgres.pooling", ROW_CHOICE(postgres_pooling), "session", 0, 0,
     "session|transaction",
     "LEDGERLOCK_POSTGRES_POOLING", "pooling", 0, 0,
     "transaction: behind a pooler that gives a session to a transaction only"},
    {"postgres.durability", ROW_CHOICE(postgres_durability), "required", 0, 0, "required|any",
     "LEDGERLOCK_POSTGRES_DURABILITY", "postgres-durability", 0, 0,
     "any: run also where fsync, full_page_writes or synchronous_commit is off"},
    {"cells.urls", ROW_TEXT(cells_urls), "", 0, 1023, NULL,
     "LEDGERLOCK_CELLS_URLS", "cells-urls", 0, OPTION_SECRET,
     "databases that are worked as one, as \"1=URL 2=URL\": cells and their numbers; empty: postgres.url alone"},
    {"cells.citus", ROW_TEXT(cells_citus), "", 0, 1023, NULL,
     "LEDGERLOCK_CELLS_CITUS", "cells-citus", 0, OPTION_SECRET,
     "database of a Citus coordinator, whose distributed schemas are the cells; empty: none"},
    {"cells.only", ROW_TEXT(cells_only), "all", 1, 255, NULL,
     "LEDGERLOCK_CELLS_ONLY", "cells", 0, 0,
     "cells that this call is about, as 1,3; all: each of them"},
    {"redis.url", ROW_TEXT(redis_url), "redis://127.0.0.1:6379", 1, 1023, NULL,
     "LEDGERLOCK_REDIS_URL", "redis-url", 0, OPTION_SECRET,
     "Redis: redis://[user[:password]@]host[:port][/db], rediss://, unix:///path, "
     "3 or 5 of these with commas (a quorum), redis+sentinel://host,host/name or "
     "redis+cluster://host,host"},
    {"redis.password_file", ROW_TEXT(redis_password_file), "", 0, 255, NULL,
     "LEDGERLOCK_REDIS_PASSWORD_FILE", "redis-password-file", 0, 0,
     "file whose first line is the Redis password"},
    {"redis.tls_ca", ROW_TEXT(redis_tls_ca), "", 0, 255, NULL,
     "LEDGERLOCK_REDIS_TLS_CA", "redis-tls-ca", 0, 0,
     "file of trusted certificates for rediss://; empty: the system's"},
    {"redis.replicas", ROW_INT(redis_replicas), "0", 0, 100, NULL,
     "LEDGERLOCK_REDIS_REPLICAS", "redis-replicas", 0, 0,
     "replicas that must have a lock before it counts; too few: it is given back"},
    {"redis.max_lease_ms", ROW_INT(redis_max_lease_ms), "60000", 1000, 600000, NULL,
     "LEDGERLOCK_REDIS_MAX_LEASE_MS", "redis-max-lease-ms", 0, 0,
     "quorum: longest lease of all its users; a server grants nothing so long after its start"},
    {"locks.mode", ROW_CHOICE(lock_mode), "redis", 0, 0, "redis|database-only",
     "LEDGERLOCK_LOCKS_MODE", "lock-mode", 0, 0,
     "where locks are held; database-only relies on fences and constraints alone"},
    {"locks.prefix", ROW_TEXT(lock_prefix), "lock:", 1, 64, NULL,
     "LEDGERLOCK_LOCKS_PREFIX", "lock-prefix", 0, 0,
     "what every lock key in Redis starts with"},
    {"locks.lease_ms", ROW_INT(lease_ms), "3000", 1000, 600000, NULL,
     "LEDGERLOCK_LOCKS_LEASE_MS", "lease-ms", 0, OPTION_RELOAD,
     "how long a lock lasts; PostgreSQL's timeouts are kept below it"},
    {"pool.workers", ROW_INT(workers), "0", 0, 256, NULL,
     "LEDGERLOCK_POOL_WORKERS", "workers", 'w', 0,
     "worker processes of each job that several serve at once; 0: as many as pool.<job>.workers says"},
#define ROW_JOB(name, NAME, workers, most, batch, poll_ms) \
    {"pool." #name ".workers", ROW_INT(job_workers[JOB_ROW_##name]), #workers, 0, most, NULL, \
     "LEDGERLOCK_POOL_" #NAME "_WORKERS", #name, 0, 0, \
     "worker processes of the job " #name}, \
    {"pool." #name ".batch", ROW_INT(job_batch[JOB_ROW_##name]), #batch, 1, 1000, NULL, \
     "LEDGERLOCK_POOL_" #NAME "_BATCH", #name "-batch", 0, OPTION_RELOAD, \
     "most rows of one transaction of the job " #name}, \
    {"pool." #name ".poll_ms", ROW_INT(job_poll_ms[JOB_ROW_##name]), #poll_ms, 10, 60000, NULL, \
     "LEDGERLOCK_POOL_" #NAME "_POLL_MS", #name "-poll-ms", 0, OPTION_RELOAD, \
     "how often the rows of the job " #name " are polled while none is due"},
    JOB_TYPES(ROW_JOB)
#undef ROW_JOB
    {"pool.orders.order", ROW_CHOICE(orders_order), "placed", 0, 0, "placed|any",
     "LEDGERLOCK_POOL_ORDERS_ORDER", "order", 0, 0,
     "placed: one worker of all pools serves them as they were placed; any: all at once"},
    {"pool.batch", ROW_INT(batch), "0", 0, 1000, NULL,
     "LEDGERLOCK_POOL_BATCH", "batch", 0, OPTION_RELOAD,
     "most rows of one transaction of each job; 0: as many as pool.<job>.batch says"},
    {"pool.grace_ms", ROW_INT(grace_ms), "8000", 100, 60000, NULL,
     "LEDGERLOCK_POOL_GRACE_MS", "grace-ms", 0, OPTION_RELOAD,
     "longest drain after TERM or INT; Docker kills after 10 s"},
    {"pool.park_after", ROW_INT(park_after), "3", 0, 100, NULL,
     "LEDGERLOCK_POOL_PARK_AFTER", "park-after", 0, OPTION_RELOAD,
     "workers that die over a row, worked alone, after which it is parked; 0: never"},
    {"pool.give_up_ms", ROW_INT(give_up_ms), "60000", 1000, 3600000, NULL,
     "LEDGERLOCK_POOL_GIVE_UP_MS", "give-up-ms", 0, OPTION_RELOAD,
     "end with exit code 9 when an error lets nothing be committed for so long"},
    {"pool.clocks_apart_s", ROW_INT(clocks_apart_s), "60", 0, 3600, NULL,
     "LEDGERLOCK_POOL_CLOCKS_APART_S", "clocks-apart-s", 0, 0,
     "do not start when clocks of servers are farther from ours; 0: start anyway"},
    {"pool.jobs", ROW_TEXT(jobs), "billing,orders", 1, 255, NULL,
     "LEDGERLOCK_POOL_JOBS", "jobs", 0, 0,
     "jobs to work on, separated by commas"},
    {"billing.catch_up_max", ROW_INT(catch_up_max), "1000", 1, 1000000, NULL,
     "LEDGERLOCK_BILLING_CATCH_UP_MAX", "catch-up-max", 0, OPTION_RELOAD,
     "what has more periods due is parked instead of charged"},
    {"gateway.url", ROW_TEXT(gateway_url), "", 0, 255, NULL,
     "LEDGERLOCK_GATEWAY_URL", "gateway-url", 0, 0,
     "payment gateway that cards are charged at, as https://api.stripe.com; empty: none"},
    {"gateway.kind", ROW_CHOICE(gateway_kind), "stripe", 0, 0,
     "stripe|stripe-charges",
     "LEDGERLOCK_GATEWAY_KIND", "gateway-kind", 0, 0,
     "what the gateway speaks: PaymentIntents of Stripe, or its older Charges"},
    {"gateway.key_file", ROW_TEXT(gateway_key_file), "", 0, 255, NULL,
     "LEDGERLOCK_GATEWAY_KEY_FILE", "gateway-key-file", 0, 0,
     "file whose first line is the secret key of the gateway; nobody else may read it"},
    {"gateway.tls_ca", ROW_TEXT(gateway_tls_ca), "", 0, 255, NULL,
     "LEDGERLOCK_GATEWAY_TLS_CA", "gateway-tls-ca", 0, 0,
     "file of trusted certificates for the gateway; empty: the system's"},
    {"gateway.live", ROW_CHOICE(gateway_live), "false", 0, 0, "false|true",
     "LEDGERLOCK_GATEWAY_LIVE", "gateway-live", 0, 0,
     "true: a key that begins with sk_live_ is used, and real money is taken"},
    {"gateway.timeout_ms", ROW_INT(gateway_timeout_ms), "30000", 100, 300000, NULL,
     "LEDGERLOCK_GATEWAY_TIMEOUT_MS", "gateway-timeout-ms", 0, OPTION_RELOAD,
     "longest time of one call; without an answer by then its outcome is unknown"},
    {"gateway.calls", ROW_INT(gateway_calls), "500", 1, 10000, NULL,
     "LEDGERLOCK_GATEWAY_CALLS", "gateway-calls", 0, OPTION_RELOAD,
     "most calls of a worker that are under way at once"},
    {"gateway.rate", ROW_INT(gateway_rate), "0", 0, 100000, NULL,
     "LEDGERLOCK_GATEWAY_RATE", "gateway-rate", 0, OPTION_RELOAD,
     "most calls of a worker a second; 0: as many as the gateway takes"},
    {"import.currency", ROW_TEXT(currency), "USD", 3, 3, NULL,
     "LEDGERLOCK_IMPORT_CURRENCY", "currency", 0, 0,
     "ISO code of the money in imported files"},
    {"http.listen", ROW_TEXT(http_listen), "", 0, 255, NULL,
     "LEDGERLOCK_HTTP_LISTEN", "http", 0, 0,
     "[address:]port of the page, metrics and health; without an address: 127.0.0.1; empty: none"},
    {"http.hosts", ROW_TEXT(http_hosts), "", 0, 1023, NULL,
     "LEDGERLOCK_HTTP_HOSTS", "http-hosts", 0, 0,
     "names by which the page may be asked, separated by commas; any address, and any name without a dot, is one"},
    {"http.audit_every_s", ROW_INT(http_audit_every_s), "600", 0, 86400, NULL,
     "LEDGERLOCK_HTTP_AUDIT_EVERY_S", "http-audit-every-s", 0, 0,
     "how often the page has a whole audit made; 0: never"},
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
        return err_set(e, ERR_CONFIG,
                       "LL-2001 %s: %s must be a whole number, not \"%.40s\"", where,
                       o->key, value);
    if (errno != 0 || n < o->min || n > o->max)
        return err_set(e, ERR_CONFIG,
                       "LL-2002 %s: %s must be from %lld to %lld, not %.40s", where,
                       o->key, (long long)o->min, (long long)o->max, value);
    *(int64_t *)member(c, row) = n;
    return 0;
}

static bool has_control(const char *value)
{
    for (; *value != '\0'; value++) {
        if ((unsigned char)*value < 0x20 || *value == 0x7f)
            return true;
    }
    return false;
}

static int set_text(
    struct config *c, size_t row, const char *value, const char *where, struct err *e)
{
    const struct config_option *o = &config_options[row];
    size_t n = strlen(value);

    if (o->type == OPTION_CHOICE && !is_choice(o->choices, value))
        return err_set(e, ERR_CONFIG, "LL-2003 %s: %s must be one of %s, not \"%.40s\"",
                       where, o->key, o->choices, value);
    if (o->type == OPTION_TEXT && (n < (size_t)o->min || n > (size_t)o->max))
        return err_set(
            e, ERR_CONFIG,
            "LL-2004 %s: %s must have %lld to %lld characters, this one has %zu", where,
            o->key, (long long)o->min, (long long)o->max, n);
    if (has_control(value))
        return err_set(e, ERR_CONFIG,
                       "LL-2005 %s: %s holds a control character, such as a line feed",
                       where, o->key);
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
    c->cell = CELL_NONE;
    for (size_t row = 0; row < config_option_ct; row++) {
        int code = config_set(c, row, config_options[row].fallback, ORIGIN_DEFAULT,
                              "default", &e);

        assert(code == 0);
        (void)code;
    }
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
