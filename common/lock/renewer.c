/* renewer: opening and closing a renewer; its threads, of which the first renews and
 * the other calls on_lost, which may take its time; the calls of a holder. */
#include <signal.h>
#include <stdlib.h>
#include <unistd.h>

#include "common/lock/operation.h"
#include "common/lock/renew.h"

/* False in a child of fork: the thread does not exist there, and nobody could unlock
 * the mutex. */
static bool is_ours(const struct rlock_renewer *r)
{
    return rlock_is_owner(r->client);
}

/* ---- the calls of a holder ---- */

static int refusal(const struct rlock_renewer *r, struct rlock *l)
{
    int code = rlock_check_owner(l->client);

    if (code != RLOCK_OK)
        return code;
    if (!rlock_is_owner(r->client))
        return rlock_fail_as(l->client, RLOCK_E_FORKED);
    if (l->granted == 0 || l->released || l->releasing)
        return rlock_fail(l->client, RLOCK_E_INVAL, "the lock is not held");
    if (!rlock_valid(l, 0))
        return rlock_fail_as(l->client, RLOCK_LOST);
    if (l->renewal.renewer != NULL)
        return rlock_fail(l->client, RLOCK_E_INVAL, "the lock is renewed already");
    if (!rlock_is_alike(l->client, r->client))
        return rlock_fail(l->client, RLOCK_E_INVAL,
                          "the renewer is of another url or prefix");
    return RLOCK_OK;
}

int rlock_renew(struct rlock_renewer *r,
                struct rlock *l,
                uint32_t stall_ms,
                uint32_t max_hold_ms)
{
    int code = refusal(r, l);
    int64_t next_ms;
    bool has_room;

    if (code != RLOCK_OK)
        return code;
    rlock_progress(l);
    l->renewal.stall_ms = stall_ms;
    l->renewal.stop_ms = max_hold_ms != 0 ? l->progress_ms + max_hold_ms : INT64_MAX;
    l->renewal.code = RLOCK_OK;
    /* counted from the acquire, not from now */
    l->renewal.due_ms = l->deadline_ms - l->lease_ms + rlock_renew_interval(r, l);
    (void)pthread_mutex_lock(&r->mutex);
    has_room = rlock_heap_room(r);
    if (has_room) {
        l->renewal.renewer = r;
        r->lock_ct++;
        rlock_renew_put(r, l);
        next_ms = r->waiting.entries[0].when_ms;
        if (next_ms < r->asleep_until_ms) {
            r->asleep_until_ms = next_ms;
            rlock_timer_set(r->timer_fd, next_ms);
        }
    }
    (void)pthread_mutex_unlock(&r->mutex);
    if (r->o.no_thread)
        rlock_ring(r->client); /* its step finds the time */
    return has_room ? RLOCK_OK : rlock_fail_as(l->client, RLOCK_E_NOMEM);
}

void rlock_renew_stop(struct rlock_renewer *r, struct rlock *l)
{
    if (l->renewal.renewer == r)
        rlock_renew_forget(l);
}

void rlock_progress(struct rlock *l)
{
    l->progress_ms = rlock_now_ms();
}

/* ---- the threads ---- */

/* Sleeps until that time, or I/O of a try under way; the timer may be set anew. */
static void sleep_until(struct rlock_renewer *r, int64_t when_ms)
{
    bool is_resting = r->stage == RLOCK_RESTING;
    struct pollfd timer = {.fd = r->timer_fd, .events = POLLIN};

    rlock_timer_set(r->timer_fd, when_ms);
    r->asleep_until_ms = when_ms;
    (void)pthread_mutex_unlock(&r->mutex);
    if (is_resting)
        (void)poll(&timer, 1, -1);
    else
        rlock_await(r->client);
    rlock_timer_drain(r->timer_fd);
    (void)pthread_mutex_lock(&r->mutex);
    r->asleep_until_ms = 0;
}

static void *run(void *renewer)
{
    struct rlock_renewer *r = renewer;
    struct rlock_client *c = r->client;

    c->cancel_fd = r->timer_fd;
    (void)pthread_mutex_lock(&r->mutex);
    while (!r->closing) {
        c->want_ms = INT64_MAX;
        if (rlock_renew_step(r) == RLOCK_UNDER_WAY) {
            sleep_until(r, rlock_least(c->want_ms, rlock_renew_next(r)));
        } else if (r->urgent.n == 0) {
            sleep_until(r,
                        r->waiting.n > 0 ? r->waiting.entries[0].when_ms : INT64_MAX);
        }
    }
    (void)pthread_mutex_unlock(&r->mutex);
    return NULL;
}

