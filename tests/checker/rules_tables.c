/* rules_tables: exactly once in both directions, pairs, sums. */
#include <stdbool.h>
#include <string.h>

#include "tests/checker/rules.h"
#include "tests/checker/say.h"
#include "tests/lib/calendar.h"

/* First row whose column 0, and column 1 if there is a `b`, are these; NULL: none. */
static const int64_t *find(const struct table *t, int64_t a, const int64_t *b)
{
    size_t i = first_from(t->values, t->rows, t->columns * sizeof *t->values, a);

    while (b != NULL && i < t->rows && row_of(t, i)[0] == a && row_of(t, i)[1] < *b)
        i++;
    if (i == t->rows || row_of(t, i)[0] != a || (b != NULL && row_of(t, i)[1] != *b))
        return NULL;
    return row_of(t, i);
}

static void none_twice(const struct table *t, int keys, const char *what)
{
    for (size_t i = 1; i < t->rows; i++) {
        const int64_t *a = row_of(t, i - 1), *b = row_of(t, i);

        if (a[0] == b[0] && (keys == 1 || a[1] == b[1]))
            broken("charged_once", "%s " N "/" N " is there twice", what, a[0],
                   keys == 2 ? a[1] : 0);
    }
}

/* ---- charges ---- */

/* Start of period k, in microseconds. */
static int64_t start_of(const int64_t *sub, int64_t k)
{
    int64_t us = sub[SUB_ANCHOR] % 1000000;
    struct calendar c =
        calendar_from(sub[SUB_ANCHOR] / 1000000, (char)sub[SUB_UNIT], sub[SUB_EVERY]);

    return calendar_start(&c, k) * 1000000 + us;
}

/* The oldest period that has begun and is not captured, or -1. A declined one is
 * answered: it waits for money. */
static int64_t missed(const struct tables *t, const int64_t *sub)
{
    for (int64_t k = 0;; k++) {
        int64_t starts = start_of(sub, k);
        const int64_t *charge;

        if (starts > t->now_us || (sub[SUB_CANCEL] != 0 && starts >= sub[SUB_CANCEL]))
            return -1;
        charge = find(&t->charges, sub[SUB_ID], &k);
        if (charge == NULL)
            return k;
        if (charge[CHARGE_CAPTURED] == 0)
            return -1;
    }
}

static void nothing_is_missed(const struct tables *t)
{
    for (size_t i = 0; i < t->subs.rows; i++) {
        const int64_t *sub = row_of(&t->subs, i);
        int64_t k = sub[SUB_STATE] == STATE_SET_ASIDE ? -1 : missed(t, sub);

        if (k >= 0)
            broken("nothing_missed",
                   "subscription " N ": period " N " is due and not charged",
                   sub[SUB_ID], k);
    }
    for (size_t i = 0; i < t->orders.rows; i++)
        if (row_of(&t->orders, i)[ORDER_STATE] == STATE_OPEN)
            broken("nothing_missed", "order " N " is pending",
                   row_of(&t->orders, i)[ORDER_ID]);
}

/* No period beyond those that have begun, none that begins when its subscription has
 * ended, each of a subscription that is there, and for its price. */
static void charges_are_right(const struct tables *t)
{
    for (size_t i = 0; i < t->charges.rows; i++) {
        const int64_t *c = row_of(&t->charges, i);
        const int64_t *sub = find(&t->subs, c[CHARGE_SUB], NULL);
        int64_t starts = sub == NULL ? INT64_MAX : start_of(sub, c[CHARGE_PERIOD]);

        if (starts > t->now_us)
            broken("nothing_early", "subscription " N ": period " N " was not due",
                   c[CHARGE_SUB], c[CHARGE_PERIOD]);
        if (sub != NULL && sub[SUB_CANCEL] != 0 && starts >= sub[SUB_CANCEL])
            broken("nothing_after_cancel",
                   "subscription " N ": period " N " was cancelled", c[CHARGE_SUB],
                   c[CHARGE_PERIOD]);
        if (sub != NULL && c[CHARGE_AMOUNT] != sub[SUB_AMOUNT])
            broken("right_amount",
                   "subscription " N " costs " N ", and period " N " was charged " N,
                   c[CHARGE_SUB], sub[SUB_AMOUNT], c[CHARGE_PERIOD], c[CHARGE_AMOUNT]);
    }
}

/* ---- pairs and sums ---- */

/* Every row of one table is in the other: what should have moved, and what has. */
static void
same_rows(const struct table *should, const struct table *is, const char *what)
{
    size_t i = 0, k = 0;

    while (i < should->rows || k < is->rows) {
        const int64_t *a = row_of(should, i), *b = row_of(is, k), *shown;
        int order = i == should->rows ? 1 : k == is->rows ? -1 : 0;

        for (size_t c = 0; c < is->columns && order == 0; c++)
            order = a[c] < b[c] ? -1 : a[c] > b[c];
        shown = order <= 0 ? a : b;
        if (order != 0)
            broken("in_pairs", "%s " N "/" N ": %s", what, shown[0], shown[1],
                   order < 0 ? "it is missing or another one"
                             : "it should not be there");
        i += order <= 0;
        k += order >= 0;
    }
}

static void sums_are_right(const struct table *sums, const char *rule, const char *what)
{
    for (size_t i = 0; i < sums->rows; i++) {
        const int64_t *s = row_of(sums, i);

        if (s[SUM_IS] != s[SUM_SHOULD] || s[SUM_IS] < 0)
            broken(rule, "%s " N " is " N ", its rows say " N, what, s[SUM_ID],
                   s[SUM_IS], s[SUM_SHOULD]);
    }
}

static void few_are_set_aside(const struct tables *t, int64_t allowed)
{
    int64_t n = 0;

    for (size_t i = 0; i < t->subs.rows; i++)
        n += row_of(&t->subs, i)[SUB_STATE] == STATE_SET_ASIDE;
    for (size_t i = 0; i < t->orders.rows; i++)
        n += row_of(&t->orders, i)[ORDER_STATE] == STATE_SET_ASIDE;
    if (n > allowed)
        broken("set_aside", N " rows are set aside, " N " may be", n, allowed);
}

void rules_of_tables(const struct tables *t, const struct limits *limits)
{
    none_twice(&t->charges, 2, "charge");
    none_twice(&t->booked, 2, "transfer of charge");
    none_twice(&t->paid, 1, "payment of order");
    none_twice(&t->moved, 2, "movement of order");
    nothing_is_missed(t);
    charges_are_right(t);
    same_rows(&t->captured, &t->booked, "transfer of charge");
    same_rows(&t->fulfilled, &t->paid, "payment of order");
    same_rows(&t->lines, &t->moved, "movement of order");
    sums_are_right(&t->totals, "right_amount", "order");
    sums_are_right(&t->wallets, "sums", "wallet");
    sums_are_right(&t->shelves, "sums", "stock");
    few_are_set_aside(t, limits->set_aside);
}
