/* fixture: where temporary files of the tests go. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "tests/lib/fixture.h"

static char dir[32], saved[256];

static int enter(void **state)
{
    const char *given = getenv("LEDGERLOCK_TEST_TMP");

    (void)state;
    (void)snprintf(saved, sizeof saved, "%s", given != NULL ? given : "");
    (void)strcpy(dir, "/tmp/lltmp.XXXXXX");
    assert_non_null(mkdtemp(dir));
    return setenv("LEDGERLOCK_TEST_TMP", dir, 1);
}

/* An empty value is as good as none. */
static int leave(void **state)
{
    (void)state;
    (void)rmdir(dir);
    return setenv("LEDGERLOCK_TEST_TMP", saved, 1);
}

static void file_goes_to_the_folder_of_the_run(void **state)
{
    char path[64];

    (void)state;
    fixture_file(path, sizeof path, "", 0600);
    (void)unlink(path);
    assert_memory_equal(path, dir, strlen(dir));
}

static void path_that_does_not_fit_is_in_tmp(void **state)
{
    char longer[320], path[64];

    (void)state;
    memset(longer, 'x', sizeof longer);
    longer[0] = '/';
    longer[sizeof longer - 1] = '\0';
    (void)setenv("LEDGERLOCK_TEST_TMP", longer, 1);
    fixture_temporary(path, sizeof path, "redis");
    assert_string_equal(path, "/tmp/ledgerlock-redis.XXXXXX");
    (void)setenv("LEDGERLOCK_TEST_TMP", "", 1);
    fixture_temporary(path, sizeof path, "redis");
    assert_string_equal(path, "/tmp/ledgerlock-redis.XXXXXX");
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, enter, leave)

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(file_goes_to_the_folder_of_the_run),
        TEST(path_that_does_not_fit_is_in_tmp),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
