/* config: sources, bounds, masking, the sample. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "common/config.h"
#include "common/secret.h"
#include "sample_gen.h"
#include "tests/lib/fixture.h"

static struct config c;
static struct err e;

static int start_clean(void **state)
{
    (void)state;
    for (size_t i = 0; i < config_option_ct; i++)
        (void)unsetenv(config_options[i].env);
    (void)unsetenv("LEDGERLOCK_POOL_WORKES");
    memset(&e, 0, sizeof e);
    config_defaults(&c);
    return 0;
}

static size_t row_of(const char *key)
{
    size_t row = 0;

    while (strcmp(config_options[row].key, key) != 0)
        row++;
    return row;
}

static int load_text(const char *text)
{
    char path[64];
    int code;

    fixture_file(path, sizeof path, text, 0600);
    code = config_load_file(&c, path, &e);
    (void)unlink(path);
    return code;
}

static int set(const char *key, const char *value)
{
    return config_set(&c, row_of(key), value, ORIGIN_FLAG, "here", &e);
}

static const char *mask(const char *url)
{
    static char buf[512];

    return config_mask(url, buf, sizeof buf);
}

/* ---- sources ---- */

static void defaults_are_good(void **state)
{
    (void)state;
    assert_int_equal(config_check(&c, &e), 0);
    assert_int_equal(c.workers, 4);
    assert_string_equal(c.postgres_url, "postgresql:///ledgerlock");
    assert_string_equal(c.lock_mode, "redis");
}

static void sample_loaded_gives_the_defaults(void **state)
{
    struct config defaults = c;

    (void)state;
    assert_int_equal(load_text((const char *)sample_texts[SAMPLE_LEDGERLOCK].text), 0);
    memcpy(c.origin, defaults.origin, sizeof c.origin);
    assert_memory_equal(&c, &defaults, sizeof c);
}

static void sample_names_every_option(void **state)
{
    (void)state;
    assert_int_equal(load_text((const char *)sample_texts[SAMPLE_LEDGERLOCK].text), 0);
    for (size_t row = 0; row < config_option_ct; row++)
        assert_int_equal(c.origin[row], ORIGIN_FILE);
}

static void environment_beats_file(void **state)
{
    (void)state;
    assert_int_equal(load_text("pool: { workers = 6; batch = 7; };"), 0);
    (void)setenv("LEDGERLOCK_POOL_WORKERS", "9", 1);
    assert_int_equal(config_load_env(&c, &e), 0);
    assert_int_equal(c.workers, 9);
    assert_int_equal(c.batch, 7);
    assert_int_equal(c.origin[row_of("pool.workers")], ORIGIN_ENV);
    assert_int_equal(c.origin[row_of("pool.batch")], ORIGIN_FILE);
}

static void environment_with_unknown_name_is_refused(void **state)
{
    (void)state;
    (void)setenv("LEDGERLOCK_POOL_WORKES", "9", 1);
    assert_int_equal(config_load_env(&c, &e), ERR_CONFIG);
    fixture_assert_contains(e.msg, "did you mean LEDGERLOCK_POOL_WORKERS?");
}

static void environment_of_tests_and_config_path_is_left_alone(void **state)
{
    (void)state;
    (void)setenv("LEDGERLOCK_TEST_ANYTHING", "x", 1);
    (void)setenv("LEDGERLOCK_CONFIG", "x", 1);
    assert_int_equal(config_load_env(&c, &e), 0);
    (void)unsetenv("LEDGERLOCK_CONFIG");
}

static void table_names_follow_from_the_keys(void **state)
{
    (void)state;
    for (size_t row = 0; row < config_option_ct; row++) {
        char name[64];

        (void)snprintf(name, sizeof name, "LEDGERLOCK_%s", config_options[row].key);
        for (char *p = name; *p != '\0'; p++)
            *p = *p == '.' ? '_' : (char)(*p >= 'a' && *p <= 'z' ? *p - 32 : *p);
        assert_string_equal(name, config_options[row].env);
    }
}

/* ---- the file ---- */

static void file_with_unknown_key_names_line_and_neighbour(void **state)
{
    (void)state;
    assert_int_equal(load_text("pool: {\n  workes = 4;\n};\n"), ERR_CONFIG);
    fixture_assert_contains(
        e.msg, ":2: unknown setting pool.workes, did you mean pool.workers?");
}

