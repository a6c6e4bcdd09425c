/* config: sources, bounds, the sample; passwords are hidden in what is shown, and their
 * files are checked before anything starts, and again by HUP. */
#include <sys/stat.h>

#include "common/base/config.h"
#include "sample_gen.h"
#include "tests/lib/fixture.h"
#include "worker/jobs/job.h"

static struct config c;
static struct err e;

static void start_clean(void)
{
    for (size_t i = 0; i < config_option_ct; i++)
        (void)unsetenv(config_options[i].env);
    (void)unsetenv("LEDGERLOCK_POOL_WORKES");
    memset(&e, 0, sizeof e);
    config_defaults(&c);
}

GROUP(.open = start_clean);

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

/* ---- sources ---- */

CASE(defaults_are_good)
{
    assert_int_equal(config_check(&c, &e), 0);
    assert_int_equal(c.workers, 0); /* as many as each job says */
    assert_int_equal(c.job_workers[0], 3);
    assert_int_equal(c.job_workers[1], 1);
    assert_string_equal(c.postgres_url, "postgresql:///ledgerlock");
    assert_string_equal(c.lock_mode, "redis");
}

CASE(sample_names_every_option_and_gives_the_defaults)
{
    struct config defaults = c;

    assert_int_equal(load_text((const char *)sample_texts[SAMPLE_LEDGERLOCK].text), 0);
    for (size_t row = 0; row < config_option_ct; row++)
        assert_int_equal(c.origin[row], ORIGIN_FILE);
    memcpy(c.origin, defaults.origin, sizeof c.origin);
    assert_memory_equal(&c, &defaults, sizeof c);
}

CASE(environment_beats_file)
{
    assert_int_equal(load_text("pool: { workers = 6; batch = 7; };"), 0);
    (void)setenv("LEDGERLOCK_POOL_WORKERS", "9", 1);
    assert_int_equal(config_load_env(&c, &e), 0);
    assert_int_equal(c.workers, 9);
    assert_int_equal(c.batch, 7);
    assert_int_equal(c.origin[row_of("pool.workers")], ORIGIN_ENV);
    assert_int_equal(c.origin[row_of("pool.batch")], ORIGIN_FILE);
}

CASE(batch_of_each_job_counts_unless_one_is_given_for_all)
{
    assert_int_equal(load_text("pool: { orders: { batch = 20; }; };"), 0);
    assert_int_equal(job_batch_rows(&job_billing, &c), 500);
    assert_int_equal(job_batch_rows(&job_orders, &c), 20);
    assert_int_equal(load_text("pool: { batch = 7; };"), 0);
    assert_int_equal(job_batch_rows(&job_billing, &c), 7);
    assert_int_equal(job_batch_rows(&job_orders, &c), 7);
}

CASE(environment_with_unknown_name_is_refused_unless_it_is_of_the_path)
{
    (void)setenv("LEDGERLOCK_CONFIG", "x", 1);
    assert_int_equal(config_load_env(&c, &e), 0);
    (void)unsetenv("LEDGERLOCK_CONFIG");
    (void)setenv("LEDGERLOCK_POOL_WORKES", "9", 1);
    assert_int_equal(config_load_env(&c, &e), ERR_CONFIG);
    fixture_assert_contains(e.msg, "did you mean LEDGERLOCK_POOL_WORKERS?");
}

CASE(table_names_follow_from_the_keys)
{
    for (size_t row = 0; row < config_option_ct; row++) {
        char name[64];

        (void)snprintf(name, sizeof name, "LEDGERLOCK_%s", config_options[row].key);
        for (char *p = name; *p != '\0'; p++)
            *p = *p == '.' ? '_' : (char)(*p >= 'a' && *p <= 'z' ? *p - 32 : *p);
        assert_string_equal(name, config_options[row].env);
    }
}

/* ---- the file ---- */

