/* health: is the pool alive, and can it work. Both are answered from memory. */
#include <inttypes.h>
#include <stdio.h>

#include "common/base/clock.h"
#include "worker/http/http.h"

enum { SILENT_MS = 10000 }; /* the supervisor goes round five times a second */

bool health_is_alive(const struct http *h, FILE *out)
{
    int64_t silent_ms = clk_ms() - h->order->shared->tick_ms;

    if (silent_ms > SILENT_MS) {
        (void)fprintf(out, "the supervisor has not gone round for %" PRId64 " s\n",
                      silent_ms / 1000);
        return false;
    }
    (void)fputs("ok\n", out);
    return true;
}

static bool is_ready(enum slot_state state)
{
    return state == SLOT_CONNECTED || state == SLOT_WORKS;
}

bool health_is_ready(const struct http *h, FILE *out)
{
    bool is_ok = true;

    for (size_t i = 0; i < h->order->slot_ct; i++) {
        const struct slot *slot = &h->order->shared->slots[i];
        enum slot_state state = slot->state;

        if (slot->pid != 0 && is_ready(state))
            continue;
        is_ok = false;
        (void)fprintf(out, "worker %zu of %s: %s%s%s\n", i, slot->job->name,
                      slot->pid == 0 ? "does not run" : memory_state(state),
                      slot->trouble[0] != '\0' ? ": " : "", slot->trouble);
    }
    if (h->redis_trouble[0] != '\0')
        (void)fprintf(out, "Redis does not answer: %s\n", h->redis_trouble);
    else if (is_ok)
        (void)fputs("ok\n", out);
    return is_ok && h->redis_trouble[0] == '\0';
}
