/* cli: the program as a process, without servers: verbs, flags, help, exit codes. */
#include "ops/cli/cli.h"
#include "tests/lib/runs.h"

static const struct {
    const char *name;
} verbs[] = {{"migrate"},   {"seed"},   {"import"}, {"run"},     {"audit"},
             {"reconcile"}, {"status"}, {"config"}, {"version"}, {"help"}};

CASE(no_words_print_help_that_lists_every_verb)
{
    says(NULL, 0, "Usage: ledgerlock VERB [flags]", "%s", "");
    assert_string_equal(said.err, "");
    runs(NULL, 0, "--help");
    for (size_t i = 0; i < sizeof verbs / sizeof verbs[0]; i++)
        shows(verbs[i].name);
}

/* Guarantee: The help of a verb begins with its use, and has its own flags and an
 * example, in lines of at most 80 columns. */
CASE_ROWS(help_has_use_example_and_flags_of, verbs)
{
    static struct fixture_output by_help;
    char use[64];

    says(NULL, 0, "Example: ledgerlock ", "%s -h", row->name);
    shows("--help");
    (void)snprintf(use, sizeof use, "Usage: ledgerlock %s ", row->name);
    assert_ptr_equal(strstr(said.out, use), said.out);
    assert_int_equal(fixture_run(NULL, &by_help, "help", row->name, NULL), 0);
    assert_string_equal(said.out, by_help.out);
    fits_80_columns();
}

/* clang-format off */
static const struct {
    const char *name, *words, *use;
} uses[] = {
    {"explain", "explain", "explain order|subscription ID "}, {"close_month", "close-month", "close-month YYYY-MM "},
    {"locks", "locks", "locks [release KEY] "},               {"pause", "pause", "pause JOB "},
    {"parked", "parked", "[list | release ITEM | release --all] "},
};

/* clang-format on */

CASE_ROWS(use_names_the_words_of, uses)
{
    says(NULL, 0, row->use, "%s -h", row->words);
}

CASE(help_shows_defaults_and_bounds)
{
    says(NULL, 0, "-w, --workers N", "run --help");
    shows("[3000]");
    assert_null(strstr(said.out, "--redis-url TEXT"));
    says(NULL, 0, "\nFor members of ledgerlock_support.\n", "pause -h");
    says(NULL, 0, "how many users (1 to 50000000) [5000]", "seed -h");
    says(NULL, 0, "--redis-url URL", "help settings");
    shows("-c, --config FILE");
    fits_80_columns();
    says(NULL, 0, "  70  internal error", "help");
    fits_80_columns();
}

CASE(unknown_verb_suggests_and_fails)
{
    says(NULL, 2, "no verb is called \"migrte\", did you mean migrate?", "migrte");
    assert_string_equal(said.out, "");
    runs(NULL, 2, "zebra");
    assert_null(strstr(said.err, "did you mean"));
}

/* Guarantee: Each message has a code, and help says of it what to do. */
CASE(help_explains_the_code_of_a_message)
{
    says(NULL, 0, "LL-2001 A setting must be a whole number.\nWhy: ", "help ll-2001");
    shows("\nDo: Correct it where the message says.\n");
    assert_null(strstr(said.out, "LL-2002"));
    says(NULL, 0,
         "\nDo: Nothing was committed by it. Report the message and the log.\n",
         "help LL-9004");
    says(NULL, 2, "LL-1020 no message has the code LL-9999", "help LL-9999");
    runs(NULL, 2, "help LL-200");
    runs(NULL, 0, "help codes");
    shows("LL-1001 The text is no duration.\n");
    shows("\nLL-9004 ledgerlock met a defect of its own.\n");
    assert_null(strstr(said.out, "Why: "));
}

CASE(messages_begin_with_their_codes)
{
    says(NULL, 2, "ledgerlock: LL-1005 unknown flag", "config show --wrokers 3");
    says(NULL, 2, "ledgerlock: LL-2002 flag --workers", "config show -w 257");
    says(NULL, 4, "ledgerlock: LL-3003 ",
         "status --postgres-url postgresql://127.0.0.1:1/nothing");
}

/* clang-format off */
static const struct {
    const char *name, *says, *words;
} wrong[] = {
    {"unknown_flag",   "unknown flag --wrokers, did you mean --workers?", "config show --wrokers 3"},
    {"unknown_flag_of_every_verb", "did you mean --json?",           "version --josn"},
    {"unknown_letter", "unknown flag -x",                            "config show -x"},
    {"flag_before_verb", "the verb comes first",                     "--workers 3 run"},
    {"flag_without_value", "--workers needs a value",                "config show --workers"},
    {"flag_with_value_too_many", "takes no value",                   "version --json=yes"},
    {"flag_with_bad_value", "flag --workers: pool.workers must be from 0 to 256", "config show -w 257"},
    {"word_too_many",  "\"now\" is one word too many",               "migrate now"},
    {"config_without_word", "check, show or sample",                 "config"},
};

/* clang-format on */

CASE_ROWS(wrong_use, wrong)
{
    says(NULL, 2, row->says, "%s", row->words);
}

CASE(flag_beats_environment_and_says_so)
{
    fixture_env("LEDGERLOCK_POOL_WORKERS", "7");
    fixture_env("LEDGERLOCK_POOL_BATCH", "8");
    runs(NULL, 0, "config show -w 9");
    fixture_env("LEDGERLOCK_POOL_WORKERS", NULL);
    fixture_env("LEDGERLOCK_POOL_BATCH", NULL);
    shows("= 9                                # flag --workers");
    shows("environment LEDGERLOCK_POOL_BATCH");
}

CASE(config_sample_checks_out)
{
    char path[64];

    says(NULL, 0, "  clocks_apart_s = 60;  # 0 to 3600\n", "config sample");
    fixture_file(path, sizeof path, said.out, 0600);
    says(NULL, 0, "configuration is good", "config check -c %s", path);
    (void)unlink(path);
}

CASE(version_works_with_broken_configuration)
{
    fixture_env("LEDGERLOCK_CONFIG", "/nowhere");
    says(NULL, 0, "\"version\": \"", "version --json");
    fixture_env("LEDGERLOCK_CONFIG", NULL);
}

/* clang-format off */
static const struct {
    const char *name;
    enum err_code code;
    enum exit_code exit;
    const char *more; /* behind the sentence of the error */
} errors[] = {
    {"commit_without_answer", ERR_UNKNOWN, EXIT_POSTGRES, "; whether it was stored is unknown: run it again, that is safe"},
    {"conflict",              ERR_CONFLICT, EXIT_POSTGRES, "; try again"},
    {"bug",                   ERR_BUG,     EXIT_BUG,      ""},
};

/* clang-format on */

CASE_ROWS(cli_fail_of, errors)
{
    static const struct cli_program program = {.name = "ledgerlock"};
    char text[256] = "", wanted[256];
    int saved = dup(STDERR_FILENO);
    FILE *file = tmpfile();
    struct err e = {0};

    cli_program = &program;
    assert_non_null(file);
    (void)err_set(&e, row->code, "commit: it went");
    (void)dup2(fileno(file), STDERR_FILENO);
    assert_int_equal(cli_fail(&e), row->exit);
    (void)dup2(saved, STDERR_FILENO);
    (void)close(saved);
    rewind(file);
    assert_non_null(fgets(text, sizeof text, file));
    (void)fclose(file);
    (void)snprintf(wanted, sizeof wanted, "ledgerlock: commit: it went%s\n", row->more);
    assert_string_equal(text, wanted);
}