/* clang-format off */
static const struct {
    const char *name, *text, *says;
} files[] = {
    {"unknown_key",        "pool: {\n  workes = 4;\n};\n", ":2: unknown setting pool.workes, did you mean pool.workers?"},
    {"unknown_group",      "\n\nzebra: { stripes = 4; };\n", ":3: unknown setting zebra.stripes"},
    {"empty_group",        "zebra: { };\n",               ""},
    {"key_outside_group",  "workers = 4;\n",              ":1: \"workers\" stands outside a group"},
    {"text_for_number",    "pool: { workers = \"4\"; };",  ":1: pool.workers must be a whole number"},
    {"fraction",           "pool: { workers = 4.5; };",   ""},
    {"list",               "pool: { workers = [4]; };",   ""},
    {"number_for_text",    "log: { level = 4; };",        "log.level must be text in double quotes"},
    {"out_of_bounds",      "pool: {\n\n workers = 257; };", ":3: pool.workers must be from 0 to 256, not 257"},
    {"order_of_orders",    "pool: { orders: { order = \"oldest\"; }; };", "must be one of placed|any, not \"oldest\""},
    {"far_out_of_bounds",  "locks: { lease_ms = 9999999999L; };", "1000 to 600000"},
    {"bad_choice",         "locks: { mode = \"redi\"; };", "must be one of redis|database-only, not \"redi\""},
};

/* clang-format on */

CASE_ROWS(file_is_refused_for, files)
{
    assert_int_equal(load_text(row->text), ERR_CONFIG);
    fixture_assert_contains(e.msg, row->says);
}

CASE(file_that_is_missing_or_a_folder_is_refused)
{
    assert_int_equal(config_load_file(&c, "/nowhere/x.cfg", &e), ERR_CONFIG);
    fixture_assert_contains(e.msg, "/nowhere/x.cfg: No such file");
    assert_int_equal(config_load_file(&c, "/tmp", &e), ERR_CONFIG);
    fixture_assert_contains(e.msg, "is a folder");
}

/* ---- values ---- */

static char long_text[1100];

/* clang-format off */
static const struct {
    const char *name, *key, *value, *says;
    bool late; /* the check refuses it, not the setting */
} values[] = {
    {"no_number",       "pool.workers", "",                     "", false},
    {"rubbish",         "pool.workers", "4x",                   "", false},
    {"beyond_64_bits",  "pool.workers", "99999999999999999999", "", false},
    {"out_of_bounds",   "pool.workers", "257",                  "", false},
    {"too_long",        "redis.url",    long_text,              "1 to 1023 characters, this one has 1099", false},
    {"line_feed",       "locks.prefix", "a\nb",                 "locks.prefix holds a control character", false},
    {"two_choices",     "log.level",    "debug|info",           "", false},
    {"no_choice",       "log.level",    "",                     "", false},
    {"url",             "redis.url",       "http://a",        "redis.url must start with", true},
    {"url_names",       "redis.url",       "a,b,c",           "redis.url must start with", true},
    {"prefix",          "locks.prefix",    "a b",             "", true},
    {"capital_of_roles", "postgres.role_prefix", "Shop",      "postgres.role_prefix must be of small letters", true},
    {"digit_of_roles",  "postgres.role_prefix", "1a",         "postgres.role_prefix must", true},
    {"line_of_roles",   "postgres.role_prefix", "_a",         "postgres.role_prefix must", true},
    {"hyphen_of_roles", "postgres.role_prefix", "shop-a",     "postgres.role_prefix must", true},
    {"quote_of_roles",  "postgres.role_prefix", "a\"b",       "postgres.role_prefix must", true},
    {"postgres_of_roles", "postgres.role_prefix", "pg_shop",  "postgres.role_prefix must", true},
    {"pg_of_roles",     "postgres.role_prefix", "pg",         "postgres.role_prefix must", true},
    {"long_name_of_roles", "postgres.role_prefix", "abcdefghijklmnopqrstuvwxyz12345", "1 to 30 characters", false},
    {"no_name_of_roles", "postgres.role_prefix", "",          "1 to 30 characters", false},
    {"url_of_a_page",   "http.hosts",      "https://ops.example.com", "http.hosts must be names", true},
    {"any_host",        "http.hosts",      "*",               "http.hosts must be names", true},
    {"currency",        "import.currency", "eur",             "", true},
};

