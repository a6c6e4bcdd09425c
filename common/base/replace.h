/* replace: a file that replaces another only if everything succeeded. The file has no
 * name until it is written, so an interruption leaves no file behind. */
#ifndef LEDGERLOCK_REPLACE_H
#define LEDGERLOCK_REPLACE_H

#include <stdio.h>

#include "common/base/err.h"

/* Zeroed, then opened. */
struct replace {
    FILE *file;       /* to be written by the caller; NULL: not opened */
    const char *what; /* for messages: "the rejects file"; borrowed */
    const char *path; /* borrowed */
    char *target;     /* path with links followed; owned */
    char *written;    /* name beside it until it is published; owned */
};

/* Opens the nameless file; no named file is created or changed yet. */
MUST_CHECK int
replace_open(struct replace *r, const char *what, const char *path, struct err *e);

/* Writes the content to a temporary name beside the path; a path that is not a regular
 * file (a pipe, a terminal) gets it at once. */
MUST_CHECK int replace_write(struct replace *r, struct err *e);

/* Renames the written file to the path. */
MUST_CHECK int replace_publish(struct replace *r, struct err *e);

/* Removes a file that was written and not published. Accepts one never opened. */
void replace_close(struct replace *r);

#endif
