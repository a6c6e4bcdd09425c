/* worker_trouble: what a worker does while it can do nothing. */
#define _DEFAULT_SOURCE
#include <stdio.h>

#include "common/base/clock.h"
#include "common/base/log.h"
#include "worker/batch/flights.h"
#include "worker/pool/servers.h"
#include "worker/pool/visit.h"
#include "worker/pool/worker_inside.h"

enum { RETRY_BASE_MS = 50, RETRY_CAP_MS = 500 };

/* ---- pauses ---- */

static void wait_for_signal(struct worker *w, int64_t ms)
{
    const struct timespec ts = {(time_t)(ms / 1000), (long)(ms % 1000) * 1000000L};
    int sig = w->stopping ? 0 : sigtimedwait(&w->signals, NULL, &ts);

    w->stopping = w->stopping || sig == SIGTERM;
    w->is_woken = w->is_woken || sig == WORKER_WAKE;
}

/* The workers of other jobs of this pool in the cell. */
static void wake_others(struct worker *w)
{
    w->session.feeds_others = false;
    for (size_t i = 0; i < w->shared->slot_ct; i++) {
        const struct slot *other = &w->shared->slots[i];
        pid_t pid = other->pid;

        if (pid != 0 && other->job != w->slot->job && other->cell == w->slot->cell)
            (void)kill(pid, WORKER_WAKE);
    }
}

void worker_pause_ms(struct worker *w, int64_t least_ms)
{
    struct session *s = &w->session;
    int64_t ms = least_ms > 0 ? least_ms : 0, end_ms = clk_ms() + ms;
    bool was_full = flights_room(s) == 0;

    w->slot->back_ms = end_ms;
    while (flights_under_way(s) > 0 && !w->stopping) {
        int64_t left_ms = end_ms - clk_ms();

        flights_step(s, left_ms < FLIGHT_STEP_MS ? left_ms : FLIGHT_STEP_MS);
        if (s->feeds_others)
            wake_others(w);
        wait_for_signal(w, 0);
        if (w->is_woken || clk_ms() >= end_ms || (was_full && flights_room(s) > 0))
            return;
    }
    wait_for_signal(w, end_ms - clk_ms() > 0 ? end_ms - clk_ms() : 0);
}

/* ---- servers ---- */

static void note_trouble(struct worker *w, enum slot_state state, const char *why)
{
    (void)snprintf(w->slot->trouble, sizeof w->slot->trouble, "%.699s", why);
    w->slot->trouble_ms = clk_ms();
    w->slot->state = state;
}

void worker_note_success(struct worker *w, const struct batch_outcome *out)
{
    bool is_idle = batch_found_nothing(out);

    if (w->slot->state == SLOT_FAULT && out->worked == 0 && !is_idle)
        return;
    if (w->slot->state == SLOT_REDIS_DOWN && is_idle &&
        rlock_connect(w->session.locks) != RLOCK_OK)
        return;
    if (w->slot->state != SLOT_WORKS)
        w->slot->works_ms = clk_ms();
    w->slot->state = SLOT_WORKS;
}

/* A worker that finds nothing due writes nothing else: a server that takes no writes is
 * no way back, however well it answers. */
static int prove_writes(struct worker *w, struct err *e)
{
    struct err why = {0};

    if (heartbeat_first(&w->heartbeat, &w->session, &why) != 0 &&
        !pg_is_usable(w->session.pg))
        *e = why;
    return (int)e->code;
}

int worker_ready(struct worker *w, struct err *e)
{
    struct session *s = &w->session;

    if (servers_reconnect(s, e) != 0)
        return (int)e->code;
    if (w->slot->state < SLOT_CONNECTED || !w->is_proved) {
        if (prove_writes(w, e) != 0)
            return (int)e->code;
        w->is_proved = true;
        if (w->slot->state < SLOT_CONNECTED)
            w->slot->state = SLOT_CONNECTED;
    }
    if (servers_reopen_locks(s, e) != 0)
        return (int)e->code;
    if (incidents_write(s, e) != 0 || crash_recover(s, e) != 0)
        return (int)e->code;
    return s->attempt.in_doubt ? in_doubt_settle(s, e) : 0;
}