/* clang-format on */

CASE_ROWS(value_is_refused_for, values)
{
    memset(long_text, 'x', sizeof long_text - 1);
    assert_int_equal(set(row->key, row->value), row->late ? 0 : ERR_CONFIG);
    if (row->late)
        assert_int_equal(config_check(&c, &e), ERR_INVALID); /* of a flag */
    fixture_assert_contains(e.msg, row->says);
    assert_int_equal(c.workers, 0); /* as many as each job says */
    assert_int_equal(c.job_workers[0], 3);
    assert_int_equal(c.job_workers[1], 1);
}

CASE(value_at_its_bound_is_taken)
{
    assert_int_equal(set("pool.workers", "256"), 0);
    assert_int_equal(set("log.level", "error"), 0);
    assert_int_equal(set("locks.prefix", "a:"), 0);
    assert_int_equal(set("postgres.role_prefix", "pga_abcdefghijklmnopqrstuvw_12"), 0);
    assert_int_equal(set("redis.url", "unix:///x"), 0);
    assert_int_equal(set("http.hosts", "ops.example.com, Pool-1.shop_svc"), 0);
    assert_int_equal(config_check(&c, &e), 0);
}

/* ---- quorum ---- */

/* clang-format off */
static const struct {
    const char *name, *url, *max_lease_ms;
    int code;
    bool is_quorum;
} urls[] = {
    {"one",               "redis://a",                     "2999",  0, false},
    {"several_and_a_short_lease", "redis://a,redis://b,redis://c", "2999", ERR_INVALID, true},
    {"several",           "redis://a,redis://b,redis://c", "3000",  0, true},
    {"sentinels",         "redis+sentinel://a,b,c/name",   "2999",  0, false},
    {"sentinels_by_tls",  "rediss+sentinel://a,b,c/name",  "2999",  0, false},
    {"cluster",           "redis+cluster://a,b,c",         "2999",  0, false},
    {"cluster_by_tls",    "rediss+cluster://a,b",          "2999",  0, false},
};

/* clang-format on */

/* Several plain URLs are a quorum, which bounds the lease. */
CASE_ROWS(quorum_of, urls)
{
    assert_int_equal(set("redis.max_lease_ms", row->max_lease_ms), 0);
    assert_int_equal(set("redis.url", row->url), 0);
    assert_int_equal(config_check(&c, &e), row->code);
    assert_int_equal(c.is_quorum, row->is_quorum);
    if (row->code != 0)
        fixture_assert_contains(e.msg,
                                "redis.max_lease_ms must be at least locks.lease_ms");
}

/* ---- passwords ---- */

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
    {"cells",           "1=postgresql://u:s3cret@h:5/a 2=service=b", "1=postgresql://u:***@h:5/a 2=service=b"},
    {"cell_with_a_blank", "1=postgresql://u:s3 cret@h/a",         "***"},
    {"quorum",          "unix://u:s3cret@/a,unix://u:s3cret@/b",  "unix://u:***@/b"},
};

/* clang-format on */

CASE_ROWS(mask_hides_the_password_alone, masks)
{
    char buf[512];

    assert_string_equal(config_mask(row->url, buf, sizeof buf), row->masked);
    if (strcmp(buf, "***") != 0) /* of a list that is none nothing is known */
        assert_int_equal(config_has_secret(row->url), strcmp(buf, row->url) != 0);
    /* The text is cut at the size of the buffer. */
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

static const struct {
    const char *name, *key;
} secrets[] = {{"postgres", "postgres.password_file"},
               {"redis", "redis.password_file"}};

CASE_ROWS(password_file_that_others_read_is_refused_of, secrets)
{
    char path[128];

    fixture_file(path, sizeof path, "s3cret\n", 0644);
    assert_int_equal(set(row->key, path), 0);
    assert_int_equal(config_check(&c, &e), ERR_INVALID);
    fixture_assert_contains(e.msg, path);
    (void)chmod(path, 0600);
    assert_int_equal(config_check(&c, &e), 0);
    (void)unlink(path);
}
