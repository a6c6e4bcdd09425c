/* pg_connect: opens and closes a connection. libpq itself goes through the hosts of the
 * URL and the addresses of each, as target_session_attrs and load_balance_hosts say,
 * and only its blocking call gives each of them a time of its own. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "common/base/secret.h"
#include "common/pg/pg_private.h"

enum { CONNECT_S = 5, LIMIT = 16 };

/* libpq's message about a malformed URL may quote the password: it is not shown. */
static int parse(const char *url, PQconninfoOption **options, struct err *e)
{
    *options = PQconninfoParse(url, NULL);
    return *options != NULL
               ? 0
               : err_set(e, ERR_CONFIG,
                         "LL-3001 postgres.url cannot be read by libpq: write "
                         "postgresql://user@host:port/database or key=value words");
}

int pg_check_url(const char *url, struct err *e)
{
    PQconninfoOption *options;

    (void)parse(url, &options, e);
    PQconninfoFree(options);
    return (int)e->code;
}

/* Seconds for each address: those of the URL, of the environment, or ours. libpq takes
 * 0 and less for no limit, and at least 2; a word that is no number it refuses by name.
 */
static int read_limit(const char *url, char limit[LIMIT], struct err *e)
{
    const char *env = getenv("PGCONNECT_TIMEOUT");
    PQconninfoOption *options;
    char *end = limit;

    if (parse(url, &options, e) != 0)
        return (int)e->code;
    (void)snprintf(limit, LIMIT, "%s", env != NULL ? env : "");
    for (const PQconninfoOption *o = options; o->keyword != NULL; o++) {
        if (strcmp(o->keyword, "connect_timeout") == 0 && o->val != NULL)
            (void)snprintf(limit, LIMIT, "%s", o->val);
    }
    PQconninfoFree(options);
    if (strtol(limit, &end, 10) <= 0 && *end == '\0')
        (void)snprintf(limit, LIMIT, "%d", CONNECT_S);
    return 0;
}

static void quiet(void *arg, const PGresult *res)
{
    (void)arg;
    (void)res;
}

/* libpq's words name no setting of ours. */
static void add_advice(const struct pg *pg, const char *password_file, struct err *e)
{
    size_t n = strlen(e->msg);

    if (PQconnectionNeedsPassword(pg->conn) != 0)
        (void)snprintf(e->msg + n, sizeof e->msg - n,
                       "; name the file of the password in postgres.password_file");
    else if (PQconnectionUsedPassword(pg->conn) != 0 && password_file != NULL)
        (void)snprintf(e->msg + n, sizeof e->msg - n, "; the password is of %s",
                       password_file);
}

static int connect_to(struct pg *pg,
                      const char *const *keys,
                      const char *const *values,
                      const char *password_file,
                      struct err *e)
{
    pg->conn = PQconnectdbParams(keys, values, 1);
    if (pg->conn == NULL)
        return err_set(e, ERR_NOMEM, "LL-9001 out of memory");
    if (PQstatus(pg->conn) != CONNECTION_OK) {
        (void)pg_conn_error(pg, e, "cannot connect to PostgreSQL");
        add_advice(pg, password_file, e);
        return (int)e->code;
    }
    (void)PQsetNoticeReceiver(pg->conn, quiet, NULL);
    (void)PQsetnonblocking(pg->conn, 1);
    return 0;
}

int pg_connect(struct pg **out, const struct pg_options *o, struct err *e)
{
    const char *keys[] = {"dbname",
                          "application_name",
                          "client_encoding",
                          "keepalives_idle",
                          "tcp_user_timeout",
                          "connect_timeout",
                          "password",
                          "host",
                          "port",
                          NULL};
    char limit[LIMIT];
    const char *values[] = {o->url, o->name, "UTF8",  "10",    "10000",
                            limit,  NULL,    o->host, o->port, NULL};
    const char *file = o->password_file != NULL && o->password_file[0] != '\0'
                           ? o->password_file
                           : NULL;
    char password[SECRET_SIZE] = "";
    struct pg *pg = calloc(1, sizeof *pg);
    int code = 0;

    *out = NULL;
    if (pg == NULL)
        return err_set(e, ERR_NOMEM, "LL-9001 out of memory");
    pg->answer_ms = o->answer_ms;
    pg->transaction_pooling = o->transaction_pooling;
    (void)snprintf(pg->schema, sizeof pg->schema, "%s",
                   o->schema != NULL ? o->schema : "pg_catalog");
    (void)snprintf(pg->role_prefix, sizeof pg->role_prefix, "%s",
                   o->role_prefix != NULL ? o->role_prefix : PG_ROLE_PREFIX);
    code = read_limit(o->url, limit, e);
    if (code == 0 && file != NULL) {
        code = secret_read(file, password, e);
        values[6] = password;
    }
    if (code == 0)
        code = connect_to(pg, keys, values, file, e);
    secret_wipe(password, sizeof password);
    if (code != 0) {
        pg_close(pg);
        return code;
    }
    *out = pg;
    return 0;
}

void pg_close(struct pg *pg)
{
    if (pg == NULL)
        return;
    PQfinish(pg->conn);
    free(pg->prepared);
    free(pg->scratch);
    free(pg->named);
    free(pg);
}
