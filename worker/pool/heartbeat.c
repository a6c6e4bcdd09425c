/* heartbeat: the counters of a worker, as they changed. */
#include "worker/pool/heartbeat.h"

#include <string.h>
#include <unistd.h>

#include "common/base/clock.h"
#include "common/base/log.h"

enum { CHANGED_MS = 1000 };

int heartbeat_now(struct heartbeat *h, struct session *s, struct err *e)
{
    const char *names[COUNTERS_MAX];
    size_t n = session_counter_names(s->job, names);
    struct counters now = *s->counters, here = now;
    char json[1024];
    const struct pg_param params[] = {
        pg_text(s->pool), pg_int8(s->slot),  pg_text(s->job->name),
        pg_text(h->host), pg_int8(getpid()), pg_text(json),
    };

    h->written_ms = clk_ms();
    for (int i = 0; i < COUNTERS_MAX; i++)
        here.value[i] -= h->elsewhere->value[i];
    (void)counters_json(&here, names, n, json, sizeof json);
    if (pg_exec(s->pg, SQL_POOL_REPORT_WORKER, params, 6, NULL, e) != 0) {
        log_debug("worker.report_failed", "err=%s", LOG_TEXT(e->msg));
        return (int)e->code;
    }
    h->written = now;
    return 0;
}

int heartbeat_first(struct heartbeat *h, struct session *s, struct err *e)
{
    int code = heartbeat_now(h, s, e);

    h->written_ms = 0;
    return code;
}

int heartbeat(struct heartbeat *h, struct session *s, struct err *e)
{
    bool changed = memcmp(&h->written, s->counters, sizeof h->written) != 0;

    if (!pg_is_usable(s->pg) ||
        clk_ms() - h->written_ms < (changed ? CHANGED_MS : HEARTBEAT_MS))
        return 0;
    return heartbeat_now(h, s, e);
}

int64_t heartbeat_due_ms(const struct heartbeat *h)
{
    return h->written_ms + HEARTBEAT_MS;
}
