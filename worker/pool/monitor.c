/* monitor: reads the slots, speaks for the pool. */
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "common/base/age.h"
#include "common/base/clock.h"
#include "common/base/log.h"
#include "worker/batch/session.h"
#include "worker/pool/supervisor.h"
#include "worker/pool/visit.h"

enum { PROGRESS_MS = 5000 };

/* ---- what stops workers ---- */

/* Said once when a worker is in that state, and once when all have got further: not
 * when those that had not are told to stop. */
static const struct trouble {
    enum slot_state state, over_at;
    enum log_level level;
    const char *event, *code, *over; /* the code is that of the message */
    const char *happened;            /* in the timeline */
} troubles[] = {
    {SLOT_POSTGRES_DOWN, SLOT_CONNECTED, LOG_WARN, "pool.postgres_down", "LL-5101",
     "pool.postgres_up", "PostgreSQL down"},
    {SLOT_REFUSED, SLOT_WORKS, LOG_WARN, "pool.postgres_refuses", "LL-5105",
     "pool.postgres_serves", "PostgreSQL refuses"},
    {SLOT_REDIS_DOWN, SLOT_WORKS, LOG_WARN, "pool.redis_down", "LL-5102",
     "pool.redis_up", "Redis down"},
    {SLOT_REDIS_WAITS, SLOT_WORKS, LOG_INFO, "pool.redis_waits", "LL-5103",
     "pool.redis_grants", "Redis grants nothing yet"},
    {SLOT_FAULT, SLOT_WORKS, LOG_ERROR, "pool.fault", "LL-5104", "pool.fault_over",
     "fault"},
};

/* The one that was in this state last; NULL: none is. */
static const struct slot *find_in(const struct pool *p, enum slot_state state)
{
    const struct slot *last = NULL;

    for (size_t i = 0; i < p->n; i++) {
        const struct slot *slot = &p->shared->slots[i];

        if (p->children[i].pid != 0 && slot->state == state &&
            (last == NULL || slot->trouble_ms > last->trouble_ms))
            last = slot;
    }
    return last;
}

bool monitor_are_all_at(const struct pool *p, enum slot_state state)
{
    size_t alive = 0;

    for (size_t i = 0; i < p->n; i++) {
        const struct slot *slot = &p->shared->slots[i];
        bool moves = p->children[i].pid == 0 && slot->moves_on; /* to another cell */

        if (p->children[i].finished || p->children[i].waits)
            continue;
        if ((p->children[i].pid == 0 && !moves) || slot->state < state)
            return false;
        alive++;
    }
    return alive > 0;
}

static void say_trouble(struct pool *p, const struct trouble *t)
{
    const struct slot *slot = find_in(p, t->state);
    int64_t *said_ms = &p->monitor.said_ms[t->state];

    if (slot != NULL && *said_ms == 0) {
        *said_ms = clk_ms();
        timeline_begin(&p->shared->timeline, t->happened,
                       (size_t)(slot - p->shared->slots), slot->trouble);
        log_event(t->level, t->event, "code=%s job=%s err=%s", t->code, slot->job->name,
                  LOG_TEXT(slot->trouble));
    } else if (slot == NULL && *said_ms != 0 && !p->draining &&
               monitor_are_all_at(p, t->over_at)) {
        timeline_end(&p->shared->timeline, t->happened, TIMELINE_ANY, clk_ms());
        log_info(t->over, "seconds=%" PRId64, (clk_ms() - *said_ms) / 1000);
        *said_ms = 0;
    }
}

