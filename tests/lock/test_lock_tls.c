/* The lock library over TLS, where hiredis and redis-server can; elsewhere its refusal.
 * Certificates are made on the spot. */
#include "tests/lib/play_inside.h"
#include "tests/lib/tls_world.h"

#include <arpa/inet.h>
#include <sys/socket.h>

/* ---- clients ---- */

/* Node 0 of the steps is the server, and their clients go there by TLS. */
static void open_case(void)
{
    struct ha_server server = {.redis = tls_server};

    ha_play((struct ha_server *const[]){&server}, 1);
    play("redis FLUSHALL");
}

static bool build_lacks_tls(void)
{
    struct rlock_options o = {.size = sizeof o, .url = "rediss://localhost"};
    struct rlock_client *c;
    bool yes = rlock_open(&c, &o, NULL, 0) != RLOCK_OK;

    rlock_close(c);
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
                                      .open = open_case,
                                      .close = ha_play_end};
#define TLS_CASE(...) CASE(__VA_ARGS__, .group = &tls)

enum { CONNECT_MS = 3000 };

static void open_at(const char *who, const char *host, int at, const char *trusted)
{
    char url[96];

    (void)snprintf(url, sizeof url, "rediss://%s:%d", host, at);
    PLAY_OPEN(who, .url = url, .prefix = playing.w->prefix, .tls_ca = trusted,
              .connect_ms = CONNECT_MS, .reply_ms = LOCK_SOON_MS);
}

/* ---- tests ---- */

TLS_CASE(lock_over_tls_by_name_and_by_address)
{
    open_at("a", "localhost", tls_port, tls_ca);
    open_at("b", "127.0.0.1", tls_port, tls_ca);
    play("a try k; a extend 90000; a release; b try k; b extend 90000; b release");
}

/* Names of nearly 200 bytes. */
enum { MANY = RLOCK_KEYS_MAX, DIGITS = 190 };

/* Commands and answers of many TLS records; half of the keys are busy. */
TLS_CASE(large_batches_over_tls)
{
    const struct rlock_key *keys = lock_keys(MANY, DIGITS);
    struct rlock *l;

    open_at("a", "localhost", tls_port, tls_ca);
    l = play_lock("a");
    assert_int_equal(rlock_acquire(l, keys, MANY / 2, RLOCK_ALL, 60000), RLOCK_OK);
    assert_int_equal(rlock_acquire(play_lock("a2"), keys, MANY, RLOCK_ANY, 60000),
                     RLOCK_PARTIAL);
    assert_int_equal(rlock_granted(play_lock("a2")), MANY - MANY / 2);
    play("a2 verify; a2 release; a release");
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
    const struct rlock_key *keys = lock_keys(1000, DIGITS);
    const struct rlock_node *node;
    int64_t connected_us, start;
    pid_t pid;

    open_at("a", "127.0.0.1", tls_port, tls_ca);
    play("a connect");
    node = &play_client("a")->nodes[0];
    connected_us = node->began_us;
    shrink_sockets();
    play("server stop");
    start = fixture_now_ms();
    pid = fork();
    if (pid == 0) {
        play("rest 300; server cont");
        _exit(0);
    }
    assert_int_equal(rlock_acquire(play_lock("a"), keys, 1000, RLOCK_ALL, 60000),
                     RLOCK_OK);
    assert_true(fixture_now_ms() - start >= 250);
    assert_int_equal(node->began_us, connected_us); /* not anew */
    assert_int_equal(fixture_reap(pid, 60), 0);
    play("a release");
}

TLS_CASE(renewer_and_waiter_over_tls)
{
    open_at("a", "localhost", tls_port, tls_ca);
    open_at("b", "localhost", tls_port, tls_ca);
    play("a try k 2000; a renew 100; b wait k 3000: timeout; a valid; a release; "
         "b wait k 30000");
}

TLS_CASE(stranger_is_refused)
{
    open_at("a", "localhost", tls_port, NULL);
    open_at("b", "localhost", tls_port, "/nowhere/ca.crt");
    play("a connect: tls; a error: certificate; b connect: tls; "
         "b error: /nowhere/ca.crt");
}

