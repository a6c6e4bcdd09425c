/* audit_gather: the snapshot, the invariants, the totals, as one JSON document. */
#include <string.h>

#include "audit_gen.h"
#include "worker/audit.h"
#include "worker/jdoc.h"

enum { EXAMPLES = 3, SENTENCE = 256 };

/* ---- invariants ---- */

/* The first sentence of the comment that heads a file. */
static void read_sentence(const char *text, char sentence[SENTENCE])
{
    size_t n = 0;

    while (strncmp(text, "-- ", 3) == 0) {
        size_t len = strcspn(text, "\n");

        for (size_t i = 3; i < len && n + 2 < SENTENCE; i++) {
            sentence[n++] = text[i];
            if (text[i] == '.' && (i + 1 == len || text[i + 1] == ' ')) {
                sentence[n] = '\0';
                return;
            }
        }
        sentence[n++] = ' ';
        text += len + (text[len] == '\n');
    }
    sentence[n] = '\0';
}

static json_t *example(const struct pg_result *res, size_t row)
{
    const char *what = pg_get_text(res, row, 0);

    if (pg_columns(res) < 2 || pg_is_null(res, row, 1))
        return json_string(what);
    return json_sprintf("%s: %s", what, pg_get_text(res, row, 1));
}

static int describe(json_t *row,
                    const struct audit_text *text,
                    const struct pg_result *res,
                    struct err *e)
{
    json_t *examples = json_array();
    char sentence[SENTENCE];
    int code = 0;

    read_sentence((const char *)text->text, sentence);
    if (jdoc_put(row, "name", json_string(text->stem), e) != 0 ||
        jdoc_put(row, "sentence", json_string(sentence), e) != 0 ||
        jdoc_put(row, "holds", json_boolean(pg_rows(res) == 0), e) != 0 ||
        jdoc_put(row, "violations", json_integer((json_int_t)pg_rows(res)), e) != 0) {
        json_decref(examples);
        return (int)e->code;
    }
    for (size_t i = 0; code == 0 && i < pg_rows(res) && i < EXAMPLES; i++)
        code = jdoc_append(examples, example(res, i), e);
    if (code != 0) {
        json_decref(examples);
        return code;
    }
    return jdoc_put(row, "examples", examples, e);
}

static int check(struct pg *pg,
                 const struct audit_text *text,
                 json_t *invariants,
                 bool *ok,
                 struct err *e)
{
    struct pg_result *res = NULL;
    json_t *row = json_object();
    int code = pg_exec_text(pg, (const char *)text->text, &res, e);

    if (code != 0) {
        json_decref(row);
        return err_wrap(e, "%s", text->path);
    }
    code = describe(row, text, res, e);
    if (pg_rows(res) > 0)
        *ok = false;
    pg_result_free(res);
    if (code != 0) {
        json_decref(row);
        return code;
    }
    return jdoc_append(invariants, row, e);
}

static int check_all(struct pg *pg, json_t *doc, bool *ok, struct err *e)
{
    json_t *invariants = json_array();

    if (jdoc_put(doc, "invariants", invariants, e) != 0)
        return (int)e->code;
    for (size_t i = 0; i < AUDIT_COUNT; i++) {
        if (check(pg, &audit_texts[i], invariants, ok, e) != 0)
            return (int)e->code;
    }
    return 0;
}

/* ---- totals ---- */

/* What a query of totals returns: one row of counters or of sums as text, or rows of
 * (name, count). */
enum shape { SHAPE_ROW, SHAPE_SUMS, SHAPE_PAIRS };

static int add(struct pg *pg,
               enum sql_id id,
               enum shape shape,
               json_t *into,
               const char *key,
               struct err *e)
{
    struct pg_result *res;
    json_t *value;

    if (pg_exec(pg, id, NULL, 0, &res, e) != 0)
        return (int)e->code;
    value = shape == SHAPE_ROW    ? jdoc_object(res, 0, 0, 0)
            : shape == SHAPE_SUMS ? jdoc_sums(res, 0, 0, pg_columns(res))
                                  : jdoc_pairs(res);
    pg_result_free(res);
    return jdoc_put(into, key, value, e);
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

/* Billing comes per currency: periods are summed over all, amounts belong to the
 * currency and stand with its money. */
static int add_billing(
    struct pg *pg, const char *now, json_t *billing, json_t *money, struct err *e)
{
    static const char *const keys[] = {"periods_due", "charged", "declined",
                                       "still_to_do"};
    struct pg_param params[] = {pg_text(now)};
    json_t *sum = json_object();
    struct pg_result *res = NULL;
    int code = pg_exec(pg, SQL_AUDIT_TOTALS_BILLING, params, 1, &res, e);

