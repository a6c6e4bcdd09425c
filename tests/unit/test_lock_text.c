/* Commands to Redis, byte by byte as hiredis writes them. */
#include <hiredis/hiredis.h>

#include "common/lock/internal.h"
#include "tests/lib/fixture.h"

enum { WORDS = 1003, LONGEST = 100000 };

static char letters[LONGEST];

static void assert_as_hiredis(int argc, const char **argv, const size_t *lens)
{
    struct ll_text t = {0};
    char *theirs = NULL;
    long long size = redisFormatCommandArgv(&theirs, argc, argv, lens);

    ll_put_command(&t, (size_t)argc);
    for (int i = 0; i < argc; i++)
        ll_put(&t, argv[i], lens[i]);
    assert_false(t.is_short);
    assert_true(t.size <= t.room);
    assert_int_equal(t.size, size);
    assert_memory_equal(t.at, theirs, t.size);
    ll_text_free(&t);
    assert_null(t.at);
    redisFreeCommand(theirs);
}

static void begin(void)
{
    for (size_t i = 0; i < LONGEST; i++)
        letters[i] = (char)('a' + i % 26);
}

GROUP(.start = begin);

CASE(words_of_any_length_and_any_byte_are_written_whole)
{
    static const size_t lengths[] = {0, 1, 9, 10, 99, 100, 4096, LONGEST};

    for (size_t i = 0; i < sizeof lengths / sizeof lengths[0]; i++)
        assert_as_hiredis(1, (const char *[]){letters}, &lengths[i]);
    assert_as_hiredis(3, (const char *[]){"SET", "\0\r\n$5", "*"},
                      (const size_t[]){3, 5, 1});
}

CASE(a_thousand_keys_are_one_command)
{
    const char *argv[WORDS];
    size_t lens[WORDS];

    for (size_t i = 0; i < WORDS; i++) {
        argv[i] = letters + i;
        lens[i] = i % 26;
    }
    assert_as_hiredis(WORDS, argv, lens);
}

CASE(numbers_are_written_in_decimal)
{
    static const int64_t numbers[] = {0,  1,  -1,        9,         10,
                                      -9, 99, INT64_MAX, INT64_MIN, LL_TOKEN_END - 1};

    for (size_t i = 0; i < sizeof numbers / sizeof numbers[0]; i++) {
        struct ll_text t = {0};
        char text[24], wanted[48];
        int len = snprintf(text, sizeof text, "%" PRId64, numbers[i]);
        int size = snprintf(wanted, sizeof wanted, "$%d\r\n%s\r\n", len, text);

        ll_put_number(&t, numbers[i]);
        assert_int_equal(t.size, size);
        assert_memory_equal(t.at, wanted, t.size);
        ll_text_free(&t);
    }
}

CASE(words_in_a_list_end_with_null)
{
    static const char wanted[] = "*2\r\n$4\r\nINFO\r\n$6\r\nserver\r\n";
    struct ll_text t = {0};

    ll_put_words(&t, (const char *[]){"INFO", "server", NULL});
    assert_int_equal(t.size, sizeof wanted - 1);
    assert_memory_equal(t.at, wanted, t.size);
    ll_text_free(&t);
}