/* Said once for each cell. */
static void say_cells(struct pool *p)
{
    const struct cells *cells = p->shared->cells.list;

    for (size_t i = 0; i < cells->n; i++) {
        const struct cell_state *cell = &p->shared->cells.of[i];
        int64_t *said_ms = &p->monitor.cell_said_ms[i],
                away_ms = visit_away_since(cell);

        if (away_ms != 0 && *said_ms == 0)
            log_warn("pool.cell_away", "code=LL-5106 cell=%" PRId64 " err=%s",
                     cells->of[i].number, LOG_TEXT(cell->trouble));
        if (away_ms == 0 && *said_ms != 0)
            log_info("pool.cell_back", "cell=%" PRId64 " seconds=%" PRId64,
                     cells->of[i].number, (clk_ms() - *said_ms) / 1000);
        *said_ms = away_ms;
    }
}

bool monitor_is_stuck(struct pool *p)
{
    struct monitor *m = &p->monitor;
    const struct slot *slot = find_in(p, SLOT_FAULT);
    int64_t since_ms = m->said_ms[SLOT_FAULT];

    if (p->shared->commits != m->commits) {
        m->commits = p->shared->commits;
        m->commit_ms = clk_ms();
    }
    since_ms = since_ms > m->commit_ms ? since_ms : m->commit_ms;
    if (slot == NULL || p->shared->cells.list->n > 0 || /* other cells may be well */
        slot->trouble_ms < since_ms ||
        clk_ms() - since_ms < p->order->config->give_up_ms)
        return false;
    log_error("pool.giving_up",
              "code=LL-5012 reason=\"an error let nothing be committed for %" PRId64
              " s, see pool.fault; nothing was parked for it\"",
              p->order->config->give_up_ms / 1000);
    return true;
}

/* ---- what happens to workers ---- */

void monitor_stopped(struct pool *p, pid_t pid, bool is_stopped)
{
    for (size_t i = 0; i < p->n; i++) {
        if (p->children[i].pid == pid && is_stopped)
            timeline_begin(&p->shared->timeline, timeline_froze, i,
                           "stopped by a signal");
        else if (p->children[i].pid == pid)
            timeline_end(&p->shared->timeline, timeline_froze, (int64_t)i, clk_ms());
    }
}

/* A lost lease is over when the worker commits again, or has nothing in flight; a death
 * when the next worker works. */
static void watch_worker(struct pool *p, size_t i)
{
    struct timeline *t = &p->shared->timeline;
    const struct slot *slot = &p->shared->slots[i];
    struct child *child = &p->children[i];
    int64_t lost = slot->counters.value[COUNT_lost];
    int64_t batches = slot->counters.value[COUNT_batches];

    if (lost > child->lost)
        timeline_begin(t, timeline_lost, i, "before its batch ended");
    else if (batches > child->batches || !inflight_is_set(&slot->inflight))
        timeline_end(t, timeline_lost, (int64_t)i, clk_ms());
    child->lost = lost;
    child->batches = batches;
    if (child->pid != 0 && slot->state == SLOT_WORKS)
        timeline_end(t, timeline_died, (int64_t)i, slot->works_ms);
    if (child->pid == 0)
        timeline_end(t, timeline_froze, (int64_t)i, clk_ms());
}

/* ---- figures ---- */

/* The workers of a job taken together. */
struct total {
    const struct job_type *job;
    struct counters sum;
    size_t workers;
    const char *left; /* by one of them; "" for nothing */
};

static struct total total(const struct pool *p, const struct job_type *job)
{
    struct total t = {.job = job, .left = ""};

    for (size_t i = 0; i < p->n; i++) {
        const struct slot *slot = &p->shared->slots[i];

        if (slot->job != job)
            continue;
        t.workers++;
        counters_add(&t.sum, &slot->counters);
        t.left = slot->left[0] != '\0' ? slot->left : t.left;
    }
    return t;
}

/* How many items were decided. */
static int64_t decided(const struct job_type *job, const struct counters *c)
{
    int64_t n = c->value[COUNT_parked];

    for (size_t i = 0; job->counters[i].name != NULL; i++)
        n += job->counters[i].stays_due ? 0 : c->value[COUNT_JOB + i];
    return n;
}

/* How long it takes until nothing is due, if it goes on as in the last `ms`, which
 * decided `done`; "" if that is not known. */
