/* cli: the program as a process, without servers: verbs, flags, help, exit codes. */
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "tests/lib/fixture.h"
#include "worker/cli.h"

static struct fixture_output o;

static void no_words_print_help_and_succeed(void **state)
{
    (void)state;
    assert_int_equal(fixture_run(NULL, &o, NULL), 0);
    fixture_assert_contains(o.out, "Usage: ledgerlock VERB [flags]");
    assert_string_equal(o.err, "");
}

static void help_lists_every_verb(void **state)
{
    static const char *const verbs[] = {"migrate", "seed",   "import",  "run", "audit",
                                        "status",  "config", "version", "help"};

    (void)state;
    assert_int_equal(fixture_run(NULL, &o, "--help", NULL), 0);
    for (size_t i = 0; i < sizeof verbs / sizeof verbs[0]; i++)
        fixture_assert_contains(o.out, verbs[i]);
}

static void help_of_every_verb_has_example_and_flags(void **state)
{
    static const char *const verbs[] = {"migrate", "seed",   "import",  "run", "audit",
                                        "status",  "config", "version", "help"};
    static struct fixture_output by_help;

    (void)state;
    for (size_t i = 0; i < sizeof verbs / sizeof verbs[0]; i++) {
        assert_int_equal(fixture_run(NULL, &o, verbs[i], "-h", NULL), 0);
        fixture_assert_contains(o.out, "Example: ledgerlock ");
        fixture_assert_contains(o.out, "--help");
        assert_int_equal(fixture_run(NULL, &by_help, "help", verbs[i], NULL), 0);
        assert_string_equal(o.out, by_help.out);
    }
}

static void help_shows_defaults_and_bounds(void **state)
{
    (void)state;
    assert_int_equal(fixture_run(NULL, &o, "run", "--help", NULL), 0);
    fixture_assert_contains(o.out, "-w, --workers N");
    fixture_assert_contains(o.out, "1 to 256 [4]");
}

static void unknown_verb_suggests_and_fails(void **state)
{
    (void)state;
    assert_int_equal(fixture_run(NULL, &o, "migrte", NULL), 2);
    fixture_assert_contains(o.err,
                            "no verb is called \"migrte\", did you mean migrate?");
    assert_string_equal(o.out, "");
    assert_int_equal(fixture_run(NULL, &o, "zebra", NULL), 2);
    assert_null(strstr(o.err, "did you mean"));
}

static void unknown_flag_suggests_and_fails(void **state)
{
    (void)state;
    assert_int_equal(fixture_run(NULL, &o, "config", "show", "--wrokers", "3", NULL),
                     2);
    fixture_assert_contains(o.err, "unknown flag --wrokers, did you mean --workers?");
    assert_int_equal(fixture_run(NULL, &o, "version", "--josn", NULL), 2);
    fixture_assert_contains(o.err, "did you mean --json?");
    assert_int_equal(fixture_run(NULL, &o, "config", "show", "-x", NULL), 2);
    fixture_assert_contains(o.err, "unknown flag -x");
}

static void flag_before_verb_is_explained(void **state)
{
    (void)state;
    assert_int_equal(fixture_run(NULL, &o, "--workers", "3", "run", NULL), 2);
    fixture_assert_contains(o.err, "the verb comes first");
}

static void flag_without_value_or_with_one_too_many_fails(void **state)
{
    (void)state;
    assert_int_equal(fixture_run(NULL, &o, "config", "show", "--workers", NULL), 2);
    fixture_assert_contains(o.err, "--workers needs a value");
    assert_int_equal(fixture_run(NULL, &o, "version", "--json=yes", NULL), 2);
    fixture_assert_contains(o.err, "takes no value");
}

static void flag_with_bad_value_is_wrong_use(void **state)
{
    (void)state;
    assert_int_equal(fixture_run(NULL, &o, "config", "show", "-w", "0", NULL), 2);
    fixture_assert_contains(o.err,
                            "flag --workers: pool.workers must be from 1 to 256");
}

static void word_too_many_is_refused(void **state)
{
    (void)state;
    assert_int_equal(fixture_run(NULL, &o, "migrate", "now", NULL), 2);
    fixture_assert_contains(o.err, "\"now\" is one word too many");
}

