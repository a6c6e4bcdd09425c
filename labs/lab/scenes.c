/* scenes: the schedule of each fault for the actors. Letters as on paper: A has the
 * lock when the fault comes, B and C come later. */
#include "labs/lab/scenes.h"

#include <signal.h>
#include <stdio.h>
#include <string.h>

#include "labs/lab/actor.h"
#include "labs_sql_gen.h"

enum { TRIES = 24 };

enum { A, B, C }; /* seats */

/* ---- words of a schedule ---- */

static bool has_stopped(struct lab *l, int seat)
{
    return atomic_load(&l->seats[seat].at) != LAB_NOWHERE || lab_is_over(l, seat);
}

void lab_until_stopped(struct lab *l, int seat)
{
    LAB_UNTIL(has_stopped(l, seat), "an actor neither stops nor ends");
}

/* Sends an actor to one item. */
static void send_to(struct lab *l, int seat, int64_t item, enum lab_point point)
{
    const struct lab_task t = {
        .first = item,
        .last = item,
        .steps = 1,
        .tries = TRIES,
        .give_up_ms = LAB_ANSWER_MS,
        .is_proxied = seat == A,
        .stop_at = point,
    };

    lab_actor_start(l, &l->seats[seat], &t);
}

/* The same, and waits until it stands there or has come to nothing; A is alone and must
 * get there. */
static void bring(struct lab *l, int seat, int64_t item, enum lab_point point)
{
    send_to(l, seat, item, point);
    lab_until_stopped(l, seat);
    if (seat == A && atomic_load(&l->seats[A].at) != (int)point)
        lab_fail("A did not come to its point in item %lld", (long long)item);
}

void lab_let_go(struct lab *l, int seat, enum lab_point next)
{
    struct lab_seat *s = &l->seats[seat];

    atomic_store(&s->stop_at, (int)next);
    if (atomic_load(&s->at) == LAB_NOWHERE)
        return;
    atomic_store(&s->at, LAB_NOWHERE);
    atomic_store(&s->go, 1);
}

void lab_finish(struct lab *l, int seat)
{
    lab_let_go(l, seat, LAB_NOWHERE);
    lab_until_over(l, seat);
}

bool lab_waits_inside(struct lab *l)
{
    int64_t blocked = 0;

    if (lab_is(l->strategy, LAB_WAITS))
        lab_ask_numbers(l, SQL_LAB_COUNT_BLOCKED, &blocked, 1);
    l->met[LAB_BLOCKED] += blocked;
    return blocked > 0;
}

/* Somebody comes and does the step, or finds it busy and goes; where the lock makes him
 * wait, until he waits. */
static void visit(struct lab *l, int seat, int64_t item)
{
    send_to(l, seat, item, LAB_NOWHERE);
    LAB_UNTIL(lab_is_over(l, seat) || lab_waits_inside(l),
              "an actor neither waits nor ends");
}

/* All actors go on and end, those that waited inside the lock too. */
static void finish_all(struct lab *l)
{
    for (int seat = 0; seat < LAB_SEATS; seat++)
        lab_finish(l, seat);
}

static void end_holder(struct lab *l)
{
    l->met[LAB_DEAD] += atomic_load(&l->seats[A].at) == LAB_BEFORE_COMMIT;
    kit_kill(&l->seats[A].pid);
}

void lab_outwait(struct lab *l, int64_t item)
{
    int64_t until = clk_ms() + 2 * l->lease_ms;
    char key[32];

    (void)snprintf(key, sizeof key, LAB_PREFIX "item:%lld", (long long)item);
    while (l->strategy->lock_word != NULL && clk_ms() < until &&
           lab_key_left(&l->servers, key) >= 0)
        clk_pause_ms(5);
}

/* ---- calm, lying ---- */

static void meet(struct lab *l, int64_t item)
{
    bring(l, A, item, LAB_BEFORE_WRITE);
    visit(l, B, item);
    finish_all(l);
}

void lab_scene_calm(struct lab *l)
{
    meet(l, 1);
}

void lab_scene_lying(struct lab *l)
{
    meet(l, 1);
    lab_end_lies(&l->servers);
}

