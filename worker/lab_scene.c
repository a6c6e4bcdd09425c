/* lab_scene: the schedule of each fault for the plain strategies. Letters as on paper:
 * A holds the lock when the fault comes, B and C come later. */
#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/wait.h>

#include "common/clock.h"
#include "worker/lab_actor.h"
#include "worker/lab_scene.h"

enum { ANSWER_MS = 20000, TRIES = 24 };

static const char commit[] = "Q\0\0\0\013COMMIT";

/* ---- words of a schedule ---- */

static struct lab_seat *seat_a(struct lab *l)
{
    return &l->seats[0];
}

static struct lab_seat *seat_b(struct lab *l)
{
    return &l->seats[1];
}

static struct lab_seat *seat_c(struct lab *l)
{
    return &l->seats[2];
}

static bool is_over(struct lab_seat *seat)
{
    if (seat->pid > 0 && waitpid(seat->pid, NULL, WNOHANG) == seat->pid)
        seat->pid = 0;
    return seat->pid == 0;
}

/* Waits until the actor stands at a point or has ended. */
static int until_held(struct lab_seat *seat, struct err *e)
{
    int64_t until = clk_ms() + ANSWER_MS;

    while (atomic_load(&seat->at) == LAB_NOWHERE && !is_over(seat)) {
        if (clk_ms() > until)
            return err_set(e, ERR_BUG, "an actor neither stops nor ends");
        clk_pause_ms(1);
    }
    return 0;
}

static int until_over(struct lab_seat *seat, struct err *e)
{
    int64_t until = clk_ms() + ANSWER_MS;

    while (!is_over(seat)) {
        if (clk_ms() > until)
            return err_set(e, ERR_BUG, "an actor does not end");
        clk_pause_ms(1);
    }
    return 0;
}

/* Sends an actor to one box and waits until it stands there or has come to nothing. */
static int bring(struct lab *l,
                 struct lab_seat *seat,
                 int64_t box,
                 enum lab_point point,
                 struct err *e)
{
    const struct lab_errand x = {
        .first = box,
        .last = box,
        .steps = 1,
        .tries = TRIES,
        .patience_ms = ANSWER_MS,
        .is_relayed = seat == seat_a(l),
        .stop_at = point,
    };

    if (lab_actor_start(l, seat, &x, e) != 0)
        return (int)e->code;
    return until_held(seat, e);
}

/* The same for A, who is alone and must get there. */
static int bring_a(struct lab *l, int64_t box, enum lab_point point, struct err *e)
{
    if (bring(l, seat_a(l), box, point, e) != 0)
        return (int)e->code;
    if (atomic_load(&seat_a(l)->at) == (int)point)
        return 0;
    return err_set(e, ERR_BUG, "A did not come to its point in box %lld",
                   (long long)box);
}

static void let_go(struct lab_seat *seat, enum lab_point next)
{
    atomic_store(&seat->stop_at, (int)next);
    if (atomic_load(&seat->at) == LAB_NOWHERE)
        return;
    atomic_store(&seat->at, LAB_NOWHERE);
    atomic_store(&seat->go, 1);
}

static int finish(struct lab_seat *seat, struct err *e)
{
    let_go(seat, LAB_NOWHERE);
    return until_over(seat, e);
}

/* Somebody comes and does the step, or finds it busy and goes. */
static int visit(struct lab *l, struct lab_seat *seat, int64_t box, struct err *e)
{
    return bring(l, seat, box, LAB_NOWHERE, e) != 0 ? (int)e->code
                                                    : until_over(seat, e);
}

static void end_holder(struct lab *l, struct lab_seat *seat)
{
    l->thrown += atomic_load(&seat->at) == LAB_BEFORE_COMMIT;
    (void)kill(seat->pid, SIGKILL);
    (void)waitpid(seat->pid, NULL, 0);
    seat->pid = 0;
}

/* Until the lease of a box has run out by itself; a key that is renewed is given twice
 * its lease, one without end none. */
static void outwait(struct lab *l, int64_t box)
{
    int64_t until = clk_ms() + 2 * l->lease_ms;
    char key[32];

    (void)snprintf(key, sizeof key, "lab:box:%lld", (long long)box);
    while (l->strategy->lock_word != NULL && clk_ms() < until) {
        int64_t left = lab_key_left(&l->servers, key);

        if (left == -2 || left == -1)
            return;
        clk_pause_ms(5);
    }
}

/* ---- calm ---- */

static int meet(struct lab *l, int64_t box, struct err *e)
{
    if (bring_a(l, box, LAB_BEFORE_WRITE, e) != 0 || visit(l, seat_b(l), box, e) != 0)
        return (int)e->code;
    return finish(seat_a(l), e);
}

int lab_scene_calm(struct lab *l, struct err *e)
{
    return meet(l, 1, e);
}

/* ---- killed ---- */

int lab_scene_killed(struct lab *l, struct err *e)
{
    bool two = lab_is(l->strategy, LAB_TWO_LOCKS);

    if (bring_a(l, 1, two ? LAB_MID_LOCK : LAB_AFTER_LOCK, e) != 0)
        return (int)e->code;
    end_holder(l, seat_a(l));
    if (bring_a(l, 2, LAB_BEFORE_COMMIT, e) != 0)
        return (int)e->code;
    end_holder(l, seat_a(l));
    l->lease_ms = LAB_LONG_MS;
    return meet(l, 3, e);
}

