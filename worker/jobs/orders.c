/* orders: pending orders. All lines or none; payment in the same transaction. */
#include "worker/jobs/job.h"

static bool in_any_order(const struct config *c)
{
    return c->any_order;
}

const struct job_type job_orders = {
    .name = "orders",
    .item = "order",
    .in_any_order = in_any_order,
    .kinds = RESOURCE_SKU + 1,
    .counters = {{"fulfilled", false}, {"rejected", false}},
    .constraints = {"accounts_of_kind", "balance_never_negative", "currency_is_iso",
                    "deposit_of_its_user", "month_is_closed", "movement_time_is_finite",
                    "on_hand_never_negative", "one_movement_per_source",
                    "one_transfer_per_source", "order_reason_known",
                    "order_state_known", "payment_in_one_leg", "qty_has_sign_of_kind",
                    "rejected_has_reason", "shortage_names_skus",
                    "transfer_amount_positive", "transfer_time_is_finite"},
    .pull = SQL_ORDERS_PULL_PENDING,
    .probe = SQL_ORDERS_PROBE_PENDING,
    .pull_items = SQL_ORDERS_PULL_ITEMS,
    .apply = SQL_ORDERS_APPLY_ORDERS,
    .apply_params = 4,
    .effects = SQL_ORDERS_COUNT_EFFECTS,
    .park = SQL_ORDERS_PARK_ORDERS,
    .backlog = SQL_ORDERS_COUNT_BACKLOG,
    .list_parked = SQL_ORDERS_LIST_PARKED,
    .release_parked = SQL_ORDERS_RELEASE_PARKED,
};
