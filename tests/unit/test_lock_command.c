/* Commands to Redis, byte by byte as hiredis writes them. */
#include <hiredis/hiredis.h>
#include <stdlib.h>
#include <string.h>

#include "common/lock/internal.h"
#include "tests/lib/fixture.h"

enum { WORDS = 1003, LONGEST = 100000 };

static char letters[LONGEST];

static void assert_as_hiredis(int argc, const char **argv, const size_t *lens)
{
    size_t room = ll_command_room(argc, lens);
    char *ours = malloc(room);
    char *theirs = NULL;
    long long size = redisFormatCommandArgv(&theirs, argc, argv, lens);

    assert_int_equal(ll_write_command(ours, argc, argv, lens), size);
    assert_true((size_t)size <= room);
    assert_memory_equal(ours, theirs, (size_t)size);
    free(ours);
    redisFreeCommand(theirs);
}

static void words_of_any_length_are_written_whole(void **state)
{
    static const size_t lengths[] = {0, 1, 9, 10, 99, 100, 4096, LONGEST};

    (void)state;
    for (size_t i = 0; i < sizeof lengths / sizeof lengths[0]; i++)
        assert_as_hiredis(1, (const char *[]){letters}, &lengths[i]);
}

static void words_may_hold_any_byte(void **state)
{
    (void)state;
    assert_as_hiredis(3, (const char *[]){"SET", "\0\r\n$5", "*"},
                      (const size_t[]){3, 5, 1});
}

static void a_thousand_keys_are_one_command(void **state)
{
    const char *argv[WORDS];
    size_t lens[WORDS];

    (void)state;
    for (size_t i = 0; i < WORDS; i++) {
        argv[i] = letters + i;
        lens[i] = i % 26;
    }
    assert_as_hiredis(WORDS, argv, lens);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(words_of_any_length_are_written_whole),
        cmocka_unit_test(words_may_hold_any_byte),
        cmocka_unit_test(a_thousand_keys_are_one_command),
    };

    for (size_t i = 0; i < LONGEST; i++)
        letters[i] = (char)('a' + i % 26);
    return cmocka_run_group_tests(tests, NULL, NULL);
}
