/* billing: due subscriptions. One period of each per batch, oldest first; the wallet of
 * the user pays. */
#include "worker/jobs/job.h"

static int apply(const struct job_batch *b, struct job_result *done, struct err *e)
{
    const struct job_rows *rows = b->rows;
    const struct pg_param params[] = {
        pg_int8(b->token),
        pg_text(b->worker),
        pg_text(b->now),
        pg_int8_array(rows->items, rows->n),
        pg_tid_array(rows->places, rows->n),
        pg_int8_array(rows->owners, rows->n),
        pg_int8(b->config->catch_up_max),
    };

    return job_apply(&job_billing, b, params, sizeof params / sizeof params[0], done,
                     e);
}

static const char *const counters[] = {"charged", "declined", "cancelled", "deferred",
                                       NULL};

const struct job_type job_billing = {
    .name = "billing",
    .item = "subscription",
    .shards = 1024,
    .kinds = RESOURCE_USER + 1,
    .counters = counters,
    .pull = SQL_BILLING_PULL_DUE,
    .pull_items = SQL_BILLING_PULL_ITEMS,
    .effects = SQL_BILLING_COUNT_EFFECTS,
    .park = SQL_BILLING_PARK_SUBSCRIPTIONS,
    .apply_sql = SQL_BILLING_APPLY_CHARGES,
    .backlog = SQL_BILLING_COUNT_BACKLOG,
    .list_parked = SQL_BILLING_LIST_PARKED,
    .release_parked = SQL_BILLING_RELEASE_PARKED,
    .apply = apply,
};
