/* replace: writes into a nameless file, copies it beside the target, renames the copy.
 */
#define _XOPEN_SOURCE 700 /* realpath */
#include "common/base/replace.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

int replace_open(struct replace *r, const char *what, const char *path, struct err *e)
{
    r->what = what;
    r->path = path;
    r->file = tmpfile();
    if (r->file == NULL)
        return err_set(e, ERR_INVALID, "LL-9002 cannot make a temporary file: %s",
                       strerror(errno));
    return 0;
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

/* The rights that fopen would give a new file. */
static mode_t usual_mode(void)
{
    mode_t mask = umask(0);

    (void)umask(mask);
    return 0666 & ~mask;
}

/* Makes a file beside the target, with the mode of the target. */
static int open_beside(struct replace *r, const struct stat *old)
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

static FILE *open_out(struct replace *r)
{
    struct stat st;
    bool is_there = stat(r->path, &st) == 0;
    int fd;

    if (is_there && !S_ISREG(st.st_mode))
        return fopen(r->path, "we");
    r->target = is_there ? realpath(r->path, NULL) : strdup(r->path);
    fd = r->target != NULL ? open_beside(r, is_there ? &st : NULL) : -1;
    return fd >= 0 ? fdopen(fd, "w") : NULL;
}

int replace_write(struct replace *r, struct err *e)
{
    bool failed = fflush(r->file) != 0 || ferror(r->file) != 0;
    FILE *out = failed ? NULL : open_out(r);

    failed = out == NULL || copy_file(r->file, out) != 0;
    if (out != NULL)
        failed = fclose(out) != 0 || failed;
    return failed ? err_set(e, ERR_INVALID, "LL-9002 cannot write %s %s: %s", r->what,
                            r->path, strerror(errno))
                  : 0;
}

int replace_publish(struct replace *r, struct err *e)
{
    int code = 0;

    if (r->written == NULL)
        return 0;
    if (rename(r->written, r->target) != 0)
        code = err_set(e, ERR_INVALID,
                       "LL-9003 %s is %.200s: cannot rename it to %.200s: %s", r->what,
                       r->written, r->target, strerror(errno));
    free(r->written);
    r->written = NULL;
    return code;
}

void replace_close(struct replace *r)
{
    if (r->file != NULL)
        (void)fclose(r->file);
    r->file = NULL;
    if (r->written != NULL)
        (void)unlink(r->written);
    free(r->written);
    free(r->target);
    r->written = r->target = NULL;
}
