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

enum { RETRY_BASE_MS = 50, RETRY_CAP_MS = 500 };

struct worker {
    struct session session;
    struct schedule schedule;
    struct heartbeat heartbeat;
    struct slot *slot;
    sigset_t stops;
    bool stopping;
    bool is_paused;   /* the job was, when its rows were last asked for */
    int64_t begun_ms; /* of the last step, and then of its batch */
    int64_t well_ms;  /* when it last could work, or had nothing to do */
    struct pool_progress progress;
};

/* ---- pauses ---- */

enum { FLIGHT_STEP_MS = 50 };

static void wait_for_stop(struct worker *w, int64_t ms)
{
    const struct timespec ts = {(time_t)(ms / 1000), (long)(ms % 1000) * 1000000L};

    if (!w->stopping && sigtimedwait(&w->stops, NULL, &ts) > 0)
        w->stopping = true;
}

/* Pauses, but not past a signal to stop, which no pause at all hears, too. Calls that
 * are under way go on meanwhile; where they left no room for more, the pause ends when
 * there is some. */
static void pause_ms(struct worker *w, int64_t least_ms)
{
    struct session *s = &w->session;
    int64_t ms = least_ms > 0 ? least_ms : 0, end_ms = clk_ms() + ms;
    bool was_full = flights_room(s) == 0;

    w->slot->back_ms = end_ms;
    while (flights_under_way(s) > 0 && !w->stopping) {
        int64_t left_ms = end_ms - clk_ms();

        flights_step(s, left_ms < FLIGHT_STEP_MS ? left_ms : FLIGHT_STEP_MS);
        wait_for_stop(w, 0);
        if (clk_ms() >= end_ms || (was_full && flights_room(s) > 0))
            return;
    }
    wait_for_stop(w, end_ms - clk_ms() > 0 ? end_ms - clk_ms() : 0);
}

/* ---- servers ---- */

static void note_trouble(struct worker *w, enum slot_state state, const char *why)
{
    (void)snprintf(w->slot->trouble, sizeof w->slot->trouble, "%.699s", why);
    w->slot->trouble_ms = clk_ms();
    w->slot->state = state;
}

/* A fault is not over while nothing can be worked. A worker that finds nothing due asks
 * for no lock: it asks Redis whether it is back. */
static void note_success(struct worker *w, const struct batch_outcome *out)
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

