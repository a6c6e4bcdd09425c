/* redis: a redis-server as a process, and questions to it. */
#define _DEFAULT_SOURCE
#include "labs/lab/redis.h"

#include <arpa/inet.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "tests/testkit/clock_shim.h"
#include "tests/testkit/kit.h"

struct bare_answer lab_redis_ask(const char *url, const char *const *words, size_t n)
{
    struct bare *b = bare_open(url);
    struct bare_answer a;

    bare_ask(b, words, n, &a);
    bare_close(b);
    return a;
}

int64_t lab_redis_ask_number(const char *url, const char *script)
{
    struct bare_answer a = LAB_REDIS_ASK(url, "EVAL", script, "0");

    return a.kind == BARE_NUMBER ? a.number : -1;
}

static void become_server(const struct lab_redis *r, const char *copies_port)
{
    const char *program = r->program;
    char port[16];
    int null = open("/dev/null", O_RDWR);

    (void)snprintf(port, sizeof port, "%d", r->port);
    (void)dup2(null, STDIN_FILENO);
    (void)dup2(null, STDOUT_FILENO);
    (void)dup2(null, STDERR_FILENO);
    if (r->clock[0] != '\0') {
        (void)setenv("LD_PRELOAD", r->shim, 1);
        (void)setenv(CLOCK_SHIM_FILE, r->clock, 1);
    }
    (void)execlp(program, program, "--port", port, "--bind", "127.0.0.1",
                 "--unixsocket", r->sock, "--dir", r->dir, "--save", "", "--appendonly",
                 "no", "--maxmemory-policy", "noeviction", "--repl-diskless-sync",
                 "yes", "--repl-diskless-sync-delay", "0",
                 copies_port != NULL ? "--replicaof" : NULL, "127.0.0.1", copies_port,
                 NULL);
    _exit(127);
}

void lab_redis_start(struct lab_redis *r, const char *copies)
{
    int64_t until = clk_ms() + LAB_ANSWER_MS;

    (void)unlink(r->sock);
    r->pid = kit_fork("lab-redis");
    if (r->pid == 0)
        become_server(r, copies);
    while (strcmp(LAB_REDIS_ASK(r->url, "PING").text, "PONG") != 0) {
        if (waitpid(r->pid, NULL, WNOHANG) == r->pid || clk_ms() > until) {
            r->pid = 0;
            lab_fail("%s does not start", r->program);
        }
        clk_pause_ms(2);
    }
}

void lab_redis_move_clock(const struct lab_redis *r, int64_t ahead_ms)
{
    const struct clock_shift shift = {.wall_ms = ahead_ms};
    int fd = open(r->clock, O_RDWR | O_CREAT | O_CLOEXEC, 0600);
    bool ok = fd >= 0 && write(fd, &shift, sizeof shift) == (ssize_t)sizeof shift;

    (void)close(fd);
    if (!(ok))
        lab_fail("cannot move the clock of %s", r->clock);
}

void lab_redis_name(struct lab_redis *r,
                    const char *program,
                    const char *shim,
                    const char *dir,
                    const char *name)
{
    r->program = program;
    r->shim = shim;
    r->dir = dir;
    (void)snprintf(r->sock, sizeof r->sock, "%.80s/%s", dir, name);
    (void)snprintf(r->url, sizeof r->url, "unix://%s", r->sock);
    if (shim == NULL)
        return;
    (void)snprintf(r->clock, sizeof r->clock, "%.80s/%s.clock", dir, name);
    lab_redis_move_clock(r, 0);
}

int lab_redis_free_port(void)
{
    struct sockaddr_in inet;
    socklen_t size = sizeof inet;
    int fd = kit_listen("127.0.0.1:0");

    if (getsockname(fd, (struct sockaddr *)&inet, &size) != 0)
        inet.sin_port = 0;
    (void)close(fd);
    return ntohs(inet.sin_port);
}

void lab_redis_stop(struct lab_redis *r)
{
    kit_kill(&r->pid);
    if (r->sock[0] != '\0')
        (void)unlink(r->sock);
    if (r->clock[0] != '\0')
        (void)unlink(r->clock);
}
