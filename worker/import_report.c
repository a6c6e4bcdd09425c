/* import_report: rejects gather in a nameless file and get their name at the end, so
 * that an import that failed leaves the last rejects file alone. */
#include "worker/import_report.h"

#include <errno.h>
#include <string.h>

int import_report_open(struct import_report *r, const char *rejects_path, struct err *e)
{
    r->rejects_path = rejects_path;
    if (rejects_path == NULL)
        return 0;
    r->kept = tmpfile();
    if (r->kept == NULL)
        return err_set(e, ERR_INVALID, "cannot make a temporary file: %s",
                       strerror(errno));
    return 0;
}

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

/* Refs in a reason may hold anything; a terminal must not obey it. */
static void tell(const char *path, size_t line, const char *reason)
{
    (void)fprintf(stderr, "%s:%zu: ", path, line);
    for (; *reason != '\0'; reason++) {
        unsigned char c = (unsigned char)*reason;

        (void)fputc(c < 0x20 || c == 0x7F ? '?' : c, stderr);
    }
    (void)fputc('\n', stderr);
}

void import_report_bad(struct import_report *r,
                       const char *path,
                       const char *header,
                       size_t line,
                       const char *reason,
                       const char *raw,
                       size_t raw_len)
{
    if (r->bad_ct++ < IMPORT_TOLD_MAX)
        tell(path, line, reason);
    if (r->kept == NULL)
        return;
    if (r->section != path)
        (void)fprintf(r->kept, "%s,rejected\n", header);
    r->section = path;
    (void)fwrite(raw, 1, raw_len, r->kept);
    put_quoted(r->kept, reason);
}

void import_report_end(const struct import_report *r)
{
    if (r->bad_ct > IMPORT_TOLD_MAX)
        (void)fprintf(stderr, "... and %zu more bad lines\n",
                      r->bad_ct - IMPORT_TOLD_MAX);
}

static int copy_file(FILE *from, FILE *to)
{
    char buf[16384];
    size_t n;

    rewind(from);
    while ((n = fread(buf, 1, sizeof buf, from)) > 0) {
        if (fwrite(buf, 1, n, to) != n)
            return -1;
    }
    return ferror(from) != 0 ? -1 : 0;
}

int import_report_publish(struct import_report *r, struct err *e)
{
    FILE *out;
    int failed;

    if (r->kept == NULL)
        return 0;
    failed = fflush(r->kept) != 0 || ferror(r->kept) != 0;
    out = failed ? NULL : fopen(r->rejects_path, "we");
    if (out != NULL) {
        failed = copy_file(r->kept, out);
        failed = fclose(out) != 0 || failed;
    }
    if (out == NULL || failed)
        return err_set(e, ERR_INVALID, "cannot write the rejects file %s: %s",
                       r->rejects_path, strerror(errno));
    return 0;
}

void import_report_close(struct import_report *r)
{
    if (r->kept != NULL)
        (void)fclose(r->kept);
    r->kept = NULL;
}