/* A collision or a timeout is none, unless they let nothing be committed for a lease.
 */
static bool is_fault(struct worker *w, const struct err *e)
{
    if (e->code != ERR_CONFLICT && e->code != ERR_TIMEOUT && e->code != ERR_UNKNOWN)
        return true;
    session_count(&w->session, COUNT_conflicts, 1);
    pool_progress_note(&w->progress, &w->session, false);
    return pool_progress_age_ms(&w->progress) > w->session.config->lease_ms;
}

/* True if nobody can work in the cell now, whatever the row. In a Redis Cluster a cell
 * has its keys on one primary, and others have theirs elsewhere. */
static bool is_closed(const struct worker *w, const struct err *e)
{
    const struct session *s = &w->session;

    if (e->code == ERR_REDIS && s->config->is_redis_cluster)
        return true;
    if (!w->shared->cells.of[w->slot->cell].is_checked || servers_are_away(s, e))
        return true;
    return servers_refuse(e) && !e->is_in_trigger && !s->batch->out.is_refused;
}

/* A cell that nobody can work is left at once; one in which this worker cannot, when
 * another waits, or after a lease, so that another pool gets its place. Work that is
 * under way there has a lease's time to be known. */
static bool leaves_for(struct worker *w, const struct err *e)
{
    struct session *s = &w->session;
    size_t slot = (size_t)s->slot;
    bool is_late = clk_ms() - w->well_ms > s->config->lease_ms;
    bool is_open = s->attempt.in_doubt || flights_under_way(s) > 0 ||
                   s->unwritten_ct > 0 || inflight_is_set(s->inflight);

    if (w->shared->cells.list->n == 0 || (is_open && !is_late))
        return false;
    w->is_away = is_closed(w, e);
    if (!w->is_away && !is_late &&
        (e->code == ERR_REDIS || !visit_is_over(w->shared, slot, w->entered_ms, false)))
        return false;
    w->moves_on = true;
    if (e->code == ERR_REDIS && !w->is_away)
        visit_leave(w->shared, slot, true);
    else
        visit_note_away(w->shared, slot, e->msg);
    return true;
}

void worker_survive(struct worker *w, const struct err *e, unsigned failures)
{
    if (leaves_for(w, e))
        return;
    log_debug("worker.retry", "failures=%u err=%s", failures, LOG_TEXT(e->msg));
    if (e->code == ERR_REDIS) {
        w->session.clocks_ms = 0;
        note_trouble(w, w->session.is_early ? SLOT_REDIS_WAITS : SLOT_REDIS_DOWN,
                     e->msg);
        if (session_secret_is_new(&w->session))
            flights_forget_locks(&w->session);
        session_forget_secret(&w->session);
    } else if (servers_are_away(&w->session, e))
        note_trouble(w, SLOT_POSTGRES_DOWN, e->msg);
    else if (servers_refuse(e))
        note_trouble(w, SLOT_REFUSED, e->msg);
    else if (is_fault(w, e))
        note_trouble(w, SLOT_FAULT, e->msg);
    worker_pause_ms(w, clk_backoff_ms(failures, RETRY_BASE_MS, RETRY_CAP_MS));
}

void worker_stand_back(struct worker *w, const struct err *e)
{
    enum slot_state state = w->slot->state;

    if (state == SLOT_WORKS || (state == SLOT_FAULT && e->code != ERR_REFUSED))
        w->well_ms = clk_ms();
    else if (standby_yield(&w->session, clk_ms() - w->well_ms))
        worker_pause_ms(w, STANDBY_YIELDS_MS);
}

void worker_beat(struct worker *w)
{
    struct err e = {0};

    if (heartbeat(&w->heartbeat, &w->session, &e) != 0 &&
        servers_are_away(&w->session, &e) && w->shared->cells.list->n == 0)
        note_trouble(w, SLOT_POSTGRES_DOWN, e.msg);
}
