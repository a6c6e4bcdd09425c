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
#include "worker/look.h"
#include "worker/queue.h"
#include "worker/rescue.h"
#include "worker/settle.h"
#include "worker/sweep.h"
#include "worker/turn.h"

enum {
    GATHER_MS = 20, /* what comes due in so short a time is worked together */
    RETRY_BASE_MS = 50,
    RETRY_CAP_MS = 2000
};

static volatile sig_atomic_t stopping;
static const struct slot *own;

bool loop_is_stopping(void)
{
    return stopping != 0;
}

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

/* A sweep, but in a pool that has nothing to do only if it could find something. */
static int look_about(struct worker *w, bool idle, struct look *look, struct err *e)
{
    bool needed = true;

    if (idle && look_is_needed(w, look, &needed, e) != 0)
        return (int)e->code;
    if (!needed)
        return 0;
    if (sweep(w, look, e) != 0)
        return (int)e->code;
    if (idle && !look->seen && !stopping)
        look_remember(w, look);
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
        look_forget(w);
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
    int64_t ms = look->again_ms < INT64_MAX ? look->again_ms : 1;

    pause_ms(w, ms < w->config->poll_ms ? ms : w->config->poll_ms);
    w->slot->waste.paused_us += clk_us() - since_us;
}

/* Where no batch is full, one sweep in a while does for the whole pool, whoever takes
 * it: rows that come due one by one are not charged one by one. */
static void gather(struct worker *w)
{
    long long last = *w->swept_ms;
    long long now = clk_ms();

    while (!stopping && (now - last < GATHER_MS ||
                         !atomic_compare_exchange_strong(w->swept_ms, &last, now))) {
        if (now - last < GATHER_MS)
            clk_pause_ms(last + GATHER_MS - now);
        last = *w->swept_ms;
        now = clk_ms();
    }
}

static enum exit_code live(struct worker *w)
{
    unsigned failures = 0;
    bool idle = false, filled = true;

    while (!stopping) {
        struct err e = {0};
        struct look look = {.next_ms = INT64_MAX, .again_ms = INT64_MAX};
        int64_t begun_ms;

        look.gathers = !filled && !w->once;
        look.goes_on = look.gathers && !idle;
        if (look.gathers)
            gather(w);
        begun_ms = clk_ms();
        bell_hush(w->slot); /* a ring from here on means one look more */
        if (ready(w, &e) != 0 || look_about(w, idle, &look, &e) != 0) {
            if (!survive(w, &e, failures++))
                return exit_code_of(&e);
            leave_batch(w);
            endless_restart(w);
            continue;
        }
        failures = 0;
        idle = !look.seen;
        filled = look.filled;
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
