/* failpoint: one line over a socket, one byte back; and a list of poisoned rows. */
#include "tests/points/failpoint.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <signal.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

enum { NOBODY = -1, NOT_ASKED = -2 };

static int control = NOT_ASKED;
static pid_t asked_by; /* a child makes a connection of its own */

static int join(const char *path)
{
    struct sockaddr_un address = {.sun_family = AF_UNIX};
    int fd;

    if (path == NULL || strlen(path) >= sizeof address.sun_path)
        return NOBODY;
    (void)strcpy(address.sun_path, path);
    fd = socket(AF_UNIX, SOCK_STREAM, 0);
    if (fd >= 0 &&
        connect(fd, (const struct sockaddr *)&address, sizeof address) != 0) {
        (void)close(fd);
        return NOBODY;
    }
    return fd;
}

/* Says where we are and waits for the answer, whatever signals come. */
static void wait_for_word(const char *worker, const char *point)
{
    char line[128], answer;
    int n = snprintf(line, sizeof line, "%s %ld %s\n", worker, (long)getpid(), point);
    ssize_t got = -1;

    if (send(control, line, (size_t)n, MSG_NOSIGNAL) == n) {
        do
            got = read(control, &answer, 1);
        while (got < 0 && errno == EINTR);
    }
    if (got != 1) {
        (void)close(control);
        control = NOBODY;
    }
}

/* With a file for once: whether this process is the one that made it. */
static bool is_first(void)
{
    const char *once = getenv("LL_TEST_POINT_ONCE");
    int fd;

    if (once == NULL)
        return true;
    fd = open(once, O_CREAT | O_EXCL | O_WRONLY, 0600);
    if (fd >= 0)
        (void)close(fd);
    return fd >= 0;
}

static void obey(const char *point)
{
    const char *order = getenv("LL_TEST_POINT");
    size_t n = strlen(point);

    if (order == NULL || strncmp(order, point, n) != 0 || order[n] != '=')
        return;
    if (strcmp(order + n, "=kill") == 0 && is_first())
        (void)raise(SIGKILL);
    if (strcmp(order + n, "=stop") == 0 && is_first())
        (void)raise(SIGSTOP);
    if (strcmp(order + n, "=exit") == 0 && is_first())
        _exit(127); /* as the loader ends a process that lacks a symbol */
}

void failpoint_reach(const char *worker, const char *point)
{
    obey(point);
    if (control == NOT_ASKED || asked_by != getpid())
        control = join(getenv("LL_TEST_POINTS"));
    asked_by = getpid();
    if (control != NOBODY)
        wait_for_word(worker, point);
}

/* ---- poison ---- */

static bool is_poison(const char *list, const char *job, int64_t item)
{
    char entry[64];
    size_t n = (size_t)snprintf(entry, sizeof entry, "%s:%" PRId64, job, item);

    for (const char *p = list; (p = strstr(p, entry)) != NULL; p++) {
        if ((p == list || p[-1] == ',') && (p[n] == ',' || p[n] == '\0'))
            return true;
    }
    return false;
}

void poison_reach(const char *job, const struct job_rows *rows)
{
    const char *list = getenv("LL_TEST_POISON");

    for (size_t i = 0; list != NULL && i < rows->n; i++) {
        if (!is_poison(list, job, rows->items[i]))
            continue;
        (void)signal(SIGSEGV, SIG_DFL); /* a sanitizer's handler would exit */
        (void)raise(SIGSEGV);
    }
}
