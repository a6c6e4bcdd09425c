/* clock_server: moves the clock of a server that was started with a movable one. */
#define _DEFAULT_SOURCE
#include <fcntl.h>
#include <sys/mman.h>
#include <unistd.h>

#include "tests/lib/clock_world.h"
#include "tests/lib/pool_world.h"

enum { SLACK_MS = 60000 }; /* between two looks, on a busy machine */

void clock_assert_moved(const char *what, int64_t before, int64_t after, int64_t ms)
{
    if (after - before < ms || after - before > ms + SLACK_MS)
        fail_msg("%s moved by %lld ms, not by %lld", what, (long long)(after - before),
                 (long long)ms);
}

static int64_t server_ms(const struct fixture_redis *r)
{
    char ms[32];

    pool_redis(r->url, ms, sizeof ms,
               "EVAL local\nt=redis.call('TIME');return(t[1]*1000+t[2]/1000) 0");
    return strtoll(ms, NULL, 10);
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
    clock_assert_moved("the server's clock", before, server_ms(r), ms);
    (void)munmap(shift, sizeof *shift);
}

void clock_mend_server(const struct fixture_redis *r)
{
    struct clock_shift *shift = map_shift(r);

    clock_jump_server(r, -shift->wall_ms);
    (void)munmap(shift, sizeof *shift);
}
