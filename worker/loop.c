/* loop: sweep the buckets, pause, report; come back when a server does. */
#include "worker/loop.h"

#include <inttypes.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "common/clock.h"
#include "common/log.h"
#include "worker/account.h"
#include "worker/batch.h"
#include "worker/bell.h"
#include "worker/connect.h"
#include "worker/endless.h"
#include "worker/epoch.h"
#include "worker/journal.h"
#include "worker/queue.h"
#include "worker/rescue.h"
#include "worker/settle.h"
#include "worker/turn.h"

enum {
    BUCKETS = WALK_BUCKETS,
    COMPLAIN_MS = 10000,
    SUSPECTS = 16, /* worked one by one in one visit */
    RETRY_BASE_MS = 50,
    RETRY_CAP_MS = 2000
};

static volatile sig_atomic_t stopping;
static const struct slot *own;

static void on_stop(int sig)
{
    (void)sig;
    stopping = 1;
    bell_ring(own);
}

/* Pauses, but not past a signal to stop. */
static void pause_ms(const struct worker *w, int64_t ms)
{
    if (!stopping)
        (void)bell_wait(w->slot, -1, ms);
}

/* ---- what the supervisor sees ---- */

/* The last counters of the process, over a new connection if the old one broke. */
static void report_last(struct worker *w)
{
    struct err e = {0};

    if (!pg_is_usable(w->pg)) {
        pg_close(w->pg);
        w->pg = NULL;
        if (connect_postgres(w, &e) != 0)
            return;
    }
    (void)!journal_catch_up(w, &e);
    account_now(w);
}

/* ---- work ---- */

/* What one sweep saw. */
struct look {
    bool seen;        /* something is due, ours or with others */
    bool worked;      /* something was done */
    int64_t next_ms;  /* until the next row is due */
    int64_t again_ms; /* until a bucket may be visited that was stepped back from */
};

static int due_buckets(struct worker *w,
                       const struct job_type *job,
                       int64_t *buckets,
                       size_t *n,
                       struct look *look,
                       struct err *e)
{
    const struct pg_param param = pg_text(w->now);
    struct pg_result *res;

    *n = 0;
    if (pg_exec(w->pg, job->due, &param, 1, &res, e) != 0)
        return (int)e->code;
    for (size_t row = 0; row < pg_rows(res) && *n < BUCKETS; row++) {
        int64_t ms = pg_get_int8(res, row, 1);

        if (ms == 0)
            buckets[(*n)++] = pg_get_int8(res, row, 0);
        else if (ms < look->next_ms)
            look->next_ms = ms;
    }
    pg_result_free(res);
    return 0;
}

/* A timeout or a deadlock that ended one transaction and nothing else. Said once in a
 * while: the work stays due, and somebody should know why. */
static bool is_collision(struct worker *w, const struct err *e)
{
    char quoted[400];

    if ((e->code != ERR_CONFLICT && e->code != ERR_TIMEOUT) || !pg_is_usable(w->pg))
        return false;
    worker_count(w, METRIC_conflicts, 1);
    if (clk_ms() - w->complained_ms > COMPLAIN_MS) {
        w->complained_ms = clk_ms();
        log_warn("worker.collided", "err=%s", log_quote(quoted, sizeof quoted, e->msg));
    }
    return true;
}

/* One turn; one bucket's trouble keeps no other waiting. */
static int take_turn(struct worker *w,
                     const struct job_type *job,
                     const struct turn_order *order,
                     enum turn *turn,
                     struct err *e)
{
    if (turn_run(w, job, order, turn, e) == 0)
        return 0;
    if (!is_collision(w, e))
        return (int)e->code;
    hold_clear(&w->slot->hold);
    *turn = TURN_BUSY;
    return 0;
}

/* Some of the bucket's suspects, each alone. When all that is left there are suspects
 * with others, the worker steps back. */
