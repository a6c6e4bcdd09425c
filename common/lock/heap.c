/* heap: locks by time, the first of them on top (a binary heap). */
#include <stdlib.h>

#include "common/lock/renew.h"

static void set(struct rlock_heap *h, size_t i, struct rlock_timed entry)
{
    h->entries[i] = entry;
    entry.l->renewal.at = i;
    entry.l->renewal.place = h->place;
}

static void sift_up(struct rlock_heap *h, size_t i, struct rlock_timed entry)
{
    while (i > 0 && entry.when_ms < h->entries[(i - 1) / 2].when_ms) {
        set(h, i, h->entries[(i - 1) / 2]);
        i = (i - 1) / 2;
    }
    set(h, i, entry);
}

static void sift_down(struct rlock_heap *h, size_t i, struct rlock_timed entry)
{
    size_t child;

    while ((child = 2 * i + 1) < h->n) {
        if (child + 1 < h->n &&
            h->entries[child + 1].when_ms < h->entries[child].when_ms)
            child++;
        if (h->entries[child].when_ms >= entry.when_ms)
            break;
        set(h, i, h->entries[child]);
        i = child;
    }
    set(h, i, entry);
}

void rlock_heap_put(struct rlock_heap *h, struct rlock *l, int64_t when_ms)
{
    sift_up(h, h->n++, (struct rlock_timed){when_ms, l});
}

struct rlock *rlock_heap_take(struct rlock_heap *h, size_t at)
{
    struct rlock *l = h->entries[at].l;
    struct rlock_timed last = h->entries[--h->n];

    l->renewal.place = RLOCK_NOWHERE;
    if (at == h->n)
        return l;
    if (at > 0 && last.when_ms < h->entries[(at - 1) / 2].when_ms)
        sift_up(h, at, last);
    else
        sift_down(h, at, last);
    return l;
}

static bool grow(struct rlock_heap *h, size_t room)
{
    void *bigger = realloc(h->entries, room * sizeof *h->entries);

    if (bigger != NULL)
        h->entries = bigger;
    return bigger != NULL;
}

bool rlock_heap_room(struct rlock_renewer *r)
{
    size_t room = r->room == 0 ? 16 : 2 * r->room;

    if (r->lock_ct < r->room)
        return true;
    if (!grow(&r->waiting, room) || !grow(&r->urgent, room))
        return false;
    r->room = room;
    return true;
}
