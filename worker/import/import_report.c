/* import_report: prints the first bad lines on stderr and writes all of them to the
 * rejects file. */
#include "worker/import/import_steps.h"

enum { TOLD_MAX = 20 };

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
    if (r->bad_ct++ < TOLD_MAX)
        tell(path, line, reason);
    if (r->rejects.file == NULL)
        return;
    if (r->section != path)
        (void)fprintf(r->rejects.file, "%s,rejected\n", header);
    r->section = path;
    (void)fwrite(raw, 1, raw_len, r->rejects.file);
    put_quoted(r->rejects.file, reason);
}

void import_report_end(const struct import_report *r)
{
    if (r->bad_ct > TOLD_MAX)
        (void)fprintf(stderr, "... and %zu more bad lines\n", r->bad_ct - TOLD_MAX);
}
