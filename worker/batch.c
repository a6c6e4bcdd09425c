/* batch: from pulled rows to sorted, distinct keys, and back to workable items. */
#include "worker/batch.h"

#include <stdlib.h>

#include "common/clock.h"
#include "common/lock/mutant.h"

static size_t (*const name_key[])(char buf[KEY_NAME], int64_t id) = {
#define KIND_KEY(name, claim, fence) key_##name,
    RESOURCE_KINDS(KIND_KEY)
#undef KIND_KEY
};

static int in_key_order(enum resource_kind kind,
                        int64_t id,
                        enum resource_kind kind_b,
                        int64_t id_b)
{
    if (kind != kind_b)
        return kind < kind_b ? -1 : 1;
    return id < id_b ? -1 : id > id_b;
}

static int compare_keys(const void *left, const void *right)
{
    const struct batch_key *a = left;
    const struct batch_key *b = right;

    return in_key_order(a->kind, a->id, b->kind, b->id);
}

struct batch_key *batch_find(struct batch *b, enum resource_kind kind, int64_t id)
{
    struct batch_key key = {.id = id, .kind = kind};

    return bsearch(&key, b->keys, b->key_ct, sizeof b->keys[0], compare_keys);
}

static int compare_refs(const void *left, const void *right)
{
    const struct sorted_ref *a = left;
    const struct sorted_ref *b = right;

    return in_key_order(a->kind, a->id, b->kind, b->id);
}

/* Distinct keys of the first n items, in order, and which of them each ref is; how many
 * there are, of which no more than fit are put down. */
static size_t collect_keys(struct batch *b)
{
    size_t refs = b->first_ref[b->n];
    size_t k = 0;

    for (size_t i = 0; i < refs; i++) {
        b->sorted[i] = (struct sorted_ref){
            .id = b->refs[i].id, .kind = b->refs[i].kind, .ref = (unsigned)i};
    }
    if (!MUTANT("unsorted-keys"))
        qsort(b->sorted, refs, sizeof b->sorted[0], compare_refs);
    for (size_t i = 0; i < refs; i++) {
        const struct sorted_ref *ref = &b->sorted[i];

        if (i == 0 || compare_refs(&b->sorted[i - 1], ref) != 0) {
            if (k < LL_KEYS_MAX)
                b->keys[k] = (struct batch_key){.id = ref->id, .kind = ref->kind};
            k++;
        }
        b->refs[ref->ref].key = k - 1;
    }
    return k;
}

static void name_keys(struct batch *b)
{
    for (size_t i = 0; i < b->key_ct; i++) {
        struct batch_key *key = &b->keys[i];

        b->names[i].name = key->name;
        b->names[i].len = name_key[key->kind](key->name, key->id);
    }
}

void batch_take_keys(struct batch *b,
                     const int64_t *ids,
                     const unsigned char *kinds,
                     size_t n)
{
    b->n = 0;
    b->key_ct = n;
    for (size_t i = 0; i < n; i++)
        b->keys[i] =
            (struct batch_key){.id = ids[i], .kind = (enum resource_kind)kinds[i]};
    name_keys(b);
}

/* Groups what was pulled by item; stops where the refs are full. The first item when
 * even that one does not fit, else 0. */
static int64_t take_rows(struct batch *b, const struct pg_result *res)
{
    const struct pg_array items = pg_get_int8s(res, 0, 0);
    const struct pg_array kinds = pg_get_int8s(res, 0, 1);
    const struct pg_array ids = pg_get_int8s(res, 0, 2);
    const struct pg_array crashes = pg_get_int8s(res, 0, 3);
    const struct pg_array places =
        pg_columns(res) > 4 ? pg_get_tids(res, 0, 4) : (struct pg_array){0};

    b->n = 0;
    for (size_t i = 0; i < items.n; i++) {
        int64_t item = pg_int8_at(&items, i);

        if (b->n == 0 || b->items[b->n - 1] != item) {
            if (b->n == BATCH_MAX)
                break;
            b->first_ref[b->n] = i;
            b->crashes[b->n] = crashes.n == 0 ? -1 : pg_int8_at(&crashes, i);
            b->places[b->n] = pg_tid_at(&places, i);
            b->items[b->n++] = item;
        }
        if (i == BATCH_REFS) {
            b->n--; /* this item is incomplete: next time */
            break;
        }
        b->refs[i].kind = (enum resource_kind)pg_int8_at(&kinds, i);
        b->refs[i].id = pg_int8_at(&ids, i);
        b->first_ref[b->n] = i + 1;
    }
    return b->n == 0 ? pg_int8_at(&items, 0) : 0;
}

static size_t count_suspects(const struct batch *b)
{
    size_t n = 0;

    for (size_t i = 0; i < b->n; i++)
        n += b->crashes[i] >= 0 ? 1 : 0;
    return n;
}

/* Any of those with the fewest deaths, each as likely; b->n if there is none. */
static size_t pick_suspect(const struct batch *b)
{
    size_t pick = b->n;
    int64_t ties = 0;

    for (size_t i = 0; i < b->n; i++) {
        if (b->crashes[i] < 0)
            continue;
        if (pick == b->n || b->crashes[i] < b->crashes[pick]) {
            pick = i;
            ties = 1;
        } else if (b->crashes[i] == b->crashes[pick] && clk_jitter_ms(ties++) == 0) {
            pick = i;
        }
    }
    return pick;
}

