/* The lock library over TLS, where hiredis and redis-server can; elsewhere its refusal.
 * Certificates are made on the spot. */
#include "tests/lib/tls_world.h"

#include <arpa/inet.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>

#include "tests/lib/proxy.h"

static int64_t now_ms(void)
{
    struct timespec ts;

    (void)clock_gettime(CLOCK_MONOTONIC, &ts);
    return (int64_t)ts.tv_sec * 1000 + ts.tv_nsec / 1000000;
}

/* ---- clients ---- */

static int flush(void **state)
{
    redisContext *raw = lock_raw_connection(tls_server.url);

    (void)state;
    freeReplyObject(redisCommand(raw, "FLUSHALL"));
    redisFree(raw);
    return 0;
}

static struct ll_client *client_of(const char *host, int at, const char *trusted)
{
    struct ll_options o = {.size = sizeof o, .tls_ca = trusted, .connect_ms = 1000};
    struct ll_client *c;
    char url[96];

    (void)snprintf(url, sizeof url, "rediss://%s:%d", host, at);
    o.url = url;
    assert_int_equal(ll_open(&c, &o, NULL, 0), LL_OK);
    return c;
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

static void lock_over_tls_by_name_and_by_address(void **state)
{
    static const char *const hosts[] = {"localhost", "127.0.0.1"};

    (void)state;
    for (size_t i = 0; i < sizeof hosts / sizeof hosts[0]; i++) {
        struct ll_client *c = client_of(hosts[i], tls_port, tls_ca);
        struct ll_lock *l = ll_new(c);
        int64_t current;

        check(c, ll_install_epoch(c, (int64_t)i + 1, &current), LL_OK);
        check(c, ll_try(l, "user:1", 5000), LL_OK);
        check(c, ll_extend(l, 9000), LL_OK);
        check(c, ll_release(l), LL_OK);
        ll_free(l);
        ll_close(c);
    }
}

enum { MANY = 2500, NAME = 200 };

static struct ll_key keys[MANY];

static void name_keys(void)
{
    static char names[MANY][NAME];

    for (size_t i = 0; i < MANY; i++) {
        (void)snprintf(names[i], NAME, "%0*zu", NAME - 1, i);
        keys[i] = (struct ll_key){names[i], NAME - 1};
    }
}

/* Commands and answers of many TLS records; half of the keys are busy. */
static void large_batches_over_tls(void **state)
{
    struct ll_client *c = client_of("localhost", tls_port, tls_ca);
    struct ll_lock *l = ll_new(c);
    struct ll_lock *m = ll_new(c);
    int64_t left_ms;

    (void)state;
    lock_install_epoch(c, 1);
    name_keys();
    check(c, ll_acquire(l, keys, MANY / 2, LL_ALL, 60000), LL_OK);
    check(c, ll_acquire(m, keys, MANY, LL_ANY, 60000), LL_PARTIAL);
    assert_int_equal(ll_granted(m), MANY - MANY / 2);
    check(c, ll_verify(m, &left_ms), LL_OK);
    check(c, ll_release(m), LL_OK);
    check(c, ll_release(l), LL_OK);
    ll_free(l);
    ll_free(m);
    ll_close(c);
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

/* A command that does not fit the socket: the rest is written when there is room. */
static void command_that_waits_for_room_over_tls(void **state)
{
    struct ll_client *c = client_of("127.0.0.1", tls_port, tls_ca);
    struct ll_lock *l = ll_new(c);
    int64_t start;
    pid_t pid;

    (void)state;
    lock_install_epoch(c, 1);
    name_keys();
    shrink_sockets();
    assert_int_equal(kill(tls_server.pid, SIGSTOP), 0);
    pid = fork();
    if (pid == 0) {
        fixture_pause_ms(300);
        _exit(kill(tls_server.pid, SIGCONT));
    }
    start = now_ms();
    check(c, ll_acquire(l, keys, 1000, LL_ALL, 60000), LL_OK);
    assert_in_range(now_ms() - start, 250,
                    900); /* at the first try: reply_ms is 1000 */
    assert_int_equal(fixture_reap(pid, 5), 0);
    check(c, ll_release(l), LL_OK);
    ll_free(l);
    ll_close(c);
}

static void renewer_and_waiter_over_tls(void **state)
{
    const struct ll_key key = {"user:1", 6};
    struct ll_renew_options o = {.size = sizeof o, .interval_ms = 100};
    struct ll_client *a = client_of("localhost", tls_port, tls_ca);
    struct ll_client *b = client_of("localhost", tls_port, tls_ca);
    struct ll_lock *la = ll_new(a);
    struct ll_lock *lb = ll_new(b);
    struct ll_renewer *r;

    (void)state;
    lock_install_epoch(a, 1);
    check(a, ll_try(la, "user:1", 500), LL_OK);
    check(a, ll_renewer_open(&r, a, &o), LL_OK);
    check(a, ll_renew(r, la, 0, 0), LL_OK);
    check(b, ll_acquire_wait(lb, &key, 1, LL_ALL, 5000, 1200), LL_TIMEOUT);
    assert_true(ll_valid(la, 0));
    check(a, ll_release(la), LL_OK);
    check(b, ll_acquire_wait(lb, &key, 1, LL_ALL, 5000, 1200), LL_OK);
    ll_renewer_close(r);
    ll_free(la);
    ll_free(lb);
    ll_close(a);
    ll_close(b);
}

static void stranger_is_refused(void **state)
{
    (void)state;
    expect_failure(client_of("localhost", tls_port, NULL), LL_E_TLS, "certificate");
    expect_failure(client_of("localhost", tls_port, "/nowhere/ca.crt"), LL_E_TLS,
                   "/nowhere/ca.crt");
}

static void certificate_of_another_host_is_refused(void **state)
{
    struct fixture_redis other = {0};
    int at = ha_free_port();

    (void)state;
    tls_start(&other, at, "other");
    expect_failure(client_of("localhost", at, tls_ca), LL_E_TLS, "mismatch");
    expect_failure(client_of("127.0.0.1", at, tls_ca), LL_E_TLS, "mismatch");
    fixture_redis_close(&other);
}

/* Neither a server that speaks no TLS nor one that says nothing keeps us longer. */
static void server_without_tls_or_words_ends_in_time(void **state)
{
    struct proxy deaf = {0};
    char address[32];
    int64_t start = now_ms();

    (void)state;
    (void)snprintf(address, sizeof address, "127.0.0.1:%d", tls_port);
    proxy_open(&deaf, address, NULL);
    proxy_swallow(&deaf, true);
    expect_failure(client_of("127.0.0.1", deaf.port, tls_ca), LL_E_UNAVAILABLE,
                   "in time");
    assert_in_range(now_ms() - start, 950, 1100);
    proxy_close(&deaf);
    proxy_open(&deaf, tls_server.url + strlen("unix://"), NULL);
    start = now_ms();
    {
        struct ll_client *c = client_of("127.0.0.1", deaf.port, tls_ca);
        int code = ll_connect(c);

        assert_true(code == LL_E_TLS || code == LL_E_UNAVAILABLE);
        ll_close(c);
    }
    assert_in_range(now_ms() - start, 0, 1100);
    proxy_close(&deaf);
}

static void server_that_hangs_up_raises_no_sigpipe(void **state)
{
    struct ll_client *c = client_of("localhost", tls_port, tls_ca);
    struct ll_lock *l = ll_new(c);
    redisContext *raw = lock_raw_connection(tls_server.url);

    (void)state;
    (void)signal(SIGPIPE, SIG_DFL);
    name_keys();
    lock_install_epoch(c, 1);
    for (int i = 0; i < 30; i++) {
        freeReplyObject(redisCommand(raw, "CLIENT KILL TYPE normal SKIPME yes"));
        fixture_pause_ms(i % 3);
        check(c, ll_acquire(l, keys, 1000, LL_ALL, 5000), LL_OK); /* several writes */
        freeReplyObject(redisCommand(raw, "CLIENT KILL TYPE normal SKIPME yes"));
        check(c, ll_release(l), LL_OK);
    }
    redisFree(raw);
    ll_free(l);
    ll_close(c);
}

static void tls_that_is_missing_is_refused_in_words(void **state)
{
    struct ll_options o = {.size = sizeof o, .url = "rediss://localhost"};
    struct ll_client *c;
    char why[160] = "";

    (void)state;
    assert_int_equal(ll_open(&c, &o, why, sizeof why), LL_E_TLS);
    assert_null(c);
    fixture_assert_contains(why, "hiredis 1.0 or newer");
}

/* ---- */

static bool has_tls(void)
{
    struct ll_options o = {.size = sizeof o, .url = "rediss://localhost"};
    struct ll_client *c;
    bool yes = ll_open(&c, &o, NULL, 0) == LL_OK;

    ll_close(c);
    return yes;
}

static int leave_out(const char *why)
{
    (void)fprintf(stderr, "skipped: %s\n", why);
    return 77;
}

int main(void)
{
    const struct CMUnitTest refusal[] = {
        cmocka_unit_test(tls_that_is_missing_is_refused_in_words),
    };
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup(lock_over_tls_by_name_and_by_address, flush),
        cmocka_unit_test_setup(large_batches_over_tls, flush),
        cmocka_unit_test_setup(command_that_waits_for_room_over_tls, flush),
        cmocka_unit_test_setup(renewer_and_waiter_over_tls, flush),
        cmocka_unit_test_setup(stranger_is_refused, flush),
        cmocka_unit_test_setup(certificate_of_another_host_is_refused, flush),
        cmocka_unit_test_setup(server_without_tls_or_words_ends_in_time, flush),
        cmocka_unit_test_setup(server_that_hangs_up_raises_no_sigpipe, flush),
    };

    fixture_need_servers();
    if (!has_tls()) {
        int failed = cmocka_run_group_tests(refusal, NULL, NULL);

        return failed != 0 ? failed : leave_out("this build has no TLS; it says so");
    }
    if (!tls_is_possible())
        return leave_out("redis-server has no TLS, or there is no openssl to make "
                         "certificates with");
    return cmocka_run_group_tests(tests, tls_start_server, tls_stop_server);
}
