/* billing: due subscriptions. One period of each per batch, oldest first; the wallet
 * pays. */
#include "worker/job.h"

#include <inttypes.h>

#include "common/lock/mutant.h"

enum { CAPTURED, DECLINED, CANCELLED, DEFERRED, DECIDED, WRITTEN, COLUMNS };

static int apply(const struct job_batch *b, struct metrics *counted, struct err *e)
{
    const struct job_rows *rows = b->rows;
    const struct pg_param params[] = {
        pg_int8(b->token),
        pg_text(b->worker),
        pg_text(b->now),
        pg_int8_array(b->retry_s, b->retry_ct),
        pg_int8_array(rows->items, rows->n),
        pg_tid_array(rows->places, rows->n),
        pg_int8_array(rows->users, rows->n),
        pg_tid_array(rows->wallets, rows->n),
        pg_int8_array(rows->balances, rows->n),
    };
    struct pg_result *res;
    int64_t n[COLUMNS];

    if (pg_exec(b->pg, SQL_BILLING_APPLY_CHARGES, params,
                sizeof params / sizeof params[0], &res, e) != 0)
        return (int)e->code;
    for (size_t i = 0; i < COLUMNS; i++)
        n[i] = pg_get_int8(res, 0, i);
    pg_result_free(res);
    if (n[DECIDED] != n[WRITTEN] && !MUTANT("effects-not-counted"))
        return err_set(e, ERR_BUG,
                       "%" PRId64 " decisions but %" PRId64 " of their effects written",
                       n[DECIDED], n[WRITTEN]);
    counted->value[METRIC_charged] += n[CAPTURED];
    counted->value[METRIC_declined] += n[DECLINED];
    counted->value[METRIC_cancelled] += n[CANCELLED];
    counted->value[METRIC_deferred] += n[DEFERRED];
    return 0;
}

const struct job_type job_billing = {
    .name = "billing",
    .due = SQL_BILLING_DUE_BUCKETS,
    .pull = SQL_BILLING_PULL_DUE,
    .settle = SQL_BILLING_SETTLE_BATCH,
    .park = SQL_BILLING_PARK_SUBSCRIPTIONS,
    .crash = SQL_BILLING_NOTE_CRASH,
    .item = "subscription",
    .apply = apply,
};
