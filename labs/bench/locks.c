/* locks: the lock library and plain hiredis do the same work, one after the other, in
 * one run, so that the ratios hold on a noisy machine. */
#include "labs/bench/locks.h"

#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>
#include <unistd.h>

#include "common/base/clock.h"
#include "common/lock/lock.h"
#include "common/lock/lock_loop.h"
#include "ops/cli/json.h"

enum {
    SINGLE_ROUNDS = 1700, /* for each of --seconds */
    BATCH_KEYS = 20000,   /* of one timed batch loop, likewise */
    RENEWED = 1000,
    RESTS_US = 100000, /* between two renewals it rests longer */
    ROUNDS_MAX = 100
};

static size_t single_rounds(const struct lock_bench *b)
{
    return SINGLE_ROUNDS * (size_t)b->flags->seconds;
}

static int fault(const struct lock_bench *b, int code, struct err *e)
{
    return err_set(e, ERR_REDIS, "%s (%s)", rlock_strerror(code),
                   rlock_error(b->client));
}

static int by_value(const void *a, const void *b)
{
    double x = *(const double *)a, y = *(const double *)b;

    return x < y ? -1 : x > y;
}

double bench_median(double *values, size_t n)
{
    qsort(values, n, sizeof *values, by_value);
    return n % 2 == 1 ? values[n / 2] : (values[n / 2 - 1] + values[n / 2]) / 2;
}

void bench_figure(struct lock_bench *b, const char *figure, double value)
{
    bench_put(b->out, figure, json_real(value));
}

/* ---- one client ---- */

/* Rounds of acquire and release over the first n keys; microseconds, -1 on a fault. */
static int64_t library_rounds(struct lock_bench *b, size_t n, size_t rounds, int *code)
{
    int64_t start = clk_us();

    for (size_t i = 0; i < rounds; i++) {
        *code = rlock_acquire(b->lock, b->keys, n, RLOCK_ALL, LEASE_MS);
        if (*code == RLOCK_OK)
            *code = rlock_release(b->lock);
        if (*code != RLOCK_OK)
            return -1;
    }
    return clk_us() - start;
}

static double rate(size_t keys, int64_t us)
{
    return us > 0 ? (double)keys * 1e6 / (double)us : 0;
}

/* The library and hiredis in alternation; keys locked and unlocked a second, and their
 * ratio.
 */
static int compare(struct lock_bench *b, size_t n, size_t rounds, struct err *e)
{
    double ours[REPETITIONS_MAX], bare[REPETITIONS_MAX], ratio[REPETITIONS_MAX];
    size_t reps = (size_t)b->flags->repetitions;
    char name[64];
    int code = RLOCK_OK;

    for (size_t i = 0; i < reps; i++) {
        int64_t us = library_rounds(b, n, rounds, &code);
        int64_t bare_us = us < 0   ? -1
                          : n == 1 ? bare_scripts(b->bare, b->prefix, rounds)
                                   : bare_pipeline(b->bare, b->prefix, n, rounds);

        if (us < 0)
            return fault(b, code, e);
        if (bare_us < 0)
            return err_set(e, ERR_REDIS, "plain hiredis failed");
        ours[i] = rate(n * rounds, us);
        bare[i] = rate(n * rounds, bare_us);
        ratio[i] = ours[i] / bare[i];
    }
    for (size_t k = 0; k < 3; k++) {
        static const char *const what[] = {"lock+unlock/s", "plain hiredis/s", "ratio"};
        double *const values[] = {ours, bare, ratio};

        (void)snprintf(name, sizeof name, "%zu key%s: %s", n, n == 1 ? "" : "s",
                       what[k]);
        bench_figure(b, name, bench_median(values[k], reps));
    }
    return (int)e->code;
}

/* ---- CPU ---- */

/* Of this process. */
static int64_t own_cpu_us(void)
{
    struct timespec ts;

    (void)clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &ts);
    return (int64_t)ts.tv_sec * 1000000 + ts.tv_nsec / 1000;
}

/* The cost of an acquire and a release of one key, in client and server, beside the
 * bare loop that sends the same scripts. */
