/* clk: monotonic readings and the bounds of jitter and backoff. */
#include "common/clock.h"
#include "tests/lib/fixture.h"

static void clk_readings_never_go_back(void **state)
{
    int64_t last = clk_us();

    (void)state;
    for (int i = 0; i < 1000; i++) {
        int64_t now = clk_us();

        assert_true(now >= last);
        last = now;
    }
}

static void clk_ms_is_a_thousandth_of_clk_us(void **state)
{
    int64_t us = clk_us();
    int64_t ms = clk_ms();

    (void)state;
    assert_true(ms >= us / 1000 && ms < us / 1000 + 1000);
}

static void clk_pause_of_nothing_returns_at_once(void **state)
{
    int64_t start = clk_ms();

    (void)state;
    clk_pause_ms(0);
    clk_pause_ms(-5);
    assert_true(clk_ms() - start < 500);
}

static void clk_jitter_stays_in_bounds_and_spreads(void **state)
{
    int low = 0, high = 0;

    (void)state;
    for (int i = 0; i < 2000; i++) {
        int64_t ms = clk_jitter_ms(100);

        assert_in_range(ms, 0, 100);
        low += ms < 20;
        high += ms > 80;
    }
    assert_true(low > 200 && high > 200);
}

static void clk_jitter_of_nothing_is_zero(void **state)
{
    (void)state;
    assert_int_equal(clk_jitter_ms(0), 0);
    assert_int_equal(clk_jitter_ms(-1), 0);
}

static void clk_backoff_grows_up_to_its_cap(void **state)
{
    (void)state;
    for (int i = 0; i < 200; i++) {
        assert_in_range(clk_backoff_ms(0, 10, 1000), 0, 10);
        assert_in_range(clk_backoff_ms(3, 10, 1000), 0, 80);
        assert_in_range(clk_backoff_ms(10, 10, 1000), 0, 1000);
        assert_in_range(clk_backoff_ms(4000000000u, 10, 1000), 0, 1000);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(clk_readings_never_go_back),
        cmocka_unit_test(clk_ms_is_a_thousandth_of_clk_us),
        cmocka_unit_test(clk_pause_of_nothing_returns_at_once),
        cmocka_unit_test(clk_jitter_stays_in_bounds_and_spreads),
        cmocka_unit_test(clk_jitter_of_nothing_is_zero),
        cmocka_unit_test(clk_backoff_grows_up_to_its_cap),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
