/* Names of what is locked: two programs that share a Redis must write the same. */
#include "tests/lib/fixture.h"
#include "worker/jobs/resource.h"

CASE(name_is_the_kind_and_the_decimal_id)
{
    static const int64_t ids[] = {0,         1,  9,        10, 42, 1001, 123456789012,
                                  INT64_MAX, -1, INT64_MIN};
    static const char *const names[RESOURCE_KIND_COUNT] = {"user", "sku"};
    char name[RESOURCE_NAME], wanted[RESOURCE_NAME];

    for (int kind = 0; kind < RESOURCE_KIND_COUNT; kind++) {
        for (size_t i = 0; i < sizeof ids / sizeof ids[0]; i++) {
            size_t n = resource_key(name, (enum resource_kind)kind, ids[i]);

            (void)snprintf(wanted, sizeof wanted, "%s:%" PRId64, names[kind], ids[i]);
            assert_string_equal(name, wanted);
            assert_int_equal(n, strlen(wanted));
        }
    }
}
