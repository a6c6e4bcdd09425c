/* journal: a file of JSON lines that only grows. A line that is torn at the end was
 * never answered, and is cut off at the start. */
#define _GNU_SOURCE
#include "labs/gateway/gateway.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static int fd = -1;
static off_t end; /* behind the last whole line */

static bool load(FILE *file)
{
    char *line = NULL;
    size_t room = 0;
    ssize_t n;
    bool is_good = true;

    while (is_good && (n = getline(&line, &room, file)) > 0 && line[n - 1] == '\n') {
        json_t *record = json_loads(line, 0, NULL);

        line[n - 1] = '\0';
        is_good = record != NULL && store_apply(record, line) != NULL;
        json_decref(record);
        end += n;
    }
    free(line);
    return is_good && ferror(file) == 0;
}

bool journal_open(const char *path, char *why)
{
    FILE *file;
    bool is_read;

    fd = open(path, O_RDWR | O_CREAT | O_CLOEXEC, 0600);
    if (fd >= 0 && lockf(fd, F_TLOCK, 0) != 0) {
        (void)snprintf(why, WHY_SIZE, "another gateway has %.100s open", path);
        return false;
    }
    file = fopen(path, "re");
    is_read = file != NULL && load(file);
    (void)snprintf(why, WHY_SIZE, "the journal %.64s, line %lld: %s", path,
                   (long long)store.ct + 1,
                   file == NULL ? strerror(errno) : "no line of a journal");
    /* The file stays open: closing it would end the lock of this process. */
    return fd >= 0 && is_read && ftruncate(fd, end) == 0;
}

static bool write_all(const char *text, size_t n)
{
    for (size_t done = 0; done < n;) {
        ssize_t written = pwrite(fd, text + done, n - done, end + (off_t)done);

        if (written < 0 && errno != EINTR)
            return false;
        done += written > 0 ? (size_t)written : 0;
    }
    return fdatasync(fd) == 0;
}

bool journal_write(const struct call *first)
{
    char *text = NULL;
    size_t n = 0;
    FILE *stream = open_memstream(&text, &n);
    bool is_written;

    for (const struct call *c = first; stream != NULL && c != NULL; c = c->next)
        (void)fprintf(stream, "%s\n", c->line);
    is_written = stream != NULL && fclose(stream) == 0 && write_all(text, n);
    if (is_written) {
        end += (off_t)n;
    } else {
        (void)fprintf(stderr, "the journal cannot be written, nothing is charged: %s\n",
                      strerror(errno));
        if (ftruncate(fd, end) != 0) /* lines of calls that are told to have failed */
            abort();
    }
    free(text);
    return is_written;
}
