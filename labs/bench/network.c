/* network: what depends on the way to the servers: round trips to connect, and a
 * quorum of three against one server behind an equal delay, also with one of the three
 * slow or stopped. */
#include <stdio.h>
#include <string.h>

#include "common/base/clock.h"
#include "labs/bench/locks.h"
#include "tests/testkit/proxy.h"

enum {
    MAX_LEASE_MS = 1000, /* new nodes grant once the longest lease is over */
    DELAY_US = 500,
    SLOW_US = 300000,
    ROUNDS = 400, /* of one timed loop */
    URL = 256,
    URLS = 2048,
    QUORUM = 3, /* servers behind the delay: the one, and then these */
};

/* The servers, each behind a proxy, and a client of each kind. */
struct network {
    struct proxy proxies[QUORUM + 1];
    size_t n;
    struct rlock_client *one, *three;
};

static int open_client(struct rlock_client **c,
                       const struct lock_bench *b,
                       const char *url,
                       struct err *e)
{
    struct rlock_options o = {.size = sizeof o,
                              .url = url,
                              .prefix = b->prefix,
                              .max_lease_ms = MAX_LEASE_MS};
    char why[160] = "";

    return rlock_open(c, &o, why, sizeof why) == RLOCK_OK
               ? 0
               : err_set(e, ERR_INVALID, "%s: %s", url, why);
}

static int fault(const struct rlock_client *c, int code, struct err *e)
{
    return err_set(e, ERR_REDIS, "%s (%s)", rlock_strerror(code), rlock_error(c));
}

static int lock_once(struct rlock *l, const struct lock_bench *b)
{
    int code = rlock_acquire(l, b->keys, 1, RLOCK_ALL, MAX_LEASE_MS);

    return code == RLOCK_OK ? rlock_release(l) : code;
}

/* ---- connecting ---- */

static int connecting(struct lock_bench *b, struct network *net, struct err *e)
{
    unsigned before = proxy_count(&net->proxies[0], PROXY_TRIPS);
    int code;

    proxy_delay_us(&net->proxies[0], DELAY_US);
    code = rlock_connect(net->one);

    if (code != RLOCK_OK)
        return fault(net->one, code, e);
    bench_figure(b, "connect: round trips",
                 proxy_count(&net->proxies[0], PROXY_TRIPS) - before);
    return 0;
}

/* ---- one against three ---- */

static int
latency(struct rlock_client *c, const struct lock_bench *b, double *us, struct err *e)
{
    struct rlock *l = rlock_new(c);
    double rounds[ROUNDS];
    int code = l == NULL ? RLOCK_E_NOMEM : RLOCK_OK;

    for (size_t i = 0; code == RLOCK_OK && i < ROUNDS; i++) {
        int64_t start = clk_us();

        code = lock_once(l, b);
        rounds[i] = (double)(clk_us() - start);
    }
    rlock_free(l);
    if (code != RLOCK_OK)
        return fault(c, code, e);
    *us = bench_median(rounds, ROUNDS);
    return 0;
}

static int equal_delay(struct lock_bench *b, struct network *net, struct err *e)
{
    double one[REPETITIONS_MAX] = {0}, three[REPETITIONS_MAX] = {0},
           ratio[REPETITIONS_MAX];
    size_t reps = (size_t)b->flags->repetitions;

    for (size_t i = 0; i < reps; i++) {
        if (latency(net->one, b, &one[i], e) != 0 ||
            latency(net->three, b, &three[i], e) != 0)
            return (int)e->code;
        ratio[i] = three[i] / one[i];
    }
    bench_figure(b, "one node behind 0.5 ms: us/lock and unlock",
                 bench_median(one, reps));
    bench_figure(b, "quorum of 3 behind 0.5 ms: us/lock and unlock",
                 bench_median(three, reps));
    bench_figure(b, "quorum of 3 against one node", bench_median(ratio, reps));
    return 0;
}

/* ---- one of three is ill ---- */

