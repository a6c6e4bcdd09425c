/* fixture: a Redis server that belongs to one test, on a Unix socket in its own folder.
 */
#define _XOPEN_SOURCE 700 /* nftw */
#include <fcntl.h>
#include <ftw.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/time.h>
#include <sys/un.h>
#include <unistd.h>

#include "tests/lib/clock_shim.h"
#include "tests/lib/fixture.h"
#include "tests/lib/secrets.h"

bool fixture_movable_clocks;

enum { MAX_WORDS = 32, REDIS_SECONDS = 10 };

static bool redis_answers(const char *path)
{
    struct sockaddr_un address = {.sun_family = AF_UNIX};
    struct timeval limit = {1, 0};
    char reply[16] = "";
    int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);

    (void)snprintf(address.sun_path, sizeof address.sun_path, "%s", path);
    (void)setsockopt(fd, SOL_SOCKET, SO_RCVTIMEO, &limit, sizeof limit);
    if (connect(fd, (struct sockaddr *)&address, sizeof address) != 0 ||
        write(fd, "PING\r\n", 6) != 6 || read(fd, reply, sizeof reply - 1) < 5)
        reply[0] = '\0';
    (void)close(fd);
    return strncmp(reply, "+PONG", 5) == 0 || strncmp(reply, "-NOAUTH", 7) == 0;
}

/* The file of the shift stays over a restart, as a machine's clock does. */
static void take_own_clock(const struct fixture_redis *r)
{
    char path[sizeof r->dir + 8];
    int fd;

    (void)snprintf(path, sizeof path, "%s/clock", r->dir);
    fd = open(path, O_RDWR | O_CREAT | O_CLOEXEC, 0600);
    if (fd < 0 || ftruncate(fd, sizeof(struct clock_shift)) != 0)
        _exit(127);
    (void)close(fd);
    (void)setenv(CLOCK_SHIM_FILE, path, 1);
    (void)setenv("LD_PRELOAD", CLOCK_SHIM, 1);
}

void fixture_move_clock(int64_t ms)
{
    char text[24];

    (void)snprintf(text, sizeof text, "%lld", (long long)ms);
    fixture_env(CLOCK_SHIM_WALL_MS, text);
    fixture_env("LD_PRELOAD", CLOCK_SHIM);
}

void fixture_preload_calls(void)
{
    fixture_env("LD_PRELOAD", CALL_SHIM);
}

static void exec_redis(const struct fixture_redis *r, va_list ap)
{
    const char *given = getenv("LEDGERLOCK_TEST_REDIS_SERVER");
    const char *bin = given != NULL && given[0] != '\0' ? given : "redis-server";
    const char *words[MAX_WORDS] = {bin,
                                    "--port",
                                    "0",
                                    "--unixsocket",
                                    r->url + strlen("unix://"),
                                    "--save",
                                    "",
                                    "--appendonly",
                                    "no",
                                    "--dir",
                                    r->dir,
                                    "--logfile",
                                    "redis.log"};
    size_t n = 13;

    while (n + 1 < MAX_WORDS && (words[n] = va_arg(ap, const char *)) != NULL)
        n++;
    if (fixture_movable_clocks)
        take_own_clock(r);
    (void)prctl(PR_SET_PDEATHSIG, SIGKILL);
    (void)execvp(bin, (char *const *)(uintptr_t)words);
    _exit(127);
}

void fixture_redis_start(struct fixture_redis *r, ...)
{
    int left_ms = REDIS_SECONDS * 1000;
    va_list ap;

    if (r->dir[0] == '\0') {
        fixture_temporary(r->dir, sizeof r->dir, "redis"); /* short: socket inside */
        assert_non_null(mkdtemp(r->dir));
        (void)snprintf(r->url, sizeof r->url, "unix://%s/redis.sock", r->dir);
    }
    (void)fflush(NULL);
    va_start(ap, r);
    r->pid = fork();
    assert_true(r->pid >= 0);
    if (r->pid == 0)
        exec_redis(r, ap);
    va_end(ap);
    while (!redis_answers(r->url + strlen("unix://"))) {
        if ((left_ms -= 10) < 0)
            fail_msg("redis-server in %s did not start", r->dir);
        fixture_pause_ms(10);
    }
}

static void end_redis(struct fixture_redis *r, int signal)
{
    if (r->pid <= 0)
        return;
    (void)kill(r->pid, signal);
    (void)fixture_reap(r->pid, REDIS_SECONDS);
    r->pid = 0;
}

void fixture_redis_stop(struct fixture_redis *r)
{
    end_redis(r, SIGTERM);
}

void fixture_redis_kill(struct fixture_redis *r)
{
    end_redis(r, SIGKILL);
}

static int
remove_one(const char *path, const struct stat *st, int type, struct FTW *ftw)
{
    (void)st;
    (void)type;
    (void)ftw;
    return remove(path);
}

void fixture_redis_close(struct fixture_redis *r)
{
    char log[sizeof r->dir + 16];
    bool found = false;

    end_redis(r, SIGTERM);
    if (r->dir[0] != '\0') {
        (void)snprintf(log, sizeof log, "%s/redis.log", r->dir);
        found = secrets_are_in(log);
        (void)nftw(r->dir, remove_one, 8, FTW_DEPTH | FTW_PHYS);
    }
    r->dir[0] = '\0';
    if (found)
        fail_msg("Redis has written a password");
}