static void *tell(void *renewer)
{
    struct rlock_renewer *r = renewer;

    (void)pthread_mutex_lock(&r->mutex);
    while (!r->closing) {
        if (!rlock_renew_tell(r))
            (void)pthread_cond_wait(&r->news, &r->mutex);
    }
    (void)pthread_mutex_unlock(&r->mutex);
    return NULL;
}

static void end_threads(struct rlock_renewer *r)
{
    (void)pthread_mutex_lock(&r->mutex);
    r->closing = true;
    rlock_timer_set(r->timer_fd, 1); /* at once */
    (void)pthread_cond_broadcast(&r->news);
    (void)pthread_mutex_unlock(&r->mutex);
    (void)pthread_join(r->thread, NULL);
    if (r->has_teller)
        (void)pthread_join(r->teller, NULL);
}

/* Blocks all signals: they are for the threads of the program. */
static bool start_threads(struct rlock_renewer *r)
{
    sigset_t all, before;

    r->timer_fd = rlock_timer_open();
    if (r->timer_fd < 0)
        return false;
    (void)sigfillset(&all);
    (void)pthread_sigmask(SIG_SETMASK, &all, &before);
    r->has_thread = pthread_create(&r->thread, NULL, run, r) == 0;
    r->has_teller = r->has_thread && pthread_create(&r->teller, NULL, tell, r) == 0;
    (void)pthread_sigmask(SIG_SETMASK, &before, NULL);
    return r->has_teller;
}

/* ---- open and close ---- */

static struct rlock_renewer *new_renewer(const struct rlock_renew_options *o)
{
    struct rlock_renewer *r = calloc(1, sizeof *r);

    if (r == NULL)
        return NULL;
    r->o = *o;
    (void)pthread_mutex_init(&r->mutex, NULL);
    (void)pthread_cond_init(&r->idle, NULL);
    (void)pthread_cond_init(&r->news, NULL);
    r->waiting.place = RLOCK_WAITING;
    r->urgent.place = RLOCK_URGENT;
    r->last_untold = &r->untold;
    r->timer_fd = -1;
    return r;
}

int rlock_renewer_open(struct rlock_renewer **out,
                       struct rlock_client *c,
                       const struct rlock_renew_options *options)
{
    struct rlock_renew_options o = {0};
    struct rlock_renewer *r;
    int code = rlock_check_owner(c);

    *out = NULL;
    if (code != RLOCK_OK)
        return code;
    if (options != NULL && !rlock_read_options(&o, sizeof o, options, options->size))
        return rlock_fail(c, RLOCK_E_INVAL,
                          "options.size is not sizeof(struct rlock_renew_options)");
    r = new_renewer(&o);
    if (r == NULL)
        return rlock_fail_as(c, RLOCK_E_NOMEM);
    code = r->o.no_thread ? rlock_loop_open(c) : rlock_copy(&r->client, c);
    if (code == RLOCK_OK && r->o.no_thread) {
        r->client = c;
        rlock_loop_join(c, r);
    } else if (code == RLOCK_OK && !start_threads(r)) {
        code = RLOCK_E_NOMEM;
    }
    if (code != RLOCK_OK) {
        rlock_renewer_close(r);
        return rlock_fail(c, code, "no memory, descriptor or thread for the renewer");
    }
    *out = r;
    return RLOCK_OK;
}

/* Of a renewer that could not be opened there may be no client. */
void rlock_renewer_close(struct rlock_renewer *r)
{
    bool is_owner = r != NULL && (r->client == NULL || is_ours(r));

    if (r == NULL)
        return;
    rlock_loop_leave(r);
    if (r->o.no_thread && r->stage == RLOCK_CALLING) /* also in a child: no I/O */
        rlock_round_clear(&r->round);
    if (is_owner) {
        if (r->has_thread)
            end_threads(r);
        rlock_renew_end(r);
        (void)pthread_mutex_destroy(&r->mutex);
        (void)pthread_cond_destroy(&r->idle);
        (void)pthread_cond_destroy(&r->news);
    }
    if (r->timer_fd >= 0)
        (void)close(r->timer_fd);
    /* a fork while the thread was awake has copied a client in use */
    if (!r->o.no_thread &&
        (is_owner || (r->asleep_until_ms != 0 && r->stage == RLOCK_RESTING)))
        rlock_close(r->client);
    free(r->waiting.entries);
    free(r->urgent.entries);
    free(r);
}
