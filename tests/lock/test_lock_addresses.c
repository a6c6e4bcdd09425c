/* A host name with several addresses: each is tried, in its part of the time. The
 * resolver of this program knows the name "several". */
#define _GNU_SOURCE /* RTLD_NEXT */
#include <arpa/inet.h>
#include <dlfcn.h>
#include <netdb.h>
#include <netinet/in.h>
#include <sys/socket.h>

#include "tests/lib/lock_world.h"

enum { BACKLOG = 1, CONNECT_MS = 3000, OVER_MS = 50 };

/* 127.0.0.2 stands before 127.0.0.1, where the server is. */
static const char *const addresses[] = {"127.0.0.2", "127.0.0.1"};
static unsigned resolved;

static int look_up(const char *host,
                   const char *port,
                   const struct addrinfo *hints,
                   struct addrinfo **all)
{
    static int (*real)(const char *, const char *, const struct addrinfo *,
                       struct addrinfo **);

    if (real == NULL)
        *(void **)&real = dlsym(RTLD_NEXT, "getaddrinfo");
    return real(host, port, hints, all);
}

int getaddrinfo(const char *host,
                const char *port,
                const struct addrinfo *hints,
                struct addrinfo **all)
{
    int code;

    if (host == NULL || strcmp(host, "several") != 0)
        return look_up(host, port, hints, all);
    resolved++;
    code = look_up(addresses[0], port, hints, all);
    return code == 0 ? look_up(addresses[1], port, hints, &(*all)->ai_next) : code;
}

static struct fixture_redis server;
static int port, listener = -1, waiting[8];

static void open_server(void)
{
    char text[8];

    port = fixture_free_port();
    (void)snprintf(text, sizeof text, "%d", port);
    fixture_redis_start(&server, "--port", text, "--bind", addresses[1], NULL);
}

static void close_server(void)
{
    fixture_redis_close(&server);
}

GROUP(.start = open_server, .stop = close_server);

static struct rlock_client *open_several(void)
{
    char url[40];

    (void)snprintf(url, sizeof url, "redis://several:%d", port);
    return LOCK_OPEN(.url = url, .connect_ms = CONNECT_MS);
}

/* Guarantee: A host of several addresses is reached by one of them where the first one
 * refuses. */
CASE(address_that_refuses_is_left_for_the_next)
{
    CLIENT *c = open_several();
    LOCK *l = rlock_new(c);

    resolved = 0;
    assert_int_equal(rlock_try(l, "k", 60000), RLOCK_OK);
    assert_true(resolved > 0);
    assert_int_equal(rlock_release(l), RLOCK_OK);
}

/* A listener whose queue is full answers no further one. */
static void be_silent(void)
{
    struct sockaddr_in at = {.sin_family = AF_INET, .sin_port = htons((uint16_t)port)};

    assert_int_equal(inet_pton(AF_INET, addresses[0], &at.sin_addr), 1);
    listener = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    assert_int_equal(bind(listener, (struct sockaddr *)&at, sizeof at), 0);
    assert_int_equal(listen(listener, BACKLOG), 0);
    for (size_t i = 0; i < sizeof waiting / sizeof waiting[0]; i++) {
        waiting[i] = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
        (void)!connect(waiting[i], (struct sockaddr *)&at, sizeof at);
    }
}

static void be_away(void)
{
    for (size_t i = 0; i < sizeof waiting / sizeof waiting[0]; i++)
        (void)close(waiting[i]);
    (void)close(listener);
}

/* Guarantee: An address that is silent has its part of the time to connect, and no
 * more. */
CASE(silent_address_has_its_part_of_the_time, .close = be_away)
{
    CLIENT *c = open_several();
    LOCK *l = rlock_new(c);
    int64_t began_ms = fixture_now_ms();

    be_silent();
    assert_int_equal(rlock_try(l, "k", 60000), RLOCK_OK);
    assert_true(fixture_now_ms() - began_ms >= CONNECT_MS / 2 - 1);
    assert_int_equal(rlock_release(l), RLOCK_OK);
}

/* Guarantee: A host none of whose addresses answers is unavailable in time, and its
 * text names the host. */
CASE(host_without_a_server_is_unavailable)
{
    CLIENT *c = open_several();
    LOCK *l = rlock_new(c);
    int64_t began_ms;

    fixture_redis_kill(&server);
    began_ms = fixture_now_ms();
    assert_int_equal(rlock_try(l, "k", 60000), RLOCK_E_UNAVAILABLE);
    assert_true(fixture_now_ms() - began_ms <= CONNECT_MS + 1000 + OVER_MS);
    fixture_assert_contains(rlock_error(c), "Redis at several:");
    fixture_assert_contains(rlock_error(c), "Connection refused");
}
