/* Several clients want the same key of a quorum: one holder at a time, and tokens that
 * only rise, whatever answers get lost and leases run out. */
#include <stdatomic.h>

#include "tests/lib/crowd.h"
#include "tests/lib/play.h"

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
static bool take_above(struct rlock *l, int64_t *last)
{
    rlock_abandon(l);
    if (rlock_try(l, "k", 20 + (uint32_t)rand() % 20) != RLOCK_OK)
        return false;
    if (rlock_token(l) <= *last)
        promise_broken("token %" PRId64 " after %" PRId64, rlock_token(l), *last);
    *last = rlock_token(l);
    return true;
}

/* Guarantee: Tokens of a quorum rise through random schedules and faults. */
PLAY_CASE(play_on_quorum, tokens_rise_through_faults)
{
    struct rlock *locks[CLIENTS];
    unsigned seed = (unsigned)getpid();
    int64_t last = quorum_ahead_us();
    int granted = 0;

    print_message("seed %u\n", seed);
    srand(seed);
    for (size_t i = 0; i < CLIENTS; i++) {
        quorum_set_last(w, i, last + (int64_t)(3 * i % 4));
        locks[i] = rlock_new(quorum_client(w, w->url, 0));
    }
    for (int step = 0; step < STEPS || granted < STEPS / 20; step++) {
        struct rlock *l = locks[rand() % CLIENTS];

        assert_true(step < 100 * STEPS);
        if (rand() % 3 == 0)
            hurt(w);
        if (rand() % 4 == 0)
            rlock_disconnect(locks[rand() % CLIENTS]->client);
        if (!take_above(l, &last)) {
            fixture_pause_ms(5);
            continue;
        }
        granted++;
        if (rand() % 6 > 0 && rlock_release(l) < 0)
            fixture_pause_ms(1); /* the lease ends it */
    }
    for (size_t i = 0; i < CLIENTS; i++)
        lock_drop_lone(&locks[i]);
}

/* ---- several processes ---- */

struct tally {
    _Atomic int64_t highest;
    atomic_int holders;
    atomic_uint granted, busy, lapsed;
};

struct contest {
    const struct quorum_world *w;
    int (*step)(struct rlock *l, struct tally *t);
    struct tally t;
};

/* Leases that nobody outlives: 1 when somebody else holds it too, 2 when the token is
 * not above all before. */
static int hold_alone(struct rlock *l, struct tally *t)
{
    int code = rlock_try(l, "k", QUORUM_MAX_LEASE_MS);

    if (code != RLOCK_OK) {
        t->busy += code == RLOCK_BUSY ? 1 : 0;
        fixture_pause_ms(rand() % 3);
        return 0;
    }
    if (atomic_fetch_add(&t->holders, 1) != 0)
        return 1;
    if (rlock_token(l) <= t->highest)
        return 2;
    t->highest = rlock_token(l);
    t->granted++;
    fixture_pause_ms(rand() % 2);
    t->holders--;
    return rlock_release(l) < 0 ? 3 : 0;
}

/* Leases so short that many run out on the way, so that several may believe to hold it:
 * 2 when the token is not above every one that was out before it was asked for. */
static int outlive(struct rlock *l, struct tally *t)
{
    int64_t before = t->highest, highest = before;
    int code;

    rlock_abandon(l);
    code = rlock_try(l, "k", 5 + (uint32_t)rand() % 10);
    t->busy += code == RLOCK_BUSY ? 1 : 0;
    if (code != RLOCK_OK)
        return 0;
    if (rlock_token(l) <= before)
        return 2;
    while (highest < rlock_token(l) &&
           !atomic_compare_exchange_weak(&t->highest, &highest, rlock_token(l)))
        continue;
    t->granted++;
    t->lapsed += rand() % 3 == 0 || rlock_release(l) != RLOCK_OK ? 1 : 0;
    return 0;
}

/* Until there was enough of everything. */
static int compete(int id, void *contest)
{
    struct contest *c = contest;
    const struct tally *t = &c->t;
    struct rlock *l = rlock_new(quorum_client(c->w, c->w->plain_url, QUORUM_REPLY_MS));
    int64_t end = quorum_now_ms() + LONGEST_MS;
    int code = 0;

    srand((unsigned)(getpid() + id));
    while (
        code == 0 && quorum_now_ms() < end &&
        (t->granted < 300 || t->busy < 300 || (c->step == outlive && t->lapsed < 50)))
        code = c->step(l, &c->t);
    return code;
}

static void run_processes(struct quorum_world *w,
                          int (*step)(struct rlock *l, struct tally *t))
{
    struct contest *c = crowd_memory(sizeof *c);

    c->w = w;
    c->step = step;
    for (size_t i = 0; i < 3; i++)
        quorum_set_last(w, i, quorum_ahead_us() + (int64_t)i);
    crowd_run(PROCESSES, compete, c);
    assert_true(c->t.granted > 0 && c->t.busy > 0);
}

PLAY_CASE(play_on_quorum, one_holder_at_a_time_across_processes)
{
    run_processes(w, hold_alone);
}

PLAY_CASE(play_on_quorum, tokens_rise_across_processes_whose_leases_run_out)
{
    run_processes(w, outlive);
}
