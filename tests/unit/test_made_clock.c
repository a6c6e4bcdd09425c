/* made_clock: time that a test makes is the time of the code under test. */
#include "tests/lib/made_clock.h"
#include "tests/lib/test.h"

#include "common/base/clock.h"

enum { HOUR_MS = 3600 * 1000 };

CASE(made_clock_stands_still_until_it_is_moved)
{
    int64_t before = clk_ms();

    assert_int_equal(clk_ms(), before);
    made_clock_forward_ms(HOUR_MS);
    assert_int_equal(clk_ms(), before + HOUR_MS);
}

/* The program would be ended long before the first hour. */
CASE(pause_moves_the_made_clock_and_takes_no_time)
{
    int64_t before = clk_ms(), paused = made_clock_paused_ms();

    for (int i = 0; i < 24; i++)
        clk_pause_ms(HOUR_MS);
    clk_pause_ms(-1);
    assert_int_equal(clk_ms(), before + 24 * HOUR_MS);
    assert_int_equal(made_clock_paused_ms() - paused, 24 * HOUR_MS);
}

/* A pause that grows with each failure grows up to its cap. */
CASE(backoff_of_a_day_is_seen_at_once)
{
    int64_t before = clk_ms(), longest = 0;

    for (unsigned n = 0; clk_ms() - before < 24 * HOUR_MS; n++) {
        int64_t pause = clk_backoff_ms(n, 10, HOUR_MS);

        longest = pause > longest ? pause : longest;
        clk_pause_ms(pause);
        made_clock_forward_ms(1);
    }
    assert_in_range(longest, HOUR_MS / 4, HOUR_MS);
}