static int visit_suspects(struct worker *w,
                          const struct job_type *job,
                          struct walk *walk,
                          const struct turn_order *order,
                          enum turn *turn,
                          struct err *e)
{
    struct walk_turn did = {.first_worked = true};

    for (int i = 0; i < SUSPECTS && w->batch->suspect_ct > 0 && !stopping; i++) {
        enum turn alone;

        if (take_turn(w, job, order, &alone, e) != 0)
            return (int)e->code;
        did.pulled += w->batch->n;
        if (*turn != TURN_WORKED)
            *turn = alone;
    }
    if (*turn != TURN_WORKED)
        walk_learn(walk, order->bucket, &did, clk_ms());
    return 0;
}

/* One turn in a bucket, what the worker learns from it, and the next one's turn;
 * whether most of what it wanted was busy. */
static int turn_and_learn(struct worker *w,
                          const struct job_type *job,
                          struct walk *walk,
                          struct turn_order *order,
                          enum turn *turn,
                          struct err *e)
{
    const struct batch *b = w->batch;
    int64_t since_us = clk_us() - w->slot->waste.paused_us;
    int code = take_turn(w, job, order, turn, e);
    struct walk_turn did = {.pulled = b->n,
                            .worked = b->worked,
                            .first = b->items[0],
                            .first_worked = b->first_worked,
                            .youngest = b->youngest,
                            .queued = order->queues};

    did.took_ms = (clk_us() - w->slot->waste.paused_us - since_us) / 1000;
    if (code == 0 && !order->patient)
        walk_fit(walk, &did, (size_t)w->config->batch, w->config->lease_ms);
    if (code == 0 && (did.pulled > 0 || b->suspect_ct == 0))
        walk_learn(walk, order->bucket, &did, clk_ms());
    queue_leave(w);
    order->queues = order->line != NULL && !order->queues && walk_is_mostly_busy(&did);
    return code;
}

/* One batch from a bucket. Where others have most of the keys, what is free is worked
 * beside them, and then, as soon as they are done, the rest. */
static int visit(struct worker *w,
                 const struct job_type *job,
                 struct walk *walk,
                 int64_t bucket,
                 enum turn *turn,
                 struct err *e)
{
    bool patient = walk_is_patient(walk, bucket);
    bool shared = walk_is_shared(walk, bucket);
    struct turn_order order = {.bucket = bucket,
                               .limit = patient ? 1 : walk->limit,
                               .line = walk_line(walk, bucket),
                               .queues = shared || (patient && walk->lines != NULL),
                               .patient = patient};
    enum turn again;

    if (shared)
        (void)queue_enter(w, (int)(walk - w->walks), true);
    if (turn_and_learn(w, job, walk, &order, turn, e) != 0)
        return (int)e->code;
    if (order.queues && !stopping) {
        if (turn_and_learn(w, job, walk, &order, &again, e) != 0)
            return (int)e->code;
        *turn = *turn == TURN_WORKED ? *turn : again;
    }
    order =
        (struct turn_order){.bucket = bucket, .limit = walk->limit, .suspect = true};
    return w->batch->suspect_ct > 0 ? visit_suspects(w, job, walk, &order, turn, e) : 0;
}

/* One batch from every due bucket that it has not stepped back from, beginning at this
 * worker's own place; several pools begin at different ones. */
static int sweep_job(struct worker *w, size_t index, struct look *look, struct err *e)
{
    const struct job_type *job = job_types[index];
    struct walk *walk = &w->walks[index];
    int64_t buckets[BUCKETS];
    int64_t place = ((int64_t)w->index * BUCKETS / w->peers + w->pool[0]) % BUCKETS;
    size_t n, first = 0;

    if (due_buckets(w, job, buckets, &n, look, e) != 0)
        return (int)e->code;
    look->seen = look->seen || n > 0;
    while (first < n && buckets[first] < place)
        first++;
    for (size_t i = 0; i < n && !stopping; i++) {
        int64_t bucket = buckets[(first + i) % n];
        enum turn turn;

        if (!walk_may(walk, bucket, clk_ms(), &look->again_ms))
            continue;
        if (visit(w, job, walk, bucket, &turn, e) != 0)
            return (int)e->code;
        look->worked = look->worked || turn == TURN_WORKED;
        if (turn != TURN_EMPTY)
            account_server(w, &w->slot->redis, SLOT_UP, NULL);
        account(w);
    }
    return 0;
}

