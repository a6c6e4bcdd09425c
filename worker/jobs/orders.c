/* orders: pending orders. All lines or none; payment in the same transaction, or units
 * that are held until a card has paid. */
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
    .counters = {{"fulfilled", false}, {"rejected", false}, {"planned", false}},
    .constraints = {"balance_never_negative", "decided_after_placed",
                    "decided_has_its_time", "decision_has_its_token", "held_is_on_hand",
                    "on_hand_never_negative", "order_reason_known", "order_state_known",
                    "paying_is_by_card", "rejected_has_reason", "shortage_names_skus"},
    .pull = SQL_ORDERS_PULL_PENDING,
    .probe = SQL_ORDERS_PROBE_PENDING,
    .pull_items = SQL_ORDERS_PULL_ITEMS,
    .apply = SQL_ORDERS_APPLY_ORDERS,
    .apply_params = 4,
    .feeding = SQL_ORDERS_COUNT_FEEDING,
    .effects = SQL_ORDERS_COUNT_EFFECTS,
    .park = SQL_POOL_PARK_ROWS,
    .backlog = SQL_ORDERS_COUNT_BACKLOG,
    .list_parked = SQL_PARKED_LIST,
    .release_parked = SQL_PARKED_RELEASE,
};
