/* Ages as people read them. A browser is held to the same file (tests/page/browse.py).
 */
#include "common/base/age.h"
#include "tests/lib/fixture.h"

CASE(age_text_is_as_people_read_it)
{
    char path[512], line[128], text[AGE_TEXT];
    size_t ct = 0;
    FILE *f;

    (void)snprintf(path, sizeof path, "%s/tests/page/ages", getenv("LL_TEST_SOURCE"));
    f = fopen(path, "r");
    assert_non_null(f);
    while (fgets(line, sizeof line, f) != NULL) {
        char *rest;
        long long ms = strtoll(line, &rest, 10);

        if (line[0] == '#')
            continue;
        rest[strcspn(rest, "\n")] = '\0';
        assert_string_equal(age_text(ms, text), rest + 1);
        ct++;
    }
    (void)fclose(f);
    assert_in_range(ct, 20, 1000);
    assert_string_equal(age_text(INT64_MAX, text), "292471208 y 247 d");
}
