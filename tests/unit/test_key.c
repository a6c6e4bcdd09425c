/* Names of what is locked: two programs that share a Redis must write the same. */
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "tests/lib/fixture.h"
#include "worker/key.h"

static void name_is_the_kind_and_the_decimal_id(void **state)
{
    static const int64_t ids[] = {0,         1,  9,        10, 42, 1001, 123456789012,
                                  INT64_MAX, -1, INT64_MIN};
    char user[KEY_NAME], sku[KEY_NAME], wanted[KEY_NAME];

    (void)state;
    for (size_t i = 0; i < sizeof ids / sizeof ids[0]; i++) {
        size_t user_len = key_user(user, ids[i]);
        size_t sku_len = key_sku(sku, ids[i]);

        (void)snprintf(wanted, sizeof wanted, "user:%" PRId64, ids[i]);
        assert_string_equal(user, wanted);
        assert_int_equal(user_len, strlen(wanted));
        (void)snprintf(wanted, sizeof wanted, "sku:%" PRId64, ids[i]);
        assert_string_equal(sku, wanted);
        assert_int_equal(sku_len, strlen(wanted));
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(name_is_the_kind_and_the_decimal_id),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
