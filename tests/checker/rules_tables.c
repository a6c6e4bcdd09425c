/* rules_tables: exactly once in both directions, pairs, sums. */
#include <inttypes.h>
#include <stdbool.h>
#include <stdint.h>

#include "tests/checker/calendar.h"
#include "tests/checker/rules.h"
#include "tests/checker/say.h"

/* First row whose columns 0 (and 1, if keys is 2) are these; NULL: none. */
static const int64_t *find(const struct table *t, int keys, int64_t a, int64_t b)
{
    size_t low = 0, high = t->rows;

    while (low < high) {
        size_t middle = (low + high) / 2;
        const int64_t *r = row_of(t, middle);
        bool is_less = r[0] != a ? r[0] < a : keys == 2 && r[1] < b;

        low = is_less ? middle + 1 : low;
        high = is_less ? high : middle;
    }
    if (low == t->rows || row_of(t, low)[0] != a ||
        (keys == 2 && row_of(t, low)[1] != b))
        return NULL;
    return row_of(t, low);
}

static void none_twice(const struct table *t, int keys, const char *what)
{
    for (size_t i = 1; i < t->rows; i++) {
        const int64_t *a = row_of(t, i - 1), *b = row_of(t, i);

        if (a[0] == b[0] && (keys == 1 || a[1] == b[1]))
            broken("charged_once", "%s %" PRId64 "/%" PRId64 " is there twice", what,
                   a[0], keys == 2 ? a[1] : 0);
    }
}

/* ---- missed ---- */

/* The oldest period that has begun and is not captured, or -1. A declined one is
 * answered: it waits for money. */
static int64_t missed(const struct tables *t, const int64_t *sub)
{
    for (int64_t k = 0;; k++) {
        int64_t starts = calendar_start(sub[SUB_ANCHOR], (enum unit)sub[SUB_UNIT],
                                        sub[SUB_EVERY], k);
        const int64_t *charge;

        if (starts > t->now_us || (sub[SUB_CANCEL] != 0 && starts >= sub[SUB_CANCEL]))
            return -1;
        charge = find(&t->charges, 2, sub[SUB_ID], k);
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
                   "subscription %" PRId64 ": period %" PRId64
                   " is due and not charged",
                   sub[SUB_ID], k);
    }
    for (size_t i = 0; i < t->orders.rows; i++) {
        const int64_t *order = row_of(&t->orders, i);

        if (order[ORDER_STATE] == STATE_OPEN)
            broken("nothing_missed", "order %" PRId64 " is pending", order[ORDER_ID]);
    }
}

/* No period beyond those that have begun, and each of a subscription that is there. */
static void nothing_is_early(const struct tables *t)
{
    for (size_t i = 0; i < t->charges.rows; i++) {
        const int64_t *c = row_of(&t->charges, i);
        const int64_t *sub = find(&t->subs, 1, c[CHARGE_SUB], 0);

        if (sub == NULL || calendar_start(sub[SUB_ANCHOR], (enum unit)sub[SUB_UNIT],
                                          sub[SUB_EVERY], c[CHARGE_PERIOD]) > t->now_us)
            broken("nothing_early",
                   "subscription %" PRId64 ": period %" PRId64 " was not due",
                   c[CHARGE_SUB], c[CHARGE_PERIOD]);
    }
}

/* ---- pairs ---- */

static void charges_are_booked(const struct tables *t)
{
    for (size_t i = 0; i < t->charges.rows; i++) {
        const int64_t *c = row_of(&t->charges, i);
        const int64_t *b = find(&t->booked, 2, c[CHARGE_SUB], c[CHARGE_PERIOD]);
        bool is_right = c[CHARGE_CAPTURED] != 0
                            ? b != NULL && b[BOOKED_AMOUNT] == c[CHARGE_AMOUNT] &&
                                  b[BOOKED_USER] == c[CHARGE_USER]
                            : b == NULL;

        if (!is_right)
            broken("in_pairs", "charge %" PRId64 "/%" PRId64 " and its transfer differ",
                   c[CHARGE_SUB], c[CHARGE_PERIOD]);
    }
    for (size_t i = 0; i < t->booked.rows; i++) {
        const int64_t *b = row_of(&t->booked, i);

        if (find(&t->charges, 2, b[BOOKED_SUB], b[BOOKED_PERIOD]) == NULL)
            broken("in_pairs", "transfer of %" PRId64 "/%" PRId64 " has no charge",
                   b[BOOKED_SUB], b[BOOKED_PERIOD]);
    }
}

