/* Redis URLs: what is not meant as it is written is refused with a reason. */
#include "common/lock/lock.h"
#include "tests/lib/fixture.h"

#define A "redis://127.0.0.1:1"
#define B "redis://127.0.0.1:2"
#define C "redis://127.0.0.1:3"
#define USER(user, port) "redis://" user "@127.0.0.1:" port
#define LONG                                                                           \
    "/xxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxx"

static int open_url(const char *url, char *why, size_t size)
{
    struct rlock_options o = {.size = sizeof o, .url = url};
    struct rlock_client *c;
    int code;

    why[0] = '\0';
    if (strstr(url, "+cluster") != NULL)
        o.prefix = "{locks}:";
    code = rlock_open(&c, &o, why, size);
    assert_true((code == RLOCK_OK) == (c != NULL));
    assert_true((code == RLOCK_OK) == (why[0] == '\0'));
    rlock_close(c);
    return code;
}

/* clang-format off */
static const struct {
    const char *url, *reason; /* NULL: it is taken */
} urls[] = {
    {"redis://localhost", NULL}, {"redis://127.0.0.1:6380/15", NULL}, {"redis://[::1]:6380", NULL},
    {"redis://:secret@host", NULL}, {"redis://user:p%40ss%2Fword@host:1/0", NULL}, {"unix:///run/redis.sock", NULL},
    {"unix:///run/redis.sock?db=3", NULL}, {"unix://user:secret@/run/redis.sock", NULL}, {A "," B "," C, NULL},
    {A "/2," B "/2," C "/2", NULL}, {USER("u:p", "1") "," USER("u:p", "2") "," USER("u:p", "3"), NULL},
    {"redis+sentinel://h1,h2:26380/primary", NULL}, {"redis+sentinel://:secret@h1/primary/4", NULL},
    {"redis+cluster://h1,h2:7001", NULL}, {"redis+cluster://user:secret@h1", NULL},
    {"", "begins with"}, {"http://h", "begins with"}, {"redis://", "no name"},
    {"redis://h:0", "port"}, {"redis://h:65536", "port"}, {"redis://h:6379x", "port"},
    {"redis://h:-1", "port"}, {"redis://[::1", "not closed"}, {"redis://[::1]x", "behind the ]"},
    {"redis://127.0.0.1%20:1", "blank"}, {"redis://a b", "blank"}, {"redis://alice@h", "no password"},
    {"redis://:abc%00def@h", "%00"}, {"redis://h/x", "database"}, {"redis://:p@ss/word@h", "database"},
    {"redis://h/-1", "database"}, {"redis://h?db=3", "behind ?"}, {"unix://run/redis.sock", "begins with /"},
    {"unix:///redis.sock?database=3", "?db="}, {"unix:///redis.sock?db=x", "database"},
    {"unix://" LONG LONG, "107"}, {A ",", "begins with"}, {A "," B, "3 or 5"},
    {A "," B "," C "," A "," B "," C, "3 or 5"},
    {USER(":a", "1") "," USER(":b", "2") "," USER(":c", "3"), "the same"},
    {USER("a:p", "1") "," USER("b:p", "2") "," USER("a:p", "3"), "the same"},
    {USER(":a", "1") "," B "," C, "the same"}, {A "," B "," USER(":a", "3"), "the same"},
    {A "/1," B "/2," C, "the same"}, {"redis+sentinel://h1", "/NAME"}, {"redis+sentinel://h1,,h2/m", "no name"},
    {"redis+sentinel://h1/", "/NAME"}, {"redis+sentinel://1,2,3,4,5,6,7,8,9/m", "at most 8"},
    {"redis+cluster://h1/2", "no databases"}, {"redis+cluster://", ""}, {"redis+cluster://h1,,h3", ""},
    {A "," B "," C "," A, "3 or 5"}, {A "," B "," C ",redis://h4,redis://h5", NULL}, {A "," B ",", ""}, {A ",," C, ""},
    {"," B "," C, ""}, {A "," B "," C ",", ""}, {"redis://h1,h2,h3", ""}, {A ",redis://," C, ""},
    {A ",redis://:6379," C, ""}, {A ",redis://h2:0," C, ""}, {A ",redis://h2:70000," C, ""},
    {A ",redis+cluster://h2," C, ""}, {A "," USER(":a", "2") "," USER(":a", "3"), "the same"},
    {USER("u:a", "1") "," USER(":a", "2") "," USER("u:a", "3"), "the same"}, {A "/1," B "/1," C, "the same"},
    {"unix:///a?db=1,unix:///b?db=1,unix:///c", "the same"}, {A "," B ",unix:///c", NULL},
    {"unix://:a@/a?db=1,unix://:a@/b?db=1,redis://:a@h/1", NULL},
};

/* clang-format on */

CASE(url_is_taken_as_it_is_meant_or_refused_with_a_reason)
{
    char why[160];

    for (size_t i = 0; i < sizeof urls / sizeof urls[0]; i++) {
        const char *reason = urls[i].reason;
        int code = open_url(urls[i].url, why, sizeof why);

        if (code != (reason == NULL ? RLOCK_OK : RLOCK_E_INVAL) ||
            (reason != NULL && strstr(why, reason) == NULL))
            fail_msg("%s: code %d, %s", urls[i].url, code, why);
    }
}

CASE(reason_is_wanted_by_nobody_or_cut)
{
    struct rlock_options o = {.size = sizeof o, .url = "redis://h?db=3"};
    struct rlock_client *c;
    char why[8] = "unread";

    assert_int_equal(rlock_open(&c, &o, NULL, 0), RLOCK_E_INVAL);
    assert_int_equal(rlock_open(&c, &o, why, sizeof why), RLOCK_E_INVAL);
    assert_int_equal(strlen(why), sizeof why - 1);
}

/* Either it can be spoken, or that is the reason. */
CASE(tls_is_there_or_the_reason)
{
    char why[160];
    int code;

    code = open_url("rediss://h", why, sizeof why);
    assert_true(code == RLOCK_OK || code == RLOCK_E_TLS);
    assert_int_equal(code == RLOCK_OK, why[0] == '\0');
    assert_int_equal(open_url("rediss+sentinel://h/m", why, sizeof why), code);
    assert_int_equal(open_url("rediss+cluster://h", why, sizeof why), code);
}

CASE(options_that_exclude_each_other_are_refused)
{
    struct rlock_options o = {.size = sizeof o, .url = A "," B "," C, .replicas = 1};
    struct rlock_client *c;

    assert_int_equal(rlock_open(&c, &o, NULL, 0), RLOCK_E_INVAL);
    o = (struct rlock_options){.size = sizeof o, .url = "redis+cluster://h"};
    assert_int_equal(rlock_open(&c, &o, NULL, 0), RLOCK_E_CLUSTER); /* no hash tag */
    o = (struct rlock_options){.size = sizeof o, .tls_cert = "one.crt"};
    assert_int_equal(rlock_open(&c, &o, NULL, 0), RLOCK_E_INVAL);
    o = (struct rlock_options){.size = sizeof o, .prefix = LONG};
    assert_int_equal(rlock_open(&c, &o, NULL, 0), RLOCK_E_INVAL);
    o = (struct rlock_options){.size = 0};
    assert_int_equal(rlock_open(&c, &o, NULL, 0), RLOCK_E_INVAL);
}
