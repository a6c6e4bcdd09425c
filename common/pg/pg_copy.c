/* pg_copy: COPY's text format: fields between tabs, a backslash before a character that
 * would end a field. */
#include "common/pg/pg_copy.h"

#include <inttypes.h>
#include <poll.h>
#include <stdio.h>
#include <string.h>

#include "common/base/clock.h"
#include "common/pg/pg_private.h"

/* Sends the buffer, unless an error happened before. */
static void send_buffer(struct pg_copy *c)
{
    int64_t deadline = clk_ms() + c->pg->answer_ms;
    int sent = 0;

    while (sent == 0 && c->e->code == ERR_OK) {
        sent = PQputCopyData(c->pg->conn, c->buf, (int)c->len);
        if (sent == 1)
            (void)!pg_flush(c->pg, deadline, c->e);
        else if (sent < 0)
            (void)pg_conn_error(c->pg, c->e, "copy");
        else
            (void)!pg_wait_socket(c->pg, POLLOUT, deadline, c->e);
    }
    c->len = 0;
}

static void put(struct pg_copy *c, char byte)
{
    if (c->len == sizeof c->buf)
        send_buffer(c);
    c->buf[c->len++] = byte;
}

static void start_field(struct pg_copy *c)
{
    if (!c->is_first)
        put(c, '\t');
    c->is_first = false;
}

int pg_copy_begin(struct pg_copy *c,
                  struct pg *pg,
                  const struct sql_text *sql,
                  struct err *e)
{
    PGresult *last;
    bool copying;

    c->pg = pg;
    c->e = e;
    c->is_first = true;
    c->len = 0;
    if (pg_must_be_usable(pg, e) != 0)
        return (int)e->code;
    if (PQsendQuery(pg->conn, (const char *)sql->text) == 0)
        return pg_conn_error(pg, e, sql->stem);
    if (pg_collect(pg, &last, e) != 0)
        return err_wrap(e, "%s", sql->stem);
    copying = PQresultStatus(last) == PGRES_COPY_IN;
    PQclear(last);
    return copying ? 0 : err_set(e, ERR_BUG, "LL-9004 %s is no COPY", sql->stem);
}

void pg_copy_bytes(struct pg_copy *c, const char *text, size_t n)
{
    start_field(c);
    for (size_t i = 0; i < n; i++) {
        char byte = text[i];

        if (byte == '\\' || byte == '\t' || byte == '\n' || byte == '\r') {
            put(c, '\\');
            byte = (char)(byte == '\t'   ? 't'
                          : byte == '\n' ? 'n'
                          : byte == '\r' ? 'r'
                                         : byte);
        }
        put(c, byte);
    }
}

void pg_copy_field(struct pg_copy *c, struct pg_param field)
{
    char digits[24];

    if (field.type == PG_TEXT) {
        pg_copy_bytes(c, field.text, strlen(field.text));
        return;
    }
    (void)snprintf(digits, sizeof digits, "%" PRId64, field.int8);
    start_field(c);
    for (const char *p = field.type == PG_INT8 ? digits : "\\N"; *p != '\0'; p++)
        put(c, *p);
}

void pg_copy_end_row(struct pg_copy *c)
{
    put(c, '\n');
    c->is_first = true;
}

static int end(struct pg *pg, const char *cancel_reason, struct err *e)
{
    PGresult *last;

    if (PQputCopyEnd(pg->conn, cancel_reason) != 1)
        return pg_conn_error(pg, e, "copy");
    if (pg_collect(pg, &last, e) != 0)
        return err_wrap(e, "copy");
    PQclear(last);
    return 0;
}

int pg_copy_finish(struct pg_copy *c)
{
    struct err ignored = {0};

    if (c->len > 0)
        send_buffer(c);
    if (c->e->code == ERR_OK)
        return end(c->pg, NULL, c->e);
    if (pg_is_usable(c->pg))
        (void)end(c->pg, "the rows could not be made", &ignored);
    return (int)c->e->code;
}