static void file_with_unknown_group_is_refused(void **state)
{
    (void)state;
    assert_int_equal(load_text("\n\nzebra: { stripes = 4; };\n"), ERR_CONFIG);
    fixture_assert_contains(e.msg, ":3: unknown setting zebra.stripes");
    assert_int_equal(load_text("zebra: { };\n"), ERR_CONFIG);
}

static void file_with_key_outside_group_is_refused(void **state)
{
    (void)state;
    assert_int_equal(load_text("workers = 4;\n"), ERR_CONFIG);
    fixture_assert_contains(e.msg, ":1: \"workers\" stands outside a group");
}

static void file_with_wrong_type_says_which(void **state)
{
    (void)state;
    assert_int_equal(load_text("pool: { workers = \"4\"; };"), ERR_CONFIG);
    fixture_assert_contains(e.msg, ":1: pool.workers must be a whole number");
    assert_int_equal(load_text("pool: { workers = 4.5; };"), ERR_CONFIG);
    assert_int_equal(load_text("pool: { workers = [4]; };"), ERR_CONFIG);
    assert_int_equal(load_text("log: { level = 4; };"), ERR_CONFIG);
    fixture_assert_contains(e.msg, "log.level must be text in double quotes");
}

static void file_with_value_out_of_bounds_says_the_bounds(void **state)
{
    (void)state;
    assert_int_equal(load_text("pool: {\n\n workers = 0; };"), ERR_CONFIG);
    fixture_assert_contains(e.msg, ":3: pool.workers must be from 1 to 256, not 0");
    assert_int_equal(load_text("locks: { lease_ms = 9999999999L; };"), ERR_CONFIG);
    fixture_assert_contains(e.msg, "1000 to 600000");
}

static void file_with_bad_choice_lists_the_choices(void **state)
{
    (void)state;
    assert_int_equal(load_text("locks: { mode = \"redi\"; };"), ERR_CONFIG);
    fixture_assert_contains(e.msg, "must be one of redis|database-only, not \"redi\"");
}

static void file_with_syntax_error_names_the_line(void **state)
{
    (void)state;
    assert_int_equal(load_text("pool: {\n  workers 4;\n};\n"), ERR_CONFIG);
    fixture_assert_contains(e.msg, ":2: syntax error");
}

static void file_that_is_missing_or_a_folder_is_refused(void **state)
{
    (void)state;
    assert_int_equal(config_load_file(&c, "/nowhere/x.cfg", &e), ERR_CONFIG);
    fixture_assert_contains(e.msg, "/nowhere/x.cfg: No such file");
    assert_int_equal(config_load_file(&c, "/tmp", &e), ERR_CONFIG);
    fixture_assert_contains(e.msg, "is a folder");
}

/* ---- values ---- */

static void number_with_rubbish_is_refused(void **state)
{
    (void)state;
    assert_int_equal(set("pool.workers", ""), ERR_CONFIG);
    assert_int_equal(set("pool.workers", "4x"), ERR_CONFIG);
    assert_int_equal(set("pool.workers", "99999999999999999999"), ERR_CONFIG);
    assert_int_equal(set("pool.workers", "257"), ERR_CONFIG);
    assert_int_equal(c.workers, 4);
    assert_int_equal(set("pool.workers", "256"), 0);
}

static void text_that_is_too_long_is_refused(void **state)
{
    char text[400];

    (void)state;
    memset(text, 'x', sizeof text - 1);
    text[sizeof text - 1] = '\0';
    assert_int_equal(set("redis.url", text), ERR_CONFIG);
    fixture_assert_contains(e.msg, "1 to 255 characters, this one has 399");
}

static void choice_of_two_at_once_is_refused(void **state)
{
    (void)state;
    assert_int_equal(set("log.level", "debug|info"), ERR_CONFIG);
    assert_int_equal(set("log.level", ""), ERR_CONFIG);
    assert_int_equal(set("log.level", "error"), 0);
}

static void retry_list_is_read_in_seconds(void **state)
{
    (void)state;
    assert_int_equal(set("billing.retry_after", "1s,2m,3h,4d"), 0);
    assert_int_equal(config_check(&c, &e), 0);
    assert_int_equal(c.retry_ct, 4);
    assert_int_equal(c.retry_s[0], 1);
    assert_int_equal(c.retry_s[1], 120);
    assert_int_equal(c.retry_s[2], 10800);
    assert_int_equal(c.retry_s[3], 345600);
}

