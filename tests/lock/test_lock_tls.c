/* The lock library over TLS, where hiredis and redis-server can; elsewhere its refusal.
 * Certificates are made on the spot. */
#include "tests/lib/tls_world.h"

#include <arpa/inet.h>
#include <sys/socket.h>

#include "common/lock/internal.h"

/* ---- clients ---- */

static void flush(void)
{
    CONTEXT *raw = lock_raw_connection(tls_server.url);

    freeReplyObject(redisCommand(raw, "FLUSHALL"));
}

static bool build_lacks_tls(void)
{
    struct ll_options o = {.size = sizeof o, .url = "rediss://localhost"};
    struct ll_client *c;
    bool yes = ll_open(&c, &o, NULL, 0) != LL_OK;

    ll_close(c);
    return yes;
}

static const char *lacks(void)
{
    if (build_lacks_tls())
        return "this build has no TLS; it says so";
    return tls_is_possible()
               ? NULL
               : "redis-server has no TLS, or there is no openssl to make "
                 "certificates with";
}

static const struct test_group tls = {.missing = lacks,
                                      .start = tls_start_server,
                                      .stop = tls_stop_server,
                                      .open = flush};
#define TLS_CASE(...) CASE(__VA_ARGS__, .group = &tls)

enum { CONNECT_MS = 3000 };

static struct ll_client *client_of(const char *host, int at, const char *trusted)
{
    char url[96];

    (void)snprintf(url, sizeof url, "rediss://%s:%d", host, at);
    return LOCK_OPEN(.url = url, .tls_ca = trusted, .connect_ms = CONNECT_MS,
                     .reply_ms = LOCK_SOON_MS);
}

static void check(struct ll_client *c, int code, int wanted)
{
    if (code != wanted)
        fail_msg("%s: %s", ll_strerror(code), ll_error(c));
}

static void expect_failure(struct ll_client *c, int code, const char *part)
{
    check(c, ll_connect(c), code);
    fixture_assert_contains(ll_error(c), part);
    ll_close(c);
}

/* ---- tests ---- */

TLS_CASE(lock_over_tls_by_name_and_by_address)
{
    for (int i = 0; i < 2; i++) {
        CLIENT *c = client_of(i == 0 ? "localhost" : "127.0.0.1", tls_port, tls_ca);
        LOCK *l = ll_new(c);

        check(c, ll_try(l, "user:1", 5000), LL_OK);
        check(c, ll_extend(l, 9000), LL_OK);
        check(c, ll_release(l), LL_OK);
    }
}

/* Names of nearly 200 bytes. */
enum { MANY = LL_KEYS_MAX, DIGITS = 190 };

/* Commands and answers of many TLS records; half of the keys are busy. */
TLS_CASE(large_batches_over_tls)
{
    const struct ll_key *keys = lock_keys(MANY, DIGITS);
    CLIENT *c = client_of("localhost", tls_port, tls_ca);
    LOCK *l = ll_new(c);
    LOCK *m = ll_new(c);
    int64_t left_ms;

    check(c, ll_acquire(l, keys, MANY / 2, LL_ALL, 60000), LL_OK);
    check(c, ll_acquire(m, keys, MANY, LL_ANY, 60000), LL_PARTIAL);
    assert_int_equal(ll_granted(m), MANY - MANY / 2);
    check(c, ll_verify(m, &left_ms), LL_OK);
    check(c, ll_release(m), LL_OK);
    check(c, ll_release(l), LL_OK);
}

/* Our sockets to the server take little at once from now on. */
static void shrink_sockets(void)
{
    const int little = 4096;
    size_t found = 0;

    for (int fd = 3; fd < 64; fd++) {
        struct sockaddr_in peer;
        socklen_t size = sizeof peer;

        if (getpeername(fd, (struct sockaddr *)&peer, &size) == 0 &&
            peer.sin_family == AF_INET && ntohs(peer.sin_port) == tls_port)
            found += setsockopt(fd, SOL_SOCKET, SO_SNDBUF, &little, sizeof little) == 0;
    }
    assert_int_equal(found, 1);
}

