/* schedule: phases and pauses. */
#include "worker/pool/schedule.h"

#include "common/base/clock.h"

enum {
    FILL_MS = 20,
    VAIN_BASE_MS = 4,
    VAIN_MOST_MS = 250,
    HEAD_AGAIN = 5,
    HEAD_MOST_MS = 30000,
    OLDEST_AGAIN = 16, /* pulls */
    PAUSED_MS = 500
};

/* A worker beside others of a job without shards begins behind the rows that
 * those before it take, while there are so many. Now and then it begins at the oldest
 * row: one of those may be frozen. */
static void pass_over(struct schedule *s)
{
    bool is_apart =
        s->job->shards == 0 && !s->is_ahead && s->next.from.at == BATCH_HEAD;

    s->next.skip = is_apart && ++s->apart % OLDEST_AGAIN != 0 ? s->index * s->batch : 0;
}

void schedule_start(struct schedule *s)
{
    s->next.limit = (size_t)s->batch;
    s->next.begins = true;
    s->next.from.at = BATCH_HEAD;
    s->next.from.shard = s->index * s->job->shards / s->workers;
    pass_over(s);
}

/* Until the worker's next phase of a period that all workers of the job divide. */
static int64_t until_phase(const struct schedule *s, int64_t slice_ms, int64_t now_ms)
{
    int64_t period = slice_ms * s->workers;
    int64_t phase = slice_ms * s->index;

    return period - (now_ms - phase % period + period) % period;
}

static int64_t least(int64_t a, int64_t b)
{
    return a < b ? a : b;
}

/* A batch takes a tenth of the lease at most, so that a slow server does not end it.
 * A batch that is quick since its rows are busy grows again, too: they are passed by
 * soon. */
static void fit(struct schedule *s, const struct batch_outcome *out, int64_t ms)
{
    if (ms > s->config->lease_ms / 10 && s->next.limit > 1)
        s->next.limit /= 2;
    else if (out->pulled > 0 && ms < s->config->lease_ms / 40)
        s->next.limit = (size_t)least((int64_t)s->next.limit * 2, s->batch);
}

/* From the last row on through all shards. A round is over when it comes to the
 * worker's own first one again, or when there was no more in any. */
static void move_through_shards(struct schedule *s, const struct batch_outcome *out)
{
    int64_t n = s->job->shards, own = s->index * n / s->workers;

    s->next.begins = !out->is_full || (out->last.shard - own + n) % n <
                                          (s->next.from.shard - own + n) % n;
    s->next.from = out->last;
    if (out->is_full)
        return;
    s->next.from.at = BATCH_HEAD;
    s->next.from.shard = out->pulled > 0 ? (out->last.shard + 1) % n : out->last.shard;
}

/* Without shards a round begins at the oldest row, with each pull. Only behind rows of
 * which less than half could be worked, the next ones begin behind these for five times
 * as long as such pulls took; but not after months were made, which the oldest wait
 * for. */
static void move_on(struct schedule *s,
                    const struct batch_outcome *out,
                    bool is_vain,
                    int64_t now_ms)
{
    bool is_head = s->next.from.at == BATCH_HEAD;

    if (s->job->shards > 0) {
        move_through_shards(s, out);
        return;
    }
    s->is_ahead = !out->is_full;
    if (is_vain)
        s->head_ms = now_ms + HEAD_AGAIN * s->vain_ms;
    s->next.from = out->last;
    if (!out->is_full || out->makes_months ||
        (!is_vain && (is_head || now_ms >= s->head_ms)))
        s->next.from.at = BATCH_HEAD;
    s->next.begins = s->next.from.at == BATCH_HEAD;
}

/* The pause after a round: after a round in which much was busy, as long as that took.
 */
static int64_t rest(struct schedule *s, const struct batch_outcome *out, int64_t now_ms)
{
    int64_t ms = 0;

    if (s->is_vain && !s->has_worked) {
        ms =
            clk_backoff_ms(s->in_vain++, VAIN_BASE_MS, least(s->poll_ms, VAIN_MOST_MS));
    } else {
        s->in_vain = 0;
        if (out->worked > 0 && !out->is_full && !out->due_again && !s->once)
            ms = until_phase(s, FILL_MS, now_ms);
    }
    return ms > s->vain_ms ? ms : least(s->vain_ms, VAIN_MOST_MS);
}

static void note_vain(struct schedule *s, bool is_vain, int64_t ms)
{
    if (s->next.begins) {
        s->vain_ms = 0;
        s->is_vain = s->has_worked = false;
    }
    s->vain_ms += is_vain ? ms : 0;
    s->is_vain = s->is_vain || is_vain;
}

int64_t schedule_learn(struct schedule *s,
                       const struct batch_outcome *out,
                       int64_t ms,
                       int64_t now_ms)
{
    bool is_vain = 2 * out->worked < out->pulled;

    fit(s, out, ms - out->pull_ms);
    note_vain(s, is_vain, ms);
    s->has_worked = s->has_worked || out->worked > 0;
    move_on(s, out, is_vain, now_ms);
    pass_over(s);
    s->next.is_idle = batch_found_nothing(out);
    if (out->is_standby)
        return STANDBY_ASKS_MS;
    if (out->is_paused)
        return until_phase(s, PAUSED_MS / s->workers, now_ms);
    if (s->next.is_idle)
        return until_phase(s, s->poll_ms, now_ms);
    return out->is_full && (s->job->shards == 0 || !s->next.begins)
               ? 0
               : rest(s, out, now_ms);
}

void schedule_fail(struct schedule *s,
                   const struct batch_outcome *out,
                   bool is_large,
                   int64_t ms,
                   int64_t now_ms)
{
    if (out->pulled > 0 && s->job->shards > 0) {
        move_through_shards(s, out);
    } else if (out->is_refused) {
        note_vain(s, true, ms);
        s->head_ms = now_ms + least(HEAD_AGAIN * s->vain_ms, HEAD_MOST_MS);
        s->next.from = out->last;
        s->next.begins = false;
        s->next.skip = 0;
    }
    if (out->pulled > 0 && is_large && s->next.limit > 1)
        s->next.limit /= 2;
}
