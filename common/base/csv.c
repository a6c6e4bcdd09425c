/* csv: scans records in a window that always holds a whole one. */
#include "common/base/csv.h"

#include <errno.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "common/base/utf8.h"

enum { WINDOW = 4 * CSV_RECORD_MAX };

struct csv {
    FILE *file;
    const char *path; /* a copy behind the struct */
    bool at_eof;
    bool is_cut;                   /* the rest of a too long line comes next */
    size_t line;                   /* number of the line at start */
    size_t start, end;             /* unread part of the window */
    char window[WINDOW];           /* bytes of the file */
    char text[CSV_RECORD_MAX + 2]; /* unquoted fields of the record */
};

/* ---- window ---- */

/* Makes at least one longest record available, unless the file ends before. */
static int fill(struct csv *csv, struct err *e)
{
    if (csv->at_eof || csv->end - csv->start > CSV_RECORD_MAX)
        return 0;
    memmove(csv->window, csv->window + csv->start, csv->end - csv->start);
    csv->end -= csv->start;
    csv->start = 0;
    csv->end += fread(csv->window + csv->end, 1, WINDOW - csv->end, csv->file);
    if (ferror(csv->file))
        return err_set(e, ERR_INVALID, "LL-8001 cannot read %s: %s", csv->path,
                       strerror(errno));
    csv->at_eof = csv->end < WINDOW;
    return 0;
}

/* Drops bytes and counts the lines that end in them. */
static void consume(struct csv *csv, size_t n)
{
    const char *p = csv->window + csv->start;
    const char *end = p + n;

    while ((p = memchr(p, '\n', (size_t)(end - p))) != NULL) {
        csv->line++;
        p++;
    }
    csv->start += n;
}

/* The name of a text that programs write beside UTF-8 with line feeds; NULL: none. */
static const char *other_form(const struct csv *csv)
{
    const char *w = csv->window;
    bool has_mark = csv->end >= 2 &&
                    (memcmp(w, "\xFF\xFE", 2) == 0 || memcmp(w, "\xFE\xFF", 2) == 0);
    bool is_wide = csv->end >= 4 && (w[0] == '\0') != (w[1] == '\0') &&
                   (w[0] == '\0') == (w[2] == '\0') && (w[1] == '\0') == (w[3] == '\0');

    if (has_mark || is_wide)
        return "is UTF-16 text; save it as UTF-8";
    if (memchr(w, '\r', csv->end) != NULL && memchr(w, '\n', csv->end) == NULL)
        return "ends its lines with CR alone; save it with LF or CRLF";
    return NULL;
}

int csv_open(struct csv **out, const char *path, struct err *e)
{
    size_t len = strlen(path) + 1;
    struct csv *csv = malloc(sizeof *csv + len);

    *out = NULL;
    if (csv == NULL)
        return err_set(e, ERR_NOMEM, "LL-9001 out of memory");
    csv->path = memcpy((char *)(csv + 1), path, len);
    csv->at_eof = csv->is_cut = false;
    csv->line = 1;
    csv->start = csv->end = 0;
    csv->file = fopen(path, "re");
    if (csv->file == NULL)
        (void)err_set(e, ERR_INVALID, "LL-8001 cannot open %s: %s", path,
                      strerror(errno));
    if (csv->file != NULL && fill(csv, e) == 0 && other_form(csv) != NULL)
        (void)err_set(e, ERR_INVALID, "LL-8008 %s %s", path, other_form(csv));
    if (e->code != ERR_OK) {
        csv_close(csv);
        return (int)e->code;
    }
    if (csv->end >= 3 && memcmp(csv->window, "\xEF\xBB\xBF", 3) == 0)
        csv->start = 3;
    *out = csv;
    return 0;
}

void csv_close(struct csv *csv)
{
    if (csv == NULL)
        return;
    if (csv->file != NULL)
        (void)fclose(csv->file);
    free(csv);
}

static const char *fault_of_bytes(const char *raw, size_t raw_len)
{
    const unsigned char *p = (const unsigned char *)raw;
    const unsigned char *end = p + raw_len;

    if (memchr(raw, '\0', raw_len) != NULL)
        return "holds a NUL byte";
    while (p < end) {
        size_t n = utf8_len(p, end);

        if (n == 0)
            return "is not UTF-8 text";
        p += n;
    }
    return NULL;
}

