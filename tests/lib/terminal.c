/* terminal: the program as a child that believes to be on a screen. */
#define _GNU_SOURCE /* forkpty */
#include "tests/lib/terminal.h"

#include <fcntl.h>
#include <poll.h>
#include <pty.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <termios.h>
#include <unistd.h>

#include "tests/lib/world.h"

struct terminal t;

enum { TAIL = 800 }; /* of a message */

static void start(const char *words, unsigned short lines, unsigned short columns)
{
    const struct winsize size = {.ws_row = lines, .ws_col = columns};
    char line[1024];

    memset(&t, 0, sizeof t);
    t.pid = forkpty(&t.fd, NULL, NULL, &size);
    assert_true(t.pid >= 0);
    if (t.pid == 0) {
        (void)setenv("TERM", "xterm", 1);
        (void)setenv("LEDGERLOCK_POSTGRES_URL", world.f.url, 1);
        (void)setenv("LEDGERLOCK_REDIS_URL", world.f.redis_url, 1);
        (void)snprintf(line, sizeof line, "exec '%s' %s", fixture_program(), words);
        (void)execl("/bin/sh", "sh", "-c", line, (char *)NULL);
        _exit(127);
    }
}

void start_on_terminal(const char *words)
{
    start(words, 24, 80);
}

void start_top_in(unsigned short lines, unsigned short columns)
{
    start("top", lines, columns);
}

void start_top(void)
{
    start_top_in(24, 80);
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

void press(const char *keys)
{
    assert_true(write(t.fd, keys, strlen(keys)) > 0);
}

void press_for(const char *keys, const char *text)
{
    size_t from = t.n;

    press(keys);
    wait_for(text, from);
}

/* The program ends so, leaves the other screen, and lines are edited and shown again.
 */
void assert_restored_by(int end)
{
    struct termios after;
    int status;

    wait_for("\033[?1049l", 0);
    assert_int_equal(waitpid(t.pid, &status, 0), t.pid);
    assert_int_equal(WIFSIGNALED(status) ? WTERMSIG(status) : status, end);
    assert_int_equal(tcgetattr(t.fd, &after), 0);
    assert_int_equal(after.c_lflag & (ICANON | ECHO), ICANON | ECHO);
    (void)close(t.fd);
}

void assert_restored(void)
{
    assert_restored_by(0);
}

void quit_top(void)
{
    press("q");
    assert_restored();
}
