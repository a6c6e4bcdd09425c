/* made_clock: the time of common/base/clock.h as a test says it. A program that calls
 * one of these has this clock from its start, and a pause in the code under test moves
 * the clock and takes no time. */
#ifndef LEDGERLOCK_MADE_CLOCK_H
#define LEDGERLOCK_MADE_CLOCK_H

#include <stdint.h>

/* Moves the clock forward. */
void made_clock_forward_ms(int64_t ms);

/* How much of it was paused so far. */
int64_t made_clock_paused_ms(void);

#endif
