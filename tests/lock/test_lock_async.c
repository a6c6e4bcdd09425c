/* The event-loop form of the lock library: what it takes, tells and refuses; lost
 * answers, late ones, servers that will not do. */
#include "tests/lib/loop_world.h"

#ifdef HAVE_LIBEVENT

/* Any server: the one that loop_attach connects to. */
static const struct rlock_options plain = {.size = sizeof plain,
                                           .reply_ms = LOCK_SOON_MS};

/* ---- one lock ---- */

PLAY_CASE(play_on_one, loop_takes_extends_and_releases)
{
    play("l attach; l try k; l token: 1099511627777-9007199254740991; l granted: 1; "
         "l key 0; l left: 30000-59398; ttl k: 30000-60000; " /* less 1 % and 2 ms */
         "l extend 120000; l left: 60000-118798; ttl k: 60001-120000; l extend 100; "
         "l left: 60000-118798; l release; l invalid; l granted: 0; copies k: 0");
    assert_int_equal(rlock_release(play_lock("l")),
                     RLOCK_OK); /* the same answer again */
}

/* After FLUSHALL the server's clock alone would be too low. */
PLAY_ONE(token_is_above_the_floor_and_above_the_last_one,
         "l attach; l floor 43200; l try k; l ahead: 43000-43200; l release; "
         "redis FLUSHALL; "
         "l try k; l release; redis FLUSHALL; l try k; l release");

PLAY_ONE(loop_is_told_of_a_busy_key_and_of_a_lost_one,
         "l attach; b take k; l try k: busy; l busy 0: 1-60000; l granted: 0; "
         "l token: 0; l send extend: inval; b release; l try k; del k; l extend: lost; "
         "l key 0: lost; l invalid; l release: gone; l try k; set k 60000; "
         "l release: not_owner; copies k: 1");

PLAY_ONE(loop_takes_some_of_many_keys_or_one,
         "l attach; b take x; l all x,y,z: busy; copies y: 0; l any x,y,z: partial; "
         "l granted: 2; l key 0: busy; l extend 120000; ttl z: 60001-120000; "
         "ttl x: 1-60000; l release; copies x: 1; l one x,y,z; l granted: 1; l key 1; "
         "l release");

PLAY_ONE(loop_sends_a_script_whole_that_the_server_forgot,
         "l attach; l try k; redis SCRIPT FLUSH; l extend; redis SCRIPT FLUSH; "
         "l release; redis SCRIPT FLUSH; l try k; l release");

PLAY_ONE(abandoned_lock_is_told_nothing_and_can_be_taken,
         "l attach; l send try j; l abandon; l try k; l told: 1");

/* ---- many ---- */

enum { LOCKS = 200 };

PLAY_CASE(play_on_one, loop_works_many_locks_behind_one_handshake)
{
    struct loop *loop = loop_of("l");
    struct rlock_lock *locks[LOCKS];
    int64_t last = 0;
    char name[24];

    play("a take k; a release; redis CONFIG RESETSTAT; l attach"); /* a has the scripts
                                                                    */
    for (int i = 0; i < LOCKS; i++) {
        (void)snprintf(name, sizeof name, "user:%d", i);
        locks[i] = rlock_new(loop->c);
        assert_int_equal(loop_acquire(loop, locks[i], name, on_done), RLOCK_OK);
    }
    assert_int_equal(loop->told, 0);
    loop_run_until(loop, LOCKS);
    for (int i = 0; i < LOCKS; i++) {
        assert_true(rlock_valid(locks[i], 0));
        assert_true(rlock_token(locks[i]) > last); /* in the order of the calls */
        last = rlock_token(locks[i]);
        assert_int_equal(rlock_async_release(locks[i], on_done, loop), RLOCK_OK);
    }
    loop_run_until(loop, 2 * LOCKS);
    play("l code: ok; calls eval: 1; keys: 0"); /* the call was the handshake */
    for (int i = 0; i < LOCKS; i++)
        rlock_free(locks[i]);
}

/* ---- done may do anything ---- */

