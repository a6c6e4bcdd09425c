/* draw: numbers of a seed by splitmix64, the same everywhere. */
#ifndef LEDGERLOCK_DRAW_H
#define LEDGERLOCK_DRAW_H

#include <stdint.h>

static inline uint64_t draw(uint64_t *state)
{
    uint64_t z = (*state += 0x9E3779B97F4A7C15u);

    z = (z ^ (z >> 30)) * 0xBF58476D1CE4E5B9u;
    z = (z ^ (z >> 27)) * 0x94D049BB133111EBu;
    return z ^ (z >> 31);
}

/* 0 to n - 1. */
static inline int64_t draw_below(uint64_t *state, int64_t n)
{
    return (int64_t)(draw(state) % (uint64_t)n);
}

#endif
