/* migrate_database: what a database must be, and the rights of the roles in it. */
#include "ops/cli/migrate.h"

#include <string.h>

#include "sql_gen.h"

/* ---- the database ---- */

int migrate_check_database(struct pg *pg, bool waits, struct err *e)
{
    struct pg_result *res;
    const char *name, *encoding;

    if (pg_exec(pg, SQL_MIGRATE_READ_DATABASE, NULL, 0, &res, e) != 0)
        return err_wrap(e, "reading what the database is");
    name = pg_get_text(res, 0, 0);
    encoding = pg_get_text(res, 0, 1);
    if (strcmp(encoding, "UTF8") != 0)
        (void)err_set(e, ERR_REFUSED,
                      "LL-3109 the encoding of database %s is %s, and names need UTF8: "
                      "make another one with `createdb -T template0 -E UTF8`",
                      name, encoding);
    else if (pg_get_int8(res, 0, 2) != 0)
        (void)err_set(
            e, ERR_REFUSED,
            "LL-3110 database %s is a template, which is copied into every new "
            "database: make one for ledgerlock alone with `createdb`",
            name);
    else if (pg_get_int8(res, 0, 3) != 0)
        (void)err_set(e, ERR_REFUSED,
                      "LL-3111 the server of database %s is a standby, which writes "
                      "nothing: name its primary in postgres.url, or promote it",
                      name);
    else if (!waits && pg_get_int8(res, 0, 4) != 0)
        (void)err_set(e, ERR_REFUSED,
                      "LL-3112 transactions of database %s are read-only: set "
                      "default_transaction_read_only to off for database and role",
                      name);
    pg_result_free(res);
    return (int)e->code;
}

/* ---- rights ---- */

int migrate_check_prefix(struct pg *pg, struct err *e)
{
    struct pg_result *res;

    if (pg_exec(pg, SQL_MIGRATE_READ_PREFIX, NULL, 0, &res, e) != 0)
        return err_wrap(e, "reading whose roles have rights");
    if (!pg_is_null(res, 0, 0))
        (void)err_set(e, ERR_REFUSED,
                      "LL-3114 the rights on schema %s are those of %s_worker and its "
                      "like: set postgres.role_prefix to %s, or move the shop to other "
                      "roles as docs/operate.md tells",
                      pg_schema(pg), pg_get_text(res, 0, 0), pg_get_text(res, 0, 0));
    pg_result_free(res);
    return (int)e->code;
}

/* In the transaction of the caller. */
static int give(struct pg *pg, struct err *e)
{
    const char *objects;
    struct pg_result *res;
    struct pg_param list;

    if (migrate_objects(pg, &objects, e) != 0)
        return (int)e->code;
    list = pg_role_text(objects);
    if (pg_exec(pg, SQL_MIGRATE_LIST_RIGHTS, &list, 1, &res, e) != 0)
        return (int)e->code;
    (void)!pg_exec_text(pg, pg_get_text(res, 0, 0), NULL, e);
    pg_result_free(res);
    return (int)e->code;
}

int migrate_give_rights(struct pg *pg, struct err *e)
{
    if (pg_begin(pg, e) != 0 || pg_exec(pg, SQL_MIGRATE_LOCK, NULL, 0, NULL, e) != 0 ||
        give(pg, e) != 0 || pg_commit(pg, e) != 0)
        (void)err_wrap(e,
                       "giving the roles their rights, which the owner of the schema "
                       "and of all in it can; config/postgres/10-roles.sql makes them");
    pg_rollback(pg);
    return (int)e->code;
}