/* A command that does not fit the socket: the rest is written when there is room, at
 * the first try. */
TLS_CASE(command_that_waits_for_room_over_tls)
{
    CLIENT *c = client_of("127.0.0.1", tls_port, tls_ca);
    LOCK *l = ll_new(c);
    int64_t connected_us, start;
    pid_t pid;

    check(c, ll_connect(c), LL_OK);
    connected_us = c->nodes[0].began_us;
    shrink_sockets();
    assert_int_equal(kill(tls_server.pid, SIGSTOP), 0);
    start = fixture_now_ms();
    pid = fork();
    if (pid == 0) {
        fixture_pause_ms(300);
        _exit(kill(tls_server.pid, SIGCONT));
    }
    check(c, ll_acquire(l, lock_keys(1000, DIGITS), 1000, LL_ALL, 60000), LL_OK);
    assert_true(fixture_now_ms() - start >= 250);
    assert_int_equal(c->nodes[0].began_us, connected_us); /* not anew */
    assert_int_equal(fixture_reap(pid, 60), 0);
    check(c, ll_release(l), LL_OK);
}

TLS_CASE(renewer_and_waiter_over_tls)
{
    const struct ll_key key = {"user:1", 6};
    struct ll_renew_options o = {.size = sizeof o, .interval_ms = 100};
    CLIENT *a = client_of("localhost", tls_port, tls_ca);
    CLIENT *b = client_of("localhost", tls_port, tls_ca);
    LOCK *la = ll_new(a);
    LOCK *lb = ll_new(b);
    RENEWER *r;

    check(a, ll_try(la, "user:1", 2000), LL_OK);
    check(a, ll_renewer_open(&r, a, &o), LL_OK);
    check(a, ll_renew(r, la, 0, 0), LL_OK);
    check(b, lock_wait_in_vain(lb, &key, 1, 5000, 3000), LL_TIMEOUT);
    assert_true(ll_valid(la, 0));
    check(a, ll_release(la), LL_OK);
    check(b, ll_acquire_wait(lb, &key, 1, LL_ALL, 5000, LOCK_SOON_MS, -1), LL_OK);
}

TLS_CASE(stranger_is_refused)
{
    expect_failure(client_of("localhost", tls_port, NULL), LL_E_TLS, "certificate");
    expect_failure(client_of("localhost", tls_port, "/nowhere/ca.crt"), LL_E_TLS,
                   "/nowhere/ca.crt");
}

TLS_CASE(certificate_of_another_host_is_refused)
{
    REDIS other = {0};
    int at = fixture_free_port();

    tls_start(&other, at, "other");
    expect_failure(client_of("localhost", at, tls_ca), LL_E_TLS, "mismatch");
    expect_failure(client_of("127.0.0.1", at, tls_ca), LL_E_TLS, "mismatch");
}

/* Guarantee: A server that demands a certificate of its clients gets ours; without one
 * the refusal has its own code. */
TLS_CASE(certificate_that_a_server_demands_of_us)
{
    REDIS asking = {0};
    int at = fixture_free_port();
    char url[64], cert[64], key[64];

    tls_start_asking(&asking, at);
    expect_failure(client_of("localhost", at, tls_ca), LL_E_TLS, "tls_cert");
    (void)snprintf(url, sizeof url, "rediss://localhost:%d", at);
    (void)snprintf(cert, sizeof cert, "%s/good.crt", tls_folder);
    (void)snprintf(key, sizeof key, "%s/good.key", tls_folder);
    {
        CLIENT *c = LOCK_OPEN(.url = url, .tls_ca = tls_ca, .tls_cert = cert,
                              .tls_key = key, .reply_ms = LOCK_SOON_MS);
        LOCK *l = ll_new(c);

        check(c, ll_try(l, "user:1", 5000), LL_OK);
        check(c, ll_extend(l, 9000), LL_OK);
        check(c, ll_release(l), LL_OK);
    }
}

