/* Tokens of a quorum: they only grow, whatever the nodes' counters were, whatever
 * answers get lost or leases run out. */
#define _DEFAULT_SOURCE /* MAP_ANONYMOUS */
#include "tests/lib/quorum_world.h"

#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

enum { LEASE_MS = 10000 };

/* ---- counters apart from each other ---- */

static void lagging_nodes_are_told_the_token(void **state)
{
    struct quorum_world *w = *state;
    int64_t base = quorum_plant_skew(w);
    int told = 0;

    assert_int_equal(ll_try(w->la, "k", LEASE_MS), LL_OK);
    assert_true(ll_token(w->la) == base + 5);
    for (size_t i = 0; i < 3; i++)
        told += quorum_ask(w, i, "HGET %s!node c") >= base + 5 ? 1 : 0;
    assert_int_equal(told, 3);
    assert_int_equal(ll_extend(w->la, LEASE_MS), LL_OK); /* by what each had granted */
    assert_int_equal(ll_release(w->la), LL_OK);
    assert_int_equal(ll_try(w->lb, "k", LEASE_MS), LL_OK);
    assert_true(ll_token(w->lb) == base + 6);
}

static void client_with_a_clock_behind_still_gets_higher_tokens(void **state)
{
    struct quorum_world *w = *state;
    int64_t last = 0;

    for (size_t i = 0; i < 3; i++)
        quorum_plant(w, i, quorum_now_us() + 500000);
    for (int i = 0; i < 20; i++) {
        struct ll_lock *l = i % 2 == 0 ? w->la : w->lb;

        assert_int_equal(ll_try(l, "k", LEASE_MS), LL_OK);
        assert_true(ll_token(l) > last);
        last = ll_token(l);
        assert_int_equal(ll_release(l), LL_OK);
    }
}

enum { CLIENTS = 3, STEPS = 600 };

/* One fault on one node before the next acquire. */
static void hurt(struct quorum_world *w)
{
    struct proxy *p = &w->proxies[rand() % 3];
    unsigned times = 1 + (unsigned)rand() % 2; /* twice: the node gets no say */

    for (size_t i = 0; i < 3; i++)
        proxy_pass(&w->proxies[i]);
    switch (rand() % 5) {
    case 0:
        proxy_cut_after(p, "EVALSHA", 7, times);
        break;
    case 1:
        proxy_cut_before(p, "EVALSHA", 7, times);
        break;
    case 2: /* a lease that ends early on one node */
        (void)quorum_ask(w, (size_t)rand() % 3, "DEL %sk");
        break;
    case 3:
        proxy_refuse(p, true);
        break;
    default:
        break;
    }
}

static void quorum_skewed_counters(void **state)
{
    struct quorum_world *w = *state;
    struct ll_client *clients[CLIENTS];
    struct ll_lock *locks[CLIENTS];
    unsigned seed = (unsigned)getpid();
    int64_t last = quorum_plant_skew(w);
    int granted = 0;

    print_message("seed %u\n", seed);
    srand(seed);
    for (size_t i = 0; i < CLIENTS; i++) {
        clients[i] = quorum_client(w, w->url, 0, 0);
        locks[i] = ll_new(clients[i]);
    }
    for (int step = 0; step < STEPS; step++) {
        struct ll_lock *l = locks[rand() % CLIENTS];

        if (rand() % 3 == 0)
            hurt(w);
        if (rand() % 4 == 0)
            ll_disconnect(clients[rand() % CLIENTS]);
        ll_abandon(l);
        if (ll_try(l, "k", 20 + (uint32_t)rand() % 20) != LL_OK) {
            fixture_pause_ms(5);
            continue;
        }
        granted++;
        if (ll_token(l) <= last)
            fail_msg("seed %u, step %d: token base+%lld after base+%lld", seed, step,
                     (long long)ll_token(l), (long long)last);
        last = ll_token(l);
        if (rand() % 6 > 0)
            (void)ll_release(l);
    }
    print_message("%d of %d steps got a token\n", granted, STEPS);
    assert_in_range(granted, STEPS / 20, STEPS);
    for (size_t i = 0; i < CLIENTS; i++) {
        ll_free(locks[i]);
        ll_close(clients[i]);
    }
}

/* ---- several processes ---- */

enum { PROCESSES = 4, TOKENS_MAX = 40000, RUN_MS = 2000 };

struct tally {
    _Atomic int64_t highest;
    atomic_uint n;
    int64_t tokens[TOKENS_MAX];
};

/* Leases so short that many run out on the way. Exits with 1 when a token is not above
 * every one that was out before its tenure began. */
static void compete(struct quorum_world *w, struct tally *t, unsigned seed)
{
    struct ll_client *c = quorum_client(w, w->plain_url, 0, 0);
    struct ll_lock *l = ll_new(c);
    int64_t end = quorum_now_ms() + RUN_MS;

    srand(seed);
    while (quorum_now_ms() < end) {
        int64_t before = atomic_load(&t->highest);
        int64_t token, highest;
        unsigned at;

        ll_abandon(l);
        if (ll_try(l, "k", 4 + (uint32_t)rand() % 5) != LL_OK)
            continue;
        token = ll_token(l);
        at = atomic_fetch_add(&t->n, 1);
        if (at < TOKENS_MAX)
            t->tokens[at] = token;
        if (token <= before)
            _exit(1);
        highest = atomic_load(&t->highest);
        while (highest < token &&
               !atomic_compare_exchange_weak(&t->highest, &highest, token))
            ;
        if (rand() % 3 > 0)
            (void)ll_release(l);
    }
    _exit(0);
}

static int by_value(const void *a, const void *b)
{
    int64_t x = *(const int64_t *)a, y = *(const int64_t *)b;

    return (x > y) - (x < y);
}

static void tokens_increase_across_processes(void **state)
{
    struct quorum_world *w = *state;
    struct tally *t = mmap(NULL, sizeof *t, PROT_READ | PROT_WRITE,
                           MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    pid_t pids[PROCESSES];
    unsigned n;

    assert_true(t != MAP_FAILED);
    (void)quorum_plant_skew(w);
    (void)fflush(NULL);
    for (unsigned i = 0; i < PROCESSES; i++) {
        pids[i] = fork();
        if (pids[i] == 0)
            compete(w, t, i + (unsigned)getpid());
    }
    for (size_t i = 0; i < PROCESSES; i++)
        assert_int_equal(fixture_reap(pids[i], 30), 0);
    n = atomic_load(&t->n);
    print_message("%u tenures\n", n);
    assert_in_range(n, 50, TOKENS_MAX);
    qsort(t->tokens, n, sizeof t->tokens[0], by_value);
    for (unsigned i = 1; i < n; i++)
        assert_true(t->tokens[i - 1] < t->tokens[i]);
    (void)munmap(t, sizeof *t);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        QUORUM_TEST(lagging_nodes_are_told_the_token),
        QUORUM_TEST(client_with_a_clock_behind_still_gets_higher_tokens),
        QUORUM_TEST(quorum_skewed_counters),
        QUORUM_TEST(tokens_increase_across_processes),
    };

    fixture_need_servers();
    return cmocka_run_group_tests(tests, quorum_start_servers, quorum_stop_servers);
}
