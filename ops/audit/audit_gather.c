/* audit_gather: the snapshot, the invariants, the totals, as one JSON document. */
#include <string.h>

#include "audit_gen.h"
#include "ops/audit/audit.h"
#include "ops/cli/json.h"
#include "ops/cli/migrate.h"

/* ---- totals ---- */

static bool holds(const json_t *doc, enum audit_id id)
{
    const json_t *of = json_array_get(json_object_get(doc, "invariants"), id);

    return json_is_true(json_object_get(of, "holds"));
}

/* A period that is charged twice is counted only if an invariant has found one. */
static int add_totals(struct pg *pg, struct totals *t, json_t *doc, struct err *e)
{
    json_t *totals;

    if (!holds(doc, AUDIT_ONE_CHARGE_PER_PERIOD) &&
        totals_ask(pg, TOTALS_TWICE, doc_text(doc, "now"), t, e) != 0)
        return (int)e->code;
    if (totals_put(t, &totals, e) == 0)
        return doc_put(doc, "totals", totals, e);
    json_decref(totals);
    return (int)e->code;
}

/* ---- the whole ---- */

/* The second connection reads what the first reads, by the same now. */
static int follow(struct pg *pg,
                  const struct audit_order *order,
                  struct pg_param *params,
                  struct err *e)
{
    struct pg_result *res;
    int code;

    if (pg_exec(pg, SQL_AUDIT_EXPORT_SNAPSHOT, NULL, 0, &res, e) != 0)
        return (int)e->code;
    code = pg_begin_snapshot_of(order->second, pg_get_text(res, 0, 0), e);
    pg_result_free(res);
    return code == 0 ? pg_exec(order->second, SQL_AUDIT_BEGIN, params, 4, NULL, e)
                     : code;
}

static int
begin(struct pg *pg, const struct audit_order *order, json_t *doc, struct err *e)
{
    struct pg_param params[] = {pg_text(order->now), pg_int8(order->lag_s), pg_null(),
                                pg_text(order->sealed ? "on" : "off")};
    struct pg_result *res;
    const char *objects;
    int code;

    if ((!order->in_transaction && pg_begin_snapshot(pg, e) != 0) ||
        migrate_objects(pg, &objects, e) != 0)
        return (int)e->code;
    params[2] = pg_role_text(objects);
    if (pg_exec(pg, SQL_AUDIT_BEGIN, params, 4, &res, e) != 0) {
        if (strncmp(e->sqlstate, "22", 2) == 0)
            e->code = ERR_INVALID;
        return (int)e->code;
    }
    if (pg_get_int8(res, 0, 1) == 0)
        code = err_set(e, ERR_INVALID, "LL-1002 --now must be a time, not infinity");
    else
        code = doc_put(doc, "now", json_string(pg_get_text(res, 0, 0)), e);
    pg_result_free(res);
    params[0] = pg_text(doc_text(doc, "now"));
    if (code == 0 && order->second != NULL)
        code = follow(pg, order, params, e);
    return code == 0 ? doc_put(doc, "lag_s", json_integer(order->lag_s), e) : code;
}

int audit_gather(struct pg *pg,
                 const struct audit_order *order,
                 json_t **out,
                 struct err *e)
{
    json_t *doc = json_object();
    struct totals totals = {0};
    bool ok = true;
    /* "ok" is put first, so that it leads the document, and again with its value */
    int code = doc_put(doc, "ok", json_true(), e);

    if (code == 0)
        code = begin(pg, order, doc, e);
    if (code == 0)
        code = audit_invariants(pg, order->second, doc,
                                order->in_transaction ? NULL : &totals, &ok, e);
    if (code == 0 && !order->in_transaction)
        code = add_totals(pg, &totals, doc, e);
    totals_free(&totals);
    if (code == 0)
        code = doc_put(doc, "ok", json_boolean(ok), e);
    if (!order->in_transaction)
        pg_rollback(pg); /* it was read only */
    *out = code == 0 ? doc : NULL;
    if (code != 0)
        json_decref(doc);
    return code;
}
