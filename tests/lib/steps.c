/* steps: words become arguments, and each answer is compared. */
#define _POSIX_C_SOURCE 200809L /* strtok_r */
#include "tests/lib/steps.h"

#include <stdarg.h>

enum { WORDS = 16, LINE = 4096 };

/* Writes the text of a call, with its parameters, into `line`. */
#define COMPOSE(line, format)                                                          \
    do {                                                                               \
        va_list ap_;                                                                   \
        va_start(ap_, format);                                                         \
        assert_in_range(vsnprintf(line, sizeof(line), format, ap_), 0, LINE - 1);      \
        va_end(ap_);                                                                   \
    } while (0)

#define ALL(w)                                                                         \
    w[0], w[1], w[2], w[3], w[4], w[5], w[6], w[7], w[8], w[9], w[10], w[11], w[12],   \
        w[13], w[14], NULL

static void split(char *line, const char *words[WORDS])
{
    char *rest = NULL;
    size_t n = 0;

    memset(words, 0, WORDS * sizeof words[0]);
    for (char *w = strtok_r(line, " ", &rest); w != NULL;
         w = strtok_r(NULL, " ", &rest)) {
        assert_true(n + 1 < WORDS);
        words[n++] = w;
    }
}

static void start(const struct fixture *f, char *line)
{
    const char *w[WORDS];

    split(line, w);
    fixture_spawn(f, &world.pool, ALL(w));
}

void pool_start(const char *words, ...)
{
    char line[LINE];

    COMPOSE(line, words);
    start(&world.f, line);
}

void pool_start_in(const struct fixture *f, const char *words, ...)
{
    char line[LINE];

    COMPOSE(line, words);
    start(f, line);
}

void pool_stop(void)
{
    (void)kill(world.pool.pid, SIGTERM);
    pool_assert_ends(&world.pool, 0);
}

void pool_logged(int64_t times, const char *text)
{
    unsigned n = pool_log_count(&world.pool, text);

    if (n != times)
        fail_msg("%u times and not %" PRId64 " in the log: %s", n, times, text);
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

static void run(int code, char *line)
{
    const char *w[WORDS];
    char copy[LINE];

    (void)snprintf(copy, sizeof copy, "%s", line);
    split(line, w);
    (void)fixture_run(&world.f, &world.o, ALL(w));
    if (world.o.code != code)
        fail_msg("%s: exit code %d and not %d: %s%s", copy, world.o.code, code,
                 world.o.out, world.o.err);
}

void world_runs(int code, const char *words, ...)
{
    char line[LINE];

    COMPOSE(line, words);
    run(code, line);
}

void world_says(int code, const char *part, const char *words, ...)
{
    bool has_result;
    char line[LINE];

    COMPOSE(line, words);
    run(code, line);
    has_result = code == 0 || code == 1 || code == 8;
    fixture_assert_contains(has_result ? world.o.out : world.o.err, part);
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
    pid_t pids[POOL_CHILDREN];
    size_t n = pool_children(world.pool.pid, pids);

    for (size_t i = 0; i < n; i++) {
        char path[64], name[16] = "";
        FILE *file;

        (void)snprintf(path, sizeof path, "/proc/%d/comm", pids[i]);
        file = fopen(path, "r");
        if (file == NULL)
            continue;
        (void)!fscanf(file, "%15s", name);
        (void)fclose(file);
        if (strcmp(name, "http") == 0)
            return pids[i];
    }
    return 0;
}
