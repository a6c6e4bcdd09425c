/* terminal: the program as a child that believes to be on a screen. */
#define _GNU_SOURCE /* forkpty */
#include "tests/lib/terminal.h"

#include <fcntl.h>
#include <poll.h>
#include <pty.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "tests/lib/world.h"

struct terminal t;

enum { TAIL = 800 }; /* of a message */

void start_in(const char *words, unsigned short lines, unsigned short columns)
{
    const struct winsize size = {.ws_row = lines, .ws_col = columns};
    char line[1024];

    memset(&t, 0, sizeof t);
    t.pid = forkpty(&t.fd, NULL, NULL, &size);
    assert_true(t.pid >= 0);
    if (t.pid == 0) {
        (void)setenv("TERM", "xterm", 1);
        (void)setenv("NO_COLOR", "1", 1);
        (void)setenv("LEDGERLOCK_POSTGRES_URL", world.f.url, 1);
        (void)setenv("LEDGERLOCK_REDIS_URL", world.f.redis_url, 1);
        (void)snprintf(line, sizeof line, "exec '%s' %s", fixture_program(), words);
        (void)execl("/bin/sh", "sh", "-c", line, (char *)NULL);
        _exit(127);
    }
}

void start_on_terminal(const char *words)
{
    start_in(words, 24, 80);
}

/* Reads until the text was written, counted from `from`. */
void wait_for(const char *text, size_t from)
{
    struct pollfd p = {.fd = t.fd, .events = POLLIN};
    int64_t until_ms = fixture_now_ms() + 120000; /* it writes each second */

    t.said[t.n] = '\0'; /* a test may have begun anew */
    while (strstr(t.said + from, text) == NULL) {
        size_t room = t.n < sizeof t.said - 1 ? sizeof t.said - 1 - t.n : 0;
        ssize_t got = 0;

        if (fixture_now_ms() < until_ms && poll(&p, 1, 120000) > 0)
            got = read(t.fd, t.said + t.n, room);
        if (got <= 0)
            fail_msg("never \"%s\"; the end: %s", text,
                     t.said + (t.n > from + TAIL ? t.n - TAIL : from));
        t.n += (size_t)got;
        t.said[t.n] = '\0';
    }
}

int end_on_terminal(void)
{
    int status;

    assert_int_equal(waitpid(t.pid, &status, 0), t.pid);
    (void)close(t.fd);
    return WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
}