static int64_t state_of_order(const struct tables *t, int64_t id)
{
    const int64_t *order = find(&t->orders, 1, id, 0);

    return order == NULL ? STATE_REJECTED : order[ORDER_STATE];
}

static void orders_are_paid(const struct tables *t)
{
    for (size_t i = 0; i < t->orders.rows; i++) {
        const int64_t *o = row_of(&t->orders, i);
        const int64_t *p = find(&t->paid, 1, o[ORDER_ID], 0);
        bool should = o[ORDER_STATE] == STATE_DONE && o[ORDER_TOTAL] > 0;

        if (should ? p == NULL || p[PAID_AMOUNT] != o[ORDER_TOTAL] ||
                         p[PAID_USER] != o[ORDER_USER]
                   : p != NULL)
            broken("in_pairs", "order %" PRId64 " and its payment differ", o[ORDER_ID]);
    }
    for (size_t i = 0; i < t->paid.rows; i++) {
        if (find(&t->orders, 1, row_of(&t->paid, i)[PAID_ORDER], 0) == NULL)
            broken("in_pairs", "payment of %" PRId64 " has no order",
                   row_of(&t->paid, i)[PAID_ORDER]);
    }
}

static void lines_are_moved(const struct tables *t)
{
    for (size_t i = 0; i < t->lines.rows; i++) {
        const int64_t *l = row_of(&t->lines, i);
        const int64_t *m = find(&t->moved, 2, l[LINE_ORDER], l[LINE_SKU]);

        if (state_of_order(t, l[LINE_ORDER]) == STATE_DONE
                ? m == NULL || m[MOVED_QTY] != l[LINE_QTY]
                : m != NULL)
            broken("in_pairs",
                   "order %" PRId64 ", SKU %" PRId64 ": line and movement differ",
                   l[LINE_ORDER], l[LINE_SKU]);
    }
    for (size_t i = 0; i < t->moved.rows; i++) {
        const int64_t *m = row_of(&t->moved, i);

        if (find(&t->lines, 2, m[MOVED_ORDER], m[MOVED_SKU]) == NULL)
            broken("in_pairs", "movement of order %" PRId64 " has no line",
                   m[MOVED_ORDER]);
    }
}

/* ---- sums ---- */

static void sums_are_right(const struct table *sums, const char *what)
{
    for (size_t i = 0; i < sums->rows; i++) {
        const int64_t *s = row_of(sums, i);

        if (s[SUM_IS] != s[SUM_SHOULD] || s[SUM_IS] < 0)
            broken("sums", "%s %" PRId64 " is %" PRId64 ", its moves say %" PRId64,
                   what, s[SUM_ID], s[SUM_IS], s[SUM_SHOULD]);
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
        broken("set_aside", "%" PRId64 " rows are set aside, %" PRId64 " may be", n,
               allowed);
}

void rules_of_tables(const struct tables *t, const struct limits *limits)
{
    none_twice(&t->charges, 2, "charge");
    none_twice(&t->booked, 2, "transfer of charge");
    none_twice(&t->paid, 1, "payment of order");
    none_twice(&t->moved, 2, "movement of order");
    nothing_is_missed(t);
    nothing_is_early(t);
    charges_are_booked(t);
    orders_are_paid(t);
    lines_are_moved(t);
    sums_are_right(&t->wallets, "wallet");
    sums_are_right(&t->shelves, "stock");
    few_are_set_aside(t, limits->set_aside);
}
