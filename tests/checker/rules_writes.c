/* rules_writes: what was written for each user and SKU, in the order of the COMMITs: a
 * row lock is held until then. No older token is written after a newer one, and whoever
 * was told "no" was told the truth. */
#include <stdlib.h>

#include "tests/checker/rules.h"
#include "tests/checker/say.h"

/* One write. order: 0 if it is of none; value: the token, or the change of a wallet or
 * of a SKU. */
struct write {
    int64_t key, at_us, xid, order, value;
};

struct writes {
    size_t n;
    struct write *rows; /* by key, then by time */
};

static int by_key_and_time(const void *left, const void *right)
{
    const struct write *a = left, *b = right;

    if (a->key != b->key)
        return a->key < b->key ? -1 : 1;
    if (a->at_us != b->at_us)
        return a->at_us < b->at_us ? -1 : 1;
    return a->value > b->value ? -1 : a->value < b->value;
}

/* A write that nobody tells of was there before the workers were: time 0. */
static struct writes writes_of(const struct table *t, const struct history *h)
{
    struct writes w = {t->rows, room_for(t->rows, sizeof *w.rows)};

    for (size_t i = 0; i < w.n; i++) {
        const int64_t *r = row_of(t, i);

        w.rows[i] = (struct write){r[WRITE_KEY], history_commit(h, r[WRITE_XID]),
                                   r[WRITE_XID], r[WRITE_ORDER], r[WRITE_VALUE]};
    }
    qsort(w.rows, w.n, sizeof *w.rows, by_key_and_time);
    return w;
}

static void unasked(const char *what, int64_t key, int64_t xid)
{
    broken("nothing_unasked", "%s " N ": nobody has committed transaction " N, what,
           key, xid);
}

/* A transaction has one token, and the next one a higher; but a batch with a row that
 * is set aside, or that a dead worker left, is worked in several, with the token of
 * all. */
static void tokens_rise(const struct table *t,
                        const struct history *h,
                        bool may_be_equal,
                        const char *what)
{
    struct writes w = writes_of(t, h);

    for (size_t i = 0; i < w.n; i++) {
        const struct write *b = &w.rows[i], *a = i > 0 ? b - 1 : b;
        bool is_equal = a->value == b->value;
        bool is_right = a->xid == b->xid
                            ? is_equal
                            : a->value < b->value || (is_equal && may_be_equal);

        if (b->at_us == 0)
            unasked(what, b->key, b->xid);
        if (a->key == b->key && !is_right)
            broken("tokens_rise", "%s " N ": token " N " was written after " N, what,
                   a->key, b->value, a->value);
    }
    free(w.rows);
}

void rules_of_tokens(const struct tables *t, const struct history *h, bool in_parts)
{
    tokens_rise(&t->user_writes, h, in_parts, "user");
    tokens_rise(&t->sku_writes, h, in_parts, "sku");
}

/* ---- truth: the changes are replayed ---- */

/* The amount there was for the row that a transaction refused: all that was committed
 * before, and of the transaction itself charges, and payments of older orders. */
static int64_t there_was(const struct writes *w, int64_t at_us, const int64_t *refused)
{
    size_t i = first_from(w->rows, w->n, sizeof *w->rows, refused[REFUSED_KEY]);
    int64_t sum = 0;

    for (; i < w->n && w->rows[i].key == refused[REFUSED_KEY]; i++) {
        const struct write *c = &w->rows[i];
        bool is_own = c->xid == refused[REFUSED_XID];

        if (is_own ? c->order < refused[REFUSED_ID] || c->order == 0 : c->at_us < at_us)
            sum += c->value;
    }
    return sum;
}

static void refusals_are_true(const struct table *refused,
                              const struct writes *w,
                              const struct history *h,
                              const char *rule,
                              const char *what)
{
    for (size_t i = 0; i < refused->rows; i++) {
        const int64_t *row = row_of(refused, i);
        int64_t at_us = history_commit(h, row[REFUSED_XID]);
        int64_t was = there_was(w, at_us, row);

        if (at_us == 0)
            unasked(what, row[REFUSED_ID], row[REFUSED_XID]);
        else if (was >= row[REFUSED_WANTED])
            broken(rule, "%s " N " was refused " N " of " N ", where there were " N,
                   what, row[REFUSED_ID], row[REFUSED_WANTED], row[REFUSED_KEY], was);
    }
}

/* Also in the middle, and not at the end alone. */
static void never_below_zero(const struct writes *w, const char *what)
{
    int64_t sum = 0;

    for (size_t i = 0; i < w->n; i++) {
        const struct write *c = &w->rows[i];
        bool is_last_of_xid = i + 1 == w->n || c[1].key != c->key || c[1].xid != c->xid;

        sum = (i == 0 || c[-1].key != c->key ? 0 : sum) + c->value;
        if (sum < 0 && is_last_of_xid)
            broken("never_negative", "%s " N " was " N " after transaction " N, what,
                   c->key, sum, c->xid);
    }
}

void rules_of_truth(const struct tables *t, const struct history *h)
{
    struct writes money = writes_of(&t->money, h), goods = writes_of(&t->goods, h);

    refusals_are_true(&t->declined, &money, h, "declined_truly", "subscription");
    refusals_are_true(&t->poor, &money, h, "rejected_truly", "order");
    refusals_are_true(&t->shortages, &goods, h, "rejected_truly", "order");
    never_below_zero(&money, "wallet");
    never_below_zero(&goods, "stock");
    free(money.rows);
    free(goods.rows);
}
