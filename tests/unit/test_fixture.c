/* fixture: where temporary files of the tests go. */
#include "tests/lib/fixture.h"

static char dir[32], saved[256];

static void enter(void)
{
    const char *given = getenv("LL_TEST_TMP");

    (void)snprintf(saved, sizeof saved, "%s", given != NULL ? given : "");
    (void)strcpy(dir, "/tmp/lltmp.XXXXXX");
    assert_non_null(mkdtemp(dir));
    assert_int_equal(setenv("LL_TEST_TMP", dir, 1), 0);
}

/* An empty value is as good as none. */
static void leave(void)
{
    (void)rmdir(dir);
    assert_int_equal(setenv("LL_TEST_TMP", saved, 1), 0);
}

GROUP(.open = enter, .close = leave);

CASE(file_goes_to_the_folder_of_the_run)
{
    char path[64];

    fixture_file(path, sizeof path, "", 0600);
    (void)unlink(path);
    assert_memory_equal(path, dir, strlen(dir));
}

CASE(path_that_does_not_fit_or_has_no_folder_is_in_tmp)
{
    char longer[320], path[64];

    (void)snprintf(longer, sizeof longer, "/%0300d", 0);
    for (int i = 0; i < 2; i++) {
        (void)setenv("LL_TEST_TMP", i == 0 ? longer : "", 1);
        fixture_temporary(path, sizeof path, "redis");
        assert_string_equal(path, "/tmp/ledgerlock-redis.XXXXXX");
    }
}