static void
put_burn_down(int64_t left, int64_t done, int64_t ms, char *text, size_t size)
{
    double seconds = done > 0 ? (double)left * (double)ms / 1e3 / (double)done : 0;
    int64_t s = (int64_t)seconds + 1;
    char age[AGE_TEXT];

    text[0] = '\0';
    if (seconds <= 0 || seconds > 1e9)
        return;
    if (log_is_human())
        (void)snprintf(text, size, ", all due rows in about %s",
                       age_text(s * 1000, age));
    else
        (void)snprintf(text, size, " burn_down_s=%" PRId64, s);
}

/* Totals since the start, and how many items a second since `since`. */
static void say(const char *event,
                const struct total *t,
                const struct counters *since,
                int64_t ms,
                int64_t left)
{
    const struct job_type *job = t->job;
    const char *names[COUNTERS_MAX];
    size_t n = session_counter_names(job, names);
    int64_t done = decided(job, &t->sum) - decided(job, since);
    int64_t per_s = ms > 0 ? done * 1000 / ms : 0;
    char text[600], burn_down[80];

    (void)counters_text(&t->sum, names, n, log_is_human(), text, sizeof text);
    put_burn_down(left, done, ms, burn_down, sizeof burn_down);
    log_info(event,
             "job=%s %s%sseconds=%" PRId64 ".%" PRId64 " %ss_per_s=%" PRId64 "%s",
             job->name, text, text[0] != '\0' ? " " : "", ms / 1000, ms / 100 % 10,
             job->item, per_s, burn_down);
}

static void say_progress(struct pool *p)
{
    struct monitor *m = &p->monitor;
    int64_t ms = clk_ms() - m->progress_ms;

    if (ms < PROGRESS_MS)
        return;
    for (int i = 0; i < JOB_TYPE_CT; i++) {
        const struct total t = total(p, job_types[i]);

        if (memcmp(&t.sum, &m->progress[i], sizeof t.sum) != 0)
            say("pool.progress", &t, &m->progress[i], ms,
                p->order->to_do[i] - decided(t.job, &t.sum));
        m->progress[i] = t.sum;
    }
    m->progress_ms += ms;
}

void monitor_tend(struct pool *p)
{
    for (size_t i = 0; i < sizeof troubles / sizeof troubles[0]; i++)
        say_trouble(p, &troubles[i]);
    say_cells(p);
    for (size_t i = 0; i < p->n; i++)
        watch_worker(p, i);
    say_progress(p);
}

static void print_total(const struct pool *p, const struct total *t)
{
    for (size_t i = 0; t->job->counters[i].name != NULL; i++) {
        if (!t->job->counters[i].stays_due)
            (void)printf("%" PRId64 " %s, ", t->sum.value[COUNT_JOB + i],
                         t->job->counters[i].name);
    }
    (void)printf("%" PRId64 " parked, %s%s", t->sum.value[COUNT_parked],
                 t->left[0] != '\0' ? "left: "
                 : p->draining      ? "stopped before all was done"
                                    : "nothing left",
                 t->left);
}

int64_t monitor_end(const struct pool *p)
{
    static const struct counters nothing;
    const char *event = p->code == EXIT_OK ? "pool.done" : "pool.stopped";
    const char *separator = "";
    int64_t parked = 0;

    for (int i = 0; i < JOB_TYPE_CT; i++) {
        const struct total t = total(p, job_types[i]);

        if (t.workers == 0)
            continue;
        parked += t.sum.value[COUNT_parked];
        say(event, &t, &nothing, clk_ms() - p->monitor.started_ms, 0);
        if (!p->order->once)
            continue;
        (void)printf("%s%s: ", separator, t.job->name);
        print_total(p, &t);
        separator = "; ";
    }
    if (p->order->once)
        (void)printf("\n");
    (void)fflush(stdout);
    return parked;
}
