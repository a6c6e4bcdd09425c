/* import_rows: COPY text format: fields between tabs, backslash before what would end
 * them. */
#include "worker/import_rows.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "worker/instant.h"

static void put(struct rows *r, char c)
{
    if (r->len == sizeof r->buf) {
        if (r->e->code == ERR_OK)
            (void)!pg_copy_put(r->pg, r->buf, r->len, r->e);
        r->len = 0;
    }
    r->buf[r->len++] = c;
}

static void start_field(struct rows *r)
{
    if (!r->is_first)
        put(r, '\t');
    r->is_first = false;
}

int rows_begin(struct rows *r, struct pg *pg, enum sql_id id, struct err *e)
{
    r->pg = pg;
    r->e = e;
    r->is_first = true;
    r->len = 0;
    return pg_copy_begin(pg, id, e);
}

void rows_bytes(struct rows *r, const char *text, size_t n)
{
    start_field(r);
    for (size_t i = 0; i < n; i++) {
        char c = text[i];

        if (c == '\\' || c == '\t' || c == '\n' || c == '\r') {
            put(r, '\\');
            c = (char)(c == '\t' ? 't' : c == '\n' ? 'n' : c == '\r' ? 'r' : c);
        }
        put(r, c);
    }
}

void rows_text(struct rows *r, const char *text)
{
    rows_bytes(r, text, strlen(text));
}

/* Digits, blanks and signs need no backslash. */
static void put_plain(struct rows *r, const char *text)
{
    start_field(r);
    for (; *text != '\0'; text++)
        put(r, *text);
}

void rows_int8(struct rows *r, int64_t value)
{
    char text[24];

    (void)snprintf(text, sizeof text, "%" PRId64, value);
    put_plain(r, text);
}

void rows_instant(struct rows *r, int64_t us)
{
    char text[INSTANT_TEXT];

    put_plain(r, instant_format(us, text, sizeof text));
}

void rows_null(struct rows *r)
{
    put_plain(r, "\\N");
}

void rows_end(struct rows *r)
{
    put(r, '\n');
    r->is_first = true;
}

int rows_finish(struct rows *r)
{
    struct err ignored = {0};

    if (r->e->code == ERR_OK && r->len > 0)
        (void)!pg_copy_put(r->pg, r->buf, r->len, r->e);
    if (r->e->code == ERR_OK)
        return pg_copy_end(r->pg, NULL, r->e);
    if (pg_is_usable(r->pg))
        (void)!pg_copy_end(r->pg, "the rows could not be made", &ignored);
    return (int)r->e->code;
}
