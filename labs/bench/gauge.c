/* gauge: what the servers and the kernel have counted so far. */
#include <dirent.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/utsname.h>
#include <unistd.h>

#include "common/base/clock.h"
#include "labs/bench/bare.h"
#include "labs/bench/bench.h"
#include "labs_sql_gen.h"
#include "ops/cli/json.h"
#include "worker/jobs/job.h"

enum { SESSIONS_END_MS = 5000 };

/* ---- CPU of the server's processes ---- */

struct process {
    long pid, parent;
    int64_t own_ticks, waited_ticks; /* of children that are gone */
    char name[32];
};

static bool read_process(long pid, struct process *p)
{
    char path[64], line[1024];
    unsigned long own[2], waited[2];
    const char *name, *rest;
    size_t n;
    FILE *file;

    (void)snprintf(path, sizeof path, "/proc/%ld/stat", pid);
    file = fopen(path, "r");
    if (file == NULL)
        return false;
    n = fread(line, 1, sizeof line - 1, file);
    (void)fclose(file);
    line[n] = '\0';
    name = strchr(line, '(');
    rest = strrchr(line, ')');
    if (name == NULL || rest == NULL ||
        sscanf(rest + 1, " %*c %ld %*d %*d %*d %*d %*u %*u %*u %*u %*u %lu %lu %lu %lu",
               &p->parent, &own[0], &own[1], &waited[0], &waited[1]) != 5)
        return false;
    p->pid = pid;
    p->own_ticks = (int64_t)(own[0] + own[1]);
    p->waited_ticks = (int64_t)(waited[0] + waited[1]);
    (void)snprintf(p->name, sizeof p->name, "%.*s", (int)(rest - name - 1), name + 1);
    return true;
}

/* The postmaster with those it has waited for, and its living children. */
static int64_t tree_ticks(const struct process *root)
{
    int64_t ticks = root->own_ticks + root->waited_ticks;
    DIR *dir = opendir("/proc");
    struct dirent *entry;

    while (dir != NULL && (entry = readdir(dir)) != NULL) {
        struct process p;
        long pid = strtol(entry->d_name, NULL, 10);

        if (pid > 0 && read_process(pid, &p) && p.parent == root->pid)
            ticks += p.own_ticks + p.waited_ticks;
    }
    if (dir != NULL)
        (void)closedir(dir);
    return ticks;
}

static int postgres_cpu(struct pg *pg, int64_t *us, struct err *e)
{
    struct process backend, postmaster;
    struct pg_result *res;
    bool is_local;

    *us = -1;
    if (pg_exec(pg, SQL_BENCH_IS_LOCAL, NULL, 0, &res, e) != 0)
        return (int)e->code;
    is_local = pg_get_int8(res, 0, 0) != 0;
    pg_result_free(res);
    if (is_local && read_process(pg_backend_pid(pg), &backend) &&
        read_process(backend.parent, &postmaster) &&
        strncmp(postmaster.name, "postgres", 8) == 0)
        *us = tree_ticks(&postmaster) * (1000000 / sysconf(_SC_CLK_TCK));
    return 0;
}

/* ---- readings ---- */

static int64_t redis_cpu(const struct config *c)
{
    struct bare *b;
    int64_t us;

    if (strcmp(c->lock_mode, "database-only") == 0)
        return -1;
    b = bare_open(c->redis_url);
    us = b == NULL ? -1 : bare_cpu_us(b);
    bare_close(b);
    return us;
}

/* Workers' sessions end a moment after the workers, and only then are counted. */
static int wait_for_sessions(struct pg *pg, struct err *e)
{
    int64_t until_ms = clk_ms() + SESSIONS_END_MS;
    int64_t left;

    do {
        struct pg_result *res;

        if (pg_exec(pg, SQL_BENCH_COUNT_SESSIONS, NULL, 0, &res, e) != 0)
            return (int)e->code;
        left = pg_get_int8(res, 0, 0);
        pg_result_free(res);
        if (left > 0)
            clk_pause_ms(20);
    } while (left > 0 && clk_ms() < until_ms);
    return left == 0 ? 0
                     : err_set(e, ERR_REFUSED,
                               "other workers run on this database: stop them first");
}

