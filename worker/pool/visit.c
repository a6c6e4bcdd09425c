/* visit: choice, places and the end of a visit. */
#include "worker/pool/visit.h"

#include <stdio.h>
#include <string.h>

#include "common/base/clock.h"

enum {
    LOOK_MS = 250,   /* a cell that nobody serves is looked into at most so often */
    VISIT_MS = 1000, /* of a visit, while other cells wait, at least; */
    VISIT_CAP_MS = 10000,
    IDLE_MS = 100, /* of one without work, at least */
    IDLE_CAP_MS = 1000,
    WORTH = 20,      /* a visit lasts so many times as long as its first batch took */
    FULL_MS = 1000,  /* until a place is asked for again */
    BEHIND_MS = 500, /* a full pull tells of more rows for so long */
    AWAY_BASE_MS = 250,
    AWAY_CAP_MS = 10000
};

static int row_of(const struct job_type *job)
{
    int row = 0;

    while (job_types[row] != job)
        row++;
    return row;
}

static struct cell_job *
job_in(struct shared *shared, size_t cell, const struct slot *of)
{
    return &shared->cells.of[cell].jobs[row_of(of->job)];
}

struct cell_job *visit_job(struct shared *shared, size_t slot)
{
    const struct slot *of = &shared->slots[slot];

    return job_in(shared, of->cell, of);
}

int64_t visit_rest_ms(const struct shared *shared, int64_t ms)
{
    return shared->cells.list->n > 1 && ms > LOOK_MS ? LOOK_MS : ms;
}

/* How many other workers of the job serve the cell. */
static int64_t others_in(const struct shared *shared, size_t cell, size_t slot)
{
    int64_t n = 0;

    for (size_t i = 0; i < shared->slot_ct; i++) {
        const struct slot *other = &shared->slots[i];

        n += i != slot && other->pid != 0 && other->job == shared->slots[slot].job &&
             other->cell == cell;
    }
    return n;
}

/* Lower is more urgent: a cell without a worker, then those with few, and of these the
 * ones that are behind. */
static int64_t rank(struct shared *shared, size_t cell, size_t slot, int64_t now_ms)
{
    int64_t others = others_in(shared, cell, slot);
    bool is_behind =
        now_ms - job_in(shared, cell, &shared->slots[slot])->behind_ms < BEHIND_MS;

    return others == 0 ? 0 : 2 * others + !is_behind;
}

/* The most urgent cell that a worker may go to now, but for `except`; n: none. */
static size_t most_urgent(
    struct shared *shared, size_t slot, size_t except, int64_t now_ms, int64_t *at_ms)
{
    size_t n = shared->cells.list->n, best = n;
    int64_t best_rank = 0;

    *at_ms = now_ms + AWAY_CAP_MS;
    for (size_t i = 0; i < n; i++) {
        const struct cell_job *of = job_in(shared, i, &shared->slots[slot]);
        int64_t its = rank(shared, i, slot, now_ms);

        if (i == except)
            continue;
        if (of->again_ms > now_ms) {
            *at_ms = of->again_ms < *at_ms ? of->again_ms : *at_ms;
            continue;
        }
        if (best == n || its < best_rank ||
            (its == best_rank &&
             of->left_ms < job_in(shared, best, &shared->slots[slot])->left_ms)) {
            best = i;
            best_rank = its;
        }
    }
    return best;
}

/* All that was counted since the slot last was in the cell was counted elsewhere. */
static void enter(struct slot *slot, size_t cell)
{
    if (slot->cell == cell && slot->incarnation > 0)
        return;
    if (slot->incarnation > 0)
        slot->when_left[slot->cell] = slot->counters;
    for (int i = 0; i < COUNTERS_MAX; i++)
        slot->elsewhere[cell].value[i] +=
            slot->counters.value[i] - slot->when_left[cell].value[i];
    slot->cell = cell;
}

bool visit_choose(struct shared *shared, size_t slot, int64_t now_ms, int64_t *at_ms)
{
    struct slot *of = &shared->slots[slot];
    size_t n = shared->cells.list->n, cell = of->cell;
    bool is_bound = inflight_is_set(&of->inflight) ||
                    (of->incarnation > 0 && !of->moves_on); /* it died there */

    if (n == 0)
        return true;
    if (is_bound)
        *at_ms = job_in(shared, cell, of)->again_ms;
    else
        cell = most_urgent(shared, slot, n, now_ms, at_ms);
    if (cell == n || job_in(shared, cell, of)->again_ms > now_ms)
        return false;
    enter(of, cell);
    return true;
}

