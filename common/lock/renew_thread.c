/* renew_thread: sleeps until a lock is due, renews everything that is due or soon will
 * be in one round, and tells of a loss while a piece of the lease is left. */
#include <poll.h>
#include <stdlib.h>
#include <sys/timerfd.h>
#include <time.h>
#include <unistd.h>

#include "common/lock/renew.h"

enum {
    NEVER_LEFT_MS = 1000,
    LEAST_TRY_MS = 10,
    PAUSE_LEAST_MS = 5,
    PAUSE_MOST_MS = 250
};

static int64_t least(int64_t a, int64_t b)
{
    return a < b ? a : b;
}

/* ---- times of one lock ---- */

int64_t ll_renew_interval(const struct ll_renewer *r, uint32_t lease_ms)
{
    int64_t ms = lease_ms / 3;

    if (r->interval_ms != 0) /* a failure must leave time for another try */
        ms = least(r->interval_ms, lease_ms / 2);
    return ms > 0 ? ms : 1;
}

/* From here on it counts as lost: the holder needs time to stop before the lease ends,
 * and we may be a little late. */
static int64_t give_up_ms(const struct ll_renewal *item)
{
    return item->lock->deadline_ms - least(item->lease_ms / 8, NEVER_LEFT_MS);
}

static bool is_live(const struct ll_renewal *item)
{
    return !item->ended && !item->forgotten;
}

static bool may_renew(const struct ll_renewal *item, int64_t now_ms)
{
    return now_ms < item->stop_ms &&
           (item->stall_ms == 0 || now_ms - item->lock->progress_ms < item->stall_ms);
}

/* Due, or near enough to go with those that are: so all come into step. */
static bool
is_wanted(const struct ll_renewer *r, const struct ll_renewal *item, int64_t now_ms)
{
    return is_live(item) && may_renew(item, now_ms) &&
           item->due_ms - now_ms <= ll_renew_interval(r, item->lease_ms) / 2;
}

/* The first failure may be a stale connection: again at once, then with pauses. */
static void
try_again(const struct ll_renewer *r, struct ll_renewal *item, int64_t now_ms)
{
    int64_t pause_ms = least(item->lease_ms / 20, PAUSE_MOST_MS);

    if (pause_ms < PAUSE_LEAST_MS)
        pause_ms = PAUSE_LEAST_MS;
    item->due_ms = now_ms + (r->failures <= 1 ? 0 : pause_ms);
}

/* ---- loss ---- */

/* Without the mutex: the item is pinned. */
static void tell(struct ll_renewer *r, struct ll_renewal *item, int code)
{
    uint64_t one = 1;
    ssize_t n;

    item->lock->lost = true;
    if (r->on_lost != NULL)
        r->on_lost(item->lock, code, r->arg);
    n = write(r->lost_fd, &one, sizeof one);
    (void)n; /* full only after 2^64 losses that nobody read */
}

static struct ll_renewal *find_overdue(const struct ll_renewer *r, int64_t now_ms)
{
    struct ll_renewal *item = r->first;

    while (item != NULL && (!is_live(item) || give_up_ms(item) > now_ms))
        item = item->next;
    return item;
}

static void lose(struct ll_renewer *r, struct ll_renewal *item)
{
    int code = item->code < 0 ? item->code : LL_GONE;

    item->ended = item->pinned = true;
    (void)pthread_mutex_unlock(&r->mutex);
    tell(r, item, code);
    (void)pthread_mutex_lock(&r->mutex);
    item->pinned = false;
    (void)pthread_cond_broadcast(&r->unpinned);
}

/* ---- a round ---- */

static int by_order(const void *a, const void *b)
{
    const struct ll_renewal *x = *(struct ll_renewal *const *)a;
    const struct ll_renewal *y = *(struct ll_renewal *const *)b;

    return x->order_ms < y->order_ms ? -1 : x->order_ms > y->order_ms;
}

static bool make_room(struct ll_round *round, size_t n)
{
    void *bigger;

    if (n <= round->size)
        return true;
    bigger = realloc(round->items, 2 * n * sizeof(struct ll_renewal *));
    if (bigger == NULL)
        return false;
    round->items = bigger;
    round->size = 2 * n;
    return true;
}

static bool collect(struct ll_renewer *r)
{
    struct ll_round *round = &r->round;
    int64_t now_ms = ll_now_ms();
    size_t n = 0;

    round->n = 0;
    for (const struct ll_renewal *item = r->first; item != NULL; item = item->next)
        n++;
    if (!make_room(round, n))
        return false;
    for (struct ll_renewal *item = r->first; item != NULL; item = item->next) {
        if (!is_wanted(r, item, now_ms))
            continue;
        item->pinned = true;
        item->order_ms = item->lock->deadline_ms;
        item->deadline_ms = ll_deadline(item->lease_ms);
        round->items[round->n++] = item;
    }
    if (round->n > 0)
        qsort(round->items, round->n, sizeof *round->items, by_order);
    return true;
}

/* The holder may have lengthened it further meanwhile. */
static void raise_deadline(struct ll_lock *l, int64_t deadline_ms)
{
    int64_t have = l->deadline_ms;

    while (have < deadline_ms &&
           !atomic_compare_exchange_weak(&l->deadline_ms, &have, deadline_ms))
        continue;
}

static void settle(struct ll_renewer *r, struct ll_renewal *item, int64_t started_ms)
{
    if (item->forgotten)
        return;
    if (item->code == LL_OK) {
        raise_deadline(item->lock, item->deadline_ms);
        item->due_ms = started_ms + ll_renew_interval(r, item->lease_ms);
        r->renewals++;
    } else if (item->code == LL_LOST) {
        item->ended = true;
    } else {
        try_again(r, item, ll_now_ms());
    }
}

