/* csv: any file is read to its end, in order, within its bounds; what was read and is
 * written again with quotes is read as the same. */
#define _GNU_SOURCE /* memmem */
#include <jansson.h>
#include <stdlib.h>
#include <string.h>

#include "common/base/csv.h"
#include "labs/fuzz/fuzz.h"

enum { QUOTED_MAX = 1 << 14 };

static struct fuzz_file file, second_file;

/* NULL: another form of text, UTF-16 or lines that end with CR alone. */
static struct csv *open_csv(struct fuzz_file *f, const void *data, size_t size)
{
    struct err e = {0};
    struct csv *csv;

    file_fill(f, data, size);
    if (csv_open(&csv, f->path, &e) != 0 && strncmp(e.msg, "LL-8008", 7) != 0)
        fuzz_found("%s", e.msg);
    return csv;
}

static bool next(struct csv *csv, struct csv_record *record)
{
    struct err e = {0};
    bool more;

    if (csv_next(csv, record, &more, &e) != 0)
        fuzz_found("%s", e.msg);
    return more;
}

static void check_text(const char *field)
{
    json_t *text = json_string(field); /* by RFC 3629 */

    if (text == NULL)
        fuzz_found("a field that is not UTF-8");
    json_decref(text);
}

static void check_quoted(const struct csv_record *record)
{
    static char quoted[QUOTED_MAX];
    struct csv_record again = {0};
    struct csv *csv;
    size_t n = 0;

    for (size_t i = 0; i < record->field_ct; i++) {
        quoted[n++] = i > 0 ? ',' : '"';
        if (i > 0)
            quoted[n++] = '"';
        for (const char *p = record->fields[i]; *p != '\0'; p++) {
            if (*p == '"')
                quoted[n++] = '"';
            quoted[n++] = *p;
        }
        quoted[n++] = '"';
    }
    quoted[n++] = '\n'; /* without one, a CR inside a field would be the end of lines */
    csv = open_csv(&second_file, quoted, n);
    if (csv == NULL || !next(csv, &again) || again.fault != NULL ||
        again.field_ct != record->field_ct)
        fuzz_found("%zu fields with quotes are %zu", record->field_ct, again.field_ct);
    for (size_t i = 0; i < record->field_ct; i++)
        if (strcmp(record->fields[i], again.fields[i]) != 0)
            fuzz_found("\"%s\" with quotes is \"%s\"", record->fields[i],
                       again.fields[i]);
    if (next(csv, &again))
        fuzz_found("a record with quotes is two");
    csv_close(csv);
}

/* Returns where its bytes end in the input. */
static const char *
check_record(const struct csv_record *record, const char *from, const char *end)
{
    const char *at = memmem(from, (size_t)(end - from), record->raw, record->raw_len);

    if (at == NULL)
        fuzz_found("a record of line %zu is not behind the one before", record->line);
    if (record->fault != NULL)
        return at + record->raw_len;
    if (record->field_ct == 0)
        fuzz_found("a record without a field");
    for (size_t i = 0; i < record->field_ct && i < CSV_FIELDS_MAX; i++)
        check_text(record->fields[i]);
    if (record->field_ct <= CSV_FIELDS_MAX)
        check_quoted(record);
    return at + record->raw_len;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct csv *csv = open_csv(&file, data, size);
    const char *at = (const char *)data;
    struct csv_record record;
    size_t line = 0;

    if (csv == NULL)
        return 0;
    fuzz_call = "csv_next";
    while (next(csv, &record)) {
        if (record.line <= line)
            fuzz_found("line %zu comes behind line %zu", record.line, line);
        line = record.line;
        at = check_record(&record, at, (const char *)data + size);
    }
    csv_close(csv);
    return 0;
}
