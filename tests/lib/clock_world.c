/* clock_world: writes the shift, then asks what time it is. */
#define _DEFAULT_SOURCE /* gettimeofday */
#include "tests/lib/clock_world.h"

#include <fcntl.h>
#include <hiredis/hiredis.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/time.h>
#include <time.h>
#include <unistd.h>

enum { SLACK_MS = 2000 }; /* between two looks, on a busy machine */

static int64_t read_clock(clockid_t id)
{
    struct timespec ts;

    (void)clock_gettime(id, &ts);
    return (int64_t)ts.tv_sec * 1000 + ts.tv_nsec / 1000000;
}

int64_t clock_real_ms(void)
{
    return read_clock(CLOCK_MONOTONIC) - clock_shim_shift()->monotonic_ms;
}

static void assert_moved(const char *what, int64_t before, int64_t after, int64_t ms)
{
    if (after - before < ms || after - before > ms + SLACK_MS)
        fail_msg("%s moved by %lld ms, not by %lld", what, (long long)(after - before),
                 (long long)ms);
}

/* ---- a server's ---- */

static int64_t server_ms(const struct fixture_redis *r)
{
    redisContext *raw = redisConnectUnix(r->url + strlen("unix://"));
    redisReply *reply;
    int64_t ms;

    assert_true(raw != NULL && raw->err == 0);
    reply = redisCommand(raw, "TIME");
    assert_true(reply != NULL && reply->elements == 2);
    ms = strtoll(reply->element[0]->str, NULL, 10) * 1000 +
         strtoll(reply->element[1]->str, NULL, 10) / 1000;
    freeReplyObject(reply);
    redisFree(raw);
    return ms;
}

static struct clock_shift *map_shift(const struct fixture_redis *r)
{
    char path[sizeof r->dir + 8];
    struct clock_shift *shift;
    int fd;

    (void)snprintf(path, sizeof path, "%s/clock", r->dir);
    fd = open(path, O_RDWR | O_CLOEXEC);
    assert_true(fd >= 0);
    shift = mmap(NULL, sizeof *shift, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
    assert_true(shift != MAP_FAILED);
    (void)close(fd);
    return shift;
}

void clock_jump_server(const struct fixture_redis *r, int64_t ms)
{
    struct clock_shift *shift = map_shift(r);
    int64_t before = server_ms(r);

    shift->wall_ms += ms;
    (void)munmap(shift, sizeof *shift);
    assert_moved("the server's clock", before, server_ms(r), ms);
}

void clock_mend_server(const struct fixture_redis *r)
{
    struct clock_shift *shift = map_shift(r);
    int64_t ms = shift->wall_ms;

    (void)munmap(shift, sizeof *shift);
    clock_jump_server(r, -ms);
}

/* ---- our own ---- */

static int64_t day_ms(void)
{
    struct timeval tv;

    (void)gettimeofday(&tv, NULL);
    return (int64_t)tv.tv_sec * 1000 + tv.tv_usec / 1000;
}

void clock_jump_wall(int64_t ms)
{
    int64_t before[] = {read_clock(CLOCK_REALTIME), day_ms(), time(NULL)};
    int64_t boot = read_clock(CLOCK_BOOTTIME);

    clock_shim_shift()->wall_ms += ms;
    assert_moved("CLOCK_REALTIME", before[0], read_clock(CLOCK_REALTIME), ms);
    assert_moved("gettimeofday", before[1], day_ms(), ms);
    assert_moved("time", before[2] * 1000, (int64_t)time(NULL) * 1000, ms);
    assert_moved("CLOCK_BOOTTIME", boot, read_clock(CLOCK_BOOTTIME), 0);
}

void clock_jump_boot(int64_t ms)
{
    int64_t before = read_clock(CLOCK_BOOTTIME);
    int64_t monotonic = read_clock(CLOCK_MONOTONIC);

    clock_shim_shift()->boot_ms += ms;
    assert_moved("CLOCK_BOOTTIME", before, read_clock(CLOCK_BOOTTIME), ms);
    assert_moved("CLOCK_MONOTONIC", monotonic, read_clock(CLOCK_MONOTONIC), 0);
}

void clock_mend_own(void)
{
    struct clock_shift *shift = clock_shim_shift();

    shift->wall_ms = shift->boot_ms = shift->monotonic_ms = 0;
}
