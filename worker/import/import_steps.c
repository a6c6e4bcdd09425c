/* import_steps: copies each file into its staging table, then makes the real rows from
 * there, one statement a step. */
#include "worker/import/import_steps.h"

#include <stdlib.h>
#include <string.h>

#include "common/base/timestamp.h"
#include "common/pg/pg_copy.h"
#include "worker/cli/cli.h"

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

/* raw is the line itself; it is put aside with the reason as one more column. */
static void report(struct import *im,
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
            report(im, id, record.line, reason, record.raw, record.raw_len);
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

/* ---- from staging tables to the real ones ---- */

/* The numbers by which a step is cut in parts, in the order of the columns of
 * import_count_parts. */
enum numbered { BY_HEAD, BY_SUBSCRIPTION, NUMBERED, AT_ONCE = NUMBERED };

enum { PARTS_MAX = 50, PART_MIN = 20000 };

/* In this order: all checks against the database come before the first user is made. A
 * statement takes some of the parameters currency, now and deposit, then, if it is cut,
 * the numbers of its part, and returns one row of numbers or none. */
/* clang-format off */
static const struct step {
    const struct sql_text *sql;
    size_t param, param_ct;    /* the first, and how many */
    enum import_count number;  /* where the first number goes */
    enum numbered parts;
    const char *what;
} steps[] = {
    {SQL_IMPORT_REFUSE_STOCK,         0, 1, IMPORT_NOTHING,           AT_ONCE, "checking SKUs"},
    {SQL_IMPORT_PUT_STOCK,            0, 1, IMPORT_STOCK_NEW,         AT_ONCE, "storing SKUs"},
    {SQL_IMPORT_REFUSE_SUBSCRIPTIONS, 0, 1, IMPORT_NOTHING,           AT_ONCE, "checking subscriptions"},
    {SQL_IMPORT_REFUSE_CURRENCY,      0, 1, IMPORT_NOTHING,           AT_ONCE, "checking currencies"},
    {SQL_IMPORT_REFUSE_LARGE,         0, 0, IMPORT_NOTHING,           AT_ONCE, "checking sizes of orders"},
    {SQL_IMPORT_MAKE_HEADS,           0, 0, IMPORT_NOTHING,           AT_ONCE, "numbering orders"},
    {SQL_IMPORT_ANALYZE_HEADS,        0, 0, IMPORT_NOTHING,           AT_ONCE, "numbering orders"},
    {SQL_IMPORT_REFUSE_ORDERS,        0, 0, IMPORT_NOTHING,           AT_ONCE, "checking orders"},
    {SQL_IMPORT_SKIP_ORDERS,          0, 0, IMPORT_ORDERS_SAME,       AT_ONCE, "checking orders"},
    {SQL_LOAD_MAKE_MONTH,             1, 1, IMPORT_NOTHING,           AT_ONCE, "making the month"},
    {SQL_IMPORT_MAKE_USERS,           0, 3, IMPORT_USERS_NEW,         AT_ONCE, "storing users"},
    {SQL_IMPORT_PUT_SUBSCRIPTIONS,    0, 1, IMPORT_SUBSCRIPTIONS_NEW, BY_SUBSCRIPTION, "storing subscriptions"},
    {SQL_IMPORT_INDEX_ORDERS,         0, 0, IMPORT_NOTHING,           AT_ONCE, "sorting lines of orders"},
    {SQL_IMPORT_PUT_ORDERS,           0, 2, IMPORT_ORDERS_NEW,        BY_HEAD, "storing orders"},
    {SQL_IMPORT_PUT_LINES,            0, 0, IMPORT_LINES,             BY_HEAD, "storing lines of orders"},
};

/* clang-format on */

/* The part has the numbers above `after`, up to `to`. */
static int run(struct import *im,
               const struct step *step,
               int64_t after,
               int64_t to,
               struct err *e)
{
    const struct pg_param all[] = {pg_text(im->currency), pg_text(im->now),
                                   pg_int8(im->deposit_minor)};
    struct pg_param params[5];
    size_t n = step->param_ct;
    struct pg_result *res;

    memcpy(params, &all[step->param], n * sizeof params[0]);
    if (step->parts != AT_ONCE) {
        params[n++] = pg_int8(after);
        params[n++] = pg_int8(to);
    }
    if (pg_exec(im->pg, step->sql, params, n, &res, e) != 0)
        return (int)e->code;
    for (size_t i = 0;
         pg_rows(res) > 0 && i < pg_columns(res) && i < IMPORT_COUNTS - step->number;
         i++)
        im->counts[step->number + i] += pg_get_int8(res, 0, i);
    pg_result_free(res);
    return 0;
}

/* In few parts, since each may read the staging tables from end to end. */
static int run_parts(struct import *im, const struct step *step, struct err *e)
{
    struct pg_result *res;
    int64_t last, part;
    int code = 0;

    if (step->parts == AT_ONCE)
        return run(im, step, 0, 0, e);
    if (pg_exec(im->pg, SQL_IMPORT_COUNT_PARTS, NULL, 0, &res, e) != 0)
        return (int)e->code;
    last = pg_get_int8(res, 0, step->parts);
    pg_result_free(res);
    part = last / PARTS_MAX > PART_MIN ? last / PARTS_MAX : PART_MIN;
    for (int64_t done = 0; code == 0 && done < last; done += part) {
        cli_progress_of(done, last);
        code = run(im, step, done, done + part, e);
    }
    return code;
}

/* Reads page by page: any number of lines may be bad. */
static int report_refused(struct import *im, enum import_kind_id id, struct err *e)
{
    struct pg_param params[] = {pg_text(import_kinds[id].name), pg_int8(0)};
    struct pg_result *res;
    size_t n;

    do {
        if (pg_exec(im->pg, SQL_IMPORT_LIST_BAD, params, 2, &res, e) != 0)
            return (int)e->code;
        n = pg_rows(res);
        for (size_t i = 0; i < n; i++) {
            const char *raw = pg_get_text(res, i, 2);

            params[1] = pg_int8(pg_get_int8(res, i, 0));
            report(im, id, (size_t)params[1].int8, pg_get_text(res, i, 1), raw,
                   strlen(raw));
        }
        pg_result_free(res);
    } while (n > 0);
    return 0;
}

int import_store(struct import *im, struct err *e)
{
    const size_t step_ct = sizeof steps / sizeof steps[0];
    int code = 0;

    for (size_t i = 0; code == 0 && i < step_ct; i++) {
        cli_progress("%s, step %zu of %zu", steps[i].what, i + 1, step_ct);
        code = run_parts(im, &steps[i], e);
    }
    for (int id = 0; code == 0 && id < IMPORT_KINDS; id++) {
        if (im->files[id] != NULL)
            code = report_refused(im, (enum import_kind_id)id, e);
    }
    return code;
}
