/* service: what the pool tells systemd: that its workers are up, that its loop runs,
 * that it drains. A word that systemd does not take is lost. */
#include <systemd/sd-daemon.h>

#include "common/base/clock.h"
#include "worker/pool/supervisor.h"

void service_init(struct service *s)
{
    uint64_t us = 0;

    if (sd_watchdog_enabled(0, &us) > 0)
        s->watchdog_ms = (int64_t)(us / 1000);
}

void service_tend(struct pool *p)
{
    struct service *s = &p->service;

    if (!s->is_ready && !p->draining && monitor_are_all_at(p, SLOT_CONNECTED)) {
        s->is_ready = true;
        (void)sd_notify(0, "READY=1");
    }
    if (s->watchdog_ms > 0 && clk_ms() >= s->feed_at_ms) {
        s->feed_at_ms = clk_ms() + s->watchdog_ms / 2;
        (void)sd_notify(0, "WATCHDOG=1");
    }
}

void service_stopping(void)
{
    (void)sd_notify(0, "STOPPING=1");
}