static int cpu(struct lock_bench *b, struct err *e)
{
    static const char *const names[] = {"1 key: client CPU us", "1 key: server CPU us",
                                        "1 key: client CPU us, plain hiredis",
                                        "1 key: server CPU us, plain hiredis"};
    size_t rounds = single_rounds(b);

    for (size_t i = 0; i < 2; i++) {
        int64_t own_us = own_cpu_us(), server_us = bare_cpu_us(b->bare);
        int code = RLOCK_OK;
        int64_t us = i == 0 ? library_rounds(b, 1, rounds, &code)
                            : bare_scripts(b->bare, b->prefix, rounds);

        own_us = own_cpu_us() - own_us;
        server_us = bare_cpu_us(b->bare) - server_us;
        if (us < 0)
            return code != RLOCK_OK ? fault(b, code, e)
                                    : err_set(e, ERR_REDIS, "plain hiredis failed");
        bench_figure(b, names[2 * i], (double)own_us / (double)rounds);
        bench_figure(b, names[2 * i + 1], (double)server_us / (double)rounds);
    }
    return (int)e->code;
}

/* ---- renewal ---- */

/* Takes and renews them all; what was made so far is in held. */
static int hold_many(struct lock_bench *b, struct rlock_renewer *r, struct rlock **held)
{
    int code = RLOCK_OK;

    for (size_t i = 0; code == RLOCK_OK && i < RENEWED; i++) {
        char name[24];

        (void)snprintf(name, sizeof name, "renewed:%zu", i);
        held[i] = rlock_new(b->client);
        code = held[i] == NULL ? RLOCK_E_NOMEM : rlock_try(held[i], name, LEASE_MS);
        if (code == RLOCK_OK)
            code = rlock_renew(r, held[i], 0, 0);
    }
    return code;
}

/* The shortest time that a lock has left: it grows when all have been renewed. */
static int64_t least_left(struct rlock *const *held)
{
    int64_t ms = INT64_MAX;

    for (size_t i = 0; i < RENEWED; i++)
        ms = rlock_left_ms(held[i]) < ms ? rlock_left_ms(held[i]) : ms;
    return ms;
}

/* Rounds that renewed all of them: script calls, each of which is a round trip, and
 * milliseconds of each. */
static int renew_many(const struct lock_bench *b,
                      struct rlock *const *held,
                      double *trips,
                      double *ms,
                      size_t *n)
{
    int64_t until_ms = clk_ms() + b->flags->seconds * 1000;
    struct pollfd p = {.fd = rlock_loop_fd(b->client), .events = POLLIN};
    int64_t left_ms = INT64_MAX, before = bare_commands(b->bare), began_us = 0;
    int code = rlock_loop_step(b->client); /* what is due at once */

    while (code == RLOCK_OK && *n < ROUNDS_MAX && (*n < 3 || clk_ms() < until_ms)) {
        int64_t waits_us = clk_us(), last_ms = left_ms;

        (void)poll(&p, 1, 1000);
        if (clk_us() - waits_us > RESTS_US) /* now they are due */
            began_us = clk_us();
        code = rlock_loop_step(b->client);
        left_ms = least_left(held);
        if (left_ms <= last_ms || began_us == 0)
            continue;
        ms[*n] = (double)(clk_us() - began_us) / 1000;
        trips[(*n)++] = (double)(bare_commands(b->bare) - before);
        before = bare_commands(b->bare);
    }
    return code;
}

static int renewal(struct lock_bench *b, struct err *e)
{
    struct rlock_renew_options o = {
        .size = sizeof o, .interval_ms = 300, .no_thread = true};
    struct rlock_renewer *r = NULL;
    struct rlock *held[RENEWED] = {NULL};
    double trips[ROUNDS_MAX], ms[ROUNDS_MAX];
    size_t n = 0;
    int code = rlock_renewer_open(&r, b->client, &o);

    if (code == RLOCK_OK)
        code = hold_many(b, r, held);
    if (code == RLOCK_OK)
        code = renew_many(b, held, trips, ms, &n);
    for (size_t i = 0; i < RENEWED && held[i] != NULL; i++) {
        (void)!rlock_release(held[i]);
        rlock_free(held[i]);
    }
    rlock_renewer_close(r);
    if (code != RLOCK_OK)
        return fault(b, code, e);
    bench_figure(b, "renewal of 1000 locks: round trips", bench_median(trips, n));
    bench_figure(b, "renewal of 1000 locks: ms", bench_median(ms, n));
    bench_figure(b, "renewal of 1000 locks: ms (slowest round)", ms[n - 1]);
    return 0;
}