static void free_lock(struct rlock_lock *l, int code, void *arg)
{
    struct loop *loop = arg;

    on_done(l, code, arg);
    rlock_free(l);
    loop->l = NULL;
}

static void close_client(struct rlock_lock *l, int code, void *arg)
{
    on_done(l, code, arg);
    loop_close_client(arg);
}

static void end_connection(struct rlock_lock *l, int code, void *arg)
{
    struct loop *loop = arg;

    close_client(l, code, arg);
    redisAsyncFree(loop->ac);
}

static void release_it(struct rlock_lock *l, int code, void *arg)
{
    assert_int_equal(code, RLOCK_OK);
    assert_int_equal(rlock_async_release(l, on_done, arg), RLOCK_OK);
}

static const struct {
    const char *name;
    rlock_done_fn done;
} ends[] = {{"frees_the_lock", free_lock},
            {"closes_the_client", close_client},
            {"ends_the_connection", end_connection},
            {"goes_on", release_it}};

CASE_ROWS_IN(lock_group, struct lock_world, done, ends)
{
    struct loop *loop = loop_open(&plain);

    loop_attach(loop, lock_server.url);
    assert_int_equal(loop_acquire(loop, loop->l, "k", row->done), RLOCK_OK);
    loop_run_until(loop, 1);
    assert_int_equal(loop->code, RLOCK_OK);
    assert_int_equal(lock_raw_integer(w, "EXISTS lock:k"), row->done != release_it);
    loop_close(loop);
}

static const struct {
    const char *name;
    bool is_known; /* the server has been looked at, so the calls are sent at once */
} closes[] = {{"before_they_are_sent", false}, {"after_they_are_sent", true}};

CASE_ROWS_IN(lock_group,
             struct lock_world,
             calls_of_a_closed_client_are_not_told,
             closes)
{
    struct loop *loop = loop_open(&plain);
    struct rlock_lock *second = rlock_new(loop->c);

    loop_attach(loop, lock_server.url);
    if (row->is_known) {
        assert_int_equal(loop_acquire(loop, loop->l, "first", release_it), RLOCK_OK);
        loop_run_until(loop, 1);
    }
    loop->told = 0;
    assert_int_equal(loop_acquire(loop, loop->l, "k", on_done), RLOCK_OK);
    assert_int_equal(loop_acquire(loop, second, "other", on_done), RLOCK_OK);
    rlock_free(second);
    loop_close_client(loop);
    loop_run(loop, 1, 50);
    assert_int_equal(loop->told, 0);
    loop_close(loop);
}

/* ---- arguments ---- */

static int attach(const struct rlock_options *o, struct redisAsyncContext *ac)
{
    CLIENT *c = lock_open(o);

    return rlock_async_attach(c, ac);
}

PLAY_CASE(play_on_one, wrong_calls_are_refused_before_anything_is_sent)
{
    const struct rlock_options quorum = {.size = sizeof quorum,
                                         .url = "redis://h1,redis://h2,redis://h3"};
    const struct rlock_options replicas = {.size = sizeof replicas, .replicas = 1};
    const struct rlock_key key = {"k", 1};
    struct rlock_lock *l = play_lock("l");

    assert_int_equal(loop_acquire(NULL, l, "k", on_done), RLOCK_E_UNAVAILABLE);
    play("l attach; l send release: inval; l send try k 0: inval; l send all ,: inval; "
         "l send all k:0..1000: inval; l send try k; l send try k: inval");
    assert_int_equal(attach(&quorum, loop_of("l")->ac), RLOCK_E_INVAL);
    assert_int_equal(attach(&replicas, loop_of("l")->ac), RLOCK_E_INVAL);
    assert_int_equal(rlock_acquire(l, &key, 1, RLOCK_ALL, 5000), RLOCK_E_INVAL);
    play("await l told: 1; l code: ok; l send try k: inval; l release; "
         "l send release: inval; l told: 2");
}

/* ---- figures ---- */

