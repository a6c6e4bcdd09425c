/* Connections: what ends them while they rest, and those that the caller hands in. */
#include <sys/socket.h>

#include "tests/lib/play.h"
#include "tests/lib/tls_world.h"

#ifdef LEDGERLOCK_TLS
#include <hiredis/hiredis_ssl.h>
#endif

static const struct rlock_key one_key = {"one", 3};

/* ---- the server closed the connection ---- */

static const struct {
    const char *name, *steps;
} ends[] = {{"while_it_rested", "redis CLIENT KILL TYPE normal; rest 150"},
            {"just_now", "redis CLIENT KILL TYPE normal"}};

CASE_ROWS_IN(play_on_one, struct quorum_world, connection_that_ended_is_no_fault, ends)
{
    static const char *const calls[] = {"a connect",     "a try k",
                                        "a extend",      "a verify",
                                        "a list: 1",     "a release; a try k",
                                        "a dead a k: 1", "a force k: gone"};

    play("a connect");
    for (size_t i = 0; i < sizeof calls / sizeof calls[0]; i++) {
        play(row->steps);
        play(calls[i]);
    }
}

/* The connection that asks does not rest. */
PLAY_ONE(timeout_of_the_server_is_no_fault,
         "a try k; redis CONFIG SET timeout 3; "
         "await redis INFO clients: connected_clients:1; redis CONFIG SET timeout 0; "
         "a list: 1; a release");

/* ---- the caller's own connections ---- */

static unsigned handed_in;

static redisContext *connect_by_hand(void *url)
{
    handed_in++;
    return url == NULL ? NULL : redisConnectUnix((char *)url + strlen("unix://"));
}

static struct rlock_client *client_by_hand(rlock_connect_fn connect, void *arg)
{
    handed_in = 0;
    return LOCK_OPEN(.connect = connect, .connect_arg = arg);
}

/* As over a connection of the library's own: keys, waits, a renewer, an end. */
static void use_by_hand(struct rlock_client *c, struct rlock *other)
{
    LOCK *l = rlock_new(c);
    struct rlock_renewer *r;

    assert_int_equal(rlock_try(l, "one", 2000), RLOCK_OK);
    assert_int_equal(rlock_try(other, "one", 2000), RLOCK_BUSY);
    assert_int_equal(rlock_renewer_open(&r, c, NULL), RLOCK_OK);
    assert_int_equal(rlock_renew(r, l, 0, 0), RLOCK_OK);
    fixture_pause_ms(2500);
    assert_true(rlock_valid(l, 0));
    assert_int_equal(rlock_release(l), RLOCK_OK);
    rlock_renewer_close(r);
    assert_int_equal(rlock_try(other, "one", 60000), RLOCK_OK);
    assert_int_equal(lock_wait_in_vain(l, &one_key, 1, 600, 200), RLOCK_TIMEOUT);
    assert_int_equal(rlock_release(other), RLOCK_OK);
}

/* Guarantee: A connection that the caller hands in is used like any other. */
LOCK_CASE(connection_handed_in_is_used_like_any_other)
{
    CLIENT *c = client_by_hand(connect_by_hand, lock_server.url);

    use_by_hand(c, w->lb);
    /* A connection is the renewer's; a wake-up that came late ends the wait's own. */
    assert_in_range(handed_in, 2, 3);
}

LOCK_CASE(ended_connection_is_asked_for_again)
{
    LONE *l = rlock_new(client_by_hand(connect_by_hand, lock_server.url));

    assert_int_equal(rlock_try(l, "one", 60000), RLOCK_OK);
    lock_raw_do(w, "CLIENT KILL TYPE normal");
    assert_int_equal(rlock_extend(l, 60000), RLOCK_OK);
    assert_int_equal(handed_in, 2);
    rlock_disconnect(l->client);
    assert_int_equal(rlock_release(l), RLOCK_OK);
    assert_int_equal(handed_in, 3);
}

LOCK_CASE(no_connection_to_hand_in_is_unavailable)
{
    LONE *l = rlock_new(client_by_hand(connect_by_hand, NULL));

    assert_int_equal(rlock_try(l, "one", 60000), RLOCK_E_UNAVAILABLE);
    assert_true(handed_in > 0);
}

