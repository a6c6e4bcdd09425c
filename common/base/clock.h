/* clk: local time for deadlines and pauses. Due dates come from the clock of
 * the database, never from here. Deadlines use CLOCK_BOOTTIME, which goes on during
 * suspend. */
#ifndef LEDGERLOCK_CLOCK_H
#define LEDGERLOCK_CLOCK_H

#include <stdint.h>

/* Milliseconds since boot; no clock adjustment changes it. */
int64_t clk_ms(void);

/* Microseconds since boot, for durations. */
int64_t clk_us(void);

/* Sleeps at most ms; a signal ends it early, so a draining worker stops at
 * once. */
void clk_pause_ms(int64_t ms);

/* Full jitter: a random number in [0, ms], from a cheap generator seeded by pid and
 * time. */
int64_t clk_jitter_ms(int64_t ms);

/* The back-off after the n-th failure (n from 0): from half of base * 2^n to all of it,
 * at random; cap in its place when that is less. */
int64_t clk_backoff_ms(unsigned n, int64_t base_ms, int64_t cap_ms);

#endif
