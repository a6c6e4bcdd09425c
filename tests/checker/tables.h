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

/* Columns of the tables that are read by column. */
/* clang-format off */
enum { SUB_ID, SUB_ANCHOR, SUB_UNIT, SUB_EVERY, SUB_CANCEL, SUB_STATE, SUB_AMOUNT };
enum { CHARGE_SUB, CHARGE_PERIOD, CHARGE_AMOUNT, CHARGE_CAPTURED, CHARGE_FENCE };
enum { ORDER_ID, ORDER_STATE, ORDER_FENCE };
enum { WRITE_KEY, WRITE_XID, WRITE_ORDER, WRITE_VALUE };
enum { SUM_ID, SUM_IS, SUM_SHOULD };
enum { REFUSED_ID, REFUSED_XID, REFUSED_KEY, REFUSED_WANTED };

/* clang-format on */

/* Values of SUB_STATE and ORDER_STATE. */
enum { STATE_OPEN, STATE_DONE, STATE_REJECTED, STATE_SET_ASIDE, STATE_NOT_YET };

struct tables {
    struct table subs, charges, orders; /* by their ids */
    /* By all columns, and so equal: */
    struct table captured, booked;         /* charges and their transfers */
    struct table fulfilled, paid;          /* orders and theirs */
    struct table lines, moved;             /* and their lines and movements */
    struct table totals, wallets, shelves; /* what is, and what should be */
    struct table user_writes, sku_writes;  /* money of users, sales of SKUs: tokens */
    struct table money, goods; /* every change of wallets and SKUs, also by clients */
    struct table declined, poor, shortages; /* charges; orders, by wallet and by SKU */
    int64_t now_us;
};

/* now: an instant as text, or NULL for the server's clock. first: statements that are
 * done before and undone afterwards, or NULL. */
void tables_read(struct tables *t, const char *url, const char *now, const char *first);
void tables_free(struct tables *t);

#endif
