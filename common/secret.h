/* secret: passwords from files, and nowhere else. */
#ifndef LEDGERLOCK_SECRET_H
#define LEDGERLOCK_SECRET_H

#include <stddef.h>

#include "common/err.h"

/* First line of a file into buf; ERR_CONFIG with the path when it cannot be read, is
 * empty or does not fit. Wipe buf after use. */
MUST_CHECK int secret_read(const char *path, char *buf, size_t size, struct err *e);

/* Overwrites, and the compiler keeps it. */
void secret_wipe(char *buf, size_t size);

#endif