static void retry_list_that_is_wrong_is_refused(void **state)
{
    static const char *const wrong[] = {
        "1",      "d",
        "0s",     "1d,",
        ",1d",    "1d 2d",
        "1w",     "-1d",
        "1d,,2d", "1s,1s,1s,1s,1s,1s,1s,1s,1s,1s,1s,1s,1s,1s,1s,1s,1s"};

    (void)state;
    for (size_t i = 0; i < sizeof wrong / sizeof wrong[0]; i++) {
        assert_int_equal(set("billing.retry_after", wrong[i]), 0);
        assert_int_equal(config_check(&c, &e), ERR_CONFIG);
        fixture_assert_contains(e.msg,
                                "flag --retry-after: billing.retry_after must be");
    }
}

static void check_refuses_urls_prefixes_and_currencies(void **state)
{
    (void)state;
    assert_int_equal(set("redis.url", "redis://a,redis://b,redis://c"), 0);
    assert_int_equal(config_check(&c, &e), ERR_CONFIG);
    assert_int_equal(set("redis.url", "unix:///x"), 0);
    assert_int_equal(set("locks.prefix", "a b"), 0);
    assert_int_equal(config_check(&c, &e), ERR_CONFIG);
    assert_int_equal(set("locks.prefix", "a:"), 0);
    assert_int_equal(set("import.currency", "eur"), 0);
    assert_int_equal(config_check(&c, &e), ERR_CONFIG);
}

/* ---- secrets ---- */

static void mask_hides_password_of_url(void **state)
{
    (void)state;
    assert_string_equal(mask("postgresql://u:s3cret@h:5/d"),
                        "postgresql://u:***@h:5/d");
    assert_string_equal(mask("redis://:s3cret@h:6379/0"), "redis://:***@h:6379/0");
    assert_string_equal(mask("postgresql://u:a@b/c@h/d"), "postgresql://u:***@h/d");
}

static void mask_hides_password_of_words_and_query(void **state)
{
    (void)state;
    assert_string_equal(mask("host=h password=s3cret user=u"),
                        "host=h password=*** user=u");
    assert_string_equal(mask("password='a \\' b' user=u"), "password=*** user=u");
    assert_string_equal(mask("postgresql:///d?password=x&user=u"),
                        "postgresql:///d?password=***&user=u");
    assert_string_equal(mask("postgresql://u:a@h/d?sslpassword=x"),
                        "postgresql://u:***@h/d?sslpassword=***");
}

static void mask_hides_password_with_blanks_around_the_sign(void **state)
{
    (void)state;
    assert_string_equal(mask("host=h password = s3cret user=u"),
                        "host=h password = *** user=u");
    assert_string_equal(mask("password =\t'a b' user=u"), "password =\t*** user=u");
    assert_string_equal(mask("password='s3 cret"), "password=***");
    assert_string_equal(mask("password=a&b\\ c user=u"), "password=*** user=u");
    assert_string_equal(mask("password user=u"), "password user=u");
}

static void mask_hides_password_with_signs_of_a_url(void **state)
{
    (void)state;
    assert_string_equal(mask("postgresql://u:a?b@h/d"), "postgresql://u:***@h/d");
    assert_string_equal(mask("postgresql://u:a?b/c@d:e@h/d?x=y"),
                        "postgresql://u:***@h/d?x=y");
    assert_string_equal(mask("postgresql://h:5/d?password=a@b&user=u"),
                        "postgresql://h:***&user=u");
    assert_string_equal(mask("postgresql://u@h/d?password=a:b@c&user=u"),
                        "postgresql://u@h/d?password=***&user=u");
}

static void mask_cuts_at_the_size_of_the_buffer(void **state)
{
    char buf[12];

    (void)state;
    assert_string_equal(config_mask("redis://:s3cret@h", buf, sizeof buf),
                        "redis://:**");
}

static void mask_leaves_urls_without_password_alone(void **state)
{
    static const char *const plain[] = {
        "postgresql:///ledgerlock", "redis://127.0.0.1:6379", "postgresql://u@h:5432/d",
        "unix:///tmp/x.sock", ""};

    (void)state;
    for (size_t i = 0; i < sizeof plain / sizeof plain[0]; i++)
        assert_string_equal(mask(plain[i]), plain[i]);
}

