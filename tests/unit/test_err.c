/* err: codes, prefixes, the retryable column. */
#include <string.h>

#include "common/err.h"
#include "tests/lib/fixture.h"

static void err_set_formats_message_and_returns_code(void **state)
{
    struct err e = {0};

    (void)state;
    assert_int_equal(err_set(&e, ERR_CONFIG, "%s is %d", "x", 3), ERR_CONFIG);
    assert_int_equal(e.code, ERR_CONFIG);
    assert_string_equal(e.msg, "x is 3");
}

static void err_set_after_sqlstate_clears_it(void **state)
{
    struct err e = {.sqlstate = "40001"};

    (void)state;
    (void)err_set(&e, ERR_CONN, "gone");
    assert_string_equal(e.sqlstate, "");
}

static void err_wrap_prefixes_and_keeps_code_and_sqlstate(void **state)
{
    struct err e = {0};

    (void)state;
    (void)err_set(&e, ERR_CONFLICT, "deadlock");
    (void)strcpy(e.sqlstate, "40P01");
    assert_int_equal(err_wrap(&e, "claim %s", "users"), ERR_CONFLICT);
    assert_string_equal(e.msg, "claim users: deadlock");
    assert_string_equal(e.sqlstate, "40P01");
}

static void err_wrap_of_long_message_stays_terminated(void **state)
{
    struct err e = {0};
    char text[sizeof e.msg * 2];

    (void)state;
    memset(text, 'x', sizeof text - 1);
    text[sizeof text - 1] = '\0';
    (void)err_set(&e, ERR_BUG, "%s", text);
    assert_int_equal(strlen(e.msg), sizeof e.msg - 1);
    (void)err_wrap(&e, "%s", text);
    assert_true(strlen(e.msg) < sizeof e.msg);
}

static void err_codes_all_have_a_sentence(void **state)
{
    (void)state;
    for (int code = ERR_OK; code <= ERR_BUG; code++)
        assert_true(strlen(err_sentence((enum err_code)code)) > 1);
}

static void err_retryable_follows_the_list(void **state)
{
    (void)state;
    assert_true(err_is_retryable(ERR_CONN));
    assert_true(err_is_retryable(ERR_CONFLICT));
    assert_false(err_is_retryable(ERR_CONFIG));
    assert_false(err_is_retryable(ERR_CONSTRAINT));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(err_set_formats_message_and_returns_code),
        cmocka_unit_test(err_set_after_sqlstate_clears_it),
        cmocka_unit_test(err_wrap_prefixes_and_keeps_code_and_sqlstate),
        cmocka_unit_test(err_wrap_of_long_message_stays_terminated),
        cmocka_unit_test(err_codes_all_have_a_sentence),
        cmocka_unit_test(err_retryable_follows_the_list),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
