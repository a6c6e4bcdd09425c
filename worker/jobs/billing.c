/* billing: due subscriptions. One period of each per batch, oldest first; the wallet of
 * the user pays. */
#include "worker/jobs/job.h"

static int64_t catch_up_max(const struct config *c)
{
    return c->catch_up_max;
}

const struct job_type job_billing = {
    .name = "billing",
    .item = "subscription",
    .shards = 1024,
    .kinds = RESOURCE_USER + 1,
    .counters = {{"charged", false},
                 {"declined", false},
                 {"planned", false},
                 {"cancelled", false},
                 {"deferred", true}},
    .constraints = {"balance_never_negative", "charge_amount_of_state",
                    "charge_not_early", "charge_period_positive", "charge_state_known",
                    "charge_tries_of_state", "month_is_closed", "one_charge_per_period",
                    "period_ends_after_start", "subscription_period_positive",
                    "subscription_retries_positive", "subscription_state_known",
                    "unserved_is_as_it_says"},
    .pull = SQL_BILLING_PULL_DUE,
    .pull_items = SQL_BILLING_PULL_ITEMS,
    .apply = SQL_BILLING_APPLY_CHARGES,
    .apply_params = 7,
    .setting = catch_up_max,
    .feeding = SQL_BILLING_COUNT_FEEDING,
    .effects = SQL_BILLING_COUNT_EFFECTS,
    .park = SQL_POOL_PARK_ROWS,
    .backlog = SQL_BILLING_COUNT_BACKLOG,
    .to_do = SQL_BILLING_COUNT_PERIODS,
    .list_parked = SQL_PARKED_LIST,
    .release_parked = SQL_PARKED_RELEASE,
};
