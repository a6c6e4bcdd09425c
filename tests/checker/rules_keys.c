/* rules_keys: no two workers held one key at once. */
#include <stdlib.h>
#include <string.h>

#include "tests/checker/rules.h"
#include "tests/checker/say.h"

/* A key, from BEGIN until COMMIT was about to be sent: just before that the worker has
 * seen that its lease lasts. An attempt that did not get so far may have lost its
 * lease. */
struct hold {
    const char *key;
    const struct attempt *by;
};

static int by_key_and_time(const void *left, const void *right)
{
    const struct hold *a = left, *b = right;
    int order = strcmp(a->key, b->key);

    if (order != 0)
        return order;
    return a->by->begun_us < b->by->begun_us ? -1 : a->by->begun_us > b->by->begun_us;
}

/* Redis has lost the keys of `a` by the time that `b` had them. `a` took its keys
 * before it began, and at most a lease before. */
static bool is_forgotten(const struct history *h,
                         const struct attempt *a,
                         const struct attempt *b,
                         int64_t lease_us)
{
    return history_mark(h, MARK_FORGOT, 0, a->begun_us - lease_us) <= b->begun_us;
}

static size_t gather(const struct history *h, struct hold **holds)
{
    size_t n = 0, room = 0;

    for (size_t i = 0; i < h->n; i++)
        room += h->attempts[i].n_keys;
    *holds = room_for(room, sizeof **holds);
    for (size_t i = 0; i < h->n; i++) {
        for (size_t k = 0; h->attempts[i].commit_us != 0 && k < h->attempts[i].n_keys;
             k++)
            (*holds)[n++] = (struct hold){h->attempts[i].keys[k], &h->attempts[i]};
    }
    qsort(*holds, n, sizeof **holds, by_key_and_time);
    return n;
}

void rules_of_keys(const struct history *h, const struct limits *limits)
{
    struct hold *holds;
    size_t n = gather(h, &holds), longest = 0; /* the hold that ends last so far */

    for (size_t i = 1; i < n; i++) {
        const struct attempt *a = holds[longest].by, *b = holds[i].by;
        bool is_same = strcmp(holds[longest].key, holds[i].key) == 0;

        if (is_same && a->commit_us > b->begun_us &&
            strcmp(a->worker, b->worker) != 0 &&
            !is_forgotten(h, a, b, limits->lease_us))
            broken("one_holder", "%s was held by %s until " N " and by %s from " N,
                   holds[i].key, a->worker, a->commit_us, b->worker, b->begun_us);
        if (!is_same || b->commit_us > a->commit_us)
            longest = i;
    }
    free(holds);
}