/* Leaves only the items that are to be worked now, with their refs. */
static void choose(struct batch *b, bool suspect)
{
    size_t one = pick_suspect(b);
    size_t n = 0, refs = 0;

    for (size_t i = 0; i < b->n; i++) {
        size_t from = b->first_ref[i], to = b->first_ref[i + 1];

        if (suspect ? i != one : b->crashes[i] >= 0)
            continue;
        b->items[n] = b->items[i];
        b->places[n] = b->places[i];
        b->first_ref[n++] = refs;
        while (from < to)
            b->refs[refs++] = b->refs[from++];
        b->first_ref[n] = refs;
    }
    b->n = n;
}

/* As long as some are late, only those. */
static void leave_younger(struct batch *b, int64_t late)
{
    size_t n = 0;

    while (n < b->n && b->items[n] < late)
        n++;
    if (n > 0)
        b->n = n;
}

int batch_pull(struct worker *w,
               const struct job_type *job,
               const struct turn_order *order,
               int64_t *too_large,
               struct err *e)
{
    struct batch *b = w->batch;
    const struct pg_param params[] = {
        job->in_order ? pg_int8(order->buckets[0])
                      : pg_int8_array(order->buckets, order->bucket_ct),
        pg_text(w->now), pg_int8((int64_t)order->limit)};
    struct pg_result *res;

    b->n = b->key_ct = b->worked = 0;
    b->first_worked = false;
    b->served = 0;
    b->is_full = false;
    if (pg_exec(w->pg, job->pull, params, 3, &res, e) != 0)
        return (int)e->code;
    *too_large = take_rows(b, res);
    if (!job->in_order)
        b->served = (size_t)pg_get_int8(res, 0, 5);
    pg_result_free(res);
    b->is_full = b->n >= order->limit || *too_large != 0;
    b->suspect_ct = count_suspects(b);
    b->is_suspect = order->suspect;
    if (b->suspect_ct > 0 || order->suspect)
        choose(b, order->suspect);
    b->overdue = walk_overtaken(order->line, WALK_OVERDUE);
    leave_younger(b, walk_overtaken(order->line, WALK_LATE));
    while (b->n > 0) {
        size_t keys = collect_keys(b);

        if (keys <= LL_KEYS_MAX) {
            b->key_ct = keys;
            name_keys(b);
            break;
        }
        if (b->n == 1)
            *too_large = b->items[0];
        b->n = b->n == 1 ? 0 : b->n * LL_KEYS_MAX / (keys + LL_KEYS_MAX / 10);
        b->n = b->n == 0 && *too_large == 0 ? 1 : b->n;
    }
    return 0;
}

static bool is_workable(const struct batch *b, size_t item, bool claimed)
{
    for (size_t r = b->first_ref[item]; r < b->first_ref[item + 1]; r++) {
        const struct batch_key *key = &b->keys[b->refs[r].key];

        if (!key->granted || (claimed && !key->claimed))
            return false;
    }
    return true;
}

static void add_work(struct batch *b, size_t item)
{
    const struct batch_key *payer = &b->keys[b->refs[b->first_ref[item]].key];
    struct job_rows *work = &b->work;
    size_t n = work->n++;

    work->items[n] = b->items[item];
    work->places[n] = b->places[item];
    work->users[n] = payer->id;
    work->wallets[n] = payer->place;
    work->balances[n] = payer->balance_minor;
}

size_t batch_workable(struct batch *b, bool claimed, int64_t only)
{
    b->work.n = 0;
    for (size_t i = 0; i < b->n; i++) {
        bool workable = is_workable(b, i, claimed);

        if (!workable && b->items[i] < b->overdue)
            break;
        if (workable && (only == 0 || b->items[i] == only))
            add_work(b, i);
    }
    return b->work.n;
}

static void mark_wanted(struct batch *b)
{
    for (size_t i = 0; i < b->n; i++) {
        if (!is_workable(b, i, false) && b->items[i] < b->overdue)
            break;
        if (!is_workable(b, i, false))
            continue;
        for (size_t r = b->first_ref[i]; r < b->first_ref[i + 1]; r++)
            b->keys[b->refs[r].key].wanted = true;
    }
}

void batch_mark_granted(struct batch *b, const struct ll_lock *lock)
{
    for (size_t i = 0; i < b->key_ct; i++)
        b->keys[i].granted =
            ll_key_code(lock, i) == LL_OK || MUTANT("busy-taken-for-granted");
    mark_wanted(b);
}

void batch_mark_all(struct batch *b)
{
    for (size_t i = 0; i < b->key_ct; i++)
        b->keys[i].granted = true;
    mark_wanted(b);
}

size_t batch_wanted(struct batch *b, enum resource_kind kind)
{
    size_t n = 0;

    for (size_t i = 0; i < b->key_ct; i++) {
        if (b->keys[i].wanted && b->keys[i].kind == kind)
            b->ids[n++] = b->keys[i].id;
    }
    return n;
}