TLS_CASE(certificate_of_another_host_is_refused)
{
    REDIS other = {0};
    int at = fixture_free_port();

    tls_start(&other, at, "other");
    open_at("a", "localhost", at, tls_ca);
    open_at("b", "127.0.0.1", at, tls_ca);
    play("a connect: tls; a error: mismatch; b connect: tls; b error: mismatch");
}

/* Guarantee: A server that demands a certificate of its clients gets ours; without one
 * the refusal has its own code. */
TLS_CASE(certificate_that_a_server_demands_of_us)
{
    REDIS asking = {0};
    int at = fixture_free_port();
    char url[64], cert[64], key[64];

    tls_start_asking(&asking, at);
    open_at("a", "localhost", at, tls_ca);
    (void)snprintf(url, sizeof url, "rediss://localhost:%d", at);
    (void)snprintf(cert, sizeof cert, "%s/good.crt", tls_folder);
    (void)snprintf(key, sizeof key, "%s/good.key", tls_folder);
    PLAY_OPEN("b", .url = url, .tls_ca = tls_ca, .tls_cert = cert, .tls_key = key,
              .reply_ms = LOCK_SOON_MS);
    play("a connect: tls; a error: tls_cert; b try k; b extend 90000; b release");
}

/* In front of the port of TLS, or of a server that speaks none. */
static struct proxy proxy_to(const char *address)
{
    struct proxy p = {0};
    char port[32];

    (void)snprintf(port, sizeof port, "127.0.0.1:%d", tls_port);
    proxy_open(&p, address != NULL ? address : port, NULL);
    return p;
}

/* Neither a server that says nothing nor one that speaks no TLS keeps us much longer
 * than a connection may take. */
TLS_CASE(server_without_tls_or_words_ends_in_time)
{
    PROXY deaf = proxy_to(NULL);
    PROXY plain = proxy_to(tls_server.url + strlen("unix://"));
    int64_t start;

    proxy_swallow(&deaf, true);
    open_at("a", "127.0.0.1", deaf.port, tls_ca);
    open_at("b", "127.0.0.1", plain.port, tls_ca);
    start = fixture_now_ms();
    play("a connect: unavailable; a error: in time");
    assert_in_range(fixture_now_ms() - start, CONNECT_MS - 50, CONNECT_MS + 7000);
    start = fixture_now_ms();
    play("b connect: tls|unavailable");
    assert_true(fixture_now_ms() - start < CONNECT_MS + 7000);
}

/* A client that was connected waits while the server is down: connections end within
 * the TLS handshake, and then behind it, at the first record of data. */
TLS_CASE(wait_goes_on_while_the_server_restarts)
{
    PROXY front = proxy_to(NULL);

    open_at("a", "127.0.0.1", front.port, tls_ca);
    play("a connect");
    proxy_refuse(&front, true);
    play("a disconnect; a wait k 700: unavailable");
    proxy_cut_before(&front, "\x17\x03\x03", 3, 1000000);
    proxy_refuse(&front, false);
    play("a wait k 700: unavailable");
    proxy_pass(&front);
    play("a wait k 30000");
}

TLS_CASE(server_that_hangs_up_raises_no_sigpipe)
{
    const struct rlock_key *keys = lock_keys(1000, DIGITS);

    open_at("a", "localhost", tls_port, tls_ca);
    (void)signal(SIGPIPE, SIG_DFL);
    for (int i = 0; i < 30; i++) {
        play("redis CLIENT KILL TYPE normal SKIPME yes");
        fixture_pause_ms(i % 3);
        assert_int_equal(rlock_acquire(play_lock("a"), keys, 1000, RLOCK_ALL, 60000),
                         RLOCK_OK); /* several writes */
        play("redis CLIENT KILL TYPE normal SKIPME yes; a release");
    }
}

CASE(tls_that_is_missing_is_refused_in_words, .when = build_lacks_tls)
{
    struct rlock_options o = {.size = sizeof o, .url = "rediss://localhost"};
    struct rlock_client *c;
    char why[160] = "";

    assert_int_equal(rlock_open(&c, &o, why, sizeof why), RLOCK_E_TLS);
    assert_null(c);
    fixture_assert_contains(why, "hiredis 1.0 or newer");
}