/* ---- records ---- */

struct scan {
    const char *p;   /* next byte */
    const char *end; /* end of the bytes that may belong to the record */
    char *out;       /* next byte of unquoted text */
};

static bool is_line_end(const struct scan *s)
{
    return s->p == s->end || *s->p == '\n' ||
           (*s->p == '\r' && s->p + 1 < s->end && s->p[1] == '\n');
}

static const char *scan_quoted(struct scan *s)
{
    for (s->p++; s->p < s->end; s->p++) {
        if (*s->p == '"') {
            if (s->p + 1 == s->end || s->p[1] != '"')
                break;
            s->p++;
        }
        *s->out++ = *s->p;
    }
    if (s->p == s->end)
        return "has a quote that is not closed";
    s->p++;
    if (!is_line_end(s) && *s->p != ',')
        return "has text behind a closing quote";
    return NULL;
}

static const char *scan_plain(struct scan *s)
{
    while (!is_line_end(s) && *s->p != ',') {
        if (*s->p == '"')
            return "has a quote inside a field that is not quoted";
        *s->out++ = *s->p++;
    }
    return NULL;
}

/* Splits one record; leaves s->p at its line end. */
static const char *scan_record(struct scan *s, struct csv_record *record)
{
    const char *fault = NULL;

    for (;;) {
        if (record->field_ct < CSV_FIELDS_MAX)
            record->fields[record->field_ct] = s->out;
        record->field_ct++;
        fault = s->p < s->end && *s->p == '"' ? scan_quoted(s) : scan_plain(s);
        *s->out++ = '\0';
        if (fault != NULL || is_line_end(s))
            return fault;
        s->p++; /* the comma */
    }
}

/* A faulty record ends with its first line; if that is longer than the window, with the
 * window. */
static void end_at_first_line(struct scan *s, const struct csv_record *record)
{
    const char *nl = memchr(record->raw, '\n', (size_t)(s->end - record->raw));

    s->p = nl == NULL ? s->end : nl;
    if (nl != NULL && nl > record->raw && nl[-1] == '\r')
        s->p--;
}

static int skip_line(struct csv *csv, struct err *e)
{
    for (;;) {
        const char *p = csv->window + csv->start;
        const char *nl = memchr(p, '\n', csv->end - csv->start);

        if (nl != NULL || csv->start == csv->end) {
            consume(csv, nl == NULL ? 0 : (size_t)(nl - p) + 1);
            return 0;
        }
        csv->start = csv->end;
        if (fill(csv, e) != 0)
            return (int)e->code;
    }
}

/* The record at the start of the window. Its bytes stay where they are until the next
 * fill, so raw stays valid although the record is consumed. */
static void take(struct csv *csv, struct csv_record *record)
{
    size_t left = csv->end - csv->start;
    size_t n = left > CSV_RECORD_MAX ? CSV_RECORD_MAX : left;
    const char *raw = csv->window + csv->start;
    struct scan s = {.p = raw, .end = raw + n, .out = csv->text};

    *record = (struct csv_record){.line = csv->line, .raw = raw};
    record->fault = scan_record(&s, record);
    if (record->fault != NULL)
        end_at_first_line(&s, record);
    csv->is_cut = s.p == s.end && n < left;
    if (csv->is_cut)
        record->fault = "is longer than 65536 bytes";
    record->raw_len = (size_t)(s.p - raw);
    if (record->fault == NULL)
        record->fault = fault_of_bytes(raw, record->raw_len);
    if (s.p < s.end && *s.p == '\r')
        s.p++;
    if (s.p < s.end)
        s.p++;
    consume(csv, (size_t)(s.p - raw));
}

int csv_next(struct csv *csv, struct csv_record *record, bool *more, struct err *e)
{
    do {
        if ((csv->is_cut && skip_line(csv, e) != 0) || fill(csv, e) != 0)
            return (int)e->code;
        csv->is_cut = false;
        *more = csv->start < csv->end;
        if (!*more)
            return 0;
        take(csv, record);
    } while (record->raw_len == 0 && record->fault == NULL);
    return 0;
}
