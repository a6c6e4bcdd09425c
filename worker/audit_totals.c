/* audit_totals: each query's rows into their place. */
#include "worker/audit_totals.h"

#include "worker/jdoc.h"

static json_t *billing_of(json_t *totals)
{
    return json_object_get(totals, "billing");
}

/* Billing leads the document, and is filled in by what comes later. */
static int add_stock(json_t *totals, const struct pg_result *res, struct err *e)
{
    if (jdoc_put(totals, "billing", json_object(), e) != 0)
        return (int)e->code;
    return jdoc_put(totals, "stock", jdoc_sums(res, 0, 0, pg_columns(res)), e);
}

static int add_orders(json_t *totals, const struct pg_result *res, struct err *e)
{
    return jdoc_put(totals, "orders", jdoc_object(res, 0, 0, 0), e);
}

static int add_reasons(json_t *totals, const struct pg_result *res, struct err *e)
{
    return jdoc_put(json_object_get(totals, "orders"), "rejected_by_reason",
                    jdoc_pairs(res), e);
}

static int add_money(json_t *totals, const struct pg_result *res, struct err *e)
{
    json_t *money = json_object();
    int code = jdoc_put(totals, "money", money, e);

    for (size_t i = 0; code == 0 && i < pg_rows(res); i++) {
        json_t *of = jdoc_sums(res, i, 1, pg_columns(res) - 1);

        code = jdoc_put(money, pg_get_text(res, i, 0), of, e);
        if (code == 0)
            code = jdoc_put(of, "charged", json_integer(0), e);
        if (code == 0)
            code = jdoc_put(of, "declined", json_integer(0), e);
    }
    return code;
}

enum { BILLING_SUMS = 2 }; /* columns behind the currency */

/* Adds every count of the row to the member of the same name. */
static int add_up(json_t *into, const struct pg_result *res, size_t row, struct err *e)
{
    for (size_t i = 1 + BILLING_SUMS; i < pg_columns(res); i++) {
        const char *key = pg_column_name(res, i);
        json_int_t sum = jdoc_int(into, key) + pg_get_int8(res, row, i);

        if (jdoc_put(into, key, json_integer(sum), e) != 0)
            return (int)e->code;
    }
    return 0;
}

/* The amounts of one row, to the money of its currency. */
static int
add_amounts(json_t *money, const struct pg_result *res, size_t row, struct err *e)
{
    json_t *of = json_object_get(money, pg_get_text(res, row, 0));
    json_t *sums = jdoc_sums(res, row, 1, BILLING_SUMS);
    int code = 0;

    if (of != NULL)
        code = jdoc_put(of, "charged",
                        json_incref(json_object_get(sums, "charged_minor")), e);
    if (of != NULL && code == 0)
        code = jdoc_put(of, "declined",
                        json_incref(json_object_get(sums, "declined_minor")), e);
    json_decref(sums);
    return code;
}

/* Billing comes per currency: periods are summed over all, amounts belong to the
 * currency and stand with its money. */
static int add_billing(json_t *totals, const struct pg_result *res, struct err *e)
{
    static const char *const keys[] = {"periods_due", "charged", "declined",
                                       "still_to_do"};
    json_t *sum = json_object();
    int code = 0;

    for (size_t i = 0; code == 0 && i < pg_rows(res); i++) {
        code = add_up(sum, res, i, e);
        if (code == 0)
            code = add_amounts(json_object_get(totals, "money"), res, i, e);
    }
    for (size_t i = 0; code == 0 && i < sizeof keys / sizeof keys[0]; i++)
        code = jdoc_put(billing_of(totals), keys[i],
                        json_integer(jdoc_int(sum, keys[i])), e);
    json_decref(sum);
    return code;
}

/* Without rows, since nothing stands twice: none. */
static int add_twice(json_t *totals, const struct pg_result *res, struct err *e)
{
    return jdoc_put(billing_of(totals), "charged_twice",
                    json_integer(res == NULL ? 0 : pg_get_int8(res, 0, 0)), e);
}

static int add_subscriptions(json_t *totals, const struct pg_result *res, struct err *e)
{
    return jdoc_put(billing_of(totals), "subscriptions", jdoc_pairs(res), e);
}

static int add_locks(json_t *totals, const struct pg_result *res, struct err *e)
{
    return jdoc_put(totals, "locks", jdoc_object(res, 0, 0, 0), e);
}

static int add_incidents(json_t *totals, const struct pg_result *res, struct err *e)
{
    return jdoc_put(totals, "incidents", jdoc_pairs(res), e);
}

/* clang-format off */
const struct audit_total audit_totals[AUDIT_TOTAL_COUNT] = {
    {SQL_AUDIT_TOTALS_STOCK,         false, add_stock},
    {SQL_AUDIT_TOTALS_ORDERS,        false, add_orders},
    {SQL_AUDIT_TOTALS_REASONS,       false, add_reasons},
    {SQL_AUDIT_TOTALS_MONEY,         false, add_money},
    {SQL_AUDIT_TOTALS_BILLING,       true,  add_billing},
    {SQL_AUDIT_TOTALS_TWICE,         false, add_twice},
    {SQL_AUDIT_TOTALS_SUBSCRIPTIONS, false, add_subscriptions},
    {SQL_AUDIT_TOTALS_LOCKS,         false, add_locks},
    {SQL_AUDIT_TOTALS_INCIDENTS,     false, add_incidents},
};

/* clang-format on */
