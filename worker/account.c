/* account: the slot and the workers table. */
#include "worker/account.h"

#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "common/clock.h"
#include "common/log.h"

enum { REPORT_MS = 1000, IDLE_REPORT_MS = 5 * REPORT_MS };

void account_server(struct worker *w,
                    volatile sig_atomic_t *server,
                    enum slot_server state,
                    const struct err *e)
{
    if (state == SLOT_DOWN && *server != SLOT_DOWN)
        (void)snprintf(w->slot->trouble, sizeof w->slot->trouble, "%.190s", e->msg);
    *server = state;
}

void account_now(struct worker *w)
{
    struct metrics now = w->slot->counters;
    char counters[1024];
    struct err e = {0};
    const struct pg_param params[] = {
        pg_text(w->pool),
        pg_int8(w->index),
        pg_text(w->host),
        pg_int8(getpid()),
        pg_text(metrics_json(&now, counters, sizeof counters)),
    };

    if (!pg_is_usable(w->pg) ||
        pg_exec(w->pg, SQL_POOL_REPORT_WORKER, params, 5, NULL, &e) != 0)
        log_debug("worker.report_failed", "err=\"%s\"", e.msg);
    else
        w->reported = now;
}

void account(struct worker *w)
{
    int64_t now = clk_ms();
    bool changed = memcmp(&w->reported, &w->slot->counters, sizeof w->reported) != 0;

    /* Idle workers report in step: each report makes the pool look again (look.h). */
    if (changed ? now - w->reported_ms < REPORT_MS
                : now / IDLE_REPORT_MS == w->reported_ms / IDLE_REPORT_MS)
        return;
    w->reported_ms = now;
    account_now(w);
}