static int sweep(struct worker *w, struct look *look, struct err *e)
{
    for (size_t i = 0; i < JOB_TYPE_CT && !stopping; i++) {
        if ((w->jobs & 1u << i) != 0 && sweep_job(w, i, look, e) != 0)
            return err_wrap(e, "%s", job_types[i]->name);
    }
    return 0;
}

/* A worker that finds nothing due asks for no lock: it looks whether Redis is back. */
static void look_for_redis(struct worker *w)
{
    if (w->locks != NULL && w->slot->redis == SLOT_DOWN &&
        ll_connect(w->locks) == LL_OK)
        account_server(w, &w->slot->redis, SLOT_UP, NULL);
}

/* A usable connection and nothing unsettled, or an error. */
static int ready(struct worker *w, struct err *e)
{
    if (!pg_is_usable(w->pg)) {
        pg_close(w->pg);
        w->pg = NULL;
        if (connect_postgres(w, e) != 0)
            return (int)e->code;
    }
    account_server(w, &w->slot->postgres, SLOT_UP, NULL);
    if (journal_catch_up(w, e) != 0 || rescue_predecessor(w, e) != 0 ||
        epoch_catch_up(w, e) != 0)
        return (int)e->code;
    if (!w->unknown.pending)
        return 0;
    if (settle_pending(w, e) != 0)
        return (int)e->code;
    turn_release(w);
    hold_clear(&w->slot->hold);
    return 0;
}

/* What to do about an error: true to go on after a pause, false to end the process. */
static bool survive(struct worker *w, const struct err *e, unsigned failures)
{
    char quoted[400];

    if (e->code == ERR_REDIS) {
        account_server(w, &w->slot->redis, SLOT_DOWN, e);
    } else if (!pg_is_usable(w->pg)) {
        account_server(w, &w->slot->postgres, SLOT_DOWN, e);
    } else if (e->code == ERR_CONFLICT || e->code == ERR_TIMEOUT) {
        worker_count(w, METRIC_conflicts, 1);
    } else {
        log_error("worker.failed", "err=%s", log_quote(quoted, sizeof quoted, e->msg));
        return false;
    }
    log_debug("worker.retry", "failures=%u err=%s", failures,
              log_quote(quoted, sizeof quoted, e->msg));
    pause_ms(w,
             RETRY_BASE_MS / 2 + clk_backoff_ms(failures, RETRY_BASE_MS, RETRY_CAP_MS));
    return true;
}

/* An error ended the batch and not us. One whose COMMIT is unknown is still ours, and
 * so is what a dead one left until it is cleared up. */
static void leave_batch(struct worker *w)
{
    if (!w->unknown.pending && w->slot->hold.incarnation == w->slot->incarnation)
        hold_clear(&w->slot->hold);
}

static enum exit_code exit_code_of(const struct err *e)
{
    return e->code == ERR_SCHEMA || e->code == ERR_DENIED ? EXIT_REFUSED : EXIT_BUG;
}

/* One look in poll_ms does for the whole pool, whoever takes it. */
static bool is_our_look(struct worker *w)
{
    long long last = *w->looked_ms;
    long long now = clk_ms();

    return now - last >= w->config->poll_ms &&
           atomic_compare_exchange_strong(w->looked_ms, &last, now);
}

