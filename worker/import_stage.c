/* import_stage: file to staging table. */
#include "worker/import_steps.h"

#include <stdlib.h>
#include <string.h>

#include "worker/cli.h"
#include "worker/import_rows.h"

static const struct {
    enum sql_id copy, analyze;
} statements[IMPORT_KINDS] = {
    [IMPORT_STOCK] = {SQL_IMPORT_COPY_STOCK, SQL_IMPORT_ANALYZE_STOCK},
    [IMPORT_SUBSCRIPTIONS] = {SQL_IMPORT_COPY_SUBSCRIPTIONS,
                              SQL_IMPORT_ANALYZE_SUBSCRIPTIONS},
    [IMPORT_ORDERS] = {SQL_IMPORT_COPY_ORDERS, SQL_IMPORT_ANALYZE_ORDERS},
};

enum { PROGRESS_LINES = 10000 };

static void
put_field(struct rows *rows, enum import_type type, const char *text, int64_t number)
{
    if (type == IMPORT_REF || type == IMPORT_UNIT)
        rows_text(rows, text);
    else if (type == IMPORT_INSTANT)
        rows_instant(rows, number);
    else
        rows_int8(rows, number);
}

/* The line itself is kept in the database only when a rejects file may need it. */
static void put_line(struct rows *rows,
                     const struct import_kind *kind,
                     const struct import_line *line,
                     const struct csv_record *record,
                     bool keep_raw)
{
    rows_int8(rows, (int64_t)record->line);
    for (size_t i = 0; i < kind->column_ct; i++)
        put_field(rows, kind->columns[i].type, line->text[i], line->number[i]);
    if (keep_raw)
        rows_bytes(rows, record->raw, record->raw_len);
    else
        rows_null(rows);
    rows_end(rows);
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
        return err_set(e, ERR_INVALID, "%s is empty; it needs a header line",
                       im->files[id]);
    if (import_header_read(&import_kinds[id], &record, header, e) != 0)
        return err_wrap(e, "%s:%zu", im->files[id], record.line);
    im->headers[id] = strndup(record.raw, record.raw_len);
    return im->headers[id] != NULL ? 0 : err_set(e, ERR_NOMEM, "out of memory");
}

static int copy_lines(struct import *im,
                      enum import_kind_id id,
                      struct csv *csv,
                      const struct import_header *header,
                      struct rows *rows,
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
            put_line(rows, kind, &line, &record, im->report.kept != NULL);
        else
            import_report_bad(&im->report, im->files[id], im->headers[id], record.line,
                              reason, record.raw, record.raw_len);
        if (++ct % PROGRESS_LINES == 0)
            cli_progress("%s: %zu lines", im->files[id], ct);
    }
    return (int)e->code;
}

int import_stage(struct import *im, enum import_kind_id id, struct err *e)
{
    struct import_header header;
    struct csv *csv = NULL;
    struct rows *rows = NULL;
    int code;

    if (im->files[id] == NULL)
        return 0;
    code = csv_open(&csv, im->files[id], e);
    if (code == 0)
        code = read_header(im, id, csv, &header, e);
    if (code == 0 && (rows = malloc(sizeof *rows)) == NULL)
        code = err_set(e, ERR_NOMEM, "out of memory");
    if (code == 0)
        code = rows_begin(rows, im->pg, statements[id].copy, e);
    if (code == 0) {
        (void)!copy_lines(im, id, csv, &header, rows, e);
        code = rows_finish(rows);
    }
    cli_progress_end();
    if (code == 0)
        code = pg_exec(im->pg, statements[id].analyze, NULL, 0, NULL, e);
    free(rows);
    csv_close(csv);
    return code;
}
