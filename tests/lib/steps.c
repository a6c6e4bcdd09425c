/* steps: each answer is compared. */
#include "tests/lib/steps.h"

#include "tests/lib/session.h"

enum { LINE = 4096 };

/* Writes the text of a call, with its parameters, into `line`. */
#define COMPOSE(line, format)                                                          \
    do {                                                                               \
        va_list ap_;                                                                   \
        va_start(ap_, format);                                                         \
        assert_in_range(vsnprintf(line, sizeof(line), format, ap_), 0, LINE - 1);      \
        va_end(ap_);                                                                   \
    } while (0)

void pool_stop(void)
{
    pool_end(&world.pool);
}

void pool_logged(int64_t times, const char *text)
{
    unsigned n = pool_log_count(&world.pool, text);

    if (n != times)
        fail_msg("%u times and not %" PRId64 " in the log: %s %s", n, times, text,
                 world_show_log(&world.pool));
}

pid_t pool_workers(size_t n)
{
    pid_t pids[POOL_CHILDREN];

    assert_int_equal(pool_children(world.pool.pid, pids), n);
    return pids[0];
}

bool pool_has(const pid_t *pids, size_t n, pid_t pid)
{
    for (size_t i = 0; i < n; i++)
        if (pids[i] == pid)
            return true;
    return false;
}

void world_is(int64_t n, const char *sql, ...)
{
    char line[LINE];
    int64_t found;

    COMPOSE(line, sql);
    found = world_ask("%s", line);
    if (found != n)
        promise_broken("%" PRId64 " and not %" PRId64 ": %s", found, n, line);
}

static const char *superuser(void)
{
    static char url[FIXTURE_URL];

    fixture_url_as(&world.f, "postgres", url, sizeof url);
    return url;
}

void super_do(const char *sql, ...)
{
    char line[LINE];

    COMPOSE(line, sql);
    fixture_exec(superuser(), line);
}

int64_t super_ask(const char *sql, ...)
{
    char line[LINE];

    COMPOSE(line, sql);
    return fixture_query_int8(superuser(), line);
}

PGconn *super_open(void)
{
    return session_open(superuser());
}

int64_t world_parked(void)
{
    return world_ask("SELECT (SELECT count(*) FROM subscriptions WHERE state ="
                     " 'parked') + (SELECT count(*) FROM orders WHERE state ="
                     " 'parked') + (SELECT count(*) FROM lock_incidents WHERE kind ="
                     " 'parked')");
}

const char *redis_do(const char *command, ...)
{
    static char reply[128];
    char line[LINE];

    COMPOSE(line, command);
    pool_redis(world.f.redis_url, reply, sizeof reply, line);
    return reply;
}

pid_t pool_page(void)
{
    return pool_child(world.pool.pid, "http");
}
