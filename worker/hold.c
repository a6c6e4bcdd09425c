/* hold: written in an order that a death cannot spoil. */
#include "worker/hold.h"

#include <string.h>

#include "worker/batch.h"

void hold_clear(struct hold *h)
{
    atomic_store_explicit(&h->is_set, false, memory_order_relaxed);
    atomic_thread_fence(memory_order_release); /* before what is written next */
}

void hold_set(struct hold *h, int64_t incarnation, int job, const struct batch *b)
{
    hold_clear(h);
    h->job = job;
    h->incarnation = incarnation;
    h->n = b->n;
    h->key_ct = b->key_ct;
    h->nonce[0] = '\0';
    memcpy(h->items, b->items, b->n * sizeof b->items[0]);
    for (size_t i = 0; i < b->key_ct; i++) {
        h->key_ids[i] = b->keys[i].id;
        h->key_kinds[i] = (unsigned char)b->keys[i].kind;
    }
    atomic_store_explicit(&h->is_set, true, memory_order_release);
}

bool hold_is_set(const struct hold *h)
{
    bool sound = atomic_load(&h->is_set) && h->job >= 0 && h->job < JOB_TYPE_CT &&
                 h->n <= LL_KEYS_MAX && h->key_ct <= LL_KEYS_MAX &&
                 h->nonce[LL_NONCE_SIZE - 1] == '\0';

    for (size_t i = 0; sound && i < h->key_ct; i++)
        sound = h->key_kinds[i] < RESOURCE_KIND_COUNT;
    return sound;
}
