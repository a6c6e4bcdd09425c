/* hosts: postgres.url names several: each has a time of its own, and the one that is
 * wanted is found behind those that are silent, refuse, or are a standby. */
#define _XOPEN_SOURCE 700
#include <arpa/inet.h>
#include <netdb.h>
#include <netinet/in.h>
#include <sys/socket.h>

#include "tests/lib/pool_world.h"
#include "tests/lib/private_pg.h"
#include "tests/lib/runs.h"

static struct private_pg primary, standby;
static struct fixture f;
static int listener = -1;    /* takes connections and says nothing */
static int silent, refusing; /* ports */

static int listen_silently(void)
{
    struct sockaddr_in at = {.sin_family = AF_INET,
                             .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    socklen_t size = sizeof at;

    listener = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    assert_true(listener >= 0);
    assert_int_equal(bind(listener, (struct sockaddr *)&at, size), 0);
    assert_int_equal(listen(listener, 128), 0);
    assert_int_equal(getsockname(listener, (struct sockaddr *)&at, &size), 0);
    return ntohs(at.sin_port);
}

static void open_all(void)
{
    primary.port = fixture_free_port();
    private_pg_open(&primary);
    standby.port = fixture_free_port();
    private_pg_follow(&standby, &primary);
    refusing = fixture_free_port();
    silent = listen_silently();
    fixture_open_migrated(&f);
    fixture_exec(f.url, "SELECT ledgerlock.make_months('2024-01-01Z', '2024-01-01Z')");
    FIXTURE_AWAIT(
        fixture_query_int8(standby.url, "SELECT count(*) FROM pg_database") ==
            fixture_query_int8(primary.url, "SELECT count(*) FROM pg_database"),
        "%s", "the standby has no database");
}

static void close_all(void)
{
    (void)close(listener);
    fixture_close(&f);
    private_pg_close(&standby);
    private_pg_close(&primary);
}

GROUP(.start = open_all, .stop = close_all);

/* s: silent, r: refuses, t: the standby, p: the primary. */
static void lead_through(const char *hosts, const char *options)
{
    char names[200] = "", ports[200] = "";

    for (const char *h = hosts; *h != '\0'; h++) {
        int port = *h == 's'   ? silent
                   : *h == 'r' ? refusing
                   : *h == 't' ? standby.port
                               : primary.port;
        size_t n = strlen(names), m = strlen(ports);

        (void)snprintf(names + n, sizeof names - n, "%s127.0.0.1", n > 0 ? "," : "");
        (void)snprintf(ports + m, sizeof ports - m, "%s%d", m > 0 ? "," : "", port);
    }
    (void)snprintf(f.url, sizeof f.url,
                   "postgresql:///%s?user=ledgerlock_worker&host=%s&port=%s&%s",
                   f.database, names, ports, options);
}

static const struct {
    const char *name, *hosts, *options;
} ways[] = {
    {"a_silent_host", "sp", "connect_timeout=2"},
    {"a_silent_host_by_our_own_limit", "sp", "target_session_attrs=any"},
    {"one_that_refuses", "rp", "connect_timeout=2"},
    {"all_of_them", "srtp", "connect_timeout=2&target_session_attrs=read-write"},
    {"a_limit_of_zero_which_is_none_of_libpq", "sp", "connect_timeout=0"},
};

/* Guarantee: Each host and address of postgres.url has a time of its own: the server
 * that is wanted is found behind those that are silent, refuse, or are a standby. */
CASE_ROWS(server_is_found_behind, ways)
{
    lead_through(row->hosts, row->options);
    runs(&f, 0, "status");
    runs(&f, 0, "run --once");
}

/* A name with two addresses, of which the first is silent. */
CASE(server_is_found_at_the_second_address_of_a_host)
{
    struct sockaddr_in6 at = {.sin6_family = AF_INET6,
                              .sin6_addr = IN6ADDR_LOOPBACK_INIT,
                              .sin6_port = htons((uint16_t)primary.port)};
    const struct addrinfo hints = {.ai_socktype = SOCK_STREAM};
    struct addrinfo *info = NULL;
    int fd = socket(AF_INET6, SOCK_STREAM | SOCK_CLOEXEC, 0);
    bool is_first;

    is_first = getaddrinfo("localhost", "1", &hints, &info) == 0 &&
               info->ai_family == AF_INET6;
    if (info != NULL)
        freeaddrinfo(info);
    if (!is_first || fd < 0 || bind(fd, (struct sockaddr *)&at, sizeof at) != 0) {
        (void)close(fd);
        skip(); /* this machine has no IPv6 */
    }
    assert_int_equal(listen(fd, 128), 0);
    (void)snprintf(f.url, sizeof f.url,
                   "postgresql:///%s?user=ledgerlock_worker&host=localhost&port=%d&"
                   "connect_timeout=2",
                   f.database, primary.port);
    runs(&f, 0, "status");
    (void)close(fd);
}

/* Guarantee: When no host of postgres.url will do, the message names each, with its
 * reason, and the exit code is 4. */
CASE(every_host_that_will_not_do_is_named_with_its_reason)
{
    char part[64];

    lead_through("srt", "connect_timeout=2&target_session_attrs=read-write");
    runs(&f, 4, "status");
    (void)snprintf(part, sizeof part, "port %d failed: timeout expired", silent);
    shows(part);
    (void)snprintf(part, sizeof part, "port %d failed: Connection refused", refusing);
    shows(part);
    (void)snprintf(part, sizeof part, "port %d failed: session is read-only",
                   standby.port);
    shows(part);
    shows("target_session_attrs=read-write");
}

/* Guarantee: A standby runs no pool: `run` says so at once, with exit code 6. */
CASE(standby_is_refused_by_run)
{
    lead_through("t", "connect_timeout=2");
    runs(&f, 0, "status");
    says(&f, 6, "LL-3111", "run --once");
    says(&f, 6, "LL-3111", "run");
}

/* clang-format off */
static const struct {
    const char *name, *words;
} writers[] = {
    {"pause",       "pause billing"},
    {"resume",      "resume billing"},
    {"close_month", "close-month 2024-01"},
    {"import",      "import --stock /dev/null"},
    {"seed",        "seed"},
    {"release",     "locks release user:1 --yes"},
};

/* clang-format on */

/* Guarantee: A verb that writes says on a standby that it takes no writes, and which
 * server to name. */
CASE_ROWS(standby_takes_no_writes_of, writers)
{
    char command[FIXTURE_URL], reply[32];

    (void)snprintf(command, sizeof command, "SET %suser:1 held PX 60000", f.prefix);
    pool_redis(f.redis_url, reply, sizeof reply, command);
    (void)snprintf(f.url, sizeof f.url,
                   "postgresql:///%s?user=ledgerlock_owner&host=127.0.0.1&port=%d",
                   f.database, standby.port);
    FIXTURE_AWAIT(fixture_query_int8(f.url, "SELECT count(*) FROM ledgerlock.months"
                                            " WHERE month = '2024-01-01'") == 1,
                  "the standby has no month");
    says(&f, 4, "LL-3017", "%s", row->words);
    shows("name in postgres.url the server that takes writes");
}

CASE(limit_that_is_no_number_is_refused)
{
    lead_through("p", "connect_timeout=soon");
    says(&f, 4, "invalid integer value \"soon\"", "status");
}