static void count_events(const struct rlock_event *event, void *arg)
{
    int *events = arg;

    events[event->kind]++;
    assert_int_equal(event->code, RLOCK_OK);
    assert_int_equal(event->keys, 1);
    assert_in_range(event->us, 1, LOOP_MS * 1000LL);
}

LOCK_CASE(calls_are_told_to_the_hook)
{
    int events[4] = {0};
    const struct rlock_options o = {.size = sizeof o,
                                    .url = lock_server.url,
                                    .on_event = count_events,
                                    .event_arg = events};
    struct loop *loop = loop_open(&o);

    loop_attach(loop, lock_server.url);
    assert_int_equal(loop_acquire(loop, loop->l, "k", on_done), RLOCK_OK);
    loop_run_until(loop, 1);
    assert_int_equal(rlock_async_extend(loop->l, 5000, on_done, loop), RLOCK_OK);
    loop_run_until(loop, 2);
    assert_int_equal(rlock_async_release(loop->l, on_done, loop), RLOCK_OK);
    loop_run_until(loop, 3);
    assert_int_equal(events[RLOCK_EV_ACQUIRE], 1);
    assert_int_equal(events[RLOCK_EV_EXTEND], 1);
    assert_int_equal(events[RLOCK_EV_RELEASE], 1);
    loop_close(loop);
}

/* ---- faults ---- */

/* The connection that lost an answer has ended: the caller attaches another one. */
PLAY_ONE(lost_answer_is_uncertain_and_the_release_can_be_asked_again,
         "p attach; p try first; p release; proxy cut_after EVALSHA; "
         "p try k: uncertain; p error: connection; p granted: 0; p invalid; "
         "copies k: 1; p attached: 0; p send release: unavailable; p attach; "
         "p release; copies k: 0; p try k; proxy cut_after EVALSHA; "
         "p extend 120000: uncertain; p left: 30000-60000; p attach; "
         "p extend 120000; proxy cut_after EVALSHA; p release: uncertain; p invalid; "
         "p attach; p release"); /* it was the first try that did it */

PLAY_ONE(
    lock_that_is_being_released_or_was_lost_is_not_extended,
    "p attach; p try k; proxy cut_after EVALSHA; p release: uncertain; p attach; "
    "p send extend 120000: inval; p release; p try k; del k; p extend 120000: lost; "
    "p send extend 120000: lost; p error: not ours; p told: 5");

PLAY_ONE(call_that_was_never_sent_is_unavailable,
         "p attach; proxy cut_before EVAL\r\n; p try k: unavailable; "
         "p send release: inval; p send try k: unavailable; p told: 1");

static bool is_slow; /* the server may have been asked how it is, and nothing sent */

static void attach_next(struct rlock_lock *l, int code, void *arg)
{
    struct loop *loop = arg;

    if (loop->told++ == 1)
        loop_attach(loop, playing.w->plain_url);
    assert_true(code == RLOCK_E_UNCERTAIN || (is_slow && code == RLOCK_E_UNAVAILABLE));
    assert_false(rlock_valid(l, 0));
}

PLAY_CASE(play_on_one, all_calls_are_told_when_the_connection_ends)
{
    struct loop *loop = loop_of("p");
    int64_t began_ms = fixture_now_ms();

    play("p attach; p try k; proxy swallow");
    assert_int_equal(loop_acquire(loop, play_lock("p2"), "x", attach_next), RLOCK_OK);
    assert_int_equal(loop_acquire(loop, play_lock("p3"), "y", attach_next), RLOCK_OK);
    assert_int_equal(loop_acquire(loop, play_lock("p4"), "z", attach_next), RLOCK_OK);
    play("p told: 1");
    is_slow = fixture_now_ms() - began_ms > 900;
    play("proxy cut; await p told: 4; p release"); /* over the next one */
}

/* A late grant is given back although the server has forgotten the scripts. */
PLAY_ONE(grant_that_comes_after_its_lease_is_given_back,
         "p attach; p try k; p release; proxy delay 1500; "
         "p send try k 100; p told: 2; redis SCRIPT FLUSH; await p told: 3; "
         "p code: unavailable; p error: after the lease; p granted: 0; p token: 0; "
         "p key 0: busy; p told: 3; await copies k: 0");