/* Nothing is due: sleeps until something is, or until it is time for the pool's next
 * look and no other worker takes it; less when the listener rings or the server hangs
 * up. With a fixed `now` no time comes. The listener is told who sleeps, unless it
 * knows that the doors will notify. */
static void sleep_idle(struct worker *w, int64_t next_ms)
{
    int64_t due_at =
        w->now == NULL && next_ms < INT64_MAX ? clk_ms() + next_ms : INT64_MAX;
    bool woken;

    w->slot->is_idle = true;
    if (w->listener != NULL && !w->listener->is_idle)
        bell_ring(w->listener);
    do {
        int64_t until = *w->looked_ms + w->config->poll_ms;

        look_for_redis(w);
        account(w);
        woken = stopping || !pg_is_usable(w->pg) ||
                bell_wait(w->slot, pg_socket(w->pg),
                          (until < due_at ? until : due_at) - clk_ms());
    } while (!woken && !stopping && clk_ms() < due_at && !is_our_look(w));
    w->slot->is_idle = false;
}

/* All that is due is with others: does not spin. */
static void step_back(struct worker *w, const struct look *look)
{
    int64_t since_us = clk_us();

    pause_ms(w, look->again_ms < w->config->poll_ms ? look->again_ms : 1);
    w->slot->waste.paused_us += clk_us() - since_us;
}

static enum exit_code live(struct worker *w)
{
    unsigned failures = 0;

    while (!stopping) {
        struct err e = {0};
        struct look look = {.next_ms = INT64_MAX, .again_ms = INT64_MAX};
        int64_t begun_ms = clk_ms();

        bell_hush(w->slot); /* a ring from here on means one look more */
        if (ready(w, &e) != 0 || sweep(w, &look, &e) != 0) {
            if (!survive(w, &e, failures++))
                return exit_code_of(&e);
            leave_batch(w);
            endless_restart(w);
            continue;
        }
        failures = 0;
        w->slot->has_worked = 1;
        account(w);
        if (w->once && !look.seen)
            break;
        if (w->once && endless_is_all(w, look.worked))
            return EXIT_LEFT;
        if (!look.seen) {
            *w->looked_ms = begun_ms;
            sleep_idle(w, look.next_ms);
        } else if (!look.worked) {
            step_back(w, &look);
        }
    }
    if (w->unknown.pending) {
        struct err e = {0};

        if (ready(w, &e) != 0)
            log_warn("commit.unsettled", "job=%s token=%" PRId64 " xid=%" PRId64,
                     w->unknown.job->name, w->unknown.token, w->unknown.xid);
    }
    return EXIT_OK;
}

enum exit_code loop_run(struct worker *w)
{
    struct sigaction action = {.sa_handler = on_stop};
    struct err e = {0};
    enum exit_code code = EXIT_BUG;
    char quoted[400];

    own = w->slot;
    queue_leave(w); /* what a dead one left in the slot */
    for (size_t i = 0; i < JOB_TYPE_CT; i++)
        w->walks[i] = (struct walk){
            .limit = (size_t)w->config->batch,
            .lines = job_types[i]->in_order ? w->lines[i] : NULL,
        };
    (void)sigaction(SIGTERM, &action, NULL);
    (void)sigaction(SIGINT, &action, NULL);
    (void)signal(SIGHUP, SIG_IGN); /* the supervisor's business */
    w->batch = malloc(sizeof *w->batch);
    if (w->batch != NULL && connect_locks(w, &e) == 0) {
        if (w->lock != NULL)
            ll_set_nonce_copy(w->lock, w->slot->hold.nonce);
        code = live(w);
        report_last(w);
        journal_give_up(w);
    } else {
        log_error("worker.failed", "err=%s",
                  log_quote(quoted, sizeof quoted,
                            w->batch == NULL ? "out of memory" : e.msg));
        code = e.code == ERR_CONFIG ? EXIT_CONFIG : EXIT_BUG;
    }
    connect_close(w);
    return code;
}
