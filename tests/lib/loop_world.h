/* loop_world: clients of the event-loop form, in a loop of libevent, and their steps
 * beside those of play.h. For tests that are built with libevent; without it the
 * program says so and is skipped.
 *
 *   l attach          connects client l anew, from its loop; from then on its try, all,
 *                     any, one, extend and release go through the loop, and the step
 *                     ends when the test was told
 *   l send CALL...    begins a call, and does not wait
 *   l told: N         how often the test was told; the loop runs for a moment
 *   l code: CODE      of the last that was told
 *   l attached: 0     the connection has ended */
#ifndef LEDGERLOCK_LOOP_WORLD_H
#define LEDGERLOCK_LOOP_WORLD_H

#include <limits.h>

#include "tests/lib/play_inside.h"

#ifdef HAVE_LIBEVENT
#include <event2/event.h>
#include <hiredis/adapters/libevent.h>
#include <hiredis/async.h>

#include "common/lock_async/lock_async.h"

enum { LOOP_MS = LOCK_SOON_MS, LOOPS = 26 };

struct loop {
    struct event_base *base;
    redisAsyncContext *ac;  /* NULL: the connection has ended */
    struct rlock_client *c; /* NULL: it is closed */
    struct rlock_lock *l;   /* NULL: freed, or of the steps */
    bool is_own;            /* loop_open has opened both */
    int told, code;         /* how often, and the last one */
};

/* A loop for each letter. */
static struct loop loops[LOOPS];

static inline void loop_on_end(const redisAsyncContext *ac, int status)
{
    struct loop *loop = ac->data;

    (void)status;
    if (loop->ac != ac) /* there is another one already */
        return;
    loop->ac = NULL;
    if (loop->c != NULL)
        assert_int_equal(rlock_async_attach(loop->c, NULL), RLOCK_OK);
}

static inline void loop_attach(struct loop *loop, const char *url)
{
    if (loop->base == NULL)
        loop->base = event_base_new();
    loop->ac = redisAsyncConnectUnix(url + strlen("unix://"));
    assert_int_equal(loop->ac->err, 0);
    loop->ac->data = loop;
    assert_int_equal(redisLibeventAttach(loop->ac, loop->base), REDIS_OK);
    assert_int_equal(redisAsyncSetDisconnectCallback(loop->ac, loop_on_end), REDIS_OK);
    assert_int_equal(rlock_async_attach(loop->c, loop->ac), RLOCK_OK);
}

/* For calls in C: with a client of these options and a lock, which loop_close closes
 * where the test has not. */
static inline struct loop *loop_open(const struct rlock_options *o)
{
    struct loop *loop = &loops[LOOPS - 1];

    *loop = (struct loop){.base = event_base_new(), .is_own = true};
    loop->c = lock_open(o);
    loop->l = rlock_new(loop->c);
    return loop;
}

static inline void loop_close_client(struct loop *loop)
{
    if (loop->is_own) {
        rlock_free(loop->l);
        rlock_close(loop->c);
    }
    loop->l = NULL;
    loop->c = NULL;
}

static inline void loop_close(struct loop *loop)
{
    loop_close_client(loop);
    if (loop->ac != NULL)
        redisAsyncFree(loop->ac);
    if (loop->base != NULL)
        event_base_free(loop->base);
    *loop = (struct loop){0};
}

static inline void loop_end_all(void)
{
    for (size_t i = 0; i < LOOPS; i++)
        loop_close(&loops[i]);
}

static inline void loop_ring(evutil_socket_t fd, short events, void *arg)
{
    (void)fd;
    (void)events;
    *(bool *)arg = true;
}

/* Runs the loop until the test was told n times, or so many milliseconds are over. */
static inline void loop_run(struct loop *loop, int n, int ms)
{
    struct timeval limit = {ms / 1000, ms % 1000 * 1000};
    bool is_over = false;
    struct event *alarm = event_new(loop->base, -1, 0, loop_ring, &is_over);

    (void)event_add(alarm, &limit);
    while (loop->told < n && !is_over)
        (void)event_base_loop(loop->base, EVLOOP_ONCE);
    event_free(alarm);
}

static inline void loop_run_until(struct loop *loop, int n)
{
    loop_run(loop, n, LOOP_MS);
    if (loop->told < n)
        fail_msg("told %d times of %d", loop->told, n);
}

