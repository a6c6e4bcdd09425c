/* bench_locks: the lock library and plain hiredis do the same work, turn about, in one
 * run, so that the ratios hold on a noisy machine. */
#define _DEFAULT_SOURCE /* MAP_ANONYMOUS */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include "common/clock.h"
#include "common/lock/bare.h"
#include "common/lock/lock.h"
#include "worker/bench.h"
#include "worker/jdoc.h"

enum {
    REPETITIONS_MAX = 99,
    SINGLE_TURNS = 5000,
    BATCH_KEYS = 60000, /* keys of one timed batch loop */
    LEASE_MS = 60000,
    QUORUM_LEASE_MS = 1000, /* new nodes vote once the longest lease is over */
    WAITERS = 64,
    HOLD_US = 500,
    RENEWED = 1000,
};

struct bench {
    const struct config *config;
    const struct bench_flags *flags;
    struct ll_client *client;
    struct ll_lock *lock;
    struct bare *bare;
    char prefix[48];
    struct ll_key keys[LL_KEYS_MAX];
    char names[LL_KEYS_MAX][16];
};

static int fault(const struct bench *b, int code, struct err *e)
{
    return err_set(e, ERR_REDIS, "%s (%s)", ll_strerror(code), ll_error(b->client));
}

/* ---- one client ---- */

/* Turns of acquire and release over the first n keys; microseconds, -1 on a fault. */
static int64_t library_turns(struct bench *b, size_t n, size_t turns, int *code)
{
    int64_t start = clk_us();

    for (size_t i = 0; i < turns; i++) {
        *code = ll_acquire(b->lock, b->keys, n, LL_ALL, LEASE_MS);
        if (*code == LL_OK)
            *code = ll_release(b->lock);
        if (*code != LL_OK)
            return -1;
    }
    return clk_us() - start;
}

static double rate(size_t keys, int64_t us)
{
    return us > 0 ? (double)keys * 1e6 / (double)us : 0;
}

/* The library and hiredis in turn; keys locked and unlocked a second, and their ratio.
 */
static int compare(struct bench *b, size_t n, size_t turns, json_t *out, struct err *e)
{
    double ours[REPETITIONS_MAX], bare[REPETITIONS_MAX], ratio[REPETITIONS_MAX];
    size_t reps = (size_t)b->flags->repetitions;
    char name[64];
    int code = LL_OK;

    for (size_t i = 0; i < reps; i++) {
        int64_t us = library_turns(b, n, turns, &code);
        int64_t bare_us = us < 0   ? -1
                          : n == 1 ? bare_scripts(b->bare, b->prefix, turns)
                                   : bare_pipeline(b->bare, b->prefix, n, turns);

        if (us < 0)
            return fault(b, code, e);
        if (bare_us < 0)
            return err_set(e, ERR_REDIS, "plain hiredis failed");
        ours[i] = rate(n * turns, us);
        bare[i] = rate(n * turns, bare_us);
        ratio[i] = ours[i] / bare[i];
    }
    (void)snprintf(name, sizeof name, "%zu key%s: lock+unlock/s", n, n == 1 ? "" : "s");
    if (jdoc_put(out, name, json_integer((json_int_t)bench_median(ours, reps)), e) != 0)
        return (int)e->code;
    (void)snprintf(name, sizeof name, "%zu key%s: plain hiredis/s", n,
                   n == 1 ? "" : "s");
    if (jdoc_put(out, name, json_integer((json_int_t)bench_median(bare, reps)), e) != 0)
        return (int)e->code;
    (void)snprintf(name, sizeof name, "%zu key%s: ratio", n, n == 1 ? "" : "s");
    return jdoc_put(out, name, json_real(bench_median(ratio, reps)), e);
}

/* ---- waiters ---- */

static void wait_in_turn(const struct bench *b, int64_t until_ms, int64_t *handovers)
{
    struct ll_options o = {
        .size = sizeof o, .url = b->config->redis_url, .prefix = b->prefix};
    struct ll_client *c;
    struct ll_lock *l;

    if (ll_open(&c, &o, NULL, 0) != LL_OK || (l = ll_new(c)) == NULL)
        _exit(1);
    while (clk_ms() < until_ms) {
        int64_t held_until;

        if (ll_acquire_wait(l, b->keys, 1, LL_ALL, LEASE_MS, 2000) != LL_OK)
            continue;
        held_until = clk_us() + HOLD_US;
        while (clk_us() < held_until)
            continue;
        if (ll_release(l) == LL_OK)
            (void)__atomic_add_fetch(handovers, 1, __ATOMIC_RELAXED);
    }
    _exit(0);
}