/* ---- stopped ---- */

/* A stands still before it writes, and writes after B. */
static int write_late(struct lab *l, int64_t box, struct err *e)
{
    if (bring_a(l, box, LAB_BEFORE_WRITE, e) != 0)
        return (int)e->code;
    (void)kill(seat_a(l)->pid, SIGSTOP);
    outwait(l, box);
    if (visit(l, seat_b(l), box, e) != 0)
        return (int)e->code;
    (void)kill(seat_a(l)->pid, SIGCONT);
    return finish(seat_a(l), e);
}

/* A stands still before it unlocks, and unlocks while B holds the lock; then C comes.
 */
static int unlock_late(struct lab *l, int64_t box, struct err *e)
{
    bool two = lab_is(l->strategy, LAB_TWO_UNLOCKS);

    if (bring_a(l, box, two ? LAB_MID_UNLOCK : LAB_BEFORE_UNLOCK, e) != 0)
        return (int)e->code;
    (void)kill(seat_a(l)->pid, SIGSTOP);
    outwait(l, box);
    l->lease_ms = LAB_LONG_MS; /* B's lock ends when A or B ends it */
    if (bring(l, seat_b(l), box, LAB_BEFORE_WRITE, e) != 0)
        return (int)e->code;
    (void)kill(seat_a(l)->pid, SIGCONT);
    if (finish(seat_a(l), e) != 0 || visit(l, seat_c(l), box, e) != 0)
        return (int)e->code;
    return finish(seat_b(l), e);
}

int lab_scene_stopped(struct lab *l, struct err *e)
{
    if (write_late(l, 1, e) != 0)
        return (int)e->code;
    return unlock_late(l, 2, e);
}

/* ---- Redis forgets, while A is before its write ---- */

static int forgetting(struct lab *l,
                      int (*forget)(struct lab_servers *s, struct err *e),
                      struct err *e)
{
    if (bring_a(l, 1, LAB_BEFORE_WRITE, e) != 0 || forget(&l->servers, e) != 0 ||
        visit(l, seat_b(l), 1, e) != 0)
        return (int)e->code;
    return finish(seat_a(l), e);
}

int lab_scene_flushed(struct lab *l, struct err *e)
{
    return forgetting(l, lab_flush, e);
}

int lab_scene_restarted(struct lab *l, struct err *e)
{
    return forgetting(l, lab_restart_empty, e);
}

int lab_scene_promoted(struct lab *l, struct err *e)
{
    if (lab_freeze_replica(&l->servers, e) != 0)
        return (int)e->code;
    return forgetting(l, lab_promote, e);
}

int lab_scene_jumped(struct lab *l, struct err *e)
{
    return forgetting(l, lab_jump, e);
}

int lab_scene_random(struct lab *l, struct err *e)
{
    if (meet(l, 1, e) != 0)
        return (int)e->code;
    return lab_servers_tell_truth(&l->servers, e);
}

/* ---- replies lost ---- */

/* What the relay did must have been done, or the cell shows nothing. */
static int check_lost(struct lab *l, unsigned hits, struct err *e)
{
    if (l->strategy->lock_word == NULL || lab_relay_hits(&l->servers.to_redis) == hits)
        return 0;
    return err_set(e, ERR_BUG, "%u replies were to be lost, and %u were", hits,
                   lab_relay_hits(&l->servers.to_redis));
}

static void lose(struct lab *l, const char *word)
{
    if (word != NULL)
        lab_relay_lose(&l->servers.to_redis, word, strlen(word), 1);
}

int lab_scene_replies(struct lab *l, struct err *e)
{
    lose(l, l->strategy->lock_word);
    if (bring(l, seat_a(l), 1, LAB_NOWHERE, e) != 0 || check_lost(l, 1, e) != 0)
        return (int)e->code;
    l->lease_ms = LAB_LONG_MS; /* from here on no lock ends by itself */
    if (bring_a(l, 2, LAB_BEFORE_UNLOCK, e) != 0)
        return (int)e->code;
    lose(l, l->strategy->unlock_word);
    let_go(seat_a(l), LAB_BEFORE_REPEAT);
    if (until_held(seat_a(l), e) != 0 || check_lost(l, 2, e) != 0 ||
        bring(l, seat_b(l), 2, LAB_BEFORE_WRITE, e) != 0 || finish(seat_a(l), e) != 0 ||
        visit(l, seat_c(l), 2, e) != 0)
        return (int)e->code;
    return finish(seat_b(l), e);
}

/* ---- PostgreSQL ---- */

int lab_scene_postgres(struct lab *l, struct err *e)
{
    if (bring_a(l, 1, LAB_BEFORE_WRITE, e) != 0 || lab_crash(l, e) != 0)
        return (int)e->code;
    outwait(l, 1);
    if (visit(l, seat_b(l), 1, e) != 0)
        return (int)e->code;
    return finish(seat_a(l), e);
}

int lab_scene_commit(struct lab *l, struct err *e)
{
    if (bring_a(l, 1, LAB_BEFORE_COMMIT, e) != 0)
        return (int)e->code;
    lab_relay_lose(&l->servers.to_postgres, commit, sizeof commit - 1, 1);
    if (finish(seat_a(l), e) != 0)
        return (int)e->code;
    if (lab_relay_hits(&l->servers.to_postgres) != 1)
        return err_set(e, ERR_BUG, "the answer to COMMIT was to be lost and was not");
    return 0;
}
