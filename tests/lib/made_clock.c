/* made_clock: takes the place of the two weak functions of common/base/clock.c. */
#include "tests/lib/made_clock.h"

#include "common/base/clock.h"

static int64_t now_us = 1000000, paused_ms;

int64_t clk_us(void)
{
    return now_us;
}

void clk_pause_ms(int64_t ms)
{
    if (ms <= 0)
        return;
    now_us += ms * 1000;
    paused_ms += ms;
}

void made_clock_forward_ms(int64_t ms)
{
    now_us += ms * 1000;
}

int64_t made_clock_paused_ms(void)
{
    return paused_ms;
}