    for (size_t i = 0; code == 0 && i < pg_rows(res); i++) {
        json_t *of = json_object_get(money, pg_get_text(res, i, 0));
        json_t *row = jdoc_sums(res, i, 1, BILLING_SUMS);

        code = add_up(sum, res, i, e);
        if (code == 0 && of != NULL)
            code = jdoc_put(of, "charged",
                            json_incref(json_object_get(row, "charged_minor")), e);
        if (code == 0 && of != NULL)
            code = jdoc_put(of, "declined",
                            json_incref(json_object_get(row, "declined_minor")), e);
        json_decref(row);
    }
    for (size_t i = 0; code == 0 && i < sizeof keys / sizeof keys[0]; i++)
        code = jdoc_put(billing, keys[i], json_integer(jdoc_int(sum, keys[i])), e);
    json_decref(sum);
    pg_result_free(res);
    return code;
}

static int add_money(struct pg *pg, json_t *money, struct err *e)
{
    struct pg_result *res = NULL;
    int code = pg_exec(pg, SQL_AUDIT_TOTALS_MONEY, NULL, 0, &res, e);

    for (size_t i = 0; code == 0 && i < pg_rows(res); i++) {
        json_t *of = jdoc_sums(res, i, 1, pg_columns(res) - 1);

        code = jdoc_put(money, pg_get_text(res, i, 0), of, e);
        if (code == 0)
            code = jdoc_put(of, "charged", json_integer(0), e);
        if (code == 0)
            code = jdoc_put(of, "declined", json_integer(0), e);
    }
    pg_result_free(res);
    return code;
}

static int add_twice(struct pg *pg, json_t *billing, struct err *e)
{
    struct pg_result *res;
    int64_t twice;

    if (pg_exec(pg, SQL_AUDIT_TOTALS_TWICE, NULL, 0, &res, e) != 0)
        return (int)e->code;
    twice = pg_get_int8(res, 0, 0);
    pg_result_free(res);
    return jdoc_put(billing, "charged_twice", json_integer(twice), e);
}

static int add_totals(struct pg *pg, const char *now, json_t *totals, struct err *e)
{
    json_t *billing = json_object();
    json_t *money = json_object();
    int code = jdoc_put(totals, "billing", billing, e);

    if (code == 0)
        code = add(pg, SQL_AUDIT_TOTALS_STOCK, SHAPE_SUMS, totals, "stock", e);
    if (code == 0)
        code = add(pg, SQL_AUDIT_TOTALS_ORDERS, SHAPE_ROW, totals, "orders", e);
    if (code == 0)
        code = add(pg, SQL_AUDIT_TOTALS_REASONS, SHAPE_PAIRS,
                   json_object_get(totals, "orders"), "rejected_by_reason", e);
    if (code == 0)
        code = add_money(pg, money, e);
    if (code == 0)
        code = add_billing(pg, now, billing, money, e);
    if (code == 0)
        code = add_twice(pg, billing, e);
    if (code == 0)
        code = add(pg, SQL_AUDIT_TOTALS_SUBSCRIPTIONS, SHAPE_PAIRS, billing,
                   "subscriptions", e);
    if (code != 0) {
        json_decref(money);
        return code;
    }
    code = jdoc_put(totals, "money", money, e);
    if (code == 0)
        code = add(pg, SQL_AUDIT_TOTALS_LOCKS, SHAPE_ROW, totals, "locks", e);
    if (code == 0)
        code = add(pg, SQL_AUDIT_TOTALS_INCIDENTS, SHAPE_PAIRS, totals, "incidents", e);
    return code;
}

/* ---- the whole ---- */

static int
begin(struct pg *pg, const struct audit_request *request, json_t *doc, struct err *e)
{
    struct pg_param params[] = {pg_text(request->now), pg_int8(request->lag_s)};
    struct pg_result *res;
    int code;

    if (pg_begin_snapshot(pg, e) != 0)
        return (int)e->code;
    if (pg_exec(pg, SQL_AUDIT_BEGIN, params, 2, &res, e) != 0) {
        if (strncmp(e->sqlstate, "22", 2) == 0)
            e->code = ERR_INVALID;
        return (int)e->code;
    }
    if (pg_get_int8(res, 0, 1) == 0)
        code = err_set(e, ERR_INVALID, "--now must be an instant, not infinity");
    else
        code = jdoc_put(doc, "now", json_string(pg_get_text(res, 0, 0)), e);
    pg_result_free(res);
    if (code == 0)
        code = jdoc_put(doc, "lag_s", json_integer(request->lag_s), e);
    return code;
}

int audit_gather(struct pg *pg,
                 const struct audit_request *request,
                 json_t **out,
                 struct err *e)
{
    json_t *doc = json_object();
    json_t *totals = json_object();
    bool ok = true;
    /* "ok" is put first, so that it leads the document, and again with its value */
    int code = jdoc_put(doc, "ok", json_true(), e);

    *out = NULL;
    if (code == 0)
        code = begin(pg, request, doc, e);
    if (code == 0)
        code = check_all(pg, doc, &ok, e);
    if (code == 0)
        code = add_totals(pg, jdoc_text(doc, "now"), totals, e);
    pg_rollback(pg); /* it was read only */
    if (code == 0)
        code = jdoc_put(doc, "totals", json_incref(totals), e);
    if (code == 0)
        code = jdoc_put(doc, "ok", json_boolean(ok), e);
    json_decref(totals);
    if (code != 0) {
        json_decref(doc);
        return code;
    }
    *out = doc;
    return 0;
}
