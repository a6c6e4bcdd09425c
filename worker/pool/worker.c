/* worker: batch, report, pause; come back when a server does. */
#define _DEFAULT_SOURCE
#include "worker/pool/worker.h"

#include <inttypes.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>

#include "common/base/clock.h"
#include "common/base/log.h"
#include "worker/batch/batch.h"
#include "worker/batch/flights.h"
#include "worker/pool/progress.h"
#include "worker/pool/schedule.h"
#include "worker/pool/servers.h"
#include "worker/pool/visit.h"
#include "worker/pool/worker_inside.h"

/* ---- work ---- */

/* Told by the first worker of the job, once for all of them; of a cell, by any. */
static void note_pause(struct worker *w, bool is_paused)
{
    const struct session *s = &w->session;
    struct cell_job *job = visit_job(w->shared, (size_t)s->slot);

    if ((w->slot->index != 0 && w->shared->cells.list->n == 0) ||
        is_paused == job->is_paused)
        return;
    job->is_paused = is_paused;
    if (is_paused)
        log_info("pool.paused", "note=\"ledgerlock resume %s\"", s->job->name);
    else
        log_info("pool.resumed", "note=\"%s is worked again\"", s->job->name);
}

/* Calls that are under way end first: nothing new is pulled until then. */
static bool wants_to_leave(const struct worker *w)
{
    return flights_under_way(&w->session) > 0 &&
           visit_is_over(w->shared, (size_t)w->session.slot, w->entered_ms, false);
}

static void note_visit(struct worker *w, const struct batch_outcome *out)
{
    size_t slot = (size_t)w->session.slot;
    bool is_idle = batch_found_nothing(out) || out->is_paused;

    visit_note_well(w->shared, slot);
    if (out->is_full)
        visit_note_behind(w->shared, slot);
    is_idle = is_idle && w->session.job->calls == NULL; /* its limits are of a second */
    if (flights_under_way(&w->session) > 0 || flights_are_sick(&w->session) ||
        !visit_is_over(w->shared, slot, w->entered_ms, is_idle))
        return;
    w->moves_on = true;
    visit_leave(w->shared, slot, false);
}

static int step(struct worker *w, struct err *e)
{
    struct session *s = &w->session;
    struct batch_outcome *out = &s->batch->out;
    struct batch_order order = w->schedule.next;
    size_t room;
    bool makes_months, has_place = true;
    int code;

    w->begun_ms = w->slot->back_ms = clk_ms();
    w->is_woken = false;
    s->is_early = false; /* each try finds out anew what Redis is */
    code = worker_ready(w, e);
    *out = (struct batch_outcome){0};
    if (code == 0)
        code = visit_take_place(w->shared, s, &has_place, e);
    if (!has_place) {
        w->moves_on = true;
        visit_leave(w->shared, (size_t)s->slot, true);
    }
    if (code != 0 || !has_place || flights_open(s, e) != 0 || clocks_tend(s, e) != 0)
        return (int)e->code;
    makes_months = months_tend(s);
    if (standby_check(s, e) != 0)
        return (int)e->code;
    out->is_standby = !s->serves;
    w->begun_ms = clk_ms();
    room =
        wants_to_leave(w) ? 0 : flights_room(s); /* rows than there may be calls for */
    order.limit = order.limit < room ? order.limit : room;
    if (s->serves && room > 0 && batch_run(s, &order, e) != 0)
        return (int)e->code;
    out->makes_months = out->makes_months || makes_months;
    note_pause(w, out->is_paused);
    worker_note_success(w, out);
    if (w->slot->opening_ms == 0)
        w->slot->opening_ms = clk_ms() - w->entered_ms + 1;
    pool_progress_note(&w->progress, s,
                       out->worked > 0 || out->makes_months ||
                           (!out->is_standby && batch_found_nothing(out)));
    return 0;
}

/* Until the next pull, which a wake-up brings on, or until the server is away; a long
 * one is no silence. */
static void rest(struct worker *w, int64_t ms)
{
    int64_t until_ms = clk_ms() + ms, beat_ms;

    do {
        beat_ms = heartbeat_due_ms(&w->heartbeat);
        worker_pause_ms(w, (beat_ms < until_ms ? beat_ms : until_ms) - clk_ms());
        worker_beat(w);
    } while (!w->stopping && !w->is_woken && clk_ms() < until_ms &&
             w->slot->state != SLOT_POSTGRES_DOWN);
}

static enum exit_code live(struct worker *w)
{
    struct session *s = &w->session;
    const struct batch_outcome *out = &s->batch->out;
    enum exit_code code = EXIT_OK;
    unsigned failures = 0;