/* The loop stands still, and the command with it. */
PLAY_ONE(late_command_is_sent_again_after_a_check_of_the_clock,
         "p limits 1000; p attach; p try first; p release; p send try k; rest 2000; "
         "await p told: 3; p code: ok; p left: 30000-59398; p release; "
         "proxy late EVALSHA 50 1500; p try j: unavailable; copies j: 0; "
         "p send release: inval");

PLAY_ONE(script_that_fails_grants_nothing,
         "l attach; redis SET @!last nonsense; l try k: proto; "
         "l error: holds no token; l granted: 0; redis DEL @!last; l try k");

/* ---- servers that will not do ---- */

PLAY_FRESH(server_that_evicts_is_refused_within_a_second,
           "l attach; l try k; l release; "
           "redis CONFIG SET maxmemory 8gb; "
           "redis CONFIG SET maxmemory-policy allkeys-lru; rest 1100; "
           "l try k: evicting; l error: allkeys-lru; copies k: 0; "
           "redis CONFIG SET maxmemory-policy noeviction; l try k");

/* A held lock stays valid. */
PLAY_FRESH(replica_is_refused_and_a_demoted_primary_at_once,
           "l attach; l try k; redis REPLICAOF 127.0.0.1 1; l extend: readonly; "
           "l extend: readonly; l error: is a replica; l valid; "
           "redis REPLICAOF NO ONE; l release");

/* The program has set no callback that tells it. */
/* Guarantee: A call over a connection of the event loop that has ended while it rested
 * is unavailable. */
LOCK_CASE(connection_that_ended_at_rest_is_unavailable)
{
    struct loop *loop = loop_open(&plain);

    loop->ac = redisAsyncConnectUnix(lock_server.url + strlen("unix://"));
    assert_int_equal(redisLibeventAttach(loop->ac, loop->base), REDIS_OK);
    assert_int_equal(rlock_async_attach(loop->c, loop->ac), RLOCK_OK);
    assert_int_equal(loop_acquire(loop, loop->l, "k", on_done), RLOCK_OK);
    loop_run_until(loop, 1);
    assert_int_equal(loop->code, RLOCK_OK);
    loop->ac = NULL; /* hiredis frees it */
    lock_raw_do(w, "CLIENT KILL TYPE normal SKIPME yes");
    for (int i = 0; i < 20; i++) {
        (void)event_base_loop(loop->base, EVLOOP_NONBLOCK);
        fixture_pause_ms(10);
    }
    assert_int_equal(rlock_async_extend(loop->l, 60000, on_done, loop),
                     RLOCK_E_UNAVAILABLE);
    fixture_assert_contains(rlock_error(loop->c), "attached to no connection");
    loop_close(loop);
}

LOCK_CASE(server_that_is_not_there_is_unavailable)
{
    const struct rlock_options o = {.size = sizeof o};
    struct loop *loop = loop_open(&o);
    redisAsyncContext *ac = redisAsyncConnectUnix("/nowhere/redis.sock");

    assert_int_equal(rlock_async_attach(loop->c, ac), RLOCK_E_UNAVAILABLE);
    redisAsyncFree(ac);
    ac = redisAsyncConnect("127.0.0.1", 1);
    assert_int_equal(redisLibeventAttach(ac, loop->base), REDIS_OK);
    assert_int_equal(rlock_async_attach(loop->c, ac), RLOCK_OK);
    assert_int_equal(loop_acquire(loop, loop->l, "k", on_done), RLOCK_OK);
    loop_run_until(loop, 1);
    assert_int_equal(loop->code, RLOCK_E_UNAVAILABLE);
    assert_int_equal(loop_acquire(loop, loop->l, "k", on_done), RLOCK_E_UNAVAILABLE);
    assert_int_equal(loop->told, 1); /* the second was refused at once */
    fixture_assert_contains(rlock_error(loop->c), "attached to no connection");
    loop_close(loop);
}
#endif
