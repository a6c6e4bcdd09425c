/* fixture: a Redis server that belongs to one test, on a Unix socket in its own folder.
 */
#define _XOPEN_SOURCE 700
#include <arpa/inet.h>
#include <fcntl.h>
#include <sys/socket.h>
#include <sys/time.h>
#include <sys/un.h>

#include "tests/lib/fixture.h"
#include "tests/testkit/clock_shim.h"

bool fixture_movable_clocks;

enum { MAX_WORDS = 32, REDIS_SECONDS = 60 };

int fixture_free_port(void)
{
    struct sockaddr_in at = {.sin_family = AF_INET,
                             .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    socklen_t size = sizeof at;
    int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);

    assert_int_equal(bind(fd, (struct sockaddr *)&at, size), 0);
    assert_int_equal(getsockname(fd, (struct sockaddr *)&at, &size), 0);
    (void)close(fd);
    return ntohs(at.sin_port);
}

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

const char *fixture_redis_program(void)
{
    const char *given = getenv("LL_TEST_REDIS_SERVER");

    return given != NULL && given[0] != '\0' ? given : "redis-server";
}

static void exec_redis(const struct fixture_redis *r, va_list ap)
{
    /* clang-format off */
    const char *words[MAX_WORDS] = {
        fixture_redis_program(), "--port", "0", "--unixsocket", r->url + strlen("unix://"),
        "--save", "", "--appendonly", "no", "--dir", r->dir, "--logfile", "redis.log"};
    /* clang-format on */
    size_t n = 13;

    while (n + 1 < MAX_WORDS && (words[n] = va_arg(ap, const char *)) != NULL)
        n++;
    if (fixture_movable_clocks)
        take_own_clock(r);
    (void)execvp(words[0], (char *const *)(uintptr_t)words);
    _exit(127);
}

static void need_program(void)
{
    static bool is_there;
    char command[512];

    (void)snprintf(command, sizeof command, "command -v '%s' >/dev/null",
                   fixture_redis_program());
    if (!is_there && system(command) != 0) {
        (void)printf("skipped: no %s\n", fixture_redis_program());
        exit(77);
    }
    is_there = true;
}

void fixture_redis_start(struct fixture_redis *r, ...)
{
    va_list ap;

    need_program();
    if (r->dir[0] == '\0') {
        fixture_folder(r->dir, sizeof r->dir, "redis"); /* short: socket inside */
        (void)snprintf(r->url, sizeof r->url, "unix://%s/redis.sock", r->dir);
    }
    va_start(ap, r);
    r->pid = fixture_fork();
    if (r->pid == 0)
        exec_redis(r, ap);
    va_end(ap);
    FIXTURE_AWAIT(redis_answers(r->url + strlen("unix://")),
                  "redis-server did not start; its log ends: %s",
                  fixture_log_end(r->dir, "redis.log"));
}

static void end_redis(struct fixture_redis *r, int signal)
{
    if (r->pid <= 0)
        return;
    (void)kill(r->pid, signal);
    (void)fixture_reap(r->pid, REDIS_SECONDS);
    r->pid = 0;
}

void fixture_redis_kill(struct fixture_redis *r)
{
    end_redis(r, SIGKILL);
}

void fixture_redis_close(struct fixture_redis *r)
{
    end_redis(r, SIGTERM);
    fixture_remove(r->dir, "redis.log");
}
