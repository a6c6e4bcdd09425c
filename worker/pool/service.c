/* service: what the pool tells systemd: that its workers are up, that its loop runs,
 * that it drains. */
#include "common/base/clock.h"
#include "worker/pool/supervisor.h"

void service_tend(struct pool *p)
{
    struct service *s = &p->service;

    if (!s->is_ready && !p->draining && monitor_are_all_at(p, SLOT_CONNECTED)) {
        s->is_ready = true;
        notify_send(&s->notify, "READY=1");
    }
    if (s->notify.watchdog_ms > 0 && clk_ms() >= s->feed_at_ms) {
        s->feed_at_ms = clk_ms() + s->notify.watchdog_ms / 2;
        notify_send(&s->notify, "WATCHDOG=1");
    }
}

void service_stopping(const struct pool *p)
{
    notify_send(&p->service.notify, "STOPPING=1");
}