LOCK_CASE(no_answer_on_a_connection_handed_in_ends_in_time)
{
    LONE *l =
        rlock_new(LOCK_OPEN(.connect = connect_by_hand, .connect_arg = lock_server.url,
                            .connect_ms = 1000, .reply_ms = 1000));

    assert_int_equal(rlock_try(l, "one", 60000), RLOCK_OK);
    lock_raw_do(w, "CLIENT PAUSE 60000 WRITE");
    assert_true(rlock_extend(l, 60000) < 0);
    assert_true(rlock_left_ms(l) > 30000); /* long before the pause is over */
    lock_raw_do(w, "CLIENT UNPAUSE");
    assert_int_equal(rlock_release(l), RLOCK_OK);
}

#ifdef LEDGERLOCK_TLS
static redisContext *connect_with_tls(void *arg)
{
    redisContext *c = redisConnect("127.0.0.1", tls_port);
    redisSSLContext *tls =
        redisCreateSSLContext(tls_ca, NULL, NULL, NULL, "localhost", NULL);

    (void)arg;
    if (c != NULL && tls != NULL)
        (void)redisInitiateSSLWithContext(c, tls);
    redisFreeSSLContext(tls);
    return c;
}

static const char *lacks_tls(void)
{
    return tls_is_possible() ? NULL : "redis-server without TLS, or no openssl";
}
#else
static redisContext *connect_with_tls(void *arg)
{
    return arg; /* never called */
}

static const char *lacks_tls(void)
{
    return "this hiredis has no TLS";
}
#endif

static const struct test_group tls = {
    .missing = lacks_tls, .start = tls_start_server, .stop = tls_stop_server};

CASE(connection_handed_in_may_speak_tls, .group = &tls)
{
    LONE *l = rlock_new(lock_client(tls_server.url, 0));
    CLIENT *c = client_by_hand(connect_with_tls, NULL);

    use_by_hand(c, l);
}

/* ---- answers that nobody asked for ---- */

static const struct {
    const char *name;
    int rest_ms; /* between the surplus answer and the next call */
} surpluses[] = {{"behind_the_call", 0}, {"just_now", 10}, {"long_ago", 200}};

/* A second command was sent over the connection: its answer looks like a grant. */
/* Guarantee: An answer that nobody asked for is never taken for that of a call. */
CASE_ROWS_IN(lock_group, struct lock_world, surplus_answer_grants_nothing, surpluses)
{
    static const char more[] =
        "*3\r\n$4\r\nEVAL\r\n$33\r\nreturn {'ok', '1700000000000000'}\r\n$1\r\n0\r\n";

    assert_int_equal(rlock_try(w->la, "one", 60000), RLOCK_OK);
    assert_int_equal(rlock_connect(w->b), RLOCK_OK);
    assert_int_equal(send(w->b->nodes[0].conn->fd, more, sizeof more - 1, 0),
                     sizeof more - 1);
    fixture_pause_ms(row->rest_ms);
    promise_int_equal(rlock_try(w->lb, "one", 60000), RLOCK_BUSY);
    assert_true(rlock_valid(w->la, 0));
}

/* Older hiredis takes a push for a breach of the protocol. */
/* Guarantee: A push before the answer to a call is not taken for that answer. */
CASE(push_before_the_answer_is_not_the_answer)
{
    FAKE fake =
        fake_saying("EVALSHA", ">2\r\n$10\r\ninvalidate\r\n*1\r\n$1\r\nk\r\n"
                               "*4\r\n" FAKE_ID "$4\r\nbusy\r\n:1\r\n:1000\r\n");
    LONE *l = rlock_new(lock_client(fake.url, 300));
    int code = rlock_try(l, "one", 60000);

    assert_true(HIREDIS_MAJOR >= 1 ? code == RLOCK_BUSY : code < 0);
    assert_false(rlock_valid(l, 0));
}

/* Guarantee: A server whose INFO names no role is refused, unless the program allows
 * it.
 */
CASE(server_that_names_no_role_is_refused_unless_that_is_allowed)
{
    FAKE fake = fake_saying("INFO", "$19\r\nredis_version:7.0.0\r\n");
    LONE *strict = rlock_new(lock_client(fake.url, 300));
    LONE *lax = rlock_new(
        LOCK_OPEN(.url = fake.url, .reply_ms = LOCK_SOON_MS, .allow_no_role = true));

    assert_int_equal(rlock_try(strict, "one", 10000), RLOCK_E_PROTO);
    fixture_assert_contains(rlock_error(strict->client), "names no role");
    assert_int_equal(rlock_connect(lax->client), RLOCK_OK);
}
