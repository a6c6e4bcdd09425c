/* swarm: draws with splitmix64, so that a schedule is the same everywhere. */
#include "tests/lib/swarm.h"

#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

enum { GROUPS = 16, LEAST_MIXED = 3, GAP_MS = 400, LONGEST_MS = 1500, SETTLE_MS = 200 };

static uint64_t next(uint64_t *x)
{
    uint64_t z = (*x += 0x9e3779b97f4a7c15u);

    z = (z ^ z >> 30) * 0xbf58476d1ce4e5b9u;
    z = (z ^ z >> 27) * 0x94d049bb133111ebu;
    return z ^ z >> 31;
}

uint64_t swarm_seed(uint64_t seed, uint64_t i)
{
    uint64_t x = seed ^ i << 40;

    return i == 0 ? seed : next(&x);
}

static bool takes_part(const struct swarm *s, int fault)
{
    for (size_t i = 0; i < s->mixed_ct; i++) {
        if (s->mixed[i] == fault)
            return true;
    }
    return false;
}

static void draw_mixture(struct swarm *s, uint64_t *x, size_t fault_ct)
{
    size_t n = LEAST_MIXED + next(x) % (SWARM_MIXED - LEAST_MIXED + 1);

    while (s->mixed_ct < n && s->mixed_ct < fault_ct) {
        int fault = (int)(next(x) % fault_ct);

        if (!takes_part(s, fault))
            s->mixed[s->mixed_ct++] = fault;
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
        int fault = s->mixed[next(&x) % s->mixed_ct];
        int64_t until = at + 100 + (int64_t)(next(&x) % LONGEST_MS);
        int64_t *free_from = &free_at[group[fault] % GROUPS];

        if (until + SETTLE_MS > total_ms)
            break;
        if (*free_from <= at) {
            s->events[s->event_ct++] = (struct swarm_event){at, fault, 0};
            s->events[s->event_ct++] = (struct swarm_event){until, fault, 1};
            *free_from = until + SETTLE_MS;
        }
        at += 20 + (int64_t)(next(&x) % GAP_MS);
    }
    qsort(s->events, s->event_ct, sizeof s->events[0], by_time);
}

uint64_t swarm_hash(const struct swarm *s)
{
    uint64_t x = s->event_ct;

    for (size_t i = 0; i < s->event_ct; i++) {
        x ^= (uint64_t)s->events[i].at_ms << 16 ^ (uint64_t)s->events[i].fault << 1 ^
             (uint64_t)s->events[i].ends;
        x = next(&x);
    }
    return x;
}
