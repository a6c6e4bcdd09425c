/* clk: the bounds of jitter and backoff. */
#include "common/base/clock.h"
#include "tests/lib/fixture.h"

CASE(clk_jitter_stays_in_bounds_and_spreads)
{
    int low = 0, high = 0;

    for (int i = 0; i < 2000; i++) {
        int64_t ms = clk_jitter_ms(100);

        assert_in_range(ms, 0, 100);
        low += ms < 20;
        high += ms > 80;
    }
    assert_true(low > 200 && high > 200);
    assert_int_equal(clk_jitter_ms(0), 0);
    assert_int_equal(clk_jitter_ms(-1), 0);
}

CASE(clk_backoff_doubles_up_to_its_cap_and_spreads)
{
    int low = 0, high = 0;

    for (int i = 0; i < 200; i++) {
        int64_t ms = clk_backoff_ms(3, 10, 1000);

        assert_in_range(clk_backoff_ms(0, 10, 1000), 5, 10);
        assert_in_range(ms, 40, 80);
        assert_in_range(clk_backoff_ms(10, 10, 1000), 500, 1000);
        assert_in_range(clk_backoff_ms(4000000000u, 10, 1000), 500, 1000);
        low += ms < 50;
        high += ms > 70;
    }
    assert_true(low > 10 && high > 10);
}
