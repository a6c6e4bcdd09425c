/* audit_gather: the snapshot, the invariants, the totals, as one JSON document. */
#include <string.h>

#include "audit_gen.h"
#include "worker/audit_share.h"
#include "worker/audit_totals.h"
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

/* ---- the statements ---- */

/* What the answers are put into, in whatever order they come. */
struct gathered {
    struct audit_statement statements[AUDIT_COUNT + AUDIT_TOTAL_COUNT];
    struct pg_result *totals[AUDIT_TOTAL_COUNT];
    json_t *invariants[AUDIT_COUNT];
    /* place among the statements to place in one of the two, totals behind invariants
     */
    size_t order[AUDIT_COUNT + AUDIT_TOTAL_COUNT];
    size_t n;
};

static void plan_invariant(struct gathered *g, size_t i)
{
    g->order[g->n] = i;
    g->statements[g->n++] = (struct audit_statement){
        .name = audit_texts[i].path, .text = (const char *)audit_texts[i].text};
}

/* The longest first, or the last connection would be left alone with one of them. */
static void plan(struct gathered *g)
{
    /* over a million charges and as many order lines, each half a second or more */
    static const enum audit_id longest[] = {
        AUDIT_BALANCE_IS_SUM_OF_TRANSFERS,
        AUDIT_BOUNDARIES_FROM_ANCHOR,
        AUDIT_USER_FENCE_COVERS_EFFECTS,
        AUDIT_CHARGE_HAS_ITS_TRANSFER,
        AUDIT_CHARGE_MATCHES_SUBSCRIPTION,
        AUDIT_FULFILLED_ORDER_HAS_ITS_MOVEMENTS,
        AUDIT_PERIODS_CONTIGUOUS,
        AUDIT_SUBSCRIPTION_HAS_ITS_WALLET,
        AUDIT_ONE_SUBSCRIPTION_PER_CONTRACT,
        AUDIT_ONE_TRANSFER_PER_SOURCE,
        AUDIT_NEXT_PERIOD_RIGHT,
        AUDIT_ORDER_TOTAL_IS_ITS_LINES,
    };

    enum { LONGEST = sizeof longest / sizeof longest[0] };

    bool planned[AUDIT_COUNT] = {false};

    for (size_t i = 0; i < AUDIT_TOTAL_COUNT; i++) {
        if (audit_totals[i].id == SQL_AUDIT_TOTALS_TWICE)
            continue; /* see count_twice */
        g->order[g->n] = AUDIT_COUNT + i;
        g->statements[g->n++] = (struct audit_statement){
            .id = audit_totals[i].id, .takes_now = audit_totals[i].takes_now};
    }
    for (size_t i = 0; i < LONGEST; i++) {
        planned[longest[i]] = true;
        plan_invariant(g, longest[i]);
    }
    for (size_t i = 0; i < AUDIT_COUNT; i++) {
        if (!planned[i])
            plan_invariant(g, i);
    }
}

/* Totals are kept until all are there; of an invariant, which may be broken a million
 * times, only what the document says. */
static int take(void *arg, size_t place, struct pg_result *res, struct err *e)
{
    struct gathered *g = arg;
    size_t i = g->order[place];
    int code;

    if (i >= AUDIT_COUNT) {
        g->totals[i - AUDIT_COUNT] = res;
        return 0;
    }
    g->invariants[i] = json_object();
    code = describe(g->invariants[i], &audit_texts[i], res, e);
    pg_result_free(res);
    return code;
}

static bool holds(const struct gathered *g, enum audit_id id)
{
    return json_is_true(json_object_get(g->invariants[id], "holds"));
}

/* Where no key stands twice nothing was charged twice, and the same two indexes need
 * not be walked again to say so: the total is then left without rows. */
static int count_twice(struct gathered *g, struct pg *pg, struct err *e)
{
    size_t i = 0;

    if (holds(g, AUDIT_ONE_CHARGE_PER_PERIOD) &&
        holds(g, AUDIT_ONE_TRANSFER_PER_SOURCE))
        return 0;
    while (audit_totals[i].id != SQL_AUDIT_TOTALS_TWICE)
        i++;
    return pg_exec(pg, SQL_AUDIT_TOTALS_TWICE, NULL, 0, &g->totals[i], e);
}

static int put_invariants(struct gathered *g, json_t *doc, bool *ok, struct err *e)
{
    json_t *invariants = json_array();
    int code = jdoc_put(doc, "invariants", invariants, e);

    for (size_t i = 0; code == 0 && i < AUDIT_COUNT; i++) {
        *ok = *ok && holds(g, (enum audit_id)i);
        code = jdoc_append(invariants, json_incref(g->invariants[i]), e);
    }
    return code;
}

static int put_totals(struct gathered *g, json_t *doc, struct err *e)
{
    json_t *totals = json_object();
    int code = jdoc_put(doc, "totals", totals, e);

    for (size_t i = 0; code == 0 && i < AUDIT_TOTAL_COUNT; i++)
        code = audit_totals[i].add(totals, g->totals[i], e);
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

static int gather(struct pg *pg,
                  const struct audit_request *request,
                  struct gathered *g,
                  json_t *doc,
                  struct err *e)
{
    bool ok = true;
    /* "ok" is put first, so that it leads the document, and again with its value */
    int code = jdoc_put(doc, "ok", json_true(), e);

    if (code == 0)
        code = begin(pg, request, doc, e);
    if (code == 0) {
        const struct audit_share share = {
            pg, request, jdoc_text(doc, "now"), g->statements, g->n, take, g};

        code = audit_share_run(&share, e);
    }
    if (code == 0)
        code = count_twice(g, pg, e);
    if (code == 0)
        code = put_invariants(g, doc, &ok, e);
    if (code == 0)
        code = put_totals(g, doc, e);
    return code == 0 ? jdoc_put(doc, "ok", json_boolean(ok), e) : code;
}

int audit_gather(struct pg *pg,
                 const struct audit_request *request,
                 json_t **out,
                 struct err *e)
{
    struct gathered g = {.n = 0};
    json_t *doc = json_object();
    int code;

    *out = NULL;
    plan(&g);
    code = gather(pg, request, &g, doc, e);
    pg_rollback(pg); /* it was read only */
    for (size_t i = 0; i < AUDIT_COUNT; i++)
        json_decref(g.invariants[i]);
    for (size_t i = 0; i < AUDIT_TOTAL_COUNT; i++)
        pg_result_free(g.totals[i]);
    if (code != 0) {
        json_decref(doc);
        return code;
    }
    *out = doc;
    return 0;
}