static void print_shows_origin_and_hides_secret(void **state)
{
    char text[8192] = "";
    FILE *f = fmemopen(text, sizeof text, "w");

    (void)state;
    assert_int_equal(set("postgres.url", "postgresql://u:s3cret@h/d"), 0);
    config_print(&c, f);
    (void)fclose(f);
    fixture_assert_contains(text, "\"postgresql://u:***@h/d\"");
    fixture_assert_contains(text, "# flag --postgres-url");
    assert_null(strstr(text, "s3cret"));
}

static void secret_file_gives_its_first_line(void **state)
{
    char path[64], password[64];

    (void)state;
    fixture_file(path, sizeof path, "s3cret\r\nmore\n", 0600);
    assert_int_equal(secret_read(path, password, sizeof password, &e), 0);
    (void)unlink(path);
    assert_string_equal(password, "s3cret");
}

static void secret_file_that_others_read_is_refused(void **state)
{
    char path[64], password[64];

    (void)state;
    fixture_file(path, sizeof path, "s3cret\n", 0640);
    assert_int_equal(secret_read(path, password, sizeof password, &e), ERR_CONFIG);
    (void)unlink(path);
    fixture_assert_contains(e.msg, "run: chmod 600 /");
    fixture_assert_contains(e.msg, path);
}

static void secret_file_that_is_empty_or_missing_is_refused(void **state)
{
    char path[64], password[64];

    (void)state;
    fixture_file(path, sizeof path, "\nx\n", 0600);
    assert_int_equal(secret_read(path, password, sizeof password, &e), ERR_CONFIG);
    (void)unlink(path);
    assert_int_equal(secret_read(path, password, sizeof password, &e), ERR_CONFIG);
    fixture_assert_contains(e.msg, "No such file");
}

static void secret_file_that_is_a_fifo_is_refused_at_once(void **state)
{
    char path[64], password[64];

    (void)state;
    fixture_file(path, sizeof path, "", 0600);
    (void)unlink(path);
    assert_int_equal(mkfifo(path, 0600), 0);
    (void)alarm(5); /* opening it for reading would wait for a writer */
    assert_int_equal(secret_read(path, password, sizeof password, &e), ERR_CONFIG);
    (void)alarm(0);
    (void)unlink(path);
    fixture_assert_contains(e.msg, "is no regular file");
}

#define TEST(name) cmocka_unit_test_setup(name, start_clean)

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(defaults_are_good),
        TEST(sample_loaded_gives_the_defaults),
        TEST(sample_names_every_option),
        TEST(environment_beats_file),
        TEST(environment_with_unknown_name_is_refused),
        TEST(environment_of_tests_and_config_path_is_left_alone),
        TEST(table_names_follow_from_the_keys),
        TEST(file_with_unknown_key_names_line_and_neighbour),
        TEST(file_with_unknown_group_is_refused),
        TEST(file_with_key_outside_group_is_refused),
        TEST(file_with_wrong_type_says_which),
        TEST(file_with_value_out_of_bounds_says_the_bounds),
        TEST(file_with_bad_choice_lists_the_choices),
        TEST(file_with_syntax_error_names_the_line),
        TEST(file_that_is_missing_or_a_folder_is_refused),
        TEST(number_with_rubbish_is_refused),
        TEST(text_that_is_too_long_is_refused),
        TEST(choice_of_two_at_once_is_refused),
        TEST(retry_list_is_read_in_seconds),
        TEST(retry_list_that_is_wrong_is_refused),
        TEST(check_refuses_urls_prefixes_and_currencies),
        TEST(mask_hides_password_of_url),
        TEST(mask_hides_password_of_words_and_query),
        TEST(mask_hides_password_with_blanks_around_the_sign),
        TEST(mask_hides_password_with_signs_of_a_url),
        TEST(mask_cuts_at_the_size_of_the_buffer),
        TEST(mask_leaves_urls_without_password_alone),
        TEST(print_shows_origin_and_hides_secret),
        TEST(secret_file_gives_its_first_line),
        TEST(secret_file_that_others_read_is_refused),
        TEST(secret_file_that_is_empty_or_missing_is_refused),
        TEST(secret_file_that_is_a_fifo_is_refused_at_once),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
