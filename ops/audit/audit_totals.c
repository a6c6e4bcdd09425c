/* audit_totals: puts the rows of each query into the document. */
#include "ops/audit/audit.h"
#include "ops/cli/json.h"

/* Columns of audit_totals_billing and audit_totals_money. */
enum { CURRENCY, AMOUNTS, PERIODS = 3 };

/* Moves the members of another object into this one and frees that. */
static int merge(json_t *into, json_t *from, struct err *e)
{
    int failed = json_object_update(into, from);

    json_decref(from);
    return failed != 0 ? err_set(e, ERR_NOMEM, "LL-9001 out of memory") : 0;
}

static int put_money(json_t *totals, const struct pg_result *res, struct err *e)
{
    json_t *money = json_object_get(totals, "money");
    int code = 0;

    for (size_t i = 0; code == 0 && i < pg_rows(res); i++) {
        json_t *of = doc_sums(res, i, AMOUNTS, pg_columns(res) - 1);

        code = doc_put(money, pg_get_text(res, i, CURRENCY), of, e);
        if (code == 0)
            code = merge(of, json_pack("{s:i,s:i}", "charged", 0, "declined", 0), e);
    }
    return code;
}

/* Amounts belong to their currency; the row without a currency counts periods. */
static int put_billing(json_t *totals, const struct pg_result *res, struct err *e)
{
    json_t *money = json_object_get(totals, "money");
    int code = 0;

    for (size_t i = 0; code == 0 && i < pg_rows(res); i++) {
        if (pg_is_null(res, i, CURRENCY))
            code =
                merge(json_object_get(totals, "billing"), doc_row(res, i, PERIODS), e);
        else
            code = merge(json_object_get(money, pg_get_text(res, i, CURRENCY)),
                         doc_sums(res, i, AMOUNTS, PERIODS - AMOUNTS), e);
    }
    return code;
}

static json_t *counts(const struct pg_result *res)
{
    return doc_row(res, 0, 0);
}

static json_t *sums(const struct pg_result *res)
{
    return doc_sums(res, 0, 0, pg_columns(res));
}

/* In the order of the members; no more than TOTALS. `make` turns the rows into
 * section.member; without a section `put` chooses the places. */
/* clang-format off */
static const struct {
    const struct sql_text *sql;
    json_t *(*make)(const struct pg_result *res);
    const char *section, *member;
    int (*put)(json_t *totals, const struct pg_result *res, struct err *e);
} queries[TOTALS] = {
    {SQL_AUDIT_TOTALS_MONEY,         NULL,      NULL,        NULL, put_money},
    {SQL_AUDIT_TOTALS_BILLING,       NULL,      NULL,        NULL, put_billing},
    {SQL_AUDIT_TOTALS_TWICE,         counts,    "billing",   NULL, NULL},
    {SQL_AUDIT_TOTALS_SUBSCRIPTIONS, doc_pairs, "billing",   "subscriptions", NULL},
    {SQL_AUDIT_TOTALS_STOCK,         sums,      "stock",     NULL, NULL},
    {SQL_AUDIT_TOTALS_ORDERS,        counts,    "orders",    NULL, NULL},
    {SQL_AUDIT_TOTALS_REASONS,       doc_pairs, "orders",    "rejected_by_reason", NULL},
    {SQL_AUDIT_TOTALS_LOCKS,         counts,    "locks",     NULL, NULL},
    {SQL_AUDIT_TOTALS_INCIDENTS,     doc_pairs, "incidents", NULL, NULL},
};

/* clang-format on */

int totals_ask(
    struct pg *pg, size_t i, const char *now, struct totals *t, struct err *e)
{
    const struct pg_param param = pg_text(now);
    bool takes_now = queries[i].sql == SQL_AUDIT_TOTALS_BILLING;

    return pg_exec(pg, queries[i].sql, &param, takes_now, &t->of[i], e);
}

static int put(json_t *totals, size_t i, const struct pg_result *res, struct err *e)
{
    json_t *into = json_object_get(totals, queries[i].section);

    if (res == NULL) /* nothing is twice */
        return doc_put(into, "charged_twice", json_integer(0), e);
    if (queries[i].put != NULL)
        return queries[i].put(totals, res, e);
    if (queries[i].member != NULL)
        return doc_put(into, queries[i].member, queries[i].make(res), e);
    return merge(into, queries[i].make(res), e);
}

int totals_put(const struct totals *t, json_t **out, struct err *e)
{
    json_t *totals = json_pack("{s:{},s:{},s:{},s:{},s:{},s:{}}", "billing", "stock",
                               "orders", "money", "locks", "incidents");
    int code = totals == NULL ? err_set(e, ERR_NOMEM, "LL-9001 out of memory") : 0;

    for (size_t i = 0; code == 0 && i < TOTALS; i++)
        code = put(totals, i, t->of[i], e);
    *out = totals;
    return code;
}

void totals_free(struct totals *t)
{
    for (size_t i = 0; i < TOTALS; i++)
        pg_result_free(t->of[i]);
}
