/* secrets: outputs are remembered by descriptors of our own, and read at the end. */
#define _GNU_SOURCE /* memmem */
#include "tests/lib/secrets.h"

#include <fcntl.h>
#include <sys/stat.h>

#include "tests/lib/fixture.h"

enum { WATCHED = 64 }; /* runs at once; the oldest are looked at when there are more */

static int watched[WATCHED][2];
static size_t watched_ct;
static bool is_shown;
static char files[2][96];

static const char *file_with(char path[sizeof files[0]], const char *secret)
{
    if (path[0] == '\0')
        fixture_file(path, sizeof files[0], secret, 0600);
    return path;
}

const char *secrets_of_redis(void)
{
    return file_with(files[0], SECRET_OF_REDIS);
}

const char *secrets_of_postgres(void)
{
    return file_with(files[1], SECRET_OF_POSTGRES);
}

static bool has(const char *text, size_t size, const char *secret)
{
    return memmem(text, size, secret, strlen(secret)) != NULL;
}

/* Its offset is the writer's too, and stays where it is. */
static bool are_in(int fd)
{
    struct stat st = {0};
    char *text;
    bool found;

    if (fstat(fd, &st) != 0 || !S_ISREG(st.st_mode) || st.st_size == 0)
        return false;
    text = malloc((size_t)st.st_size);
    assert_non_null(text);
    assert_int_equal(pread(fd, text, (size_t)st.st_size, 0), st.st_size);
    found = has(text, (size_t)st.st_size, SECRET_OF_REDIS) ||
            has(text, (size_t)st.st_size, SECRET_OF_POSTGRES);
    free(text);
    return found;
}

bool secrets_are_in(const char *path)
{
    int fd = open(path, O_RDONLY | O_CLOEXEC);
    bool found = fd >= 0 && are_in(fd);

    if (fd >= 0)
        (void)close(fd);
    return found;
}

void secrets_find(const int fds[2])
{
    for (size_t i = 0; i < 2; i++)
        is_shown = is_shown || are_in(fds[i]);
}

static void forget_oldest(void)
{
    secrets_find(watched[0]);
    for (size_t i = 0; i < 2; i++)
        (void)close(watched[0][i]);
    memmove(watched, watched + 1, --watched_ct * sizeof watched[0]);
}

void secrets_watch(const int fds[2])
{
    if (watched_ct == WATCHED)
        forget_oldest();
    for (size_t i = 0; i < 2; i++) {
        watched[watched_ct][i] = fcntl(fds[i], F_DUPFD_CLOEXEC, 0);
        assert_true(watched[watched_ct][i] >= 0);
    }
    watched_ct++;
}

void secrets_close(void)
{
    bool found;

    while (watched_ct > 0)
        forget_oldest();
    for (size_t i = 0; i < 2; i++) {
        if (files[i][0] != '\0')
            (void)unlink(files[i]);
        files[i][0] = '\0';
    }
    found = is_shown;
    is_shown = false;
    if (found)
        fail_msg("a run has written a password");
}
