/* queue: who is about a batch and who waits stands in the slots; the turn is handed on
 * by the one that leaves, so that no third comes between. */
#include "worker/queue.h"

#include <assert.h>

#include "common/clock.h"
#include "worker/bell.h"

enum {
    STUCK_SHARE = 10, /* of a lease: what a turn takes at most */
    STUCK_MS = 1000
};

static struct slot *slot_of(const struct worker *w, int index)
{
    return w->slot - w->index + index;
}

/* How long anybody is waited for. */
static int64_t stuck_ms(const struct worker *w)
{
    int64_t share_ms = w->config->lease_ms / STUCK_SHARE;

    return share_ms < STUCK_MS ? share_ms : STUCK_MS;
}

/* Whether another worker is about a batch of the job, and not for too long, in any of
 * these buckets. */
static bool is_at_any(const struct worker *w, int job, uint64_t buckets)
{
    int64_t oldest_ms = clk_ms() - stuck_ms(w);

    for (int i = 0; i < w->peers; i++) {
        const struct place *p = &slot_of(w, i)->place;

        if (i != w->index && p->since_ms > oldest_ms && p->job == job &&
            (p->buckets & buckets) != 0)
            return true;
    }
    return false;
}

static bool is_taken(const struct worker *w, int job)
{
    return is_at_any(w, job, UINT64_MAX);
}

/* Who is about to leave sees that we wait, or we see that it has left. */
static void wait_for_turn(struct worker *w, int job)
{
    struct place *own = &w->slot->place;
    int64_t from_us = clk_us();

    bell_hush(w->slot);
    own->waits_us = from_us;
    if (is_taken(w, job))
        (void)bell_wait(w->slot, -1, stuck_ms(w));
    own->waits_us = 0;
    w->slot->waste.paused_us += clk_us() - from_us;
}

bool queue_enter(struct worker *w, int job, bool waits)
{
    struct place *own = &w->slot->place;

    if (own->since_ms != 0)
        return false;
    own->job = job;
    own->buckets = UINT64_MAX;
    waits = waits && is_taken(w, job);
    if (waits)
        wait_for_turn(w, job);
    if (own->since_ms == 0) /* nobody has handed it to us */
        own->since_ms = clk_ms();
    return waits;
}

static_assert(WALK_BUCKETS <= 64, "one bit each");

void queue_go_to(struct worker *w, int job, const int64_t *buckets, size_t n)
{
    struct place *own = &w->slot->place;
    uint64_t bits = 0;

    for (size_t i = 0; i < n; i++)
        bits |= UINT64_C(1) << buckets[i];
    own->job = job;
    own->buckets = bits;
    if (own->since_ms == 0)
        own->since_ms = clk_ms();
}

bool queue_is_at(const struct worker *w, int job, int64_t bucket)
{
    return is_at_any(w, job, UINT64_C(1) << bucket);
}

static struct slot *longest_waiting(const struct worker *w, int job, long long *since)
{
    struct slot *found = NULL;

    for (int i = 0; i < w->peers; i++) {
        struct slot *slot = slot_of(w, i);
        long long waits_us = slot->place.waits_us;

        if (waits_us != 0 && slot->place.job == job &&
            (found == NULL || waits_us < *since)) {
            found = slot;
            *since = waits_us;
        }
    }
    return found;
}

void queue_leave(struct worker *w)
{
    struct place *own = &w->slot->place;
    struct slot *next;
    long long since;

    own->waits_us = 0;
    if (own->since_ms == 0)
        return;
    own->since_ms = 0;
    if (is_taken(w, own->job))
        return;
    next = longest_waiting(w, own->job, &since);
    if (next == NULL ||
        !atomic_compare_exchange_strong(&next->place.waits_us, &since, 0))
        return;
    next->place.since_ms = clk_ms();
    bell_ring(next);
}
