/* top, in a terminal of 80 x 24: what it shows, what its keys do, and that it leaves
 * the terminal as it was. */
#define _GNU_SOURCE /* forkpty */
#include <fcntl.h>
#include <poll.h>
#include <pty.h>
#include <sys/wait.h>
#include <termios.h>
#include <unistd.h>

#include "tests/lib/steps.h"

static const struct pool_work small = {
    .users = 20, .periods = 3, .orders = 30, .units = 10};

WORLD(.work = &small);

static struct {
    int fd;
    pid_t pid;
    char said[1 << 18]; /* all that it has written */
    size_t n;
} t;

static void start_top(void)
{
    const struct winsize size = {.ws_row = 24, .ws_col = 80};

    memset(&t, 0, sizeof t);
    t.pid = forkpty(&t.fd, NULL, NULL, &size);
    assert_true(t.pid >= 0);
    if (t.pid == 0) {
        (void)setenv("TERM", "xterm", 1);
        (void)setenv("LEDGERLOCK_POSTGRES_URL", world.f.url, 1);
        (void)setenv("LEDGERLOCK_REDIS_URL", world.f.redis_url, 1);
        (void)execl(fixture_program(), "ledgerlock", "top", (char *)NULL);
        _exit(127);
    }
}

/* Reads until the text was written, counted from `from`. */
static void wait_for(const char *text, size_t from)
{
    struct pollfd p = {.fd = t.fd, .events = POLLIN};

    while (strstr(t.said + from, text) == NULL) {
        size_t room = t.n < sizeof t.said - 1 ? sizeof t.said - 1 - t.n : 0;
        ssize_t got = 0;

        if (poll(&p, 1, 120000) > 0)
            got = read(t.fd, t.said + t.n, room);
        if (got <= 0)
            fail_msg("never \"%s\" in: %s", text, t.said + from);
        t.n += (size_t)got;
        t.said[t.n] = '\0';
    }
}

static void press(const char *keys)
{
    assert_true(write(t.fd, keys, strlen(keys)) > 0);
}

/* It ends with 0, the other screen is left, and lines are edited and shown again. */
static void assert_restored(void)
{
    struct termios after;
    int status;

    wait_for("\033[?1049l", 0);
    assert_int_equal(waitpid(t.pid, &status, 0), t.pid);
    assert_int_equal(status, 0);
    assert_int_equal(tcgetattr(t.fd, &after), 0);
    assert_int_equal(after.c_lflag & (ICANON | ECHO), ICANON | ECHO);
    (void)close(t.fd);
}

/* Guarantee: `top` shows verdict, backlog, workers and SKUs, and q leaves the terminal
 * as it was. */
CASE(top_shows_the_pools_and_q_restores_the_terminal)
{
    size_t from;

    world_run(pool_work_now(&small));
    start_top();
    wait_for("0 charged twice, 0 oversold", 0);
    wait_for("billing", 0);
    wait_for("MOST WANTED SKU", 0);
    from = t.n;
    press("?");
    wait_for("show the workers whose pool", from);
    from = t.n;
    press("x");
    wait_for("0 charged twice", from);
    from = t.n;
    press("p");
    wait_for("PAUSED", from);
    press("p");
    from = t.n;
    press("/nobody\n");
    wait_for("no worker was seen", 0);
    press("q");
    assert_restored();
}

/* Guarantee: A signal ends `top`, and the terminal is as it was. */
CASE(signal_restores_the_terminal)
{
    static const int sigs[] = {SIGTERM, SIGINT, SIGHUP};

    for (size_t i = 0; i < sizeof sigs / sizeof sigs[0]; i++) {
        start_top();
        wait_for("0 charged twice", 0);
        assert_int_equal(kill(t.pid, sigs[i]), 0);
        assert_restored();
    }
}

/* Guarantee: Without a terminal `top` says so. */
CASE(without_a_terminal_it_says_so)
{
    world_says(2, "top needs a terminal", "top");
}