/* A usable connection, and nothing of before that is open. */
static int ready(struct worker *w, struct err *e)
{
    struct session *s = &w->session;

    if (servers_reconnect(s, e) != 0)
        return (int)e->code;
    if (w->slot->state < SLOT_CONNECTED) {
        if (prove_writes(w, e) != 0)
            return (int)e->code;
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

/* After an error: tells the supervisor what it is, and pauses. */
static void survive(struct worker *w, const struct err *e, unsigned failures)
{
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
    pause_ms(w, clk_backoff_ms(failures, RETRY_BASE_MS, RETRY_CAP_MS));
}

/* ---- work ---- */

/* Told by the first worker of the job, once for all of them. */
static void note_pause(struct worker *w, bool is_paused)
{
    const struct session *s = &w->session;

    if (w->slot->index != 0 || is_paused == w->is_paused)
        return;
    w->is_paused = is_paused;
    if (is_paused)
        log_info("pool.paused", "note=\"ledgerlock resume %s\"", s->job->name);
    else
        log_info("pool.resumed", "note=\"%s is worked again\"", s->job->name);
}

static int step(struct worker *w, struct err *e)
{
    struct session *s = &w->session;
    struct batch_outcome *out = &s->batch->out;
    struct batch_order order = w->schedule.next;
    size_t room;
    bool makes_months;
    int code;

    w->begun_ms = w->slot->back_ms = clk_ms();
    s->is_early = false; /* each try finds out anew what Redis is */
    code = ready(w, e);
    *out = (struct batch_outcome){0};
    if (code != 0 || flights_open(s, e) != 0 || clocks_tend(s, e) != 0)
        return (int)e->code;
    makes_months = months_tend(s);
    if (standby_check(s, e) != 0)
        return (int)e->code;
    out->is_standby = !s->serves;
    w->begun_ms = clk_ms();
    room = flights_room(s); /* no more rows than there may be calls for */
    order.limit = order.limit < room ? order.limit : room;
    if (s->serves && room > 0 && batch_run(s, &order, e) != 0)
        return (int)e->code;
    out->makes_months = out->makes_months || makes_months;
    note_pause(w, out->is_paused);
    note_success(w, out);
    pool_progress_note(&w->progress, s,
                       out->worked > 0 || out->makes_months ||
                           (!out->is_standby && batch_found_nothing(out)));
    return 0;
}

/* Another worker serves the job when this one could not work for longer than a lease.
 * An error of rows is no reason: another worker would meet it, too. */
static void stand_back(struct worker *w, const struct err *e)
{
    enum slot_state state = w->slot->state;

    if (state == SLOT_WORKS || (state == SLOT_FAULT && e->code != ERR_REFUSED))
        w->well_ms = clk_ms();
    else if (standby_yield(&w->session, clk_ms() - w->well_ms))
        pause_ms(w, STANDBY_YIELDS_MS);
}

static void beat(struct worker *w)
{
    struct err e = {0};

    if (heartbeat(&w->heartbeat, &w->session, &e) != 0 &&
        servers_are_away(&w->session, &e))
        note_trouble(w, SLOT_POSTGRES_DOWN, e.msg);
}

/* Until the next pull, or until the server is away; a long one is no silence. */
static void rest(struct worker *w, int64_t ms)
{
    int64_t until_ms = clk_ms() + ms, beat_ms;

    do {
        beat_ms = heartbeat_due_ms(&w->heartbeat);
        pause_ms(w, (beat_ms < until_ms ? beat_ms : until_ms) - clk_ms());
        beat(w);
    } while (!w->stopping && clk_ms() < until_ms &&
             w->slot->state != SLOT_POSTGRES_DOWN);
}

static enum exit_code live(struct worker *w)
{
    struct session *s = &w->session;
    const struct batch_outcome *out = &s->batch->out;
    enum exit_code code = EXIT_OK;
    unsigned failures = 0;

    while (!w->stopping) {
        struct err e = {0};
        bool is_whole = step(w, &e) == 0;
        int64_t ms = clk_ms() - w->begun_ms;

        beat(w);
        if (!is_whole) {
            survive(w, &e, failures++);
            schedule_fail(&w->schedule, out,
                          e.code == ERR_TIMEOUT || e.code == ERR_CONFLICT, ms,
                          clk_ms());
            stand_back(w, &e);
            continue;
        }
        stand_back(w, &e);
        failures = 0;
        if (w->schedule.once &&
            pool_progress_is_done(&w->progress, s, w->slot->left, &code))
            return code;
        rest(w, schedule_learn(&w->schedule, out, ms, clk_ms()));
    }
    return EXIT_OK;
}

/* Calls that are under way are waited for, not quite as long as the supervisor lets
 * this worker live. A COMMIT in doubt is settled, what was counted is written down. */
static void finish(struct worker *w)
{
    struct session *s = &w->session;
    int64_t end_ms = clk_ms() + s->config->grace_ms * 3 / 4;
    struct err e = {0};

    while (flights_under_way(s) > 0 && clk_ms() < end_ms) {
        flights_step(s, FLIGHT_STEP_MS);
        if (servers_reconnect(s, &e) != 0)
            clk_pause_ms(FLIGHT_STEP_MS);
        e = (struct err){0};
    }
    flights_give_up(s);

    if (s->attempt.in_doubt && ready(w, &e) != 0)
        log_warn("commit.unsettled",
                 "code=LL-3008 job=%s token=%" PRId64 " xid=%" PRId64, s->job->name,
                 s->attempt.token, s->attempt.xid);
    if (servers_reconnect(s, &e) == 0) {
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
    s->job = slot->job;
    s->incarnation = slot->incarnation;
    s->counters = &slot->counters;
    s->measures = &slot->measures;
    s->inflight = &slot->inflight;
    s->deaths = &shared->deaths;
    s->commits = &shared->commits;
    w->well_ms = clk_ms();
    s->months_ms = s->slot == 0 ? 0 : w->well_ms;
    w->progress = (struct pool_progress){.commits = *s->commits, .at_ms = w->well_ms};
    (void)snprintf(s->pool, sizeof s->pool, "%s", shared->name);
    (void)snprintf(s->name, sizeof s->name, "%s.%d.%" PRId64, shared->name, s->slot,
                   slot->incarnation);
    w->heartbeat = (struct heartbeat){.host = shared->host};
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
    (void)sigemptyset(&w->stops);
    (void)sigaddset(&w->stops, SIGTERM);
    (void)sigprocmask(SIG_BLOCK, &w->stops, NULL);
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
