/* renew: life of a renewer, and which locks it cares for. */
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/eventfd.h>
#include <sys/timerfd.h>
#include <unistd.h>

#include "common/lock/renew.h"

/* Not in a child of fork: there the thread does not exist and the mutex may be held by
 * nobody. */
static bool is_ours(const struct ll_renewer *r)
{
    return r->client->owner == getpid();
}

static void wake(struct ll_renewer *r)
{
    uint64_t one = 1;
    ssize_t n = write(r->wake_fd, &one, sizeof one);

    (void)n; /* full: it is awake enough */
}

/* ---- open and close ---- */

static int open_fds(struct ll_renewer *r)
{
    r->wake_fd = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
    r->lost_fd = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
    r->timer_fd = timerfd_create(CLOCK_BOOTTIME, TFD_CLOEXEC | TFD_NONBLOCK);
    return r->wake_fd >= 0 && r->lost_fd >= 0 && r->timer_fd >= 0 ? LL_OK : LL_E_NOMEM;
}

/* The program's signals are for the program's threads. */
static int start_thread(struct ll_renewer *r)
{
    sigset_t all, before;

    (void)sigfillset(&all);
    (void)pthread_sigmask(SIG_SETMASK, &all, &before);
    r->at_work = true;
    r->started = pthread_create(&r->thread, NULL, ll_renewer_run, r) == 0;
    (void)pthread_sigmask(SIG_SETMASK, &before, NULL);
    return r->started ? LL_OK : LL_E_NOMEM;
}

static struct ll_renewer *make(const struct ll_client *c,
                               const struct ll_renew_options *o)
{
    struct ll_renewer *r = calloc(1, sizeof *r);

    if (r == NULL || ll_copy(&r->client, c) != LL_OK) {
        free(r);
        return NULL;
    }
    r->connect_ms = r->client->connect_ms;
    r->reply_ms = r->client->reply_ms;
    r->interval_ms = o->interval_ms;
    r->on_lost = o->on_lost;
    r->arg = o->arg;
    r->wake_fd = r->lost_fd = r->timer_fd = -1;
    (void)pthread_mutex_init(&r->mutex, NULL);
    (void)pthread_cond_init(&r->unpinned, NULL);
    return r;
}

int ll_renewer_open(struct ll_renewer **out,
                    struct ll_client *c,
                    const struct ll_renew_options *options)
{
    struct ll_renew_options o = {0};
    struct ll_renewer *r;
    int code = ll_check_owner(c);

    *out = NULL;
    if (code != LL_OK)
        return code;
    if (options != NULL && (options->size == 0 || options->size > sizeof o))
        return ll_fail(c, LL_E_INVAL,
                       "options.size is not sizeof(struct ll_renew_options)");
    if (options != NULL) /* an older caller: what it does not know is default */
        memcpy(&o, options, options->size);
    r = make(c, &o);
    if (r == NULL)
        return ll_fail(c, LL_E_NOMEM, "out of memory");
    if (open_fds(r) != LL_OK || start_thread(r) != LL_OK) {
        ll_renewer_close(r);
        return ll_fail(c, LL_E_NOMEM, "no descriptor or no thread for the renewer");
    }
    *out = r;
    return LL_OK;
}

static void stop_thread(struct ll_renewer *r)
{
    (void)pthread_mutex_lock(&r->mutex);
    r->closing = true;
    wake(r);
    (void)pthread_mutex_unlock(&r->mutex);
    (void)pthread_join(r->thread, NULL);
}

static void close_fd(int fd)
{
    if (fd >= 0)
        (void)close(fd);
}

static void free_items(struct ll_renewer *r)
{
    while (r->first != NULL) {
        struct ll_renewal *item = r->first;

        if (item->lock != NULL) {
            item->lock->renewer = NULL;
            item->lock->renewal = NULL;
        }
        r->first = item->next;
        free(item);
    }
}