/* ---- targets ---- */

/* The value that is wanted of a figure. */
struct target {
    const char *figure;
    bool is_least;
    double wanted;
};

static const struct target targets[] = {
    {"1 key: ratio", true, 0.95},
    {"100 keys: ratio", true, 1.2},
    {"1000 keys: ratio", true, 1.2},
    {"connect: round trips", false, 2},
    {"renewal of 1000 locks: round trips", false, 1},
    {"32 idle waiters: writes/s of one", false, 1},
    {"quorum of 3 against one node", false, 1.15},
    {"quorum of 3, one slow: share of it", true, 0.8},
    {"quorum of 3, one stopped: share of it", true, 0.8},
};

/* Wanted and found of what was measured. */
static void put_targets(const struct lock_bench *b, json_t *doc)
{
    json_t *section = json_object();

    bench_put(doc, "targets", section);
    for (size_t i = 0; i < sizeof targets / sizeof targets[0]; i++) {
        const struct target *t = &targets[i];
        const json_t *value = json_object_get(b->out, t->figure);
        double found = json_number_value(value);
        char text[80];

        if (value == NULL)
            continue;
        (void)snprintf(
            text, sizeof text, "wanted %s %.2f, found %.2f: %s",
            t->is_least ? ">=" : "<=", t->wanted, found,
            (t->is_least ? found >= t->wanted : found <= t->wanted) ? "met" : "MISSED");
        bench_put(section, t->figure, json_string(text));
    }
}

/* ---- all ---- */

static int open_bench(struct lock_bench *b, struct err *e)
{
    struct rlock_options o = {
        .size = sizeof o, .url = b->config->redis_url, .prefix = b->prefix};
    char why[160] = "";
    int code;

    (void)snprintf(b->prefix, sizeof b->prefix, "bench:%ld:", (long)getpid());
    code = rlock_open(&b->client, &o, why, sizeof why);
    if (code != RLOCK_OK)
        return err_set(e, ERR_CONFIG, "redis.url: %s", why);
    code = rlock_connect(b->client);
    if (code != RLOCK_OK)
        return fault(b, code, e);
    b->lock = rlock_new(b->client);
    b->bare = bare_open(b->config->redis_url);
    for (size_t i = 0; i < RLOCK_KEYS_MAX; i++) {
        b->keys[i].name = b->names[i];
        b->keys[i].len =
            (size_t)snprintf(b->names[i], sizeof b->names[i], "user:%zu", i);
    }
    if (b->lock == NULL || b->bare == NULL)
        return err_set(e, ERR_REDIS, "plain hiredis cannot use %s", "redis.url");
    return 0;
}

static int measure(struct lock_bench *b, struct err *e)
{
    static const size_t sizes[] = {1, 100, 1000};
    char version[32];

    bare_version(b->bare, version, sizeof version);
    bench_put(b->out, "Redis", json_string(version));
    for (size_t i = 0; i < sizeof sizes / sizeof sizes[0]; i++) {
        cli_progress("batches of %zu", sizes[i]);
        if (compare(b, sizes[i],
                    sizes[i] == 1 ? single_rounds(b)
                                  : BATCH_KEYS * (size_t)b->flags->seconds / sizes[i],
                    e) != 0)
            return (int)e->code;
    }
    cli_progress("waiters, renewal, network");
    if (cpu(b, e) != 0 || bench_waiters(b, e) != 0 || renewal(b, e) != 0)
        return (int)e->code;
    return bench_network(b, e);
}

int bench_locks(const struct config *c,
                const struct bench_flags *f,
                json_t *doc,
                struct err *e)
{
    struct lock_bench *b = calloc(1, sizeof *b);
    json_t *out = json_object();

    if (b == NULL)
        return err_set(e, ERR_NOMEM, "out of memory");
    bench_put(doc, "locks", out);
    b->config = c;
    b->flags = f;
    b->out = out;
    if (open_bench(b, e) == 0 && measure(b, e) == 0)
        put_targets(b, doc);
    cli_progress_end();
    if (b->bare != NULL)
        bare_forget(b->bare, b->prefix);
    bare_close(b->bare);
    rlock_free(b->lock);
    rlock_close(b->client);
    free(b);
    return (int)e->code;
}
