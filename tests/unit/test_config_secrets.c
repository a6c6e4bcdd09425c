/* config: passwords are hidden in what is shown, and their files are checked before
 * anything starts, and again by HUP. */
#include <sys/stat.h>

#include "common/base/config.h"
#include "common/base/secret.h"
#include "tests/lib/fixture.h"

static struct config c;
static struct err e;

static void start_clean(void)
{
    memset(&e, 0, sizeof e);
    config_defaults(&c);
}

GROUP(.open = start_clean);

static int set(const char *key, const char *value)
{
    size_t row = 0;

    while (strcmp(config_options[row].key, key) != 0)
        row++;
    return config_set(&c, row, value, ORIGIN_FLAG, "here", &e);
}

/* clang-format off */
static const struct {
    const char *name, *url, *masked;
} masks[] = {
    {"postgres",        "postgresql://u:s3cret@h:5/d",            "postgresql://u:***@h:5/d"},
    {"redis",           "redis://:s3cret@h:6379/0",               "redis://:***@h:6379/0"},
    {"two_at_signs",    "postgresql://u:a@b/c@h/d",               "postgresql://u:***@h/d"},
    {"words",           "host=h password=s3cret user=u",          "host=h password=*** user=u"},
    {"quoted_word",     "password='a \\' b' user=u",              "password=*** user=u"},
    {"query",           "postgresql:///d?password=x&user=u",      "postgresql:///d?password=***&user=u"},
    {"two_passwords",   "postgresql://u:a@h/d?sslpassword=x",     "postgresql://u:***@h/d?sslpassword=***"},
    {"blanks",          "host=h password = s3cret user=u",        "host=h password = *** user=u"},
    {"tab",             "password =\t'a b' user=u",               "password =\t*** user=u"},
    {"quote_not_closed", "password='s3 cret",                     "password=***"},
    {"escaped_blank",   "password=a&b\\ c user=u",                "password=*** user=u"},
    {"no_value",        "password user=u",                        "password user=u"},
    {"question_mark",   "postgresql://u:a?b@h/d",                 "postgresql://u:***@h/d"},
    {"signs_of_a_url",  "postgresql://u:a?b/c@d:e@h/d?x=y",       "postgresql://u:***@h/d?x=y"},
    {"at_in_the_query", "postgresql://h:5/d?password=a@b&user=u", "postgresql://h:***&user=u"},
    {"user_and_query",  "postgresql://u@h/d?password=a:b@c&user=u", "postgresql://u@h/d?password=***&user=u"},
    {"without_host",    "postgresql:///ledgerlock",               "postgresql:///ledgerlock"},
    {"without_user",    "redis://127.0.0.1:6379",                 "redis://127.0.0.1:6379"},
    {"user_alone",      "postgresql://u@h:5432/d",                "postgresql://u@h:5432/d"},
    {"socket",          "unix:///tmp/x.sock",                     "unix:///tmp/x.sock"},
    {"nothing",         "",                                       ""},
    {"one_slash",       "postgresql:/u:s3cret@h/d",               "postgresql:/u:***@h/d"},
    {"no_scheme",       "u:s3cret@h/d",                           "u:***@h/d"},
    {"words_with_signs", "host=h options='-c a:b' user=u@h",      "host=h options='-c a:b' user=u@h"},
    {"quorum",          "unix://u:s3cret@/a,unix://u:s3cret@/b",  "unix://u:***@/b"},
};

/* clang-format on */

CASE_ROWS(mask_hides_the_password_alone, masks)
{
    char buf[512];

    assert_string_equal(config_mask(row->url, buf, sizeof buf), row->masked);
    assert_int_equal(config_has_secret(row->url), strcmp(buf, row->url) != 0);
    /* It cuts at the size of the buffer. */
    assert_string_equal(config_mask("redis://:s3cret@h", buf, 12), "redis://:**");
}

static const struct {
    const char *name, *urls;
    bool has_secret;
} lists[] = {
    {"users_of_two_sockets", "unix://u@/a.sock,unix://u@/b.sock", false},
    {"users_of_two_hosts", "redis://u@a:1,rediss://u@b:2", false},
    {"a_port_and_a_user", "redis://a:6379,redis://u@b:6379", false},
    {"the_second_has_one", "redis://u@a:1,redis://u:x@b:2", true},
    {"the_first_has_one", "redis://u:x@a:1,unix://u@/b.sock", true},
    {"with_a_comma", "redis://:a,b@h", true},
    {"words", "host=h password=x", true},
    {"none", "postgresql:///d?host=/run&user=u", false},
};

