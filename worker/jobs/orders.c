/* orders: pending orders. All lines or none; payment in the same transaction. */
#include "worker/jobs/job.h"

static int apply(const struct job_batch *b, struct job_result *done, struct err *e)
{
    const struct pg_param params[] = {
        pg_int8(b->token),
        pg_text(b->now),
        pg_int8_array(b->rows->items, b->rows->n),
        pg_text(b->worker),
    };

    return job_apply(&job_orders, b, params, sizeof params / sizeof params[0], done, e);
}

static bool in_any_order(const struct config *c)
{
    return c->any_order;
}

static const char *const counters[] = {"fulfilled", "rejected", NULL};

const struct job_type job_orders = {
    .name = "orders",
    .item = "order",
    .in_any_order = in_any_order,
    .kinds = RESOURCE_SKU + 1,
    .counters = counters,
    .pull = SQL_ORDERS_PULL_PENDING,
    .probe = SQL_ORDERS_PROBE_PENDING,
    .pull_items = SQL_ORDERS_PULL_ITEMS,
    .effects = SQL_ORDERS_COUNT_EFFECTS,
    .park = SQL_ORDERS_PARK_ORDERS,
    .apply_sql = SQL_ORDERS_APPLY_ORDERS,
    .backlog = SQL_ORDERS_COUNT_BACKLOG,
    .list_parked = SQL_ORDERS_LIST_PARKED,
    .release_parked = SQL_ORDERS_RELEASE_PARKED,
    .apply = apply,
};
