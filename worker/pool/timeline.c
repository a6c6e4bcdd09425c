/* timeline: a ring of events. */
#include "worker/pool/timeline.h"

#include <stdbool.h>
#include <stdio.h>

#include "common/base/clock.h"

const char timeline_died[] = "worker died", timeline_froze[] = "worker stood still",
           timeline_lost[] = "lease lost";

void timeline_begin(struct timeline *t,
                    const char *what,
                    size_t slot,
                    const char *detail)
{
    struct timeline_event *event = &t->events[t->count % TIMELINE_KEPT];

    *event = (struct timeline_event){.what = what, .slot = slot, .begun_ms = clk_ms()};
    (void)snprintf(event->detail, sizeof event->detail, "%s", detail);
    t->count++;
}

void timeline_end(struct timeline *t, const char *what, int64_t slot, int64_t at_ms)
{
    for (size_t i = 0; i < TIMELINE_KEPT; i++) {
        struct timeline_event *event = &t->events[i];

        if (event->what == what && event->ended_ms == 0 &&
            (slot == TIMELINE_ANY || event->slot == (size_t)slot))
            event->ended_ms = at_ms;
    }
}
