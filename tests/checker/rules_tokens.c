/* rules_tokens: no older token is written after a newer one. */
#include <inttypes.h>
#include <stdlib.h>

#include "tests/checker/rules.h"
#include "tests/checker/say.h"

/* A transaction that was about to be committed. */
struct commit {
    uint32_t xid; /* as the rows have it: its lower half */
    int64_t at_us;
};

struct commits {
    size_t n;
    struct commit *rows; /* by xid, then by time */
};

/* A row, by key and the time of its COMMIT. */
struct write {
    int64_t key, at_us, xid, fence;
};

static int by_xid(const void *left, const void *right)
{
    const struct commit *a = left, *b = right;

    if (a->xid != b->xid)
        return a->xid < b->xid ? -1 : 1;
    return a->at_us < b->at_us ? -1 : a->at_us > b->at_us;
}

static int by_time(const void *left, const void *right)
{
    const struct write *a = left, *b = right;

    if (a->key != b->key)
        return a->key < b->key ? -1 : 1;
    return a->at_us < b->at_us ? -1 : a->at_us > b->at_us;
}

static struct commits gather(const struct history *h)
{
    struct commits c = {.rows = calloc(h->n + 1, sizeof *c.rows)};

    if (c.rows == NULL)
        die("out of memory");
    for (size_t i = 0; i < h->n; i++) {
        if (h->attempts[i].commit_us != 0)
            c.rows[c.n++] =
                (struct commit){(uint32_t)h->attempts[i].xid, h->attempts[i].commit_us};
    }
    qsort(c.rows, c.n, sizeof *c.rows, by_xid);
    return c;
}

/* When COMMIT was sent; 0: nobody said that it was. A server that crashed gives the id
 * of what did not reach its disk again: the last to have it is who wrote the row. */
static int64_t time_of(const struct commits *c, int64_t xid)
{
    size_t low = 0, high = c->n;

    while (low < high) {
        size_t middle = (low + high) / 2;

        if (c->rows[middle].xid <= (uint32_t)xid)
            low = middle + 1;
        else
            high = middle;
    }
    return low > 0 && c->rows[low - 1].xid == (uint32_t)xid ? c->rows[low - 1].at_us
                                                            : 0;
}

/* A transaction has one token, and the next one a higher; but a batch with a row that
 * is set aside is worked in several, with the token of all. */
static void compare(const struct write *a,
                    const struct write *b,
                    bool may_be_equal,
                    const char *what)
{
    bool is_equal = a->fence == b->fence;
    bool is_right =
        a->xid == b->xid ? is_equal : a->fence < b->fence || (is_equal && may_be_equal);

    if (a->key == b->key && !is_right)
        broken("tokens_rise",
               "%s %" PRId64 ": token %" PRId64 " was written after %" PRId64, what,
               a->key, b->fence, a->fence);
}

static void tokens_rise(const struct table *writes,
                        const struct commits *commits,
                        bool may_be_equal,
                        const char *what)
{
    struct write *rows = calloc(writes->rows + 1, sizeof *rows);

    if (rows == NULL)
        die("out of memory");
    for (size_t i = 0; i < writes->rows; i++) {
        const int64_t *r = row_of(writes, i);

        rows[i] = (struct write){r[WRITE_KEY], time_of(commits, r[WRITE_XID]),
                                 r[WRITE_XID], r[WRITE_FENCE]};
        if (rows[i].at_us == 0)
            broken("nothing_unasked",
                   "%s %" PRId64 ": nobody has committed transaction %" PRId64, what,
                   rows[i].key, rows[i].xid);
    }
    qsort(rows, writes->rows, sizeof *rows, by_time);
    for (size_t i = 1; i < writes->rows; i++)
        compare(&rows[i - 1], &rows[i], may_be_equal, what);
    free(rows);
}

void rules_of_tokens(const struct tables *t,
                     const struct history *h,
                     const struct limits *limits)
{
    struct commits commits = gather(h);

    tokens_rise(&t->user_writes, &commits, limits->set_aside > 0, "user");
    tokens_rise(&t->sku_writes, &commits, limits->set_aside > 0, "sku");
    free(commits.rows);
}
