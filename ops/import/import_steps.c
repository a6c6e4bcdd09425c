/* import_steps: copies each file into its staging table. */
#include "ops/import/import_steps.h"

#include <stdlib.h>
#include <string.h>

#include "common/base/timestamp.h"
#include "common/pg/pg_copy.h"
#include "ops/cli/cli.h"

enum { PROGRESS_LINES = 10000 };

/* ---- bad lines: the first on stderr, all of them in the rejects file ---- */

/* The reason as a quoted CSV field. */
static void put_quoted(FILE *f, const char *text)
{
    (void)fputs(",\"", f);
    for (; *text != '\0'; text++) {
        if (*text == '"')
            (void)fputc('"', f);
        (void)fputc(*text, f);
    }
    (void)fputs("\"\n", f);
}

/* A reason may contain text of the file: control characters must not reach a terminal.
 */
static void tell(const char *path, size_t line, const char *reason)
{
    char text[512];
    size_t n = 0;

    for (; *reason != '\0' && n + 1 < sizeof text; reason++) {
        unsigned char c = (unsigned char)*reason;

        text[n++] = (char)(c < 0x20 || c == 0x7F ? '?' : c);
    }
    text[n] = '\0';
    cli_say("%s:%zu: %s\n", path, line, text);
}

void import_report(struct import *im,
                   enum import_kind_id id,
                   size_t line,
                   const char *reason,
                   const char *raw,
                   size_t raw_len)
{
    FILE *rejects = im->rejects.file;

    if (im->bad_ct++ < IMPORT_TOLD_MAX)
        tell(im->files[id], line, reason);
    if (rejects == NULL)
        return;
    if (im->section != im->files[id])
        (void)fprintf(rejects, "%s,rejected\n", im->headers[id]);
    im->section = im->files[id];
    (void)fwrite(raw, 1, raw_len, rejects);
    put_quoted(rejects, reason);
}

/* ---- from a file to its staging table ---- */

static const struct {
    const struct sql_text *copy, *analyze;
} statements[IMPORT_KINDS] = {
    [IMPORT_STOCK] = {SQL_IMPORT_COPY_STOCK, SQL_IMPORT_ANALYZE_STOCK},
    [IMPORT_SUBSCRIPTIONS] = {SQL_IMPORT_COPY_SUBSCRIPTIONS,
                              SQL_IMPORT_ANALYZE_SUBSCRIPTIONS},
    [IMPORT_ORDERS] = {SQL_IMPORT_COPY_ORDERS, SQL_IMPORT_ANALYZE_ORDERS},
};

/* The raw line is stored only if a rejects file may need it. */
static void put_line(struct pg_copy *copy,
                     const struct import_kind *kind,
                     const struct import_line *line,
                     const struct csv_record *record,
                     bool keep_raw)
{
    char time[TIMESTAMP_TEXT];

    pg_copy_field(copy, pg_int8((int64_t)record->line));
    for (size_t i = 0; i < kind->column_ct; i++) {
        enum import_type type = kind->columns[i].type;

        if (type == IMPORT_REF || type == IMPORT_UNIT)
            pg_copy_field(copy, pg_text(line->text[i]));
        else if (type == IMPORT_TIMESTAMP)
            pg_copy_field(
                copy, pg_text(timestamp_format(line->number[i], time, sizeof time)));
        else
            pg_copy_field(copy, pg_int8(line->number[i]));
    }
    if (keep_raw)
        pg_copy_bytes(copy, record->raw, record->raw_len);
    else
        pg_copy_field(copy, pg_null());
    pg_copy_end_row(copy);
}

static int read_header(struct import *im,
                       enum import_kind_id id,
                       struct csv *csv,
                       struct import_header *header,
                       struct err *e)
{
    struct csv_record record;
    bool more;

    if (csv_next(csv, &record, &more, e) != 0)
        return (int)e->code;
    if (!more)
        return err_set(e, ERR_INVALID, "LL-8007 %s is empty; it needs a header line",
                       im->files[id]);
    if (import_header_read(&import_kinds[id], &record, header, e) != 0)
        return err_wrap(e, "%s:%zu", im->files[id], record.line);
    im->headers[id] = strndup(record.raw, record.raw_len);
    return im->headers[id] != NULL ? 0 : err_set(e, ERR_NOMEM, "LL-9001 out of memory");
}

static int copy_lines(struct import *im,
                      enum import_kind_id id,
                      struct csv *csv,
                      const struct import_header *header,
                      struct pg_copy *copy,
                      struct err *e)
{
    const struct import_kind *kind = &import_kinds[id];
    struct csv_record record;
    struct import_line line;
    char reason[192];
    size_t ct = 0;
    bool more;

    while (e->code == ERR_OK && csv_next(csv, &record, &more, e) == 0 && more) {
        if (import_line_read(kind, header, &record, im->currency, &line, reason,
                             sizeof reason))
            put_line(copy, kind, &line, &record, im->rejects.file != NULL);
        else
            import_report(im, id, record.line, reason, record.raw, record.raw_len);
        if (++ct % PROGRESS_LINES == 0)
            cli_progress_of((int64_t)ct, 0);
    }
    return (int)e->code;
}

int import_stage(struct import *im, enum import_kind_id id, struct err *e)
{
    struct import_header header;
    struct csv *csv = NULL;
    struct pg_copy *copy = NULL;
    int code;

    if (im->files[id] == NULL)
        return 0;
    cli_progress("lines of %s", im->files[id]);
    code = csv_open(&csv, im->files[id], e);
    if (code == 0)
        code = read_header(im, id, csv, &header, e);
    if (code == 0 && (copy = malloc(sizeof *copy)) == NULL)
        code = err_set(e, ERR_NOMEM, "LL-9001 out of memory");
    if (code == 0)
        code = pg_copy_begin(copy, im->pg, statements[id].copy, e);
    if (code == 0) {
        (void)!copy_lines(im, id, csv, &header, copy, e);
        code = pg_copy_finish(copy);
    }
    if (code == 0)
        code = pg_exec(im->pg, statements[id].analyze, NULL, 0, NULL, e);
    free(copy);
    csv_close(csv);
    return code;
}
