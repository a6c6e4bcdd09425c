/* secret: reading password files. */
#define _DEFAULT_SOURCE /* explicit_bzero */
#include "common/secret.h"

#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

static int check_mode(int fd, const char *path, struct err *e)
{
    struct stat st;

    if (fstat(fd, &st) != 0 || !S_ISREG(st.st_mode))
        return err_set(e, ERR_CONFIG, "password file %s is no regular file", path);
    if ((st.st_mode & (S_IRWXG | S_IRWXO)) != 0 &&
        strncmp(path, "/run/secrets/", strlen("/run/secrets/")) != 0)
        return err_set(e, ERR_CONFIG,
                       "password file %s may be read by others; run: chmod 600 %s",
                       path, path);
    return 0;
}

int secret_read(const char *path, char *buf, size_t size, struct err *e)
{
    int fd = open(path, O_RDONLY | O_NONBLOCK | O_CLOEXEC); /* a FIFO must not block */
    size_t n = 0;
    ssize_t got = 0;
    int code;

    if (fd < 0)
        return err_set(e, ERR_CONFIG, "cannot read password file %s: %s", path,
                       strerror(errno));
    code = check_mode(fd, path, e);
    /* Without stdio: no second copy of the password in a buffer. */
    while (code == 0 && n < size - 1 && (got = read(fd, buf + n, size - 1 - n)) > 0)
        n += (size_t)got;
    if (got < 0)
        code = err_set(e, ERR_CONFIG, "cannot read password file %s: %s", path,
                       strerror(errno));
    (void)close(fd);
    if (code != 0)
        return code;
    buf[n] = '\0';
    n = strcspn(buf, "\r\n");
    if (n == 0 || n == size - 1)
        return err_set(e, ERR_CONFIG,
                       "password file %s: its first line must have 1 to %zu characters",
                       path, size - 2);
    buf[n] = '\0';
    return 0;
}

void secret_wipe(char *buf, size_t size)
{
    explicit_bzero(buf, size);
}
