/* fault: which calls meet which fault, and how long they take. */
#include "labs/gateway/gateway.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

struct behaviour behaviour;
static int64_t applied[FAULT_CT];
static uint64_t state;

#define BEHAVIOUR_ROW(id, name, min, max, start, help) {name, help, min, max, start},

static const struct {
    const char *name, *help;
    double min, max, start;
} rows[] = {BEHAVIOURS(BEHAVIOUR_ROW)};

void fault_seed(uint64_t seed)
{
    state = seed;
}

/* splitmix64, as a number from 0 to below 1. */
static double draw(void)
{
    uint64_t z = state += 0x9e3779b97f4a7c15U;

    z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9U;
    z = (z ^ (z >> 27)) * 0x94d049bb133111ebU;
    return (double)((z ^ (z >> 31)) >> 11) * 0x1p-53;
}

void fault_reset(struct behaviour *b)
{
    memset(b, 0, sizeof *b);
    for (int i = 0; i < BEHAVIOUR_CT; i++)
        b->values[i] = rows[i].start;
}

void fault_print_help(void)
{
    for (int i = 0; i < BEHAVIOUR_CT; i++)
        (void)printf("%s  %-16s %s (%g)\n", i == FAULT_CT ? "Numbers:\n" : "",
                     rows[i].name, rows[i].help, rows[i].start);
}

bool fault_set(struct behaviour *b, const char *name, const char *value, char *why)
{
    int i = 0;
    char *end;

    while (i < BEHAVIOUR_CT && strcmp(rows[i].name, name) != 0)
        i++;
    if (i == BEHAVIOUR_CT) {
        (void)snprintf(why, WHY_SIZE, "there is no behaviour %.64s", name);
        return false;
    }
    (void)snprintf(why, WHY_SIZE, "%s must be from %.16g to %.16g%s", name, rows[i].min,
                   rows[i].max, i < FAULT_CT ? ", or next:N" : "");
    if (i < FAULT_CT && strncmp(value, "next:", 5) == 0) {
        b->next[i] = strtoll(value + 5, &end, 10);
        return end != value + 5 && *end == '\0' && b->next[i] > 0;
    }
    if (i < FAULT_CT)
        b->next[i] = 0;
    b->values[i] = strtod(value, &end);
    return end != value && *end == '\0' && b->values[i] >= rows[i].min &&
           b->values[i] <= rows[i].max;
}

static bool meets(enum fault fault)
{
    double rate = behaviour.values[fault];
    bool is_next = behaviour.next[fault] > 0;

    behaviour.next[fault] -= is_next;
    if (!is_next && (rate <= 0 || draw() >= rate))
        return false;
    applied[fault]++;
    return true;
}

enum fault fault_draw(enum fault first, enum fault last)
{
    for (enum fault fault = first; fault <= last; fault++) {
        if (meets(fault))
            return fault;
    }
    return NO_FAULT;
}

/* Log-normal between the median and the 99th percentile. */
int64_t fault_draw_latency_ms(bool may_be_slow)
{
    double median = behaviour.values[LATENCY_MS],
           p99 = behaviour.values[LATENCY_P99_MS];
    double normal;

    if (may_be_slow && meets(SLOW))
        return (int64_t)behaviour.values[SLOW_MS];
    if (median <= 0 || p99 <= median)
        return (int64_t)median;
    normal = sqrt(-2 * log(1 - draw())) * cos(6.283185307179586 * draw());
    return (int64_t)(median * exp(log(p99 / median) / 2.3263 * normal));
}

json_t *fault_counts(void)
{
    json_t *counts = json_object();

    for (int i = 0; i < FAULT_CT; i++)
        (void)json_object_set_new(counts, rows[i].name, json_integer(applied[i]));
    return counts;
}
