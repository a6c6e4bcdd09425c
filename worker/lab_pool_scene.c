/* lab_pool_scene: the schedule of each fault for the shipped strategy. Two workers, one
 * that charges and one that serves orders, are held by the relay when the fault comes;
 * another one comes for the same rows; then they go on. */
#include <signal.h>
#include <string.h>
#include <sys/wait.h>

#include "common/clock.h"
#include "worker/lab_pool.h"
#include "worker/lab_scene.h"

enum { HOLDERS = 2, ANSWER_MS = 20000, LIES_MS = 1500, WORK = 6, LOST = 6 };

/* Where the holders stand: the lock is theirs, and they have not told PostgreSQL yet;
 * or everything is written, and COMMIT is on its way. */
static const char at_begin[] = " ISOLATION LEVEL READ COMMITTED";
static const char at_commit[] = "Q\0\0\0\013COMMIT";
static const char evalsha[] = "EVALSHA";

/* ---- words of a schedule ---- */

static int until_hits(const struct lab_relay *r, unsigned hits, struct err *e)
{
    int64_t until = clk_ms() + ANSWER_MS;

    while (lab_relay_hits(r) < hits) {
        if (clk_ms() > until)
            return err_set(e, ERR_BUG, "%u messages were to meet the relay, %u did",
                           hits, lab_relay_hits(r));
        clk_pause_ms(1);
    }
    return 0;
}

static int start_holders(struct lab *l, struct err *e)
{
    for (int seat = 0; seat < HOLDERS; seat++) {
        if (lab_pool_start(l, seat, e) != 0)
            return (int)e->code;
    }
    return 0;
}

/* New work, and both holders stand before the bytes. */
static int hold_at(struct lab *l, const char *bytes, size_t size, struct err *e)
{
    struct lab_relay *r = &l->servers.to_postgres;
    unsigned hits = lab_relay_hits(r);

    if (lab_pool_put(l, WORK, e) != 0)
        return (int)e->code;
    lab_relay_hold(r, bytes, size, HOLDERS);
    if (start_holders(l, e) != 0)
        return (int)e->code;
    return until_hits(r, hits + HOLDERS, e);
}

static int hold_at_begin(struct lab *l, struct err *e)
{
    return hold_at(l, at_begin, sizeof at_begin - 1, e);
}

static int hold_at_commit(struct lab *l, struct err *e)
{
    return hold_at(l, at_commit, sizeof at_commit - 1, e);
}

static int until_over(struct lab *l, int seat, struct err *e)
{
    int64_t until = clk_ms() + ANSWER_MS;

    while (!lab_pool_is_over(l, seat)) {
        if (clk_ms() > until)
            return err_set(e, ERR_BUG, "a worker of the pool does not end");
        clk_pause_ms(1);
    }
    return 0;
}

static void signal_holders(struct lab *l, int sig)
{
    for (int seat = 0; seat < HOLDERS; seat++)
        (void)kill(l->seats[seat].pid, sig);
}

static int let_go(struct lab *l, struct err *e)
{
    lab_relay_let_go(&l->servers.to_postgres);
    for (int seat = 0; seat < HOLDERS; seat++) {
        if (until_over(l, seat, e) != 0)
            return (int)e->code;
    }
    return 0;
}

/* Another worker comes and does everything that the holders stand before. */
static int overtake(struct lab *l, struct err *e)
{
    int64_t before = lab_pool_done(l);

    if (lab_pool_start(l, POOL_OTHER, e) != 0 || until_over(l, POOL_OTHER, e) != 0)
        return (int)e->code;
    if (lab_pool_done(l) - before == WORK * LAB_PERIODS + WORK)
        return 0;
    return err_set(e, ERR_BUG, "the other worker did not overtake the holders");
}

/* ---- calm ---- */

int lab_pool_calm(struct lab *l, struct err *e)
{
    int64_t until = clk_ms() + ANSWER_MS;

    if (hold_at_commit(l, e) != 0 || lab_pool_start(l, POOL_OTHER, e) != 0)
        return (int)e->code;
    while (lab_pool_busy(l, POOL_OTHER) == 0 && clk_ms() < until)
        clk_pause_ms(1);
    if (lab_pool_busy(l, POOL_OTHER) == 0)
        return err_set(e, ERR_BUG, "the other worker met nobody");
    if (let_go(l, e) != 0)
        return (int)e->code;
    return until_over(l, POOL_OTHER, e);
}

/* ---- killed, stopped ---- */