static void conclude(struct ll_renewer *r, int64_t started_ms)
{
    struct ll_round *round = &r->round;
    bool failed = false;

    for (size_t i = 0; i < round->n; i++) {
        settle(r, round->items[i], started_ms);
        failed = failed || round->items[i]->code < 0;
    }
    r->failures = failed ? r->failures : 0;
    (void)pthread_mutex_unlock(&r->mutex);
    for (size_t i = 0; i < round->n; i++) {
        if (round->items[i]->ended)
            tell(r, round->items[i], LL_LOST);
    }
    (void)pthread_mutex_lock(&r->mutex);
    for (size_t i = 0; i < round->n; i++)
        round->items[i]->pinned = false;
    (void)pthread_cond_broadcast(&r->unpinned);
}

static void postpone(struct ll_renewer *r, int code)
{
    int64_t now_ms = ll_now_ms();

    for (struct ll_renewal *item = r->first; item != NULL; item = item->next) {
        if (!is_wanted(r, item, now_ms))
            continue;
        item->code = code;
        try_again(r, item, now_ms);
    }
}

/* Half of what the most urgent lock has left, so that one more try always fits. */
static int64_t time_for_a_try(const struct ll_renewer *r)
{
    int64_t now_ms = ll_now_ms();
    int64_t left_ms = INT64_MAX;

    for (const struct ll_renewal *item = r->first; item != NULL; item = item->next)
        left_ms = is_live(item) ? least(left_ms, give_up_ms(item) - now_ms) : left_ms;
    return left_ms / 2 > LEAST_TRY_MS ? left_ms / 2 : LEAST_TRY_MS;
}

static int64_t now_us(void)
{
    struct timespec ts;

    (void)clock_gettime(CLOCK_MONOTONIC, &ts);
    return (int64_t)ts.tv_sec * 1000000 + ts.tv_nsec / 1000;
}

static void send_round(struct ll_renewer *r, int64_t limit_ms)
{
    int64_t us = now_us();

    ll_renew_send(r, limit_ms);
    us = now_us() - us;
    r->rounds++;
    r->slowest_us = us > r->slowest_us ? us : r->slowest_us;
}

/* With the mutex, which is not held while the thread waits for the server. A release
 * waits for a renewal that is on its way, not for a connection to be made. */
static void attempt(struct ll_renewer *r)
{
    int64_t ms = time_for_a_try(r);
    int64_t now_ms;
    int code;

    r->failures++;
    (void)pthread_mutex_unlock(&r->mutex);
    r->client->connect_ms = least(ms, r->connect_ms);
    code = ll_connect(r->client);
    (void)pthread_mutex_lock(&r->mutex);
    if (code == LL_OK && !collect(r))
        code = LL_E_NOMEM;
    if (code != LL_OK) {
        postpone(r, code);
        return;
    }
    if (r->round.n == 0) /* released, or out of progress, while we connected */
        return;
    ms = time_for_a_try(r);
    ms = r->reply_ms > 0 ? least(ms, r->reply_ms) : ms;
    (void)pthread_mutex_unlock(&r->mutex);
    now_ms = ll_now_ms();
    send_round(r, now_ms + ms);
    (void)pthread_mutex_lock(&r->mutex);
    conclude(r, now_ms);
}

/* ---- the thread ---- */

/* Without progress, or at max_hold, it is looked at again but not renewed. Returns when
 * the next lock is due, or is to be given up. */
static int64_t next_event(struct ll_renewer *r, int64_t now_ms)
{
    int64_t next_ms = INT64_MAX;

    for (struct ll_renewal *item = r->first; item != NULL; item = item->next) {
        if (!is_live(item))
            continue;
        if (item->due_ms <= now_ms && !may_renew(item, now_ms))
            item->due_ms = now_ms + ll_renew_interval(r, item->lease_ms);
        next_ms = least(next_ms, least(item->due_ms, give_up_ms(item)));
    }
    return next_ms;
}

/* On the boot clock, so that a suspended machine tells of losses when it wakes up. */
static void sleep_until(struct ll_renewer *r, int64_t when_ms)
{
    struct itimerspec at = {.it_value = {0, 0}}; /* zero: no timer */
    struct pollfd fds[] = {{.fd = r->wake_fd, .events = POLLIN},
                           {.fd = r->timer_fd, .events = POLLIN}};
    uint64_t count;

    if (when_ms != INT64_MAX)
        at.it_value = (struct timespec){.tv_sec = when_ms / 1000,
                                        .tv_nsec = when_ms % 1000 * 1000000};
    (void)timerfd_settime(r->timer_fd, TFD_TIMER_ABSTIME, &at, NULL);
    r->asleep_until_ms = when_ms;
    r->at_work = false;
    (void)pthread_mutex_unlock(&r->mutex);
    (void)poll(fds, 2, -1);
    for (int i = 0; i < 2; i++) {
        ssize_t n = fds[i].revents != 0 ? read(fds[i].fd, &count, sizeof count) : 0;

        (void)n; /* only to make it unreadable again */
    }
    (void)pthread_mutex_lock(&r->mutex);
    r->at_work = true;
    r->asleep_until_ms = 0;
}

void *ll_renewer_run(void *renewer)
{
    struct ll_renewer *r = renewer;

    (void)pthread_mutex_lock(&r->mutex);
    while (!r->closing) {
        int64_t now_ms = ll_now_ms();
        struct ll_renewal *item = find_overdue(r, now_ms);
        int64_t next_ms = item == NULL ? next_event(r, now_ms) : now_ms;

        if (item != NULL)
            lose(r, item);
        else if (next_ms > now_ms)
            sleep_until(r, next_ms);
        else
            attempt(r);
    }
    (void)pthread_mutex_unlock(&r->mutex);
    return NULL;
}
