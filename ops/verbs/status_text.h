/* status_text: the document of `status` for a person. */
#ifndef LEDGERLOCK_STATUS_TEXT_H
#define LEDGERLOCK_STATUS_TEXT_H

#include <jansson.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* How it is shown. */
struct status_view {
    bool is_watched;       /* the text says how old its figures are */
    size_t lines, columns; /* of the window that the text is to fit; 0: of any size */
    int64_t age_ms;        /* since the tables were read, */
    int64_t stale_ms;      /* and from which on the verdict is not known */
    const char *trouble;   /* why they were not read again; "" */
};

/* Prints it on stdout. In a window each part of the text has a share of the lines, and
 * the workers have the rest; those that do not fit are counted. A control character of
 * a row, and what is no UTF-8, is shown as "?". */
void status_print(const json_t *doc, const struct status_view *v);

#endif
