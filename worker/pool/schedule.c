/* schedule: phases and pauses. */
#include "worker/pool/schedule.h"

#include "common/base/clock.h"

enum {
    GATHER_MS = 20,
    VAIN_BASE_MS = 2,
    VAIN_MOST_MS = 250,
    STANDBY_MS = 250,
    WHOLE_AGAIN = 5,
    PAUSED_MS = 500
};

void schedule_start(struct schedule *s)
{
    s->limit = (size_t)s->batch;
    s->from.at = BATCH_HEAD;
    s->from.shard = s->index * s->job->shards / s->workers;
}

struct batch_order schedule_next(const struct schedule *s)
{
    bool is_apart = s->job->shards == 0 && !s->is_ahead && s->from.at == BATCH_HEAD;

    return (struct batch_order){
        .from = s->from,
        .skip = is_apart ? s->index * s->batch : 0,
        .limit = s->limit,
        .is_idle = s->is_idle,
    };
}

/* Until the worker's next phase of a period that all workers of the job divide. */
static int64_t until_phase(const struct schedule *s, int64_t slice_ms, int64_t now_ms)
{
    int64_t period = slice_ms * s->workers;
    int64_t phase = slice_ms * s->index;

    return period - (now_ms - phase % period + period) % period;
}

/* A batch takes a tenth of the lease at most, so that a slow server does not end it. */
static void fit(struct schedule *s, const struct batch_outcome *out, int64_t ms)
{
    size_t batch = (size_t)s->batch;

    if (ms > s->config->lease_ms / 10 && s->limit > 1)
        s->limit /= 2;
    else if (out->worked > 0 && ms < s->config->lease_ms / 40)
        s->limit = s->limit * 2 < batch ? s->limit * 2 : batch;
}

/* From the last row on through all shards. */
static void move_through_shards(struct schedule *s, const struct batch_outcome *out)
{
    s->from = out->last;
    if (out->is_full)
        return;
    s->from.at = BATCH_HEAD;
    s->from.shard =
        out->pulled > 0 ? (out->last.shard + 1) % s->job->shards : out->last.shard;
}

/* Without shards a pull begins at the oldest row. Only behind rows of which none could
 * be had, or that took long to pass over as they are left out, the next ones begin
 * behind these for five times as long. */
static void move_on(struct schedule *s,
                    const struct batch_outcome *out,
                    bool is_vain,
                    int64_t ms,
                    int64_t now_ms)
{
    bool is_whole = s->from.at == BATCH_HEAD;

    s->vain_ms = (is_whole ? 0 : s->vain_ms) + (is_vain    ? ms
                                                : is_whole ? out->pull_ms
                                                           : 0);
    if (s->job->shards > 0) {
        move_through_shards(s, out);
        return;
    }
    s->is_ahead = out->pulled == 0 || (s->is_ahead && !out->is_full);
    if (is_whole || is_vain)
        s->next_whole_ms = now_ms + WHOLE_AGAIN * s->vain_ms;
    s->from = out->last;
    if (out->pulled == 0 || !(is_vain ? out->is_full : out->has_left_out) ||
        now_ms >= s->next_whole_ms)
        s->from.at = BATCH_HEAD;
}

int64_t schedule_learn(struct schedule *s,
                       const struct batch_outcome *out,
                       int64_t ms,
                       int64_t blocked_ms,
                       int64_t now_ms)
{
    int64_t most_ms = s->poll_ms < VAIN_MOST_MS ? s->poll_ms : VAIN_MOST_MS;
    bool is_vain = out->pulled > 0 && out->worked == 0;
    int64_t vain_ms;

    fit(s, out, ms - out->pull_ms);
    move_on(s, out, is_vain, ms, now_ms);
    s->is_idle = out->pulled == 0 && !out->is_behind && blocked_ms == 0;
    if (out->worked > 0) {
        s->in_vain = 0;
        return out->is_full || out->due_again || s->once
                   ? 0
                   : until_phase(s, GATHER_MS, now_ms);
    }
    if (out->is_standby)
        return STANDBY_MS;
    if (is_vain && s->from.at != BATCH_HEAD) {
        s->in_vain++;
        return 0;
    }
    if (out->pulled == 0 && out->is_behind && s->in_vain == 0)
        return 0;
    if (out->is_paused) {
        s->in_vain = 0;
        return until_phase(s, PAUSED_MS / s->workers, now_ms);
    }
    if (out->pulled == 0 && blocked_ms == 0) {
        s->in_vain = 0;
        return until_phase(s, s->poll_ms, now_ms);
    }
    vain_ms = clk_backoff_ms(s->in_vain, VAIN_BASE_MS, most_ms);
    s->in_vain++;
    if (out->pulled == 0 && blocked_ms > vain_ms)
        vain_ms = blocked_ms < most_ms ? blocked_ms : most_ms;
    if (vain_ms < s->vain_ms)
        vain_ms = s->vain_ms < VAIN_MOST_MS ? s->vain_ms : VAIN_MOST_MS;
    return vain_ms;
}

void schedule_fail(struct schedule *s, const struct batch_outcome *out, bool is_large)
{
    if (out->pulled > 0 && s->job->shards > 0)
        move_through_shards(s, out);
    if (out->pulled > 0 && is_large && s->limit > 1)
        s->limit /= 2;
}
