/* swarm: the schedule of a seed. */
#include "tests/lib/swarm.h"

#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

#include "tests/lib/draw.h"

enum { GROUPS = 16, FAULTS = 64, LEAST_MIXED = 3 };

enum { GAP_MS = 400, LONGEST_MS = 1500, SETTLE_MS = 200 };

uint64_t swarm_seed(uint64_t seed, uint64_t i)
{
    uint64_t x = seed ^ i << 40;

    return i == 0 ? seed : draw(&x);
}

static void draw_mixture(struct swarm *s, uint64_t *x, size_t fault_ct)
{
    size_t n = LEAST_MIXED + draw(x) % (SWARM_MIXED - LEAST_MIXED + 1);
    bool takes_part[FAULTS] = {false};

    while (s->mixed_ct < n && s->mixed_ct < fault_ct) {
        size_t fault = draw(x) % fault_ct;

        if (!takes_part[fault])
            s->mixed[s->mixed_ct++] = (int)fault;
        takes_part[fault] = true;
    }
}

static int by_time(const void *a, const void *b)
{
    const struct swarm_event *l = a, *r = b;

    if (l->at_ms != r->at_ms)
        return l->at_ms < r->at_ms ? -1 : 1;
    return l->ends != r->ends ? r->ends - l->ends : l->fault - r->fault;
}

void swarm_draw(
    struct swarm *s, uint64_t seed, const int *group, size_t fault_ct, int64_t total_ms)
{
    int64_t free_at[GROUPS] = {0}, at = 0;
    uint64_t x = seed;

    memset(s, 0, sizeof *s);
    draw_mixture(s, &x, fault_ct);
    while (s->event_ct + 2 <= SWARM_EVENTS) {
        int fault = s->mixed[draw(&x) % s->mixed_ct];
        int64_t until = at + 100 + (int64_t)(draw(&x) % LONGEST_MS);
        int64_t *free_from = &free_at[group[fault] % GROUPS];

        if (until + SETTLE_MS > total_ms)
            break;
        if (*free_from <= at) {
            s->events[s->event_ct++] = (struct swarm_event){at, fault, 0};
            s->events[s->event_ct++] = (struct swarm_event){until, fault, 1};
            *free_from = until + SETTLE_MS;
        }
        at += 20 + (int64_t)(draw(&x) % GAP_MS);
    }
    qsort(s->events, s->event_ct, sizeof s->events[0], by_time);
}

uint64_t swarm_hash(const struct swarm *s)
{
    uint64_t x = s->event_ct;

    for (size_t i = 0; i < s->event_ct; i++) {
        x ^= (uint64_t)s->events[i].at_ms << 16 ^ (uint64_t)s->events[i].fault << 1 ^
             (uint64_t)s->events[i].ends;
        x = draw(&x);
    }
    return x;
}
