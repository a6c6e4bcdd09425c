/* import_report: rejects gather in a nameless file and get their name at the end, so
 * that an import that failed leaves the last rejects file alone. */
#define _XOPEN_SOURCE 700 /* realpath */
#include "worker/import_report.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

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

static int cannot_write(const struct import_report *r, struct err *e)
{
    return err_set(e, ERR_INVALID, "cannot write the rejects file %s: %s",
                   r->rejects_path, strerror(errno));
}

/* What fopen would give a new file. */
static mode_t usual_mode(void)
{
    mode_t mask = umask(0);

    (void)umask(mask);
    return 0666 & ~mask;
}

/* Makes a file beside the target, with the mode of what it will replace. */
static int open_beside(struct import_report *r, const struct stat *old)
{
    size_t size = strlen(r->target) + sizeof ".XXXXXX";
    char *path = malloc(size);
    int fd;

    if (path == NULL)
        return -1;
    (void)snprintf(path, size, "%s.XXXXXX", r->target);
    fd = mkstemp(path);
    if (fd < 0) {
        free(path);
        return -1;
    }
    r->written = path;
    (void)fchmod(fd, old != NULL ? old->st_mode & 0777 : usual_mode());
    return fd;
}

static FILE *open_out(struct import_report *r)
{
    struct stat st;
    bool is_there = stat(r->rejects_path, &st) == 0;
    int fd;

    if (is_there && !S_ISREG(st.st_mode))
        return fopen(r->rejects_path, "we");
    r->target = is_there ? realpath(r->rejects_path, NULL) : strdup(r->rejects_path);
    fd = r->target != NULL ? open_beside(r, is_there ? &st : NULL) : -1;
    return fd >= 0 ? fdopen(fd, "w") : NULL;
}

int import_report_write(struct import_report *r, struct err *e)
{
    FILE *out;
    bool failed;

    if (r->kept == NULL)
        return 0;
    if (fflush(r->kept) != 0 || ferror(r->kept) != 0 || (out = open_out(r)) == NULL)
        return cannot_write(r, e);
    failed = copy_file(r->kept, out) != 0;
    failed = fclose(out) != 0 || failed;
    return failed ? cannot_write(r, e) : 0;
}

/* By then the import is stored, so rejects that cannot be renamed stay where they are.
 */
int import_report_publish(struct import_report *r, struct err *e)
{
    int code = 0;

    if (r->written == NULL)
        return 0;
    if (rename(r->written, r->target) != 0)
        code = err_set(e, ERR_INVALID,
                       "the import is stored, its bad lines are in %.200s: cannot "
                       "rename it to %.200s: %s",
                       r->written, r->target, strerror(errno));
    free(r->written);
    r->written = NULL;
    return code;
}

void import_report_close(struct import_report *r)
{
    if (r->kept != NULL)
        (void)fclose(r->kept);
    r->kept = NULL;
    if (r->written != NULL)
        (void)unlink(r->written);
    free(r->written);
    free(r->target);
    r->written = r->target = NULL;
}