/* ---- killed ---- */

void lab_scene_killed(struct lab *l)
{
    bool two = lab_is(l->strategy, LAB_TWO_LOCKS);

    bring(l, A, 1, two ? LAB_MID_LOCK : LAB_AFTER_LOCK);
    end_holder(l);
    bring(l, A, 2, LAB_BEFORE_COMMIT);
    end_holder(l);
    l->lease_ms = LAB_LONG_MS;
    meet(l, 3);
}

/* ---- stopped ---- */

/* A stands still before it writes, and writes after B. */
static void write_late(struct lab *l, int64_t item)
{
    bring(l, A, item, LAB_BEFORE_WRITE);
    (void)kill(l->seats[A].pid, SIGSTOP);
    lab_outwait(l, item);
    visit(l, B, item);
    (void)kill(l->seats[A].pid, SIGCONT);
    finish_all(l);
}

/* A stands still before it unlocks, and unlocks while B holds the lock; then C comes.
 */
static void unlock_late(struct lab *l, int64_t item)
{
    bool two = lab_is(l->strategy, LAB_TWO_UNLOCKS);

    bring(l, A, item, two ? LAB_MID_UNLOCK : LAB_BEFORE_UNLOCK);
    (void)kill(l->seats[A].pid, SIGSTOP);
    lab_outwait(l, item);
    l->lease_ms = LAB_LONG_MS; /* B's lock ends when A or B ends it */
    bring(l, B, item, LAB_BEFORE_WRITE);
    (void)kill(l->seats[A].pid, SIGCONT);
    lab_finish(l, A);
    visit(l, C, item);
    finish_all(l);
}

void lab_scene_stopped(struct lab *l)
{
    write_late(l, 1);
    unlock_late(l, 2);
}

/* ---- Redis forgets, while A is before its write ---- */

void lab_scene_forgets(struct lab *l)
{
    if (l->servers.needs.replica)
        lab_freeze_replica(&l->servers);
    bring(l, A, 1, LAB_BEFORE_WRITE);
    l->fault->forget(&l->servers);
    visit(l, B, 1);
    finish_all(l);
}

/* ---- replies lost ---- */

/* The answer to the next command with this word gets lost. */
static void lose(struct lab *l, const char *word)
{
    if (word != NULL)
        proxy_cut_after(&l->servers.to_struck, word, strlen(word), 1);
}

/* So many answers were lost, or the cell shows nothing. */
static void check_lost(struct lab *l, unsigned ct)
{
    unsigned lost = proxy_count(&l->servers.to_struck, PROXY_CUTS_AFTER);

    if (l->strategy->lock_word != NULL && lost != ct)
        lab_fail("%u replies were to be lost, and %u were", ct, lost);
}

void lab_scene_replies(struct lab *l)
{
    lose(l, l->strategy->lock_word);
    send_to(l, A, 1, LAB_NOWHERE);
    lab_until_over(l, A);
    check_lost(l, 1);
    l->lease_ms = LAB_LONG_MS; /* from here on no lock ends by itself */
    bring(l, A, 2, LAB_BEFORE_UNLOCK);
    lose(l, l->strategy->unlock_word);
    lab_let_go(l, A, LAB_BEFORE_REPEAT);
    lab_until_stopped(l, A);
    check_lost(l, 2);
    bring(l, B, 2, LAB_BEFORE_WRITE);
    lab_finish(l, A);
    visit(l, C, 2);
    finish_all(l);
}

/* ---- PostgreSQL ---- */

void lab_scene_postgres(struct lab *l)
{
    bring(l, A, 1, LAB_BEFORE_WRITE);
    lab_crash(l);
    lab_outwait(l, 1);
    visit(l, B, 1);
    finish_all(l);
}

void lab_scene_commit(struct lab *l)
{
    bring(l, A, 1, LAB_BEFORE_COMMIT);
    proxy_cut_after(&l->to_postgres, PROXY_COMMIT, PROXY_COMMIT_SIZE, 1);
    lab_finish(l, A);
    if (proxy_count(&l->to_postgres, PROXY_CUTS_AFTER) != 1)
        lab_fail("the answer to COMMIT was to be lost and was not");
}
