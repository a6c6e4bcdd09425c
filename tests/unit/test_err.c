/* err: codes and prefixes. */
#include "common/base/err.h"
#include "tests/lib/fixture.h"

/* Guarantee: A message shows no control character of a stranger's words to the
 * terminal.
 */
CASE(err_set_takes_control_characters_out)
{
    struct err e;

    (void)err_set(&e, ERR_INVALID, "%s", "a\033[2Jb\tc\177\nd");
    assert_string_equal(e.msg, "a [2Jb c \nd");
}

CASE(err_wrap_leaves_the_code_of_the_message_in_front)
{
    struct err e;

    (void)err_set(&e, ERR_CONFIG, "LL-2001 it is wrong");
    (void)err_wrap(&e, "line %d", 3);
    assert_string_equal(e.msg, "LL-2001 line 3: it is wrong");
    (void)err_set(&e, ERR_CONFIG, "LL-20 it is wrong");
    (void)err_wrap(&e, "line %d", 3);
    assert_string_equal(e.msg, "line 3: LL-20 it is wrong");
}

CASE(err_wrap_of_long_message_stays_terminated)
{
    struct err e = {0};
    char text[sizeof e.msg * 2];

    memset(text, 'x', sizeof text - 1);
    text[sizeof text - 1] = '\0';
    (void)err_set(&e, ERR_BUG, "%s", text);
    assert_int_equal(strlen(e.msg), sizeof e.msg - 1);
    (void)err_wrap(&e, "%s", text);
    assert_true(strlen(e.msg) < sizeof e.msg);
}
