/* config_check: values that depend on each other, or have a form of their own. */
#include <stdlib.h>
#include <string.h>

#include "common/base/config.h"
#include "common/base/secret.h"

enum { PLACE = 80 }; /* origin of a value, for messages */

static size_t row_of(const char *key)
{
    size_t row = 0;

    while (strcmp(config_options[row].key, key) != 0)
        row++;
    return row;
}

int config_refuse(const struct config *c, const char *key, struct err *e)
{
    e->code = c->origin[row_of(key)] == ORIGIN_FLAG ? ERR_INVALID : ERR_CONFIG;
    return (int)e->code;
}

static int
wrong(const struct config *c, const char *key, const char *rule, struct err *e)
{
    char where[PLACE];

    (void)err_set(e, ERR_CONFIG, "LL-2006 %s: %s must %s",
                  config_where(c, row_of(key), where, sizeof where), key, rule);
    return config_refuse(c, key, e);
}

static bool is_printable(const char *text)
{
    for (; *text != '\0'; text++) {
        if (*text <= ' ' || *text > '~')
            return false;
    }
    return true;
}

/* Password files are checked before anything starts, and again on reload. */
static int check_secret(const struct config *c, const char *key, struct err *e)
{
    const char *path = (const char *)c + config_options[row_of(key)].offset;
    char password[SECRET_SIZE];
    int code = path[0] == '\0' ? 0 : secret_read(path, password, e);

    secret_wipe(password, sizeof password);
    return code == 0 ? 0 : config_refuse(c, key, e);
}

/* Other users read command lines, and the environment goes on to children. */
static int check_no_secret(const struct config *c, struct err *e)
{
    const char *libpq = getenv("PGPASSWORD");
    char where[PLACE];

    for (size_t row = 0; row < config_option_ct; row++) {
        const struct config_option *o = &config_options[row];

        if ((o->flags & OPTION_SECRET) != 0 &&
            (c->origin[row] == ORIGIN_ENV || c->origin[row] == ORIGIN_FLAG) &&
            config_has_secret((const char *)c + o->offset)) {
            (void)err_set(
                e, ERR_CONFIG,
                "LL-2007 %s: no password may stand there; put it into a file of "
                "mode 600, and name that in %s.password_file",
                config_where(c, row, where, sizeof where),
                strncmp(o->key, "redis", 5) == 0 ? "redis" : "postgres");
            return config_refuse(c, o->key, e);
        }
    }
    if (libpq != NULL && libpq[0] != '\0')
        return err_set(
            e, ERR_CONFIG,
            "LL-2007 environment PGPASSWORD: no password may stand there; put it "
            "into a file of mode 600, and name that in "
            "postgres.password_file");
    return 0;
}

static bool begins_with(const char *text, const char *const *beginnings)
{
    while (*beginnings != NULL && strncmp(text, *beginnings, strlen(*beginnings)) != 0)
        beginnings++;
    return *beginnings != NULL;
}

/* The lock library checks the rest of the URL. */
static int check_redis(struct config *c, struct err *e)
{
    static const char *const servers[] = {"redis://", "rediss://", "unix://", NULL};
    static const char *const sentinels[] = {"redis+sentinel://", "rediss+sentinel://",
                                            NULL};
    static const char *const clusters[] = {"redis+cluster://", "rediss+cluster://",
                                           NULL};
    bool is_server = begins_with(c->redis_url, servers);

    c->is_redis_cluster = begins_with(c->redis_url, clusters);
    if (!is_server && !c->is_redis_cluster && !begins_with(c->redis_url, sentinels))
        return wrong(c, "redis.url",
                     "start with redis://, rediss://, unix:///, redis+sentinel:// or "
                     "redis+cluster://",
                     e);
    c->is_quorum = is_server && strchr(c->redis_url, ',') != NULL;
    if (c->is_quorum && c->lease_ms > c->redis_max_lease_ms)
        return wrong(c, "redis.max_lease_ms", "be at least locks.lease_ms", e);
    return 0;
}

static bool is_plain(const char *name)
{
    return name[strspn(name, "abcdefghijklmnopqrstuvwxyz0123456789_")] == '\0';
}

/* PostgreSQL keeps names of roles that begin with pg_ for itself. */
static int check_role_prefix(struct config *c, struct err *e)
{
    const char *p = c->postgres_role_prefix;

    return p[0] >= 'a' && p[0] <= 'z' && is_plain(p) && strcmp(p, "pg") != 0 &&
                   strncmp(p, "pg_", 3) != 0
               ? 0
               : wrong(c, "postgres.role_prefix",
                       "be of small letters, digits and _, begin with a letter, and "
                       "not be PostgreSQL's own pg",
                       e);
}

/* A name that PostgreSQL writes without quotation marks, and that is not its own. */
static int check_schema(struct config *c, struct err *e)
{
    static const char *const taken[] = {"public", "information_schema",
                                        "ledgerlock_bench", "ledgerlock_lab"};
    const char *s = c->postgres_schema;
    bool is_name =
        (s[0] < '0' || s[0] > '9') && strncmp(s, "pg_", 3) != 0 && is_plain(s);

    for (size_t i = 0; i < sizeof taken / sizeof taken[0]; i++)
        is_name = is_name && strcmp(s, taken[i]) != 0;
    return is_name ? 0
                   : wrong(c, "postgres.schema",
                           "be of small letters, digits and _, and be no schema of "
                           "PostgreSQL's own",
                           e);
}

/* Names as they stand in a Host header, without a port. */
static bool are_hosts(const char *names)
{
    return names[strspn(names, "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ"
                               "0123456789-.,_ ")] == '\0';
}

int config_check(struct config *c, struct err *e)
{
    if (check_schema(c, e) != 0 || check_no_secret(c, e) != 0)
        return (int)e->code;
    if (check_secret(c, "postgres.password_file", e) != 0 ||
        check_secret(c, "redis.password_file", e) != 0)
        return (int)e->code;
    if (check_redis(c, e) != 0)
        return (int)e->code;
    if (check_role_prefix(c, e) != 0)
        return (int)e->code;
    if (!is_printable(c->lock_prefix))
        return wrong(c, "locks.prefix", "be printable ASCII without blanks", e);
    if (strspn(c->currency, "ABCDEFGHIJKLMNOPQRSTUVWXYZ") != 3)
        return wrong(c, "import.currency", "be three capital letters such as EUR", e);
    if (!are_hosts(c->http_hosts))
        return wrong(c, "http.hosts",
                     "be names as ops.example.com, separated by commas, without "
                     "scheme, port or *",
                     e);
    c->any_order = strcmp(c->orders_order, "any") == 0;
    c->transaction_pooling = strcmp(c->postgres_pooling, "transaction") == 0;
    return 0;
}
