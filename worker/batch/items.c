/* items: the one state of each item of a batch. */
#include <string.h>

#include "worker/batch/batch.h"

void items_publish(const struct batch *b, struct inflight *f, int64_t incarnation)
{
    inflight_clear(f);
    f->incarnation = incarnation;
    f->n = b->n;
    f->key_ct = b->key_ct;
    f->nonce[0] = '\0';
    f->is_claimed = false;
    memset(f->is_busy, 0, b->key_ct * sizeof f->is_busy[0]);
    memcpy(f->items, b->items, b->n * sizeof b->items[0]);
    for (size_t i = 0; i < b->n; i++)
        f->states[i] = ITEM_PULLED;
    for (size_t i = 0; i < b->key_ct; i++)
        memcpy(f->names[i], b->keys[i].name, RESOURCE_NAME);
    atomic_store_explicit(&f->is_set, true, memory_order_release);
}

void items_move(struct session *s,
                enum item_state from,
                enum key_state least,
                enum item_state to)
{
    const struct batch *b = s->batch;

    for (size_t i = 0; i < b->n; i++) {
        bool moves = s->inflight->states[i] == from;

        for (size_t r = b->first_ref[i]; moves && r < b->first_ref[i + 1]; r++)
            moves = b->keys[b->refs[r].key].state >= least;
        if (moves)
            s->inflight->states[i] = to;
    }
}

void items_want(struct session *s)
{
    struct batch *b = s->batch;

    for (size_t i = 0; i < b->key_ct; i++) {
        if (b->keys[i].state > KEY_GRANTED)
            b->keys[i].state = KEY_GRANTED;
    }
    for (size_t i = 0; i < b->n; i++) {
        if (s->inflight->states[i] != ITEM_GRANTED ||
            (s->attempt.only != 0 && b->items[i] != s->attempt.only))
            continue;
        s->inflight->states[i] = ITEM_TRIED;
        for (size_t r = b->first_ref[i]; r < b->first_ref[i + 1]; r++)
            b->keys[b->refs[r].key].state = KEY_WANTED;
    }
}

size_t items_list(const struct session *s, enum item_state state, struct job_rows *rows)
{
    const struct batch *b = s->batch;

    rows->n = 0;
    for (size_t i = 0; i < b->n; i++) {
        if (s->inflight->states[i] != state)
            continue;
        rows->items[rows->n] = b->items[i];
        rows->places[rows->n] = b->places[i];
        rows->owners[rows->n++] = b->keys[b->refs[b->first_ref[i]].key].id;
    }
    return rows->n;
}

void items_park(struct session *s, const int64_t *items, size_t n)
{
    const struct batch *b = s->batch;
    size_t next = 0;

    for (size_t i = 0; i < b->n && next < n; i++) {
        if (b->items[i] == items[next]) {
            s->inflight->states[i] = ITEM_WORKED;
            next++;
        }
    }
}