static int read_row(
    struct pg *pg, const struct sql_text *sql, int64_t *values, size_t n, struct err *e)
{
    struct pg_result *res;

    if (pg_exec(pg, sql, NULL, 0, &res, e) != 0)
        return (int)e->code;
    for (size_t i = 0; i < n; i++)
        values[i] = pg_get_int8(res, 0, i);
    pg_result_free(res);
    return 0;
}

int bench_read(struct pg *pg,
               const struct config *c,
               struct bench_gauge *g,
               struct err *e)
{
    int64_t done[6] = {0}, wal[3] = {0};

    if (wait_for_sessions(pg, e) != 0 || postgres_cpu(pg, &g->postgres_us, e) != 0 ||
        read_row(pg, SQL_BENCH_READ_WAL, wal, 3, e) != 0 ||
        read_row(pg, SQL_BENCH_COUNT_DONE, done, 6, e) != 0)
        return (int)e->code;
    g->wal_bytes = wal[0];
    g->wal_images = wal[1];
    g->wal_flushes = wal[2];
    g->captured = done[0];
    g->fulfilled = done[1];
    g->rejected = done[2];
    g->due = done[3];
    g->pending = done[4];
    g->now_us = done[5];
    g->redis_us = redis_cpu(c);
    return 0;
}

/* ---- what it was measured on ---- */

static int add_machine(json_t *doc, struct err *e)
{
    struct utsname u;
    long cores = sysconf(_SC_NPROCESSORS_ONLN);

    if (uname(&u) != 0)
        return err_set(e, ERR_BUG, "uname failed");
    return doc_put(doc, "machine",
                   json_pack("{s:s,s:s,s:s,s:I,s:I}", "system", u.sysname, "release",
                             u.release, "arch", u.machine, "cores", (json_int_t)cores,
                             "memory_mib",
                             (json_int_t)sysconf(_SC_PHYS_PAGES) *
                                 (sysconf(_SC_PAGESIZE) / 1024) / 1024),
                   e);
}

static int add_versions(const struct config *c, json_t *doc, struct err *e)
{
    struct bare *b = bare_open(c->redis_url);
    char redis[32] = "unknown";

    if (b != NULL)
        bare_version(b, redis, sizeof redis);
    bare_close(b);
    return doc_put(doc, "versions",
                   json_pack("{s:s,s:s,s:s,s:s}", "ledgerlock", LEDGERLOCK_VERSION,
                             "Redis", redis, "hiredis", bare_library(), "compiler",
                             __VERSION__),
                   e);
}

static int
add_settings(struct pg *pg, const struct config *c, json_t *doc, struct err *e)
{
    json_t *settings = json_pack("{s:I,s:s}", "lease_ms", (json_int_t)c->lease_ms,
                                 "locks", c->lock_mode);
    struct pg_result *res;
    char name_of_batch[64];
    int code;

    for (int i = 0; i < JOB_TYPE_CT; i++) {
        (void)snprintf(name_of_batch, sizeof name_of_batch, "%s_batch",
                       job_types[i]->name);
        bench_put(settings, name_of_batch,
                  json_integer(job_batch_rows(job_types[i], c)));
    }
    if (doc_put(doc, "settings", settings, e) != 0 ||
        pg_exec(pg, SQL_BENCH_READ_SETTINGS, NULL, 0, &res, e) != 0)
        return (int)e->code;
    code = 0;
    for (size_t i = 0; code == 0 && i < pg_rows(res); i++) {
        const char *name = pg_get_text(res, i, 0);
        json_t *value = json_string(pg_get_text(res, i, 1));

        code = strcmp(name, "server_version") == 0
                   ? doc_put(json_object_get(doc, "versions"), "PostgreSQL", value, e)
                   : doc_put(settings, name, value, e);
    }
    pg_result_free(res);
    return code;
}

int bench_describe(struct pg *pg, const struct config *c, json_t *doc, struct err *e)
{
    if (add_machine(doc, e) != 0 || add_versions(c, doc, e) != 0)
        return (int)e->code;
    return pg == NULL ? 0 : add_settings(pg, c, doc, e);
}
