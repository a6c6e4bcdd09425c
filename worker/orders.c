/* orders: pending orders. All lines or none; payment in the same transaction. */
#include "worker/job.h"

#include <inttypes.h>

#include "common/lock/mutant.h"

enum { FULFILLED, REJECTED, DEFERRED, DECIDED, WRITTEN, COLUMNS };

static int apply(const struct job_batch *b, struct metrics *counted, struct err *e)
{
    const struct pg_param params[] = {
        pg_int8(b->token),
        pg_text(b->now),
        pg_int8_array(b->rows->items, b->rows->n),
    };
    struct pg_result *res;
    int64_t n[COLUMNS];

    if (pg_exec(b->pg, SQL_ORDERS_APPLY_ORDERS, params, 3, &res, e) != 0)
        return (int)e->code;
    for (size_t i = 0; i < COLUMNS; i++)
        n[i] = pg_get_int8(res, 0, i);
    pg_result_free(res);
    if (n[DECIDED] != n[WRITTEN] && !MUTANT("effects-not-counted"))
        return err_set(e, ERR_BUG,
                       "%" PRId64 " decisions but %" PRId64 " of their effects written",
                       n[DECIDED], n[WRITTEN]);
    counted->value[METRIC_fulfilled] += n[FULFILLED];
    counted->value[METRIC_rejected] += n[REJECTED];
    counted->value[METRIC_deferred] += n[DEFERRED];
    return 0;
}

const struct job_type job_orders = {
    .name = "orders",
    .due = SQL_ORDERS_DUE_BUCKETS,
    .pull = SQL_ORDERS_PULL_PENDING,
    .settle = SQL_ORDERS_SETTLE_BATCH,
    .park = SQL_ORDERS_PARK_ORDERS,
    .crash = SQL_ORDERS_NOTE_CRASH,
    .in_order = true,
    .item = "order",
    .apply = apply,
};