CASE_ROWS(list_with_a_password_is_known, lists)
{
    assert_int_equal(config_has_secret(row->urls), row->has_secret);
}

CASE(print_shows_origin_and_hides_secret)
{
    char text[8192] = "";
    FILE *f = fmemopen(text, sizeof text, "w");

    assert_int_equal(set("postgres.url", "postgresql://u:s3cret@h/d"), 0);
    config_print(&c, f);
    (void)fclose(f);
    fixture_assert_contains(text, "\"postgresql://u:***@h/d\"");
    fixture_assert_contains(text, "# flag --postgres-url");
    assert_null(strstr(text, "s3cret"));
}

static char password[64];

/* Reads a file of this text and mode as a password. */
static int read_secret(const char *text, unsigned mode)
{
    char path[64];
    int code;

    fixture_file(path, sizeof path, text, mode);
    code = secret_read(path, password, sizeof password, &e);
    (void)unlink(path);
    if (code != 0)
        fixture_assert_contains(e.msg, path);
    return code;
}

CASE(secret_file_gives_its_first_line)
{
    assert_int_equal(read_secret("s3cret\r\nmore\n", 0600), 0);
    assert_string_equal(password, "s3cret");
}

CASE(secret_file_that_others_read_is_refused)
{
    assert_int_equal(read_secret("s3cret\n", 0640), ERR_CONFIG);
    fixture_assert_contains(e.msg, "run: chmod 600 /");
}

/* Its ACL lets the service read it, and shows as bits of the group. */
CASE(secret_file_that_systemd_hands_in_is_read)
{
    char folder[64], path[96];
    FILE *f;

    if (geteuid() != 0)
        skip(); /* only root writes there */
    (void)snprintf(folder, sizeof folder, "/run/credentials/ledgerlock-%ld",
                   (long)getpid());
    (void)snprintf(path, sizeof path, "%s/redis", folder);
    (void)mkdir("/run/credentials", 0755);
    assert_int_equal(mkdir(folder, 0700), 0);
    f = fopen(path, "w");
    assert_non_null(f);
    (void)fputs("s3cret\n", f);
    (void)fclose(f);
    assert_int_equal(chmod(path, 0440), 0);
    assert_int_equal(secret_read(path, password, sizeof password, &e), 0);
    assert_string_equal(password, "s3cret");
    (void)unlink(path);
    (void)rmdir(folder);
    (void)rmdir("/run/credentials"); /* unless somebody else uses it */
}

CASE(secret_file_that_is_empty_or_missing_is_refused)
{
    assert_int_equal(read_secret("\nx\n", 0600), ERR_CONFIG);
    assert_int_equal(secret_read("/nowhere/x", password, sizeof password, &e),
                     ERR_CONFIG);
    fixture_assert_contains(e.msg, "No such file");
}

CASE(secret_file_that_is_a_fifo_is_refused_at_once)
{
    char path[64];

    fixture_file(path, sizeof path, "", 0600);
    (void)unlink(path);
    assert_int_equal(mkfifo(path, 0600), 0);
    (void)alarm(60); /* opening it for reading would wait for a writer */
    assert_int_equal(secret_read(path, password, sizeof password, &e), ERR_CONFIG);
    (void)alarm(0);
    (void)unlink(path);
    fixture_assert_contains(e.msg, "is no regular file");
}

static const struct {
    const char *name, *key;
} files[] = {{"postgres", "postgres.password_file"}, {"redis", "redis.password_file"}};

CASE_ROWS(password_file_that_others_read_is_refused_of, files)
{
    char path[128];

    fixture_file(path, sizeof path, "s3cret\n", 0644);
    assert_int_equal(set(row->key, path), 0);
    assert_int_equal(config_check(&c, &e), ERR_CONFIG);
    fixture_assert_contains(e.msg, path);
    (void)chmod(path, 0600);
    assert_int_equal(config_check(&c, &e), 0);
    (void)unlink(path);
}
