/* reply: every call of the library against servers that say anything. The input decides
 * how the servers are reached, the calls, and each answer. No input causes a crash, a
 * call beyond its time, an impossible token, a valid lock after a fault, or a
 * password in the error text. */
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include "labs/fuzz/reply.h"

enum {
    CONNECT_MS = 20,
    REPLY_MS = 10,
    LONG_MS = 100, /* connect and answer, where a wait must end before */
    LOAD_RUNS = 5, /* the machine may be busy once, but not so often */
    CALLS_MAX = 12
};

static struct redisContext *hand_in(void *arg)
{
    (void)arg;
    return server_connect(1);
}

/* In a quorum the same for all nodes, or they would not take part. */
static int open_client(struct run *r, unsigned kind)
{
    static const char *const urls[] = {
        "redis://n:7001",
        "redis://u:" FUZZ_PASSWORD "@n:7001/3",
        "redis://:" FUZZ_PASSWORD "@n:7001,redis://:" FUZZ_PASSWORD
        "@n:7002,redis://:" FUZZ_PASSWORD "@n:7003",
        "redis+sentinel://u:" FUZZ_PASSWORD "@n:7004,n:7005/m",
        "redis+cluster://:" FUZZ_PASSWORD "@n:7001,n:7002",
        "redis://n:7001",
        "redis://n:7001",
        "redis://n:7001,redis://n:7002,redis://n:7003",
    };

    struct rlock_options o = {.size = sizeof o,
                              .url = urls[kind],
                              .prefix = kind == 4 ? "{lock}:" : NULL,
                              .connect_ms = kind == 0 ? LONG_MS : CONNECT_MS,
                              .reply_ms = kind == 0 ? LONG_MS : REPLY_MS,
                              .replicas = kind == 5 ? 1 : 0,
                              .max_lease_ms = 5000};
    char why[160];

    if (kind == 3)
        o.sentinel_password = FUZZ_PASSWORD;
    if (kind == 6) {
        o.url = NULL;
        o.connect = hand_in;
    }
    r->call_ms = o.connect_ms + o.reply_ms;
    return rlock_open(&r->client, &o, why, sizeof why);
}

static void on_lost(struct rlock *l, int code, void *arg)
{
    struct run *r = arg;

    if (rlock_valid(l, 0) || (code >= 0 && code != RLOCK_LOST && code != RLOCK_GONE))
        fuzz_found("lost: %d, and valid is %d", code, rlock_valid(l, 0));
    if (!r->has_thread && pick(2) == 1)
        (void)!rlock_release(l);
}

static void open_renewer(struct run *r, unsigned kind)
{
    struct rlock_renew_options o = {
        .size = sizeof o, .interval_ms = 3, .on_lost = on_lost, .arg = r};

    if (kind < 5)
        return;
    o.no_thread = kind < 7;
    r->has_thread = !o.no_thread;
    if (rlock_renewer_open(&r->renewer, r->client, &o) != RLOCK_OK)
        abort();
}

static void name_keys(struct run *r, unsigned kind)
{
    static char names[MANY_KEYS][8];

    r->keys = calloc(MANY_KEYS, sizeof *r->keys);
    if (r->keys == NULL)
        abort();
    for (size_t i = 0; i < MANY_KEYS; i++) {
        r->keys[i].name = names[i];
        r->keys[i].len = (size_t)snprintf(names[i], sizeof names[i], "k%zu", i);
    }
    r->key_ct = kind == 3 ? MANY_KEYS : 1;
}

static unsigned run_once(const uint8_t *data, size_t size)
{
    struct run r = {0};
    unsigned late = 0, calls;

    lanes_open(data, size);
    r.ready_fd = open("/dev/null", O_RDONLY | O_CLOEXEC);
    if (r.ready_fd < 0 || open_client(&r, pick(8)) != RLOCK_OK)
        abort();
    name_keys(&r, pick(16));
    r.lock = rlock_new(r.client);
    if (r.lock == NULL)
        abort();
    rlock_set_nonce_copy(r.lock, r.nonce);
    open_renewer(&r, pick(8));
    r.is_loop = pick(2) == 1;
    calls = 1 + pick(CALLS_MAX);
    for (unsigned k = 0; k < calls; k++)
        late |= reply_call(&r, k);
    rlock_renewer_close(r.renewer);
    rlock_free(r.lock);
    rlock_close(r.client);
    server_wait_for_ends();
    free(r.keys);
    (void)close(r.ready_fd);
    return late;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    unsigned late = run_once(data, size);

    for (int i = 1; i < LOAD_RUNS && late != 0; i++)
        late &= run_once(data, size);
    if (late != 0)
        fuzz_found("calls (bits %x) go on beyond their time, %d times of %d", late,
                   LOAD_RUNS, LOAD_RUNS);
    return 0;
}