static inline void on_done(struct rlock_lock *l, int code, void *arg)
{
    struct loop *loop = arg;

    (void)l;
    loop->told++;
    loop->code = code;
}

/* The code that such a call is told, once and never from inside of it. */
static inline int loop_told(struct loop *loop, int before, int began)
{
    if (began != RLOCK_OK)
        return began;
    assert_int_equal(loop->told, before);
    loop_run_until(loop, before + 1);
    assert_int_equal(loop->told, before + 1);
    return loop->code;
}

/* Begins to take one key. */
static inline int loop_acquire(struct loop *loop,
                               struct rlock_lock *l,
                               const char *name,
                               rlock_done_fn done)
{
    const struct rlock_key key = {name, strlen(name)};

    return rlock_async_acquire(l, &key, 1, RLOCK_ALL, PLAY_LEASE_MS, done, loop);
}

static inline bool loop_is_acquire(const char *call)
{
    return strcmp(call, "try") == 0 || strcmp(call, "all") == 0 ||
           strcmp(call, "any") == 0 || strcmp(call, "one") == 0;
}

/* Begins the call that stands at word i. */
static inline int
loop_begin(struct loop *loop, struct rlock_lock *l, const struct play_step *s, size_t i)
{
    const char *call = play_word(s, i);
    size_t lease = loop_is_acquire(call) ? i + 2 : i + 1;
    uint32_t lease_ms = (uint32_t)play_number(s, lease, PLAY_LEASE_MS);
    struct play_keys k;

    if (strcmp(call, "release") == 0)
        return rlock_async_release(l, on_done, loop);
    if (strcmp(call, "extend") == 0)
        return rlock_async_extend(l, lease_ms, on_done, loop);
    k = play_read_keys(play_word(s, i + 1));
    return rlock_async_acquire(l, k.keys, k.n, play_mode_of(call), lease_ms, on_done,
                               loop);
}

/* A call to its end. Every token that is granted is above all before. */
static inline int
loop_call(struct loop *loop, struct rlock_lock *l, const struct play_step *s)
{
    int before = loop->told;
    int code = loop_told(loop, before, loop_begin(loop, l, s, 1));

    if (loop_is_acquire(s->word[1]) && (code == RLOCK_OK || code == RLOCK_PARTIAL)) {
        assert_true(rlock_token(l) > playing.last_token);
        playing.last_token = rlock_token(l);
    }
    return code;
}

static inline struct loop *loop_of(const char *who)
{
    return &loops[who[0] - 'a'];
}

static inline struct play_answer loop_connect(const char *who)
{
    struct loop *loop = loop_of(who);

    loop->c = play_client(who);
    loop_attach(loop, who[0] < 'p' ? playing.w->plain_url : playing.w->url);
    return play_nothing();
}

static inline bool loop_act(const struct play_step *s, struct play_answer *a)
{
    const char *who = s->word[0], *what = s->n > 1 ? s->word[1] : "";
    struct loop *loop = loop_of(who);

    if (strspn(who + 1, "1234") != strlen(who + 1))
        return false;
    if (strcmp(what, "attach") == 0) {
        *a = loop_connect(who);
    } else if (loop->base == NULL) { /* of the other form */
        return false;
    } else if (strcmp(what, "told") == 0) {
        loop_run(loop, INT_MAX, 5);
        *a = play_number_of(loop->told);
    } else if (strcmp(what, "code") == 0) {
        *a = play_code_of(play_actor_of(who), loop->code);
    } else if (strcmp(what, "attached") == 0) {
        *a = play_number_of(loop->ac != NULL);
    } else if (strcmp(what, "send") == 0) {
        *a = play_code_of(play_actor_of(who), loop_begin(loop, play_lock(who), s, 2));
    } else if (loop_is_acquire(what) || strcmp(what, "extend") == 0 ||
               strcmp(what, "release") == 0) {
        *a = play_code_of(play_actor_of(who), loop_call(loop, play_lock(who), s));
    } else {
        return false;
    }
    return true;
}

static void __attribute__((constructor)) loop_registers(void)
{
    play_own = (struct play_own){loop_act, loop_end_all};
}
#else

static const char *loop_lacks(void)
{
    return "built without libevent (libevent-dev)";
}

GROUP(.missing = loop_lacks);
#endif
#endif