void ll_renewer_close(struct ll_renewer *r)
{
    bool ours = r != NULL && is_ours(r);

    if (r == NULL)
        return;
    if (ours && r->started)
        stop_thread(r);
    free_items(r);
    close_fd(r->wake_fd);
    close_fd(r->lost_fd);
    close_fd(r->timer_fd);
    if (ours) {
        (void)pthread_mutex_destroy(&r->mutex);
        (void)pthread_cond_destroy(&r->unpinned);
    }
    if (ours || !r->at_work) { /* else the fork copied them while they were changed */
        ll_close(r->client);
        ll_pipe_free(&r->round.pipe);
        free(r->round.items);
        free(r->round.parts);
    }
    free(r);
}

/* ---- locks ---- */

static int refusal(const struct ll_renewer *r, struct ll_lock *l)
{
    int code = ll_check_owner(l->client);

    if (code != LL_OK)
        return code;
    if (!is_ours(r))
        return ll_fail(l->client, LL_E_FORKED, "%s", ll_strerror(LL_E_FORKED));
    if (l->granted == 0 || l->released)
        return ll_fail(l->client, LL_E_INVAL, "the lock is not held");
    if (!ll_valid(l, 0))
        return ll_fail(l->client, LL_LOST, "%s", ll_strerror(LL_LOST));
    if (l->renewer != NULL)
        return ll_fail(l->client, LL_E_INVAL, "the lock is renewed already");
    return LL_OK;
}

static void put(struct ll_renewer *r, struct ll_renewal *item)
{
    (void)pthread_mutex_lock(&r->mutex);
    item->next = r->first;
    if (r->first != NULL)
        r->first->prev = item;
    r->first = item;
    if (item->due_ms < r->asleep_until_ms)
        wake(r);
    (void)pthread_mutex_unlock(&r->mutex);
}

int ll_renew(struct ll_renewer *r,
             struct ll_lock *l,
             uint32_t stall_ms,
             uint32_t max_hold_ms)
{
    int64_t now_ms = ll_now_ms();
    struct ll_renewal *item;
    int code = refusal(r, l);

    if (code != LL_OK)
        return code;
    item = calloc(1, sizeof *item);
    if (item == NULL)
        return ll_fail(l->client, LL_E_NOMEM, "out of memory");
    item->lock = l;
    item->lease_ms = l->lease_ms;
    item->stall_ms = stall_ms;
    item->stop_ms =
        now_ms + (max_hold_ms != 0 ? max_hold_ms : 10 * (int64_t)l->lease_ms);
    /* counted from its acquire, not from now */
    item->due_ms = l->deadline_ms - l->lease_ms + ll_renew_interval(r, l->lease_ms);
    l->progress_ms = now_ms;
    l->renewer = r;
    l->renewal = item;
    put(r, item);
    return LL_OK;
}

static void take_out(struct ll_renewer *r, struct ll_renewal *item)
{
    (void)pthread_mutex_lock(&r->mutex);
    item->forgotten = true;
    while (item->pinned)
        (void)pthread_cond_wait(&r->unpinned, &r->mutex);
    if (item->prev != NULL)
        item->prev->next = item->next;
    else
        r->first = item->next;
    if (item->next != NULL)
        item->next->prev = item->prev;
    (void)pthread_mutex_unlock(&r->mutex);
    free(item);
}

void ll_renew_forget(struct ll_lock *l)
{
    struct ll_renewer *r = l->renewer;
    struct ll_renewal *item = l->renewal;

    if (r == NULL)
        return;
    l->renewer = NULL;
    l->renewal = NULL;
    if (is_ours(r))
        take_out(r, item);
    else
        item->lock = NULL; /* the list stays as the fork found it */
}

void ll_renew_stop(struct ll_renewer *r, struct ll_lock *l)
{
    if (l->renewer == r)
        ll_renew_forget(l);
}

void ll_progress(struct ll_lock *l)
{
    l->progress_ms = ll_now_ms();
}

int ll_renewer_fd(const struct ll_renewer *r)
{
    return r->lost_fd;
}

void ll_renewer_figures(const struct ll_renewer *r, struct ll_renew_figures *f)
{
    f->rounds = r->rounds;
    f->round_trips = r->round_trips;
    f->renewals = r->renewals;
    f->slowest_us = r->slowest_us;
}
