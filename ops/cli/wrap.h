/* wrap: text for a terminal of 80 columns. */
#ifndef LEDGERLOCK_WRAP_H
#define LEDGERLOCK_WRAP_H

#include <stddef.h>

enum { WRAP_COLUMNS = 80 };

/* Prints `left`, then `text` from column `indent` on, in as many lines as it takes; the
 * lines behind the first are blank up to that column. A `left` that is too long has a
 * line of its own. Lines break at blanks, and in words that are longer than a line. */
void wrap_print(size_t indent, const char *left, const char *text);

#endif
