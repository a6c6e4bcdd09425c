/* A Unix socket whose backlog is full, as while a herd of clients starts: a connect
 * waits for its turn as long as connect_ms, as it does over TCP. */
#include "tests/lib/lock_world.h"

#include <errno.h>
#include <pthread.h>
#include <sys/socket.h>

/* A Redis that lets in as many as its backlog holds, stands still, and has that many.
 */
enum { MOST = 64, TRIES = 20, STILL_MS = 300, CONNECT_MS = 300, OVER_MS = 1000 };

struct crowd {
    struct fixture_redis server;
    int fds[MOST];
    size_t n;
};

static void stop(const struct crowd *c)
{
    assert_int_equal(kill(c->server.pid, SIGSTOP), 0);
}

static void go_on(const struct crowd *c)
{
    assert_int_equal(kill(c->server.pid, SIGCONT), 0);
}

static void start_crowd(struct crowd *c)
{
    fixture_redis_start(&c->server, "--tcp-backlog", "4", NULL);
}

/* Connects until no more fit. */
static void fill(struct crowd *c)
{
    struct sockaddr_storage at;
    socklen_t size = kit_address(c->server.url + strlen("unix://"), &at);
    bool is_full = false;

    for (c->n = 0; !is_full; c->n += is_full ? 0 : 1) {
        assert_true(c->n < MOST);
        c->fds[c->n] = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
        is_full = connect(c->fds[c->n], (struct sockaddr *)&at, size) != 0;
        assert_true(!is_full || errno == EAGAIN);
    }
    (void)close(c->fds[c->n]);
}

static void disperse(struct crowd *c)
{
    while (c->n > 0)
        (void)close(c->fds[--c->n]);
}

static void stop_crowd(struct crowd *c)
{
    disperse(c);
    if (c->server.pid > 0)
        go_on(c);
    fixture_redis_close(&c->server);
}

#define CROWD OWNED(stop_crowd) struct crowd

GROUP(.start = lock_start_server, .stop = lock_stop_server);

/* ---- the server goes on ---- */

static void *go_on_soon(void *crowd)
{
    fixture_pause_ms(STILL_MS);
    go_on(crowd);
    return NULL;
}

/* Milliseconds of a try that must succeed, at a server that stands still for a while.
 */
static int64_t time_try(struct crowd *c)
{
    LONE *l = rlock_new(lock_client(c->server.url, 0));
    int64_t began_ms, took_ms;
    pthread_t thread;
    int code;

    stop(c);
    fill(c);
    assert_int_equal(pthread_create(&thread, NULL, go_on_soon, c), 0);
    began_ms = rlock_now_ms();
    code = rlock_try(l, "one", 60000);
    took_ms = rlock_now_ms() - began_ms;
    assert_int_equal(pthread_join(thread, NULL), 0);
    promise_int_equal(code, RLOCK_OK);
    assert_int_equal(rlock_release(l), RLOCK_OK);
    disperse(c);
    return took_ms;
}

/* The server stood still when the client came, if the try took a part of that time. */
/* Guarantee: A client that meets a full backlog of a Unix socket is connected as soon
 * as the server accepts it. */
CASE(full_backlog_is_waited_for)
{
    CROWD c = {.n = 0};
    int64_t longest_ms = 0;

    start_crowd(&c);
    for (int i = 0; i < TRIES && longest_ms < STILL_MS / 2; i++) {
        int64_t ms = time_try(&c);

        longest_ms = ms > longest_ms ? ms : longest_ms;
    }
    assert_true(longest_ms >= STILL_MS / 2);
}

/* ---- the server does not ---- */

static int64_t time_connect(const char *url)
{
    CLIENT *c = LOCK_OPEN(.url = url, .connect_ms = CONNECT_MS, .reply_ms = CONNECT_MS);
    int64_t began_ms = rlock_now_ms();

    promise_int_equal(rlock_connect(c), RLOCK_E_UNAVAILABLE);
    fixture_assert_contains(rlock_error(c), "redis.sock");
    return rlock_now_ms() - began_ms;
}

/* The best of some, for a busy machine. */
/* Guarantee: A backlog that stays full is unavailable after connect_ms, and not at
 * once. */
CASE(backlog_that_stays_full_ends_the_try_in_time)
{
    CROWD c = {.n = 0};
    int64_t best_ms = INT64_MAX;

    start_crowd(&c);
    stop(&c);
    fill(&c);
    for (int i = 0; i < TRIES && best_ms > 2 * CONNECT_MS + OVER_MS; i++) {
        int64_t ms = time_connect(c.server.url);

        promise_true(ms >= CONNECT_MS - 1);
        best_ms = ms < best_ms ? ms : best_ms;
    }
    promise_true(best_ms <= 2 * CONNECT_MS + OVER_MS);
}

/* Guarantee: A full backlog of the minority of a quorum holds nobody up. */
CASE(full_backlog_of_one_server_holds_no_quorum_up)
{
    CROWD c = {.n = 0};
    REDIS a = lock_own_server();
    REDIS b = lock_own_server();
    CLIENT *client = NULL;
    char url[3 * FIXTURE_URL];

    start_crowd(&c);
    stop(&c);
    fill(&c);
    (void)snprintf(url, sizeof url, "%s,%s,%s", c.server.url, a.url, b.url);
    client = lock_client(url, 0);
    assert_int_equal(rlock_connect(client), RLOCK_OK);
}
