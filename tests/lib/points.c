/* points: the other end of worker/batch/point.c. */
#include "tests/lib/points.h"

#include <poll.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>

enum { STEP_SECONDS = 120 }; /* to fail: nothing takes so long */

static char shipped[4096];

void points_use(const char *program)
{
    if (shipped[0] == '\0')
        (void)snprintf(shipped, sizeof shipped, "%s", fixture_program());
    (void)setenv("LL_TEST_BIN", program != NULL ? program : shipped, 1);
}

void points_program(void)
{
    points_use(POINTS_PROGRAM);
}

void points_as_shipped(void)
{
    points_use(NULL);
}

void points_open(struct points *p)
{
    struct sockaddr_un address = {.sun_family = AF_UNIX};

    memset(p, 0, sizeof *p);
    fixture_temporary(p->dir, sizeof p->dir, "points");
    assert_non_null(mkdtemp(p->dir));
    (void)snprintf(p->path, sizeof p->path, "%s/socket", p->dir);
    assert_true(strlen(p->path) < sizeof address.sun_path);
    (void)strcpy(address.sun_path, p->path);
    p->listener = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
    assert_int_equal(
        bind(p->listener, (const struct sockaddr *)&address, sizeof address), 0);
    assert_int_equal(listen(p->listener, POINTS_WORKERS), 0);
    fixture_env("LL_TEST_POINTS", p->path);
}

static void wait_for(int fd, int seconds, const char *whom)
{
    struct pollfd ready = {.fd = fd, .events = POLLIN};

    if (poll(&ready, 1, seconds * 1000) != 1)
        fail_msg("%s came to no point within %d s", whom, seconds);
}

/* The line is short and written at once, so it comes at once. */
static void read_line(struct points_worker *w)
{
    char line[128], pid[24];
    ssize_t n;

    wait_for(w->fd, STEP_SECONDS, w->name);
    n = read(w->fd, line, sizeof line - 1);
    if (n <= 0)
        fail_msg("worker %s is gone; it stood at %s", w->name, w->at);
    line[n] = '\0';
    assert_int_equal(sscanf(line, "%63s %23s %31s", w->name, pid, w->at), 3);
    w->pid = (pid_t)strtol(pid, NULL, 10);
}

size_t points_join(struct points *p, int seconds)
{
    struct points_worker *w = &p->workers[p->n];

    assert_true(p->n < POINTS_WORKERS);
    wait_for(p->listener, seconds, "a new worker");
    (void)snprintf(w->name, sizeof w->name, "new");
    w->fd = accept(p->listener, NULL, NULL);
    assert_true(w->fd >= 0);
    read_line(w);
    return p->n++;
}

const char *points_step(struct points *p, size_t worker)
{
    struct points_worker *w = &p->workers[worker];

    assert_int_equal(write(w->fd, "g", 1), 1);
    read_line(w);
    return w->at;
}

void points_close(struct points *p)
{
    if (p->listener < 0)
        return;
    for (size_t i = 0; i < p->n; i++)
        (void)close(p->workers[i].fd);
    (void)close(p->listener);
    (void)unlink(p->path);
    (void)rmdir(p->dir);
    p->listener = -1;
    p->n = 0;
}
