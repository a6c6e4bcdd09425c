/* sheet: text for a terminal as it grows, line by line. */
#ifndef LEDGERLOCK_SHEET_H
#define LEDGERLOCK_SHEET_H

#include <stddef.h>
#include <stdio.h>

struct sheet {
    FILE *f; /* of the text in memory; NULL: there is no memory */
    char *text;
    size_t size;
    size_t lines; /* so far */
};

void sheet_open(struct sheet *s);

/* Adds a line, or one in bold letters, of at most 1,023 bytes, with "?" for what a
 * terminal would obey (control characters) or could not show (no UTF-8). */
void sheet_put(struct sheet *s, const char *fmt, ...)
    __attribute__((format(printf, 2, 3)));
void sheet_bold(struct sheet *s, const char *fmt, ...)
    __attribute__((format(printf, 2, 3)));

/* Prints the text on stdout, and forgets it. lines, columns: of a window that it is cut
 * to, but in no character; 0: it is not cut. */
void sheet_print(struct sheet *s, size_t lines, size_t columns);

#endif
