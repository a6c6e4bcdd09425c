/* service: what the pool tells systemd: that its workers are up, that its loop runs,
 * that it drains. */
#include "common/base/clock.h"
#include "worker/pool/supervisor.h"

/* A worker that has found nothing due and ended was up, too. */
static bool are_all_up(const struct pool *p)
{
    for (size_t i = 0; i < p->n; i++) {
        const struct child *child = &p->children[i];

        if (!child->finished &&
            (child->pid == 0 || p->shared->slots[i].state < SLOT_CONNECTED))
            return false;
    }
    return true;
}

void service_tend(struct pool *p)
{
    struct service *s = &p->service;

    if (!s->is_ready && !p->draining && are_all_up(p)) {
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
