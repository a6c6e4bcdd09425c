/* secret: reading password files. */
#define _DEFAULT_SOURCE /* explicit_bzero */
#include "common/base/secret.h"

#include <errno.h>
#include <fcntl.h>
#include <stdbool.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

static bool is_for_others(const struct stat *st)
{
    return (st->st_mode & (S_IRWXG | S_IRWXO)) != 0;
}

/* There a container's engine or systemd gives one service its secrets: the mode tells
 * nothing, since the folder is closed, or the bits of the group are those of an ACL. */
static bool is_handed_in(const char *path)
{
    static const char *const folders[] = {"/run/secrets/", "/run/credentials/"};

    for (size_t i = 0; i < sizeof folders / sizeof folders[0]; i++) {
        if (strncmp(path, folders[i], strlen(folders[i])) == 0)
            return true;
    }
    return false;
}

static int check_mode(int fd, const char *path, struct err *e)
{
    struct stat st;

    if (fstat(fd, &st) != 0 || !S_ISREG(st.st_mode))
        return err_set(e, ERR_CONFIG, "LL-2013 password file %s is no regular file",
                       path);
    if (is_for_others(&st) && !is_handed_in(path))
        return err_set(
            e, ERR_CONFIG,
            "LL-2014 password file %s may be read by others; run: chmod 600 %s", path,
            path);
    return 0;
}

int secret_check_mode(const char *path, struct err *e)
{
    struct stat st;

    if (stat(path, &st) == 0 && (!is_for_others(&st) || is_handed_in(path)))
        return 0;
    return err_set(
        e, ERR_CONFIG,
        "LL-2014 %s holds a password and may be read by others; run: chmod 600 %s",
        path, path);
}

int64_t secret_stamp(const char *path)
{
    struct stat st;

    if (stat(path, &st) != 0)
        return 0;
    return (int64_t)((uint64_t)st.st_mtim.tv_sec * 1000000000 +
                     (uint64_t)st.st_mtim.tv_nsec + (uint64_t)st.st_ino * 31 +
                     (uint64_t)st.st_size);
}

int secret_read(const char *path, char buf[SECRET_SIZE], struct err *e)
{
    int fd = open(path, O_RDONLY | O_NONBLOCK | O_CLOEXEC); /* a FIFO must not block */
    const size_t size = SECRET_SIZE;
    size_t n = 0;
    ssize_t got = 0;
    int code;

    if (fd < 0)
        return err_set(e, ERR_CONFIG, "LL-2013 cannot read password file %s: %s", path,
                       strerror(errno));
    code = check_mode(fd, path, e);
    /* Without stdio: no second copy of the password in a buffer. */
    while (code == 0 && n < size - 1 && (got = read(fd, buf + n, size - 1 - n)) > 0)
        n += (size_t)got;
    if (got < 0)
        code = err_set(e, ERR_CONFIG, "LL-2013 cannot read password file %s: %s", path,
                       strerror(errno));
    (void)close(fd);
    if (code != 0)
        return code;
    buf[n] = '\0';
    n = strcspn(buf, "\r\n");
    if (n == 0 || n > SECRET_MAX)
        return err_set(
            e, ERR_CONFIG,
            "LL-2015 password file %s: its first line must have 1 to %d characters",
            path, SECRET_MAX);
    buf[n] = '\0';
    return 0;
}

void secret_wipe(char *buf, size_t size)
{
    explicit_bzero(buf, size);
}
