/* pull: from pulled rows to sorted, distinct keys. */
#include <stdlib.h>

#include "common/base/clock.h"
#include "worker/batch/batch.h"

static int compare_refs(const void *left, const void *right)
{
    const struct batch_ref *a = left;
    const struct batch_ref *b = right;

    if (a->kind != b->kind)
        return a->kind < b->kind ? -1 : 1;
    return a->id < b->id ? -1 : a->id > b->id;
}

static int compare_with_key(const void *ref, const void *element)
{
    const struct batch_key *key = element;
    const struct batch_ref of_key = {.id = key->id, .kind = key->kind};

    return compare_refs(ref, &of_key);
}

struct batch_key *batch_find(struct batch *b, int kind, int64_t id)
{
    const struct batch_ref ref = {.id = id, .kind = (enum resource_kind)kind};

    return bsearch(&ref, b->keys, b->key_ct, sizeof b->keys[0], compare_with_key);
}

/* Distinct keys of the first n items, in order, and which of them each ref is; how many
 * there are, of which no more than fit are put down. */
static size_t collect_keys(struct batch *b)
{
    size_t refs = b->first_ref[b->n];
    size_t k = 0;

    for (size_t i = 0; i < refs; i++) {
        b->sorted[i] = b->refs[i];
        b->sorted[i].key = i;
    }
    qsort(b->sorted, refs, sizeof b->sorted[0], compare_refs);
    for (size_t i = 0; i < refs; i++) {
        const struct batch_ref *ref = &b->sorted[i];

        if (i == 0 || compare_refs(&b->sorted[i - 1], ref) != 0) {
            if (k < RLOCK_KEYS_MAX)
                b->keys[k] = (struct batch_key){.id = ref->id, .kind = ref->kind};
            k++;
        }
        b->refs[ref->key].key = k - 1;
    }
    return k;
}

/* Items and refs from the one row of arrays, but those that need a key that was met
 * busy (NULL: none is left). An item that is cut by the room there is, is left for the
 * next pull. False: not even one has room. */
static bool take_rows(struct batch *b,
                      const struct pg_result *res,
                      size_t limit,
                      const struct busy *busy)
{
    const struct pg_array items = pg_get_int8s(res, 0, 0);
    const struct pg_array kinds = pg_get_int8s(res, 0, 1);
    const struct pg_array ids = pg_get_int8s(res, 0, 2);
    const struct pg_array places = pg_get_tids(res, 0, 3);
    const struct pg_array times = pg_get_times(res, 0, 4);
    int64_t now_ms = clk_ms();
    size_t i = 0;

    b->first_ref[0] = 0;
    while (i < items.n && b->out.pulled < BATCH_MAX) {
        size_t at = b->first_ref[b->n];
        bool is_left = false;

        b->items[b->n] = pg_int8_at(&items, i);
        b->places[b->n] = pg_tid_at(&places, i);
        b->times[b->n] = pg_int8_at(&times, i);
        for (; i < items.n && i < BATCH_REFS && pg_int8_at(&items, i) == b->items[b->n];
             i++, at++) {
            b->refs[at].kind = (enum resource_kind)pg_int8_at(&kinds, i);
            b->refs[at].id = pg_int8_at(&ids, i);
            is_left =
                is_left || (busy != NULL && busy_is_met(busy, (int)b->refs[at].kind,
                                                        b->refs[at].id, now_ms));
        }
        if (i == BATCH_REFS && i < items.n)
            break;
        b->out.pulled++;
        b->out.last.at = b->times[b->n];
        b->out.last.id = b->items[b->n];
        if (!is_left)
            b->first_ref[++b->n] = at;
    }
    b->out.is_full = b->out.pulled >= limit || i < items.n;
    return items.n == 0 || b->out.pulled > 0;
}

/* As many of the items as have keys for one lock call. False: not even one has. */
static bool fit_keys(struct batch *b)
{
    size_t keys;

    while ((keys = collect_keys(b)) > RLOCK_KEYS_MAX) {
        if (b->n == 1)
            return false;
        b->n = b->n * RLOCK_KEYS_MAX / keys > 0 ? b->n * RLOCK_KEYS_MAX / keys : 1;
        b->out.is_full = true;
        b->out.last.at = b->times[b->n - 1];
        b->out.last.id = b->items[b->n - 1];
    }
    b->key_ct = keys;
    for (size_t i = 0; i < keys; i++) {
        struct batch_key *key = &b->keys[i];

        b->names[i].name = key->name;
        b->names[i].len = resource_key(key->name, key->kind, key->id);
    }
    return true;
}

/* The rows that are due, or those of a list that still are. */
static int ask_for_rows(struct session *s,
                        const struct batch_order *order,
                        struct pg_result **res,
                        struct err *e)
{
    struct batch_outcome *out = &s->batch->out;
    const struct pg_param of_list[] = {pg_int8_array(order->items, order->item_ct),
                                       pg_text(s->now)};
    const struct pg_param params[] = {
        s->job->shards > 0 ? pg_int8(order->from.shard) : pg_int8(order->skip),
        pg_text(s->now),
        pg_int8((int64_t)order->limit),
        pg_int8(order->from.at),
        pg_int8(order->from.id),
    };
    int64_t begun_ms = clk_ms();

    if (order->items != NULL)
        return pg_exec(s->pg, s->job->pull_items, of_list, 2, res, e);
    if (order->begins)
        busy_begin(&s->busy);
    if (pg_exec(s->pg, s->job->pull, params, 5, res, e) != 0)
        return (int)e->code;
    out->is_behind = order->skip > 0 || order->from.at != BATCH_HEAD;
    out->pull_ms = clk_ms() - begun_ms;
    if (!pg_is_null(*res, 0, 5))
        out->last.shard = pg_get_int8(*res, 0, 5);
    out->is_paused = pg_get_int8(*res, 0, 6) != 0;
    return 0;
}

/* An idle worker asks this before a pull: if a row may be due. */
static int ask_probe(struct session *s, bool *is_due, struct err *e)
{
    const struct pg_param now = pg_text(s->now);
    struct pg_result *res;

    if (s->job->probe == NULL)
        return 0;
    if (pg_exec(s->pg, s->job->probe, &now, 1, &res, e) != 0)
        return (int)e->code;
    *is_due = pg_get_int8(res, 0, 0) != 0;
    s->batch->out.is_paused = pg_get_int8(res, 0, 1) != 0;
    pg_result_free(res);
    return 0;
}

int64_t batch_due(struct session *s)
{
    const struct pg_param now = pg_text(s->now);
    struct err e = {0};
    int64_t due;

    return pg_ask(s->pg, s->job->backlog, &now, 1, &due, &e) == 0 ? due : -1;
}

int batch_pull(struct session *s, const struct batch_order *order, struct err *e)
{
    struct batch *b = s->batch;
    struct pg_result *res;
    bool is_due = true, has_room;

    b->n = 0;
    b->out = (struct batch_outcome){.last = order->from};
    if ((order->is_idle && ask_probe(s, &is_due, e) != 0) || !is_due ||
        ask_for_rows(s, order, &res, e) != 0)
        return (int)e->code;
    has_room = take_rows(b, res, order->limit, order->items == NULL ? &s->busy : NULL);
    pg_result_free(res);
    has_room = has_room && (b->n == 0 || fit_keys(b));
    if (has_room)
        return 0;
    b->n = 0;
    b->out.pulled = 1;
    b->out.is_full = true;
    return park_items(s, b->items, 1, "it needs more keys than one lock call takes", e);
}
