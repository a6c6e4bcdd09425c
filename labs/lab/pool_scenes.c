/* pool_scenes: the schedule of each fault for the shipped pool. Two workers of a pool,
 * one that charges and one that serves orders, are stopped by the proxy when the fault
 * comes; another pool comes for the same rows; then they go on. */
#include <signal.h>
#include <string.h>

#include "labs/lab/pool.h"
#include "labs/lab/scenes.h"

enum { LIES_MS = 300, WORK = 6, LOST = 6 };

/* The holders stand at one of two places: the lock is theirs, and they have not told
 * PostgreSQL yet; or everything is written, and COMMIT is on its way. */
static const char at_begin[] = " ISOLATION LEVEL READ COMMITTED";
static const char evalsha[] = "EVALSHA";

/* ---- words of a schedule ---- */

static void until_count(const struct proxy *p, enum proxy_count what, unsigned n)
{
    LAB_UNTIL(proxy_count(p, what) >= n, "%u messages were to meet the proxy, %u did",
              n, proxy_count(p, what));
}

/* New work, and both workers of the holder stand before the bytes. */
static void hold_at(struct lab *l, const char *bytes, size_t size)
{
    struct proxy *p = &l->to_postgres;
    unsigned held = proxy_count(p, PROXY_HELD);

    lab_pool_put(l, WORK);
    proxy_hold(p, bytes, size, POOL_WORKERS);
    lab_pool_start(l, POOL_HOLDER);
    until_count(p, PROXY_HELD, held + POOL_WORKERS);
}

static void hold_at_begin(struct lab *l)
{
    hold_at(l, at_begin, sizeof at_begin - 1);
}

static void hold_at_commit(struct lab *l)
{
    hold_at(l, PROXY_COMMIT, PROXY_COMMIT_SIZE);
}

static void let_go(struct lab *l)
{
    proxy_let_go(&l->to_postgres);
    lab_until_over(l, POOL_HOLDER);
}

/* Another pool comes and does everything that the holder stands before. A pool that
 * finds it busy may leave it; then the next comes. */
static void overtake(struct lab *l)
{
    int64_t all = lab_pool_count(l, POOL_DONE) + WORK * LAB_PERIODS + WORK;

    do {
        lab_pool_start(l, POOL_OTHER);
        lab_until_over(l, POOL_OTHER);
    } while (lab_pool_count(l, POOL_DONE) < all);
    if (lab_pool_count(l, POOL_DONE) != all)
        lab_fail("the other pool did more than there was");
}

/* ---- calm ---- */

void lab_pool_calm(struct lab *l)
{
    hold_at_commit(l);
    lab_pool_start(l, POOL_OTHER);
    LAB_UNTIL(lab_pool_count(l, POOL_BUSY_BILLING) > 0 &&
                  lab_pool_count(l, POOL_BUSY_ORDERS) > 0,
              "a worker of the other pool met nobody");
    let_go(l);
    lab_until_over(l, POOL_OTHER);
}

/* ---- killed, stopped ---- */

static void kill_holder(struct lab *l)
{
    lab_pool_signal(l, POOL_HOLDER, SIGKILL);
    proxy_drop_held(&l->to_postgres);
    lab_until_over(l, POOL_HOLDER);
    overtake(l);
}

void lab_pool_killed(struct lab *l)
{
    hold_at_begin(l);
    kill_holder(l);
    hold_at_commit(l);
    kill_holder(l);
}

static void stop_holder(struct lab *l)
{
    lab_pool_signal(l, POOL_HOLDER, SIGSTOP);
    overtake(l);
    lab_pool_signal(l, POOL_HOLDER, SIGCONT);
    let_go(l);
}

void lab_pool_stopped(struct lab *l)
{
    hold_at_commit(l);
    stop_holder(l);
    hold_at_begin(l);
    stop_holder(l);
}

/* ---- Redis forgets, or lies ---- */

void lab_pool_forgets(struct lab *l)
{
    if (l->servers.needs.replica)
        lab_freeze_replica(&l->servers);
    hold_at_begin(l);
    l->fault->forget(&l->servers);
    overtake(l);
    let_go(l);
}

/* Ends a pool that random tokens keep from some of its rows. */
static void end_pool(struct lab *l, int seat)
{
    if (!lab_is_over(l, seat))
        (void)kill(l->seats[seat].pid, SIGTERM);
    lab_until_over(l, seat);
}

void lab_pool_lying(struct lab *l)
{
    int64_t before;

    hold_at_begin(l);
    before = lab_pool_count(l, POOL_DONE);
    lab_pool_start(l, POOL_OTHER);
    LAB_UNTIL(lab_pool_count(l, POOL_DONE) > before,
              "nobody was granted what somebody else held");
    proxy_let_go(&l->to_postgres);
    clk_pause_ms(LIES_MS);
    end_pool(l, POOL_OTHER);
    end_pool(l, POOL_HOLDER);
    lab_pool_met(l, "granted_twice", fake_shared_grants(&l->servers.fake));
    lab_end_lies(&l->servers);
}

/* ---- replies, PostgreSQL ---- */

void lab_pool_replies(struct lab *l)
{
    struct proxy *p = &l->servers.to_struck;

    hold_at_begin(l);
    proxy_cut_after(p, evalsha, sizeof evalsha - 1, LOST);
    let_go(l);
    until_count(p, PROXY_CUTS_AFTER, LOST);
}

void lab_pool_postgres(struct lab *l)
{
    hold_at_commit(l);
    lab_crash(l);
    overtake(l);
    let_go(l);
}

void lab_pool_commit(struct lab *l)
{
    struct proxy *p = &l->to_postgres;

    lab_pool_put(l, WORK);
    proxy_cut_after(p, PROXY_COMMIT, PROXY_COMMIT_SIZE, POOL_WORKERS);
    lab_pool_start(l, POOL_HOLDER);
    lab_until_over(l, POOL_HOLDER);
    until_count(p, PROXY_CUTS_AFTER, POOL_WORKERS);
}
