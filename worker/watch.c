/* watch: reads the slots, speaks for the pool. */
#include "worker/watch.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "common/clock.h"
#include "common/log.h"

enum { PROGRESS_MS = 5000 };

void watch_start(struct watch *w)
{
    *w = (struct watch){.started_ms = clk_ms(), .progress_ms = clk_ms()};
}

static void say_server(bool *was_down,
                       const char *name,
                       const size_t counts[3],
                       const char *trouble)
{
    char event[32], quoted[300];

    if (!*was_down && counts[SLOT_DOWN] > 0) {
        *was_down = true;
        (void)snprintf(event, sizeof event, "pool.%s_down", name);
        log_warn(event, "workers_waiting=%zu err=%s", counts[SLOT_DOWN],
                 log_quote(quoted, sizeof quoted, trouble));
    } else if (*was_down && counts[SLOT_DOWN] == 0 && counts[SLOT_UP] > 0) {
        *was_down = false;
        (void)snprintf(event, sizeof event, "pool.%s_up", name);
        log_info(event, "workers=%zu", counts[SLOT_UP]);
    }
}

void watch_servers(struct watch *w, const struct slot *slots, size_t n)
{
    size_t postgres[3] = {0}, redis[3] = {0};
    const char *trouble = "";

    for (size_t i = 0; i < n; i++) {
        if (slots[i].pid == 0)
            continue;
        postgres[slots[i].postgres]++;
        redis[slots[i].redis]++;
        if (slots[i].postgres == SLOT_DOWN || slots[i].redis == SLOT_DOWN)
            trouble = slots[i].trouble;
    }
    say_server(&w->postgres_down, "postgres", postgres, trouble);
    say_server(&w->redis_down, "redis", redis, trouble);
}

static struct metrics total(const struct slot *slots, size_t n)
{
    struct metrics sum = {{0}};

    for (size_t i = 0; i < n; i++)
        metrics_add(&sum, &slots[i].counters);
    return sum;
}

/* Totals since the start, rates since `since`. */
static void say(const char *event,
                const struct metrics *sum,
                const struct metrics *since,
                int64_t ms)
{
    int64_t charged = sum->value[METRIC_charged] - since->value[METRIC_charged];
    int64_t orders = sum->value[METRIC_fulfilled] - since->value[METRIC_fulfilled] +
                     sum->value[METRIC_rejected] - since->value[METRIC_rejected];

    log_info(event,
             "charged=%" PRId64 " declined=%" PRId64 " fulfilled=%" PRId64
             " rejected=%" PRId64 " keys_busy=%" PRId64 " restarts=%" PRId64
             " seconds=%" PRId64 ".%" PRId64 " charges_per_s=%" PRId64
             " orders_per_s=%" PRId64,
             sum->value[METRIC_charged], sum->value[METRIC_declined],
             sum->value[METRIC_fulfilled], sum->value[METRIC_rejected],
             sum->value[METRIC_busy], sum->value[METRIC_restarts], ms / 1000,
             ms / 100 % 10, ms > 0 ? charged * 1000 / ms : 0,
             ms > 0 ? orders * 1000 / ms : 0);
}

void watch_progress(struct watch *w, const struct slot *slots, size_t n)
{
    struct metrics sum = total(slots, n);
    int64_t now = clk_ms();

    if (now - w->progress_ms < PROGRESS_MS)
        return;
    if (memcmp(&sum, &w->progress, sizeof sum) != 0)
        say("pool.progress", &sum, &w->progress, now - w->progress_ms);
    w->progress_ms = now;
    w->progress = sum;
}

void watch_totals(const struct watch *w,
                  const struct slot *slots,
                  size_t n,
                  const char *event)
{
    static const struct metrics nothing;
    struct metrics sum = total(slots, n);

    say(event, &sum, &nothing, clk_ms() - w->started_ms);
}