/* Neither a server that says nothing nor one that speaks no TLS keeps us much longer
 * than a connection may take. */
TLS_CASE(server_without_tls_or_words_ends_in_time)
{
    PROXY deaf = {0}, plain = {0};
    CLIENT *c;
    char address[32];
    int64_t start = fixture_now_ms();
    int code;

    (void)snprintf(address, sizeof address, "127.0.0.1:%d", tls_port);
    proxy_open(&deaf, address, NULL);
    proxy_open(&plain, tls_server.url + strlen("unix://"), NULL);
    proxy_swallow(&deaf, true);
    expect_failure(client_of("127.0.0.1", deaf.port, tls_ca), LL_E_UNAVAILABLE,
                   "in time");
    assert_in_range(fixture_now_ms() - start, CONNECT_MS - 50, CONNECT_MS + 7000);
    start = fixture_now_ms();
    c = client_of("127.0.0.1", plain.port, tls_ca);
    code = ll_connect(c);
    assert_true(code == LL_E_TLS || code == LL_E_UNAVAILABLE);
    assert_true(fixture_now_ms() - start < CONNECT_MS + 7000);
}

/* A client that was connected waits while the server is down: connections end within
 * the TLS handshake, and then behind it, at the first record of data. */
TLS_CASE(wait_goes_on_while_the_server_restarts)
{
    enum { WAIT_MS = 700 };
    const struct ll_key key = {"user:1", 6};
    PROXY front = {0};
    char address[32];
    CLIENT *c;
    LOCK *l;

    (void)snprintf(address, sizeof address, "127.0.0.1:%d", tls_port);
    proxy_open(&front, address, NULL);
    c = client_of("127.0.0.1", front.port, tls_ca);
    l = ll_new(c);
    check(c, ll_connect(c), LL_OK);
    proxy_refuse(&front, true);
    ll_disconnect(c);
    check(c, ll_acquire_wait(l, &key, 1, LL_ALL, 5000, WAIT_MS, -1), LL_E_UNAVAILABLE);
    proxy_cut_before(&front, "\x17\x03\x03", 3, 1000000);
    proxy_refuse(&front, false);
    check(c, ll_acquire_wait(l, &key, 1, LL_ALL, 5000, WAIT_MS, -1), LL_E_UNAVAILABLE);
    proxy_pass(&front);
    check(c, ll_acquire_wait(l, &key, 1, LL_ALL, 5000, LOCK_SOON_MS, -1), LL_OK);
}

TLS_CASE(server_that_hangs_up_raises_no_sigpipe)
{
    CLIENT *c = client_of("localhost", tls_port, tls_ca);
    LOCK *l = ll_new(c);
    CONTEXT *raw = lock_raw_connection(tls_server.url);

    (void)signal(SIGPIPE, SIG_DFL);
    for (int i = 0; i < 30; i++) {
        freeReplyObject(redisCommand(raw, "CLIENT KILL TYPE normal SKIPME yes"));
        fixture_pause_ms(i % 3);
        check(c, ll_acquire(l, lock_keys(1000, DIGITS), 1000, LL_ALL, 60000),
              LL_OK); /* several writes */
        freeReplyObject(redisCommand(raw, "CLIENT KILL TYPE normal SKIPME yes"));
        check(c, ll_release(l), LL_OK);
    }
}

CASE(tls_that_is_missing_is_refused_in_words, .when = build_lacks_tls)
{
    struct ll_options o = {.size = sizeof o, .url = "rediss://localhost"};
    struct ll_client *c;
    char why[160] = "";

    assert_int_equal(ll_open(&c, &o, why, sizeof why), LL_E_TLS);
    assert_null(c);
    fixture_assert_contains(why, "hiredis 1.0 or newer");
}