    while (!w->stopping && !w->moves_on) {
        struct err e = {0};
        bool is_whole = step(w, &e) == 0;
        int64_t ms = clk_ms() - w->begun_ms;

        worker_beat(w);
        if (!is_whole) {
            worker_survive(w, &e, failures++);
            if (w->moves_on)
                break;
            schedule_fail(&w->schedule, out,
                          e.code == ERR_TIMEOUT || e.code == ERR_CONFLICT, ms,
                          clk_ms());
            worker_stand_back(w, &e);
            continue;
        }
        if (w->moves_on) /* without a place */
            break;
        worker_stand_back(w, &e);
        failures = 0;
        if (w->schedule.once &&
            pool_progress_is_done(&w->progress, s, w->slot->left, &code))
            return code;
        ms = schedule_learn(&w->schedule, out, ms, clk_ms());
        note_visit(w, out);
        rest(w, w->moves_on ? 0 : visit_rest_ms(w->shared, ms));
    }
    w->slot->moves_on = w->moves_on && !w->stopping;
    return EXIT_OK;
}

/* Calls that are under way are waited for, not quite as long as the supervisor lets
 * this worker live. A COMMIT in doubt is settled, what was counted is written down. */
static void finish(struct worker *w)
{
    struct session *s = &w->session;
    int64_t end_ms = clk_ms() + s->config->grace_ms * 3 / 4;
    struct err e = {0};

    while (flights_under_way(s) > 0 && clk_ms() < end_ms && !w->is_away) {
        flights_step(s, FLIGHT_STEP_MS);
        if (servers_reconnect(s, &e) != 0)
            clk_pause_ms(FLIGHT_STEP_MS);
        e = (struct err){0};
    }
    flights_give_up(s);
    w->shared->cells.of[w->slot->cell].months_ms = s->months_ms;

    if (s->attempt.in_doubt && (w->is_away || worker_ready(w, &e) != 0))
        log_warn("commit.unsettled",
                 "code=LL-3008 job=%s token=%" PRId64 " xid=%" PRId64, s->job->name,
                 s->attempt.token, s->attempt.xid);
    if (w->is_away)
        inflight_clear(s->inflight); /* its keys end with their lease */
    else if (servers_reconnect(s, &e) == 0) {
        (void)!incidents_write(s, &e);
        parked_count(s);
        (void)!heartbeat_now(&w->heartbeat, s, &e);
    }
    incidents_give_up(s);
}

static void begin(struct worker *w, struct shared *shared, bool once)
{
    struct session *s = &w->session;
    const struct config *c = s->config;
    struct slot *slot = &shared->slots[s->slot];
    bool is_shared = job_is_shared(slot->job, c);

    w->slot = slot;
    w->shared = shared;
    w->slot->moves_on = false;
    w->entered_ms = clk_ms();
    slot->opening_ms = 0;
    s->job = slot->job;
    s->incarnation = slot->incarnation;
    s->counters = &slot->counters;
    s->measures = &slot->measures;
    s->inflight = &slot->inflight;
    s->deaths = &shared->deaths;
    s->commits = &shared->commits;
    w->well_ms = clk_ms();
    s->months_ms = shared->cells.list->n > 0 ? shared->cells.of[slot->cell].months_ms
                   : s->slot == 0            ? 0
                                             : w->well_ms;
    w->progress = (struct pool_progress){.commits = *s->commits, .at_ms = w->well_ms};
    (void)snprintf(s->pool, sizeof s->pool, "%s", shared->name);
    (void)snprintf(s->name, sizeof s->name, "%s.%d.%" PRId64, shared->name, s->slot,
                   slot->incarnation);
    w->heartbeat = (struct heartbeat){.host = shared->host,
                                      .elsewhere = &slot->elsewhere[slot->cell]};
    w->schedule = (struct schedule){
        .config = c,
        .job = slot->job,
        .poll_ms = job_poll_ms(slot->job, c),
        .batch = job_batch_rows(slot->job, c),
        .index = is_shared ? slot->index : 0,
        .workers = is_shared ? slot->workers : 1,
        .once = once,
    };
    schedule_start(&w->schedule);
    (void)sigemptyset(&w->signals);
    (void)sigaddset(&w->signals, SIGTERM);
    (void)sigaddset(&w->signals, WORKER_WAKE);
    (void)sigprocmask(SIG_BLOCK, &w->signals, NULL);
}

enum exit_code worker_run(
    const struct config *c, const char *now, bool once, struct shared *shared, int slot)
{
    static struct worker w;
    static struct batch batch;
    enum exit_code code;

    w.session.config = c;
    w.session.now = now;
    w.session.slot = slot;
    w.session.batch = &batch;
    begin(&w, shared, once);
    code = live(&w);
    finish(&w);
    flights_close(&w.session);
    session_close(&w.session);
    return code;
}
