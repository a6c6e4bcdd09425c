/* tables: the final rows, as numbers, read in one snapshot. */
#ifndef CHECKER_TABLES_H
#define CHECKER_TABLES_H

#include <stddef.h>
#include <stdint.h>

/* Rows of whole numbers; a null is 0. */
struct table {
    size_t rows, columns;
    int64_t *values;
};

static inline const int64_t *row_of(const struct table *t, size_t row)
{
    return t->values + row * t->columns;
}

/* Columns of each table; rows in the order that the comment says. */
/* clang-format off */
enum { SUB_ID, SUB_ANCHOR, SUB_UNIT, SUB_EVERY, SUB_CANCEL, SUB_STATE };           /* id */
enum { CHARGE_SUB, CHARGE_PERIOD, CHARGE_USER, CHARGE_AMOUNT, CHARGE_CAPTURED,
       CHARGE_FENCE };                                                      /* sub, period */
enum { BOOKED_SUB, BOOKED_PERIOD, BOOKED_AMOUNT, BOOKED_USER };             /* sub, period */
enum { ORDER_ID, ORDER_STATE, ORDER_TOTAL, ORDER_FENCE, ORDER_USER };              /* id */
enum { PAID_ORDER, PAID_AMOUNT, PAID_USER };                                    /* order */
enum { LINE_ORDER, LINE_SKU, LINE_QTY };                                   /* order, sku */
enum { MOVED_ORDER, MOVED_SKU, MOVED_QTY };                                /* order, sku */
enum { WRITE_KEY, WRITE_XID, WRITE_FENCE };                                 /* in no order */
enum { SUM_ID, SUM_IS, SUM_SHOULD };                                               /* id */

/* clang-format on */

/* Values of SUB_STATE and ORDER_STATE. */
enum { STATE_OPEN, STATE_DONE, STATE_REJECTED, STATE_SET_ASIDE, STATE_NOT_YET };

struct tables {
    struct table subs, charges, booked, orders, paid, lines, moved;
    struct table user_writes, sku_writes; /* money of users, sales of SKUs */
    struct table wallets, shelves;        /* what is, and what should be */
    int64_t now_us;
};

/* now: an instant as text, or NULL for the server's clock. */
void tables_read(struct tables *t, const char *url, const char *now);
void tables_free(struct tables *t);

#endif
