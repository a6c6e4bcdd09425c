/* secret: reading password files. */
#define _DEFAULT_SOURCE /* explicit_bzero */
#include "common/secret.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

int secret_read(const char *path, char *buf, size_t size, struct err *e)
{
    FILE *f = fopen(path, "re");
    size_t n;

    if (f == NULL)
        return err_set(e, ERR_CONFIG, "cannot read password file %s: %s", path,
                       strerror(errno));
    (void)setvbuf(f, NULL, _IONBF, 0); /* no second copy of the password in a buffer */
    n = fread(buf, 1, size - 1, f);
    (void)fclose(f);
    buf[n] = '\0';
    if (n == size - 1 && strpbrk(buf, "\r\n") == NULL)
        return err_set(e, ERR_CONFIG, "the password in %s is longer than %zu bytes",
                       path, size - 2);
    buf[strcspn(buf, "\r\n")] = '\0';
    if (buf[0] == '\0')
        return err_set(e, ERR_CONFIG, "password file %s is empty", path);
    return 0;
}

void secret_wipe(char *buf, size_t size)
{
    explicit_bzero(buf, size);
}