static int kill_holders(struct lab *l, struct err *e)
{
    l->thrown += HOLDERS;
    signal_holders(l, SIGKILL);
    lab_relay_drop(&l->servers.to_postgres);
    for (int seat = 0; seat < HOLDERS; seat++) {
        if (until_over(l, seat, e) != 0)
            return (int)e->code;
    }
    return overtake(l, e);
}

int lab_pool_killed(struct lab *l, struct err *e)
{
    if (hold_at_begin(l, e) != 0 || kill_holders(l, e) != 0 ||
        hold_at_commit(l, e) != 0)
        return (int)e->code;
    return kill_holders(l, e);
}

static int stop_holders(struct lab *l, struct err *e)
{
    signal_holders(l, SIGSTOP);
    if (overtake(l, e) != 0)
        return (int)e->code;
    signal_holders(l, SIGCONT);
    return let_go(l, e);
}

int lab_pool_stopped(struct lab *l, struct err *e)
{
    if (hold_at_commit(l, e) != 0 || stop_holders(l, e) != 0 ||
        hold_at_begin(l, e) != 0)
        return (int)e->code;
    return stop_holders(l, e);
}

/* ---- Redis forgets ---- */

static int forgetting(struct lab *l,
                      int (*forget)(struct lab_servers *s, struct err *e),
                      struct err *e)
{
    if (hold_at_begin(l, e) != 0 || forget(&l->servers, e) != 0 || overtake(l, e) != 0)
        return (int)e->code;
    return let_go(l, e);
}

int lab_pool_flushed(struct lab *l, struct err *e)
{
    return forgetting(l, lab_flush, e);
}

int lab_pool_restarted(struct lab *l, struct err *e)
{
    return forgetting(l, lab_restart_empty, e);
}

int lab_pool_promoted(struct lab *l, struct err *e)
{
    if (lab_freeze_replica(&l->servers, e) != 0)
        return (int)e->code;
    return forgetting(l, lab_promote, e);
}

int lab_pool_jumped(struct lab *l, struct err *e)
{
    return forgetting(l, lab_jump, e);
}

/* Ends workers that random tokens keep from their rows. */
static int end_on_lies(struct lab *l, int seat, struct err *e)
{
    int64_t until = clk_ms() + LIES_MS;

    while (!lab_pool_is_over(l, seat) && clk_ms() < until)
        clk_pause_ms(2);
    if (l->seats[seat].pid > 0)
        (void)kill(l->seats[seat].pid, SIGTERM);
    return until_over(l, seat, e);
}

int lab_pool_random(struct lab *l, struct err *e)
{
    int64_t before;

    if (hold_at_begin(l, e) != 0)
        return (int)e->code;
    before = lab_pool_done(l);
    if (lab_pool_start(l, POOL_OTHER, e) != 0 || end_on_lies(l, POOL_OTHER, e) != 0)
        return (int)e->code;
    if (lab_pool_done(l) == before)
        return err_set(e, ERR_BUG, "nobody was granted what somebody else held");
    lab_relay_let_go(&l->servers.to_postgres);
    for (int seat = 0; seat < HOLDERS; seat++) {
        if (end_on_lies(l, seat, e) != 0)
            return (int)e->code;
    }
    return lab_servers_tell_truth(&l->servers, e);
}

/* ---- replies, PostgreSQL ---- */

int lab_pool_replies(struct lab *l, struct err *e)
{
    struct lab_relay *r = &l->servers.to_redis;

    if (hold_at_begin(l, e) != 0)
        return (int)e->code;
    lab_relay_lose(r, evalsha, sizeof evalsha - 1, LOST);
    if (let_go(l, e) != 0)
        return (int)e->code;
    return until_hits(r, LOST, e);
}

int lab_pool_postgres(struct lab *l, struct err *e)
{
    if (hold_at_commit(l, e) != 0 || lab_crash(l, e) != 0 || overtake(l, e) != 0)
        return (int)e->code;
    l->thrown += HOLDERS;
    return let_go(l, e);
}

int lab_pool_commit(struct lab *l, struct err *e)
{
    struct lab_relay *r = &l->servers.to_postgres;

    if (lab_pool_put(l, WORK, e) != 0)
        return (int)e->code;
    lab_relay_lose(r, at_commit, sizeof at_commit - 1, HOLDERS);
    if (start_holders(l, e) != 0 || let_go(l, e) != 0)
        return (int)e->code;
    return until_hits(r, HOLDERS, e);
}