/* Forks the waiters and waits for their end; counts hand-overs. */
static int64_t contend(const struct bench *b)
{
    int64_t *handovers = mmap(NULL, sizeof *handovers, PROT_READ | PROT_WRITE,
                              MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    int64_t until_ms = clk_ms() + b->flags->seconds * 1000;
    int64_t counted;

    if (handovers == MAP_FAILED)
        return -1;
    (void)fflush(NULL);
    for (int i = 0; i < WAITERS; i++) {
        if (fork() == 0)
            wait_in_turn(b, until_ms, handovers);
    }
    while (wait(NULL) > 0)
        continue;
    counted = *handovers;
    (void)munmap(handovers, sizeof *handovers);
    return counted;
}

static int waiters(struct bench *b, json_t *out, struct err *e)
{
    int64_t before = bare_commands(b->bare);
    int64_t handovers = contend(b);
    int64_t commands = bare_commands(b->bare) - before;

    if (handovers <= 0)
        return err_set(e, ERR_REDIS, "no waiter got the lock");
    if (jdoc_put(out, "64 waiters: hand-overs/s",
                 json_integer(handovers / b->flags->seconds), e) != 0)
        return (int)e->code;
    return jdoc_put(out, "64 waiters: commands/hand-over",
                    json_real((double)commands / (double)handovers), e);
}

/* ---- renewal ---- */

static int renewal(struct bench *b, json_t *out, struct err *e)
{
    struct ll_renew_options o = {.size = sizeof o, .interval_ms = 300};
    struct ll_renewer *r = NULL;
    struct ll_lock *held[RENEWED] = {NULL};
    struct ll_renew_figures f = {0};
    int code = ll_renewer_open(&r, b->client, &o);

    for (size_t i = 0; code == LL_OK && i < RENEWED; i++) {
        char name[24];

        (void)snprintf(name, sizeof name, "renewed:%zu", i);
        held[i] = ll_new(b->client);
        code = held[i] == NULL ? LL_E_NOMEM : ll_try(held[i], name, LEASE_MS);
        if (code == LL_OK)
            code = ll_renew(r, held[i], 0, 0);
    }
    clk_pause_ms(b->flags->seconds * 1000);
    if (code == LL_OK)
        ll_renewer_figures(r, &f);
    for (size_t i = 0; i < RENEWED && held[i] != NULL; i++) {
        (void)ll_release(held[i]);
        ll_free(held[i]);
    }
    ll_renewer_close(r);
    if (code != LL_OK || f.rounds == 0)
        return fault(b, code, e);
    if (jdoc_put(out, "renewal of 1000 locks: round trips",
                 json_real((double)f.round_trips / (double)f.rounds), e) != 0)
        return (int)e->code;
    return jdoc_put(out, "renewal of 1000 locks: ms (slowest round)",
                    json_real((double)f.slowest_us / 1000.0), e);
}

/* ---- quorum ---- */

static int
latency(struct ll_client *c, const struct bench *b, double *us, struct err *e)
{
    struct ll_lock *l = ll_new(c);
    double turns[SINGLE_TURNS / 5];
    size_t n = sizeof turns / sizeof turns[0];
    int code = l == NULL ? LL_E_NOMEM : LL_OK;

    for (size_t i = 0; code == LL_OK && i < n; i++) {
        int64_t start = clk_us();

        code = ll_acquire(l, b->keys, 1, LL_ALL, QUORUM_LEASE_MS);
        if (code == LL_OK)
            code = ll_release(l);
        turns[i] = (double)(clk_us() - start);
    }
    ll_free(l);
    if (code != LL_OK)
        return err_set(e, ERR_REDIS, "%s (%s)", ll_strerror(code), ll_error(c));
    *us = bench_median(turns, n);
    return 0;
}

/* Lets new nodes vote: waits until leases granted before cannot run any more. */
static int seed(struct ll_client *c, struct err *e)
{
    int64_t wait_ms = 0;
    int code = ll_seed(c, 0, &wait_ms);

    if (code == LL_E_AMNESIA) {
        clk_pause_ms(wait_ms + 50);
        code = ll_seed(c, 0, &wait_ms);
    }
    return code == LL_OK ? 0 : err_set(e, ERR_REDIS, "--quorum: %s", ll_error(c));
}

static int
measure_quorum(struct bench *b, struct ll_client *c, json_t *out, struct err *e)
{
    double one[REPETITIONS_MAX], three[REPETITIONS_MAX], ratio[REPETITIONS_MAX];
    size_t reps = (size_t)b->flags->repetitions;

    if (seed(c, e) != 0)
        return (int)e->code;
    for (size_t i = 0; i < reps; i++) {
        if (latency(b->client, b, &one[i], e) != 0 || latency(c, b, &three[i], e) != 0)
            return (int)e->code;
        ratio[i] = three[i] / one[i];
    }
    if (jdoc_put(out, "one node: us/turn", json_real(bench_median(one, reps)), e) !=
            0 ||
        jdoc_put(out, "quorum of 3: us/turn", json_real(bench_median(three, reps)),
                 e) != 0)
        return (int)e->code;
    return jdoc_put(out, "quorum of 3 against one node",
                    json_real(bench_median(ratio, reps)), e);
}

static int quorum(struct bench *b, json_t *out, struct err *e)
{
    struct ll_options o = {
        .size = sizeof o,
        .url = b->flags->quorum,
        .prefix = b->prefix,
        .max_lease_ms = QUORUM_LEASE_MS,
    };
    struct ll_client *c;
    char why[160] = "";
    int code;

    if (b->flags->quorum == NULL)
        return 0;
    if (ll_open(&c, &o, why, sizeof why) != LL_OK)
        return err_set(e, ERR_INVALID, "--quorum: %s", why);
    code = measure_quorum(b, c, out, e);
    ll_close(c);
    return code;
}

/* ---- all ---- */

static int open_bench(struct bench *b, struct err *e)
{
    struct ll_options o = {
        .size = sizeof o, .url = b->config->redis_url, .prefix = b->prefix};
    char why[160] = "";
    int64_t current;
    int code;

    (void)snprintf(b->prefix, sizeof b->prefix, "bench:%ld:", (long)getpid());
    code = ll_open(&b->client, &o, why, sizeof why);
    if (code != LL_OK)
        return err_set(e, ERR_CONFIG, "redis.url: %s", why);
    code = ll_install_epoch(b->client, 1, &current);
    if (code != LL_OK)
        return fault(b, code, e);
    b->lock = ll_new(b->client);
    b->bare = bare_open(b->config->redis_url);
    for (size_t i = 0; i < LL_KEYS_MAX; i++) {
        b->keys[i].name = b->names[i];
        b->keys[i].len =
            (size_t)snprintf(b->names[i], sizeof b->names[i], "user:%zu", i);
    }
    if (b->lock == NULL || b->bare == NULL)
        return err_set(e, ERR_REDIS, "plain hiredis cannot use %s", "redis.url");
    return 0;
}

int bench_locks(const struct config *c,
                const struct bench_flags *f,
                json_t *doc,
                struct err *e)
{
    static const size_t sizes[] = {1, 100, 1000};
    struct bench *b = calloc(1, sizeof *b);
    json_t *out = json_object();

    if (b == NULL || jdoc_put(doc, "locks", out, e) != 0) {
        free(b);
        return err_set(e, ERR_NOMEM, "out of memory");
    }
    b->config = c;
    b->flags = f;
    if (open_bench(b, e) == 0) {
        char version[32];

        bare_version(b->bare, version, sizeof version);
        (void)!jdoc_put(out, "Redis", json_string(version), e);
    }
    for (size_t i = 0; e->code == ERR_OK && i < 3; i++) {
        cli_progress("batches of %zu", sizes[i]);
        (void)!compare(b, sizes[i],
                       sizes[i] == 1 ? SINGLE_TURNS : BATCH_KEYS / sizes[i], out, e);
    }
    cli_progress("waiters, renewal, quorum");
    if (e->code == ERR_OK && waiters(b, out, e) == 0 && renewal(b, out, e) == 0)
        (void)!quorum(b, out, e);
    cli_progress_end();
    if (b->bare != NULL)
        bare_forget(b->bare, b->prefix);
    bare_close(b->bare);
    ll_free(b->lock);
    ll_close(b->client);
    free(b);
    return (int)e->code;
}
