/* pg_transaction: begin, commit, roll back. */
#include <stdio.h>
#include <string.h>

#include "common/pg/pg_private.h"

enum { FIRST_TRIES = 100 };

int pg_exec_first(struct pg *pg,
                  const char *text,
                  struct pg_result **res,
                  struct err *e)
{
    int tries = 0;

    while (pg_send_text(pg, text, res, e) == ERR_TIMEOUT && pg_is_usable(pg) &&
           ++tries < FIRST_TRIES) {
        pg_rollback(pg);
        *e = (struct err){0};
    }
    return (int)e->code;
}

static int begin(struct pg *pg, const char *isolation, struct err *e)
{
    char text[PG_SETTINGS + 80];

    (void)snprintf(text, sizeof text, "BEGIN ISOLATION LEVEL %s; %s", isolation,
                   pg->settings);
    return pg_exec_first(pg, text, NULL, e);
}

int pg_begin(struct pg *pg, struct err *e)
{
    return begin(pg, "READ COMMITTED", e);
}

int pg_begin_repeatable(struct pg *pg, struct err *e)
{
    return begin(pg, "REPEATABLE READ", e);
}

int pg_begin_snapshot(struct pg *pg, struct err *e)
{
    return begin(pg, "REPEATABLE READ READ ONLY", e);
}

int pg_begin_snapshot_of(struct pg *pg, const char *name, struct err *e)
{
    char text[128];

    (void)snprintf(text, sizeof text, "SET TRANSACTION SNAPSHOT '%s'", name);
    return pg_begin_snapshot(pg, e) == 0 ? pg_exec_text(pg, text, NULL, e)
                                         : (int)e->code;
}

int pg_savepoint(struct pg *pg, struct err *e)
{
    return pg_exec_text(pg, "SAVEPOINT part", NULL, e);
}

int pg_release(struct pg *pg, struct err *e)
{
    return pg_exec_text(pg, "RELEASE SAVEPOINT part", NULL, e);
}

int pg_rollback_to(struct pg *pg, struct err *e)
{
    return pg_exec_text(pg, "ROLLBACK TO SAVEPOINT part; RELEASE SAVEPOINT part", NULL,
                        e);
}

void pg_cancel(struct pg *pg)
{
    char ignored[256];
    PGcancel *cancel = pg != NULL ? PQgetCancel(pg->conn) : NULL;

    if (cancel != NULL)
        (void)PQcancel(cancel, ignored, sizeof ignored);
    PQfreeCancel(cancel);
}

int pg_commit(struct pg *pg, struct err *e)
{
    PGresult *last;
    bool rolled_back;

    if (pg_must_be_usable(pg, e) != 0)
        return (int)e->code; /* COMMIT was never sent: the server rolls back */
    if (PQtransactionStatus(pg->conn) == PQTRANS_INERROR) {
        pg_rollback(pg);
        return err_set(e, ERR_BUG, "LL-9004 commit of a failed transaction");
    }
    if (PQsendQuery(pg->conn, "COMMIT") == 0)
        return pg_conn_error(pg, e, "commit");
    if (pg_collect(pg, &last, e) != 0) {
        if (pg->broken &&
            (e->sqlstate[0] == '\0' || strncmp(e->sqlstate, "57P", 3) == 0))
            e->code = ERR_UNKNOWN; /* sent, and its outcome is not known */
        return err_wrap(e, "commit");
    }
    rolled_back = strcmp(PQcmdStatus(last), "COMMIT") != 0;
    PQclear(last);
    return rolled_back ? err_set(e, ERR_BUG, "LL-9004 COMMIT rolled back") : 0;
}

void pg_rollback(struct pg *pg)
{
    struct err ignored = {0};

    if (!pg_is_usable(pg) || PQtransactionStatus(pg->conn) == PQTRANS_IDLE)
        return;
    if (PQtransactionStatus(pg->conn) == PQTRANS_ACTIVE)
        pg->broken = true; /* an answer was not waited for */
    else
        (void)!pg_exec_text(pg, "ROLLBACK", NULL, &ignored);
}