int visit_take_place(struct shared *shared, struct session *s, bool *has, struct err *e)
{
    const struct slot *slot = &shared->slots[s->slot];
    struct cell_state *cell = &shared->cells.of[slot->cell];
    int64_t place = 0;
    const struct pg_param params[] = {
        pg_text(s->job->name),
        pg_int8(job_is_shared(s->job, s->config) ? slot->workers : 1)};

    *has = true;
    if (shared->cells.list->n == 0 || s->has_place)
        return 0;
    if (!cell->is_checked && shared->cells.check(s->config, e) != 0)
        return (int)e->code;
    cell->is_checked = true;
    if (pg_ask(s->pg, SQL_POOL_TAKE_PLACE, params, 2, &place, e) != 0)
        return (int)e->code;
    *has = s->has_place = place >= 0;
    return 0;
}

/* A new process, session and plans cost the CPU of thousands of charges. */
static int64_t visit_ms(const struct slot *of, bool is_idle)
{
    int64_t least_ms = is_idle ? IDLE_MS : VISIT_MS;
    int64_t cap_ms = is_idle ? IDLE_CAP_MS : VISIT_CAP_MS;
    int64_t ms = WORTH * of->opening_ms;

    ms = ms < cap_ms ? ms : cap_ms;
    return ms > least_ms ? ms : least_ms;
}

bool visit_is_over(struct shared *shared, size_t slot, int64_t begun_ms, bool is_idle)
{
    const struct slot *of = &shared->slots[slot];
    int64_t now_ms = clk_ms(), ignored, own;
    size_t other;

    if (shared->cells.list->n < 2 || now_ms - begun_ms < visit_ms(of, is_idle))
        return false;
    other = most_urgent(shared, slot, of->cell, now_ms, &ignored);
    if (other == shared->cells.list->n)
        return false;
    own = others_in(shared, of->cell, slot);
    own = own == 0 ? 0 : 2 * own + is_idle;
    if (rank(shared, other, slot, now_ms) != own)
        return rank(shared, other, slot, now_ms) < own;
    return own == 0 && now_ms - job_in(shared, other, of)->left_ms >= LOOK_MS;
}

void visit_leave(struct shared *shared, size_t slot, bool is_full)
{
    const struct slot *of = &shared->slots[slot];
    struct cell_job *job = job_in(shared, of->cell, of);

    job->left_ms = clk_ms();
    if (is_full)
        job->again_ms = clk_ms() + FULL_MS;
}

void visit_note_behind(struct shared *shared, size_t slot)
{
    const struct slot *of = &shared->slots[slot];

    if (shared->cells.list->n > 0)
        job_in(shared, of->cell, of)->behind_ms = clk_ms();
}

void visit_note_away(struct shared *shared, size_t slot, const char *why)
{
    const struct slot *of = &shared->slots[slot];
    struct cell_state *cell = &shared->cells.of[of->cell];
    struct cell_job *job = job_in(shared, of->cell, of);

    (void)snprintf(cell->trouble, sizeof cell->trouble, "%.299s", why);
    if (job->away_ms == 0)
        job->away_ms = clk_ms();
    job->left_ms = clk_ms();
    if (job->again_ms > clk_ms())
        return; /* another worker has just met the same */
    job->again_ms =
        clk_ms() + clk_backoff_ms(job->failures++, AWAY_BASE_MS, AWAY_CAP_MS);
}

void visit_note_well(struct shared *shared, size_t slot)
{
    if (shared->cells.list->n == 0)
        return;
    visit_job(shared, slot)->away_ms = 0;
    visit_job(shared, slot)->failures = 0;
}

int64_t visit_away_since(const struct cell_state *cell)
{
    int64_t since_ms = 0;

    for (int job = 0; job < JOB_TYPE_CT; job++) {
        int64_t away_ms = cell->jobs[job].away_ms;

        if (away_ms != 0 && (since_ms == 0 || away_ms < since_ms))
            since_ms = away_ms;
    }
    return since_ms;
}
