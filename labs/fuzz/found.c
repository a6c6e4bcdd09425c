/* found: the end of a fuzzer with a finding; texts out of an input. */
#define _GNU_SOURCE /* memfd_create */
#include <fcntl.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include "labs/fuzz/fuzz.h"

const char *fuzz_call = "open";

_Noreturn void fuzz_found(const char *fmt, ...)
{
    va_list ap;

    (void)fprintf(stderr, "FOUND: %s: ", fuzz_call);
    va_start(ap, fmt);
    (void)vfprintf(stderr, fmt, ap);
    va_end(ap);
    (void)fputc('\n', stderr);
    abort();
}

char *fuzz_text(const uint8_t *data, size_t size)
{
    char *text = malloc(size + 1);

    if (text == NULL)
        abort();
    memcpy(text, data, size);
    text[size] = '\0';
    return text;
}

void file_open(struct fuzz_file *f)
{
    if (f->fd != 0)
        return;
    f->fd = memfd_create("fuzz", MFD_CLOEXEC);
    if (f->fd < 0 || fchmod(f->fd, 0600) != 0)
        abort();
    (void)snprintf(f->path, sizeof f->path, "/proc/self/fd/%d", f->fd);
}

void file_fill(struct fuzz_file *f, const void *data, size_t size)
{
    file_open(f);
    if (ftruncate(f->fd, 0) != 0 || pwrite(f->fd, data, size, 0) != (ssize_t)size ||
        lseek(f->fd, 0, SEEK_SET) != 0)
        abort();
}
