/* Several clients want the same key of a quorum: one holder at a time, and tokens that
 * only rise, whatever answers get lost and leases run out. */
#define _DEFAULT_SOURCE /* MAP_ANONYMOUS */
#include "tests/lib/play.h"

#include <stdatomic.h>
#include <sys/mman.h>

enum { CLIENTS = 3, STEPS = 600, PROCESSES = 4, LONGEST_MS = 60000 };

/* ---- faults, one client after the other ---- */

/* One fault on one node before the next acquire, or none. */
static void hurt(struct quorum_world *w)
{
    struct proxy *p = &w->proxies[rand() % 3];

    for (size_t i = 0; i < 3; i++)
        proxy_pass(&w->proxies[i]);
    switch (rand() % 5) {
    case 0:
        proxy_cut_after(p, "EVALSHA", 7, 1);
        break;
    case 1:
        proxy_cut_before(p, "EVALSHA", 7, 1);
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

/* True where it was granted, with a token above the last one. */
static bool take_above(struct ll_lock *l, int64_t *last)
{
    ll_abandon(l);
    if (ll_try(l, "k", 20 + (uint32_t)rand() % 20) != LL_OK)
        return false;
    if (ll_token(l) <= *last)
        promise_broken("token %" PRId64 " after %" PRId64, ll_token(l), *last);
    *last = ll_token(l);
    return true;
}

/* Guarantee: Tokens of a quorum rise through random schedules and faults. */
PLAY_CASE(play_on_quorum, tokens_rise_through_faults)
{
    struct ll_client *clients[CLIENTS];
    struct ll_lock *locks[CLIENTS];
    unsigned seed = (unsigned)getpid();
    int64_t last = quorum_ahead_us();
    int granted = 0;

    print_message("seed %u\n", seed);
    srand(seed);
    for (size_t i = 0; i < CLIENTS; i++) {
        quorum_set_last(w, i, last + (int64_t)(3 * i % 4));
        clients[i] = quorum_client(w, w->url, 0);
        locks[i] = ll_new(clients[i]);
    }
    for (int step = 0; step < STEPS || granted < STEPS / 20; step++) {
        struct ll_lock *l = locks[rand() % CLIENTS];

        assert_true(step < 100 * STEPS);
        if (rand() % 3 == 0)
            hurt(w);
        if (rand() % 4 == 0)
            ll_disconnect(clients[rand() % CLIENTS]);
        if (!take_above(l, &last)) {
            fixture_pause_ms(5);
            continue;
        }
        granted++;
        if (rand() % 6 > 0 && ll_release(l) < 0)
            fixture_pause_ms(1); /* the lease ends it */
    }
    for (size_t i = 0; i < CLIENTS; i++) {
        ll_free(locks[i]);
        ll_close(clients[i]);
    }
}

/* ---- several processes ---- */

struct tally {
    _Atomic int64_t highest;
    atomic_int holders;
    atomic_uint granted, busy, lapsed;
};

typedef int (*compete_fn)(struct ll_lock *l, struct tally *t);

/* Leases that nobody outlives: 1 when somebody else holds it too, 2 when the token is
 * not above all before. */
static int hold_alone(struct ll_lock *l, struct tally *t)
{
    int code = ll_try(l, "k", QUORUM_MAX_LEASE_MS);

    if (code != LL_OK) {
        t->busy += code == LL_BUSY ? 1 : 0;
        fixture_pause_ms(rand() % 3);
        return 0;
    }
    if (atomic_fetch_add(&t->holders, 1) != 0)
        return 1;
    if (ll_token(l) <= t->highest)
        return 2;
    t->highest = ll_token(l);
    t->granted++;
    fixture_pause_ms(rand() % 2);
    t->holders--;
    return ll_release(l) < 0 ? 3 : 0;
}

/* Leases so short that many run out on the way, so that several may believe to hold it:
 * 2 when the token is not above every one that was out before it was asked for. */
static int outlive(struct ll_lock *l, struct tally *t)
{
    int64_t before = t->highest, highest = before;
    int code;

    ll_abandon(l);
    code = ll_try(l, "k", 5 + (uint32_t)rand() % 10);
    t->busy += code == LL_BUSY ? 1 : 0;
    if (code != LL_OK)
        return 0;
    if (ll_token(l) <= before)
        return 2;
    while (highest < ll_token(l) &&
           !atomic_compare_exchange_weak(&t->highest, &highest, ll_token(l)))
        continue;
    t->granted++;
    t->lapsed += rand() % 3 == 0 || ll_release(l) != LL_OK ? 1 : 0;
    return 0;
}

/* Until there was enough of everything. */
static void compete(struct quorum_world *w, struct tally *t, compete_fn step, int id)
{
    struct ll_client *c = quorum_client(w, w->plain_url, QUORUM_REPLY_MS);
    struct ll_lock *l = ll_new(c);
    int64_t end = quorum_now_ms() + LONGEST_MS;
    int code = 0;

    srand((unsigned)(getpid() + id));
    while (code == 0 && quorum_now_ms() < end &&
           (t->granted < 300 || t->busy < 300 || (step == outlive && t->lapsed < 50)))
        code = step(l, t);
    _exit(code);
}

static void run_processes(struct quorum_world *w, compete_fn step)
{
    struct tally *t = mmap(NULL, sizeof *t, PROT_READ | PROT_WRITE,
                           MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    pid_t pids[PROCESSES];

    assert_true(t != MAP_FAILED);
    for (size_t i = 0; i < 3; i++)
        quorum_set_last(w, i, quorum_ahead_us() + (int64_t)i);
    (void)fflush(NULL);
    for (int i = 0; i < PROCESSES; i++) {
        pids[i] = fork();
        if (pids[i] == 0)
            compete(w, t, step, i);
    }
    for (int i = 0; i < PROCESSES; i++)
        assert_int_equal(fixture_reap(pids[i], 2 * LONGEST_MS / 1000), 0);
    assert_true(t->granted > 0 && t->busy > 0);
    (void)munmap(t, sizeof *t);
}

PLAY_CASE(play_on_quorum, one_holder_at_a_time_across_processes)
{
    run_processes(w, hold_alone);
}

PLAY_CASE(play_on_quorum, tokens_rise_across_processes_whose_leases_run_out)
{
    run_processes(w, outlive);
}
