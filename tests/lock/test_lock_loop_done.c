/* The callbacks of an event loop: they may do anything, and none comes for what has
 * gone.
 */
#include "tests/lib/loop_world.h"

static void close_client(struct rlock *l, int code, void *arg)
{
    struct loop *loop = arg;

    free_lock(l, code, arg);
    rlock_close(loop->c);
    loop->c = NULL;
}

static void end_connection(struct rlock *l, int code, void *arg)
{
    struct loop *loop = arg;

    free_lock(l, code, arg);
    rlock_disconnect(loop->c);
}

static void step_again(struct rlock *l, int code, void *arg)
{
    struct loop *loop = arg;

    assert_int_equal(rlock_loop_step(loop->c), RLOCK_E_INVAL);
    free_lock(l, code, arg);
}

static void release_it(struct rlock *l, int code, void *arg)
{
    assert_int_equal(code, RLOCK_OK);
    assert_int_equal(rlock_begin_release(l, free_lock, arg), RLOCK_OK);
}

static void release_it_blocking(struct rlock *l, int code, void *arg)
{
    assert_int_equal(rlock_release(l), RLOCK_OK);
    free_lock(l, code, arg);
}

static const struct {
    const char *name;
    rlock_done_fn done;
    bool is_cut; /* the release may not get to the server */
} ends[] = {{"frees_the_lock", free_lock, false},
            {"closes_the_client", close_client, true},
            {"ends_the_connection", end_connection, true},
            {"steps", step_again, false},
            {"goes_on", release_it, false},
            {"calls_the_other_form", release_it_blocking, false}};

CASE_ROWS_IN(lock_group, struct lock_world, done, ends)
{
    const struct rlock_key key = {"k", 1};
    struct loop loop = {.c = lock_client(lock_server.url, 0)};
    struct rlock *l = rlock_new(loop.c);

    assert_int_equal(
        rlock_begin_acquire(l, &key, 1, RLOCK_ALL, PLAY_LEASE_MS, 0, row->done, &loop),
        RLOCK_OK);
    while (loop.told == 0) /* its client may be gone then */
        loop_step(&loop, LOCK_SOON_MS);
    assert_int_equal(loop.code, RLOCK_OK);
    LOCK_AWAIT(row->is_cut || lock_raw_integer(w, "EXISTS lock:k") == 0);
    rlock_close(loop.c);
}

PLAY_CASE(play_on_one, call_of_a_lock_that_is_freed_or_abandoned_is_not_told)
{
    struct loop loop = loop_of("a");
    struct rlock *l = rlock_new(loop.c);

    play("a try first; a release"); /* the server knows the scripts */
    assert_int_equal(loop_acquire(&loop, l, "x", 0), RLOCK_OK);
    rlock_free(l); /* sent, not answered */
    l = rlock_new(loop.c);
    loop_take(&loop, l, "y"); /* behind it: its answer was left aside */
    assert_int_equal(loop.told, 1);
    play("copies x: 0; b try x"); /* and its key was released */
    assert_int_equal(rlock_begin_extend(l, PLAY_LEASE_MS, on_done, &loop), RLOCK_OK);
    rlock_abandon(l);
    loop_take(&loop, l, "z");
    assert_int_equal(loop.told, 2);
    assert_int_equal(loop_acquire(&loop, play_lock("a"), "x", 60000), RLOCK_OK);
    LOOP_AWAIT(&loop, loop.c->ears.is_asked);
    rlock_abandon(play_lock("a")); /* while it listens */
    loop_take(&loop, play_lock("a"), "v");
    assert_int_equal(loop.told, 3);
    rlock_free(l);
}

LOCK_CASE(calls_of_a_closed_client_are_not_told)
{
    struct loop loop = {.c = lock_client(lock_server.url, 0)};
    struct rlock *first = rlock_new(loop.c), *second = rlock_new(loop.c);

    loop_take(&loop, first, "k");
    assert_int_equal(rlock_begin_extend(first, 60000, on_done, &loop), RLOCK_OK);
    assert_int_equal(loop_acquire(&loop, second, "k", 60000), RLOCK_OK);
    rlock_free(first);
    rlock_free(second);
    rlock_close(loop.c);
    assert_int_equal(loop.told, 1);
}
