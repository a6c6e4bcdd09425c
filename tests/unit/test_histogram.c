/* histogram: bounds of its quantiles against values that are known. */
#include <stdlib.h>

#include "common/histogram.h"
#include "tests/lib/fixture.h"

static struct histogram h;

static int empty(void **state)
{
    (void)state;
    h = (struct histogram){{0}};
    return 0;
}

static void histogram_of_nothing_is_zero(void **state)
{
    (void)state;
    assert_int_equal(histogram_count(&h), 0);
    assert_int_equal(histogram_quantile(&h, 0.5), 0);
}

static void histogram_below_sixteen_is_exact(void **state)
{
    (void)state;
    for (int us = 0; us < 16; us++) {
        h = (struct histogram){{0}};
        histogram_record(&h, us);
        assert_int_equal(histogram_quantile(&h, 0.5), us);
    }
}

/* Every value from a microsecond to an hour, in steps of a few percent. */
static void histogram_is_at_most_an_eighth_too_high(void **state)
{
    (void)state;
    for (int64_t us = 1; us < INT64_C(3600000000); us += 1 + us / 50) {
        int64_t read;

        h = (struct histogram){{0}};
        histogram_record(&h, us);
        read = histogram_quantile(&h, 1);
        assert_true(read >= us && read <= us + us / 8);
    }
}

static void histogram_quantiles_of_a_thousand_values(void **state)
{
    (void)state;
    for (int64_t us = 1; us <= 1000; us++)
        histogram_record(&h, us * 1000);
    assert_int_equal(histogram_count(&h), 1000);
    assert_in_range(histogram_quantile(&h, 0.5), 500000, 562500);
    assert_in_range(histogram_quantile(&h, 0.99), 990000, 1113750);
    assert_in_range(histogram_quantile(&h, 0), 1000, 1125);
}

static void histogram_takes_any_value(void **state)
{
    (void)state;
    histogram_record(&h, -5);
    histogram_record(&h, INT64_MAX);
    assert_int_equal(histogram_count(&h), 2);
    assert_int_equal(histogram_quantile(&h, 0.5), 0);
    assert_true(histogram_quantile(&h, 1) > INT64_C(3600000000));
}

static void histograms_add_up(void **state)
{
    struct histogram other = {{0}};

    (void)state;
    histogram_record(&h, 10);
    histogram_record(&other, 10);
    histogram_record(&other, 1000000);
    histogram_add(&h, &other);
    assert_int_equal(histogram_count(&h), 3);
    assert_int_equal(histogram_quantile(&h, 0.6), 10);
    assert_true(histogram_quantile(&h, 0.7) >= 1000000);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup(histogram_of_nothing_is_zero, empty),
        cmocka_unit_test_setup(histogram_below_sixteen_is_exact, empty),
        cmocka_unit_test_setup(histogram_is_at_most_an_eighth_too_high, empty),
        cmocka_unit_test_setup(histogram_quantiles_of_a_thousand_values, empty),
        cmocka_unit_test_setup(histogram_takes_any_value, empty),
        cmocka_unit_test_setup(histograms_add_up, empty),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