static void flag_beats_environment_and_says_so(void **state)
{
    (void)state;
    fixture_env("LEDGERLOCK_POOL_WORKERS", "7");
    fixture_env("LEDGERLOCK_POOL_BATCH", "8");
    assert_int_equal(fixture_run(NULL, &o, "config", "show", "-w", "9", NULL), 0);
    fixture_env("LEDGERLOCK_POOL_WORKERS", NULL);
    fixture_env("LEDGERLOCK_POOL_BATCH", NULL);
    fixture_assert_contains(o.out,
                            "= 9                                # flag --workers");
    fixture_assert_contains(o.out, "environment LEDGERLOCK_POOL_BATCH");
}

static void config_sample_checks_out(void **state)
{
    char path[64];

    (void)state;
    assert_int_equal(fixture_run(NULL, &o, "config", "sample", NULL), 0);
    fixture_file(path, sizeof path, o.out, 0600);
    assert_int_equal(fixture_run(NULL, &o, "config", "check", "-c", path, NULL), 0);
    fixture_assert_contains(o.out, "configuration is good");
    (void)unlink(path);
}

static void config_without_word_is_wrong_use(void **state)
{
    (void)state;
    assert_int_equal(fixture_run(NULL, &o, "config", NULL), 2);
    fixture_assert_contains(o.err, "check, show or sample");
}

static void version_works_with_broken_configuration(void **state)
{
    (void)state;
    fixture_env("LEDGERLOCK_CONFIG", "/nowhere");
    assert_int_equal(fixture_run(NULL, &o, "version", "--json", NULL), 0);
    fixture_env("LEDGERLOCK_CONFIG", NULL);
    fixture_assert_contains(o.out, "\"version\": \"");
}

/* What cli_fail says of an error of this class, and the exit code it gives. */
static enum exit_code told(enum err_code code, char *text, size_t size)
{
    int saved = dup(STDERR_FILENO);
    FILE *file = tmpfile();
    struct err e = {0};
    enum exit_code exit;
    ssize_t n;

    assert_non_null(file);
    (void)err_set(&e, code, "commit: it went");
    (void)dup2(fileno(file), STDERR_FILENO);
    exit = cli_fail(&e);
    (void)dup2(saved, STDERR_FILENO);
    (void)close(saved);
    n = pread(fileno(file), text, size - 1, 0);
    text[n > 0 ? n : 0] = '\0';
    (void)fclose(file);
    return exit;
}

static void commit_without_answer_is_postgres_and_says_run_it_again(void **state)
{
    char text[256];

    (void)state;
    assert_int_equal(told(ERR_UNKNOWN, text, sizeof text), EXIT_POSTGRES);
    assert_string_equal(text, "ledgerlock: commit: it went; whether it was stored is "
                              "unknown: run it again, that is safe\n");
}

static void conflict_is_postgres_and_says_try_again(void **state)
{
    char text[256];

    (void)state;
    assert_int_equal(told(ERR_CONFLICT, text, sizeof text), EXIT_POSTGRES);
    assert_string_equal(text, "ledgerlock: commit: it went; try again\n");
    assert_int_equal(told(ERR_BUG, text, sizeof text), EXIT_BUG);
    assert_string_equal(text, "ledgerlock: commit: it went\n");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(no_words_print_help_and_succeed),
        cmocka_unit_test(help_lists_every_verb),
        cmocka_unit_test(help_of_every_verb_has_example_and_flags),
        cmocka_unit_test(help_shows_defaults_and_bounds),
        cmocka_unit_test(unknown_verb_suggests_and_fails),
        cmocka_unit_test(unknown_flag_suggests_and_fails),
        cmocka_unit_test(flag_before_verb_is_explained),
        cmocka_unit_test(flag_without_value_or_with_one_too_many_fails),
        cmocka_unit_test(flag_with_bad_value_is_wrong_use),
        cmocka_unit_test(word_too_many_is_refused),
        cmocka_unit_test(flag_beats_environment_and_says_so),
        cmocka_unit_test(config_sample_checks_out),
        cmocka_unit_test(config_without_word_is_wrong_use),
        cmocka_unit_test(version_works_with_broken_configuration),
        cmocka_unit_test(commit_without_answer_is_postgres_and_says_run_it_again),
        cmocka_unit_test(conflict_is_postgres_and_says_try_again),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