/* Locks a second; one that fails counts for nothing, and takes its time. */
static int
rate(const struct lock_bench *b, struct network *net, double *rounds, struct err *e)
{
    struct rlock *l = rlock_new(net->three);
    int64_t began_us = clk_us(), end_us = began_us + b->flags->seconds * 1000000;
    int code = RLOCK_E_NOMEM;
    size_t n = 0;

    while (l != NULL && clk_us() < end_us) {
        code = lock_once(l, b);
        n += code == RLOCK_OK ? 1 : 0;
    }
    rlock_free(l);
    *rounds = (double)n * 1e6 / (double)(clk_us() - began_us);
    return n > 0 ? 0 : fault(net->three, code, e);
}

static int one_is_ill(struct lock_bench *b, struct network *net, struct err *e)
{
    double well, slow, stopped;

    if (rate(b, net, &well, e) != 0)
        return (int)e->code;
    proxy_delay_us(&net->proxies[QUORUM], SLOW_US);
    if (rate(b, net, &slow, e) != 0)
        return (int)e->code;
    proxy_swallow(&net->proxies[QUORUM], true);
    if (rate(b, net, &stopped, e) != 0)
        return (int)e->code;
    bench_figure(b, "quorum of 3: locks/s", well);
    bench_figure(b, "quorum of 3, one slow: share of it", slow / well);
    bench_figure(b, "quorum of 3, one stopped: share of it", stopped / well);
    return 0;
}

/* ---- all ---- */

/* New nodes grant nothing until leases granted before cannot run any more. */
static int
wait_for_votes(const struct lock_bench *b, struct rlock_client *c, struct err *e)
{
    struct rlock *l = rlock_new(c);
    int code = l == NULL ? RLOCK_E_NOMEM
                         : rlock_acquire_wait(l, b->keys, 1, RLOCK_ALL, MAX_LEASE_MS,
                                              4 * MAX_LEASE_MS, -1);

    if (code == RLOCK_OK)
        code = rlock_release(l);
    rlock_free(l);
    return code == RLOCK_OK ? 0 : err_set(e, ERR_REDIS, "--quorum: %s", rlock_error(c));
}

static int quorum(struct lock_bench *b, struct network *net, struct err *e)
{
    const struct proxy *p = net->proxies;
    char urls[URLS];

    if (net->n != QUORUM + 1)
        return err_set(e, ERR_INVALID, "--quorum takes %d URLs", QUORUM);
    (void)snprintf(urls, sizeof urls, "%s,%s,%s", p[1].url, p[2].url, p[3].url);
    if (open_client(&net->three, b, urls, e) != 0 ||
        wait_for_votes(b, net->three, e) != 0)
        return (int)e->code;
    for (size_t i = 0; i <= QUORUM; i++)
        proxy_delay_us(&net->proxies[i], DELAY_US);
    return equal_delay(b, net, e) != 0 ? (int)e->code : one_is_ill(b, net, e);
}

/* The next of some URLs by commas; false: there is none. */
static bool next_url(const char **urls, char url[URL])
{
    size_t len = strcspn(*urls, ",");

    (void)snprintf(url, URL, "%.*s", (int)len, *urls);
    *urls += len + ((*urls)[len] == ',' ? 1 : 0);
    return len > 0;
}

/* Deletes the keys that a quorum keeps on its nodes beside the locks. */
static void forget(const struct lock_bench *b, const char *urls)
{
    char url[URL];

    while (next_url(&urls, url)) {
        struct bare *node = bare_open(url);

        if (node != NULL)
            bare_forget(node, b->prefix);
        bare_close(node);
    }
}

static void open_proxies(struct network *net, const char *one, const char *nodes)
{
    char url[URL];

    proxy_open_redis(&net->proxies[net->n++], one);
    while (net->n <= QUORUM && next_url(&nodes, url))
        proxy_open_redis(&net->proxies[net->n++], url);
}

int bench_network(struct lock_bench *b, struct err *e)
{
    const char *nodes = b->flags->quorum != NULL ? b->flags->quorum : "";
    struct network net = {.n = 0};

    open_proxies(&net, b->config->redis_url, nodes);
    if (open_client(&net.one, b, net.proxies[0].url, e) == 0 &&
        connecting(b, &net, e) == 0 && nodes[0] != '\0')
        (void)!quorum(b, &net, e);
    rlock_close(net.three);
    rlock_close(net.one);
    for (size_t i = 0; i < net.n; i++)
        proxy_close(&net.proxies[i]);
    forget(b, nodes);
    return (int)e->code;
}
