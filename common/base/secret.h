/* secret: reads passwords from files. */
#ifndef LEDGERLOCK_SECRET_H
#define LEDGERLOCK_SECRET_H

#include <stddef.h>
#include <stdint.h>

#include "common/base/err.h"

/* A password or a token has up to 4096 characters, whatever it is for; a buffer has
 * room for its end, and for a byte that tells that it is longer. */
enum { SECRET_MAX = 4096, SECRET_SIZE = SECRET_MAX + 2 };

/* First line of a file into buf; ERR_CONFIG with the path when it cannot be read, is
 * empty or too long. Wipe buf after use. */
MUST_CHECK int secret_read(const char *path, char buf[SECRET_SIZE], struct err *e);

/* A number that is another one when the file was changed or replaced; 0: there is none.
 */
int64_t secret_stamp(const char *path);

/* ERR_CONFIG when group or others have any right on a file that holds a password,
 * unless it was handed in by a container's engine or systemd. */
MUST_CHECK int secret_check_mode(const char *path, struct err *e);

/* Overwrites the buffer; the compiler cannot remove the call. */
void secret_wipe(char *buf, size_t size);

#endif
