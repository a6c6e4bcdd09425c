/* Renewal in the steps of an event loop, and locks that leave it. */
#include "tests/lib/loop_world.h"

/* Guarantee: A renewer without a thread renews in the steps of its client's loop, over
 * its connection. */
PLAY_CASE(play_on_one, loop_renews)
{
    struct loop loop = loop_of("p");
    unsigned before;

    play("p stepped; p take k 60000; p renew; redis CONFIG RESETSTAT");
    before = proxy_count(&w->proxies[0], PROXY_CONNECTIONS);
    for (int i = 1; i <= 4; i++) {
        play("time 20000");
        loop_step(&loop, 0); /* the timer of the loop knows nothing of this time */
        LOOP_AWAIT(&loop, rlock_left_ms(play_lock("p")) > 45000);
    }
    play("p valid 45000; ttl k: 45000-60000; p losses: 0");
    assert_int_equal(proxy_count(&w->proxies[0], PROXY_CONNECTIONS), before);
    play("del k; time 20000");
    loop_step(&loop, 0);
    LOOP_AWAIT(&loop, play_actor_of("p")->told.times == 1);
    play("p loss: lost; p invalid");
}

static void begin_renewal(struct loop *loop, const struct rlock_renewer *r)
{
    play("time 20000");
    loop_step(loop, 0);
    LOOP_AWAIT(loop, r->stage == RLOCK_CALLING);
}

/* Guarantee: A lock that leaves a renewal under way in a loop is neither extended
 * behind its release nor reported lost, and the others are renewed by it. */
PLAY_CASE(play_on_one, lock_leaves_a_renewal_under_way)
{
    struct loop loop = loop_of("p");
    struct rlock_renewer *r;
    struct rlock *freed = rlock_new(loop.c);

    play("p stepped; p take k; p2 take j; p renew; p2 renew");
    r = play_actor_of("p")->r;
    loop_take(&loop, freed, "i");
    assert_int_equal(rlock_renew(r, freed, 0, 0), RLOCK_OK);
    play("proxy delay 300");
    begin_renewal(&loop, r);
    assert_int_equal(r->kept.n, 3);
    assert_int_equal(rlock_begin_release(play_lock("p"), on_done, &loop), RLOCK_OK);
    rlock_free(freed);
    LOOP_AWAIT(&loop, loop.told == 2);
    assert_int_equal(loop.code, RLOCK_OK);
    LOOP_AWAIT(&loop, rlock_left_ms(play_lock("p2")) > 45000);
    play("proxy delay 0; copies k: 0; p losses: 0; p2 valid 45000; p try k");
    assert_int_equal(r->lock_ct, 1);
}

static int close_all(struct rlock_renewer *r, struct rlock *l)
{
    struct rlock_client *c = l->client;

    rlock_renewer_close(r);
    rlock_free(l);
    rlock_close(c);
    return 0;
}

/* The answer is awaited by memory that the child frees. */
PLAY_CASE(play_on_one, child_closes_a_renewer_whose_call_is_under_way)
{
    struct loop loop = loop_of("p");
    struct rlock_renewer *r;
    pid_t pid;

    play("p stepped; p take k; p renew");
    r = play_actor_of("p")->r;
    play("proxy delay 300");
    begin_renewal(&loop, r);
    pid = fork();
    if (pid == 0)
        _exit(close_all(r, play_lock("p")));
    assert_int_equal(fixture_reap(pid, LOCK_SOON_MS / 1000), 0);
    LOOP_AWAIT(&loop, rlock_left_ms(play_lock("p")) > 45000);
    play("proxy delay 0; p losses: 0");
}

/* The server is silent while the renewer connects: a third of the lease is over when
 * its last renewal fails, and the next try may take longer than the rest. */
/* Guarantee: A loss is told before the lease ends, also by a renewer that is trying to
 * connect. */
PLAY_CASE(play_on_one, loss_is_told_while_the_renewer_connects)
{
    struct loop loop = loop_of("p");
    int64_t least_ms;

    play("p stepped; p take k 3000; p renew; proxy swallow");
    loop.c->o.connect_ms = LOCK_SOON_MS;
    loop.c->o.reply_ms = LOCK_SOON_MS;
    LOOP_AWAIT(&loop, play_actor_of("p")->told.times == 1);
    least_ms = play_actor_of("p")->told.least_left_ms;
    promise_true(least_ms > 0);
    play("proxy let");
}

static void lose(struct rlock *l, int code, void *arg)
{
    struct loop *loop = arg;

    assert_int_equal(code, RLOCK_LOST);
    assert_int_equal(rlock_loop_step(l->client), RLOCK_E_INVAL);
    assert_int_equal(rlock_begin_release(l, free_lock, loop), RLOCK_OK);
}

PLAY_CASE(play_on_one, on_lost_may_begin_a_call)
{
    struct loop loop = loop_of("a");
    struct rlock_renew_options o = {
        .size = sizeof o, .no_thread = true, .on_lost = lose, .arg = &loop};
    struct rlock *l = rlock_new(loop.c);
    RENEWER *r;

    assert_int_equal(rlock_renewer_open(&r, loop.c, &o), RLOCK_OK);
    loop_take(&loop, l, "k");
    assert_int_equal(rlock_renew(r, l, 0, 0), RLOCK_OK);
    play("del k; time 20000");
    loop_step(&loop, 0);
    LOOP_AWAIT(&loop, loop.told == 2);
    assert_int_equal(loop.code, RLOCK_GONE);
}
