/* fixture_file: temporary files and folders, where scripts/test removes them. */
#define _XOPEN_SOURCE 700 /* fchmod, nftw */
#include "tests/lib/fixture.h"

#include <ftw.h>
#include <sys/stat.h>

#include "tests/lib/secrets.h"

void fixture_temporary(char *path, size_t size, const char *name)
{
    const char *base = getenv("LL_TEST_TMP");
    int n = -1;

    if (base != NULL && base[0] != '\0')
        n = snprintf(path, size, "%s/%s.XXXXXX", base, name);
    if (n < 0 || (size_t)n >= size)
        (void)snprintf(path, size, "/tmp/ledgerlock-%s.XXXXXX", name);
}

void fixture_file(char *path, size_t size, const char *text, unsigned mode)
{
    int fd;

    fixture_temporary(path, size, "file");
    fd = mkstemp(path);
    assert_true(fd >= 0);
    assert_int_equal(write(fd, text, strlen(text)), (ssize_t)strlen(text));
    assert_int_equal(fchmod(fd, (mode_t)mode), 0);
    (void)close(fd);
}

void fixture_folder(char *dir, size_t size, const char *name)
{
    fixture_temporary(dir, size, name);
    assert_non_null(mkdtemp(dir));
}

static int
remove_one(const char *path, const struct stat *st, int type, struct FTW *ftw)
{
    (void)st;
    (void)type;
    (void)ftw;
    return remove(path);
}

void fixture_remove(char *dir, const char *log)
{
    char path[256];
    bool is_shown;

    if (dir[0] == '\0')
        return;
    (void)snprintf(path, sizeof path, "%s/%s", dir, log);
    is_shown = secrets_are_in(path);
    (void)nftw(dir, remove_one, 8, FTW_DEPTH | FTW_PHYS);
    dir[0] = '\0';
    if (is_shown)
        fail_msg("%s shows a password", path);
}

const char *fixture_log_end(const char *dir, const char *log)
{
    static char text[700]; /* cmocka cuts a message after 1,023 bytes */
    char path[256];
    FILE *file;
    size_t n = 0;

    (void)snprintf(path, sizeof path, "%s/%s", dir, log);
    file = fopen(path, "r");
    if (file != NULL) {
        if (fseek(file, -(long)(sizeof text - 1), SEEK_END) != 0)
            rewind(file);
        n = fread(text, 1, sizeof text - 1, file);
        (void)fclose(file);
    }
    text[n] = '\0';
    return n > 0 ? text : "(nothing)";
}
