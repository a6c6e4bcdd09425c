/* pg_async: statements on several connections at once, in one thread. */
#include <poll.h>
#include <stdio.h>
#include <string.h>

#include "common/clock.h"
#include "common/pg_private.h"

enum { SNAPSHOT_NAME = 64, LONGEST_POLL_MS = 60000 };

static int sent(struct pg *pg, int ok, const char *what, struct err *e)
{
    if (ok == 0)
        return pg_conn_error(pg, e, what);
    pg->is_asked = true;
    pg->deadline_ms = clk_ms() + pg->answer_ms;
    return 0;
}

/* Not prepared: each runs once. */
int pg_send(struct pg *pg,
            enum sql_id id,
            const struct pg_param *params,
            size_t n,
            struct err *e)
{
    const struct sql_text *sql = &sql_texts[id];
    struct pg_wire w;

    if (pg_must_be_usable(pg, e) != 0 || pg_encode(pg, params, n, &w, e) != 0)
        return (int)e->code;
    return sent(pg,
                PQsendQueryParams(pg->conn, (const char *)sql->text, (int)n, NULL,
                                  w.values, w.lengths, w.formats, 1),
                sql->stem, e);
}

int pg_send_text(struct pg *pg, const char *text, struct err *e)
{
    if (pg_must_be_usable(pg, e) != 0)
        return (int)e->code;
    return sent(pg, PQsendQuery(pg->conn, text), "send", e);
}

int pg_send_begin_shared(struct pg *pg, const char *snapshot, struct err *e)
{
    char text[PG_SETTINGS + SNAPSHOT_NAME + 100];

    if (strlen(snapshot) >= SNAPSHOT_NAME ||
        strspn(snapshot, "0123456789ABCDEFabcdef-") != strlen(snapshot))
        return err_set(e, ERR_BUG, "\"%s\" is no name of a snapshot", snapshot);
    (void)snprintf(text, sizeof text,
                   "BEGIN ISOLATION LEVEL REPEATABLE READ READ ONLY; "
                   "SET TRANSACTION SNAPSHOT '%s'; %s",
                   snapshot, pg->settings);
    return pg_send_text(pg, text, e);
}

/* Whether pg_take would end without waiting, for better or worse. */
static bool has_answer(struct pg *pg)
{
    return !pg_is_usable(pg) || clk_ms() >= pg->deadline_ms || PQflush(pg->conn) < 0 ||
           PQconsumeInput(pg->conn) == 0 || PQisBusy(pg->conn) == 0;
}

size_t pg_wait_any(struct pg *const *pgs, size_t n)
{
    struct pollfd polled[PG_MOST_AT_ONCE];

    for (;;) {
        int64_t left = LONGEST_POLL_MS;

        for (size_t i = 0; i < n; i++) {
            int64_t own;

            polled[i] = (struct pollfd){.fd = -1};
            if (!pgs[i]->is_asked)
                continue;
            if (has_answer(pgs[i]))
                return i;
            polled[i].fd = PQsocket(pgs[i]->conn);
            polled[i].events = PQflush(pgs[i]->conn) == 0 ? POLLIN : POLLIN | POLLOUT;
            own = pgs[i]->deadline_ms - clk_ms();
            left = own < left ? own : left;
        }
        (void)poll(polled, n, left < 0 ? 0 : (int)left);
    }
}

int pg_take(struct pg *pg, struct pg_result **res, struct err *e)
{
    PGresult *last;

    if (res != NULL)
        *res = NULL;
    pg->is_asked = false;
    if (pg_must_be_usable(pg, e) != 0)
        return (int)e->code;
    if (pg_collect_by(pg, pg->deadline_ms, &last, e) != 0)
        return (int)e->code;
    return pg_hand_over(last, res, e);
}
