/* audit_merge: adds documents of one form. */
#include "ops/audit/audit_merge.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "common/base/digits.h"
#include "ops/cells/cells_moves.h"
#include "ops/cli/json.h"

enum { EXAMPLES = 5 };

/* ---- numbers ---- */

/* Sums of 64-bit numbers fit into it, however many there are. */
__extension__ typedef __int128 wide;
__extension__ typedef unsigned __int128 wide_unsigned;

static wide number_of(const json_t *value)
{
    const char *p = json_string_value(value);
    wide n = 0;
    bool is_negative = p != NULL && *p == '-';

    if (p == NULL)
        return json_integer_value(value);
    for (p += is_negative; *p >= '0' && *p <= '9'; p++)
        n = n * 10 + (*p - '0');
    return is_negative ? -n : n;
}

/* As doc_sums: an integer if it fits, else a text of digits. */
static json_t *json_of(wide n)
{
    char digits[48], *p = digits + sizeof digits - 1;
    wide_unsigned left = n < 0 ? -(wide_unsigned)n : (wide_unsigned)n;

    if (n >= INT64_MIN && n <= INT64_MAX)
        return json_integer((json_int_t)n);
    *p = '\0';
    for (; left > 0; left /= 10)
        *--p = (char)('0' + (int)(left % 10));
    if (n < 0)
        *--p = '-';
    return json_string(p);
}

/* ---- totals ---- */

/* Adds what `more` has to `sums`: numbers, and objects of them. */
static int add(json_t *sums, json_t *more, struct err *e)
{
    const char *key;
    json_t *value;

    json_object_foreach(more, key, value)
    {
        json_t *sum = json_object_get(sums, key);

        if (json_is_object(value) && sum == NULL &&
            doc_put(sums, key, sum = json_object(), e) != 0)
            return (int)e->code;
        if (json_is_object(value)
                ? add(sum, value, e) != 0
                : doc_put(sums, key, json_of(number_of(sum) + number_of(value)), e) !=
                      0)
            return (int)e->code;
    }
    return 0;
}

/* ---- invariants ---- */

/* The examples of the first cells. */
static int add_examples(json_t *all, const json_t *of, int64_t cell, struct err *e)
{
    const json_t *examples = json_object_get(of, "examples");
    int code = 0;

    for (size_t i = 0;
         code == 0 && i < json_array_size(examples) && json_array_size(all) < EXAMPLES;
         i++)
        code = doc_append(all,
                          json_sprintf("cell %" PRId64 ": %s", cell,
                                       json_string_value(json_array_get(examples, i))),
                          e);
    return code;
}

static int add_invariant(json_t *sum, const json_t *of, int64_t cell, struct err *e)
{
    bool holds = json_is_true(json_object_get(sum, "holds")) &&
                 json_is_true(json_object_get(of, "holds"));
    int64_t n = doc_int(sum, "violations") + doc_int(of, "violations");

    if (doc_put(sum, "holds", json_boolean(holds), e) != 0 ||
        doc_put(sum, "violations", json_integer(n), e) != 0)
        return (int)e->code;
    return add_examples(json_object_get(sum, "examples"), of, cell, e);
}

/* The invariants of the first cell are the names for all: the program is the same. */
static int add_invariants(json_t *sums, const json_t *of, int64_t cell, struct err *e)
{
    int code = 0;

    for (size_t i = 0; code == 0 && i < json_array_size(of); i++) {
        const json_t *one = json_array_get(of, i);
        json_t *sum = json_array_get(sums, i);

        if (sum == NULL) {
            sum = json_pack("{s:O,s:O,s:b,s:i,s:[]}", "name",
                            json_object_get(one, "name"), "sentence",
                            json_object_get(one, "sentence"), "holds", true,
                            "violations", 0, "examples");
            code = doc_append(sums, sum, e);
        }
        if (code == 0)
            code = add_invariant(sum, one, cell, e);
    }
    return code;
}

/* ---- the whole ---- */

int audit_count_foreign(const struct config *of_cell,
                        struct pg *pg,
                        json_t *doc,
                        struct err *e)
{
    const struct pg_param cell = pg_int8(of_cell->cell);
    int64_t n = 0;

    if (pg_ask(pg, SQL_CELLS_COUNT_FOREIGN, &cell, 1, &n, e) != 0)
        return (int)e->code;
    return doc_put(doc, "foreign_ids", json_integer(n), e);
}

static int add_ids(json_t *doc,
                   const struct cells *cells,
                   const struct cell_answer *answers,
                   struct err *e)
{
    json_t *examples = json_array();
    long long all = 0;
    int code = 0;

    for (size_t i = 0; code == 0 && i < cells->n; i++) {
        long long n = doc_int(answers[i].doc, "foreign_ids");

        all += n;
        if (n > 0)
            code = doc_append(
                examples,
                json_sprintf("cell %" PRId64 ": %lld rows", cells->of[i].number, n), e);
    }
    if (code == 0)
        code = doc_append(
            json_object_get(doc, "invariants"),
            json_pack(
                "{s:s,s:s,s:b,s:I,s:O}", "name", "ids_are_of_their_cell", "sentence",
                "Users, subscriptions, orders and SKUs have numbers of "
                "their cell, so no number is given out twice.",
                "holds", all == 0, "violations", (json_int_t)all, "examples", examples),
            e);
    json_decref(examples);
    return code;
}

static int
add_cell(json_t *doc, const struct cell *cell, const json_t *of, struct err *e)
{
    char number[24];

    (void)snprintf(number, sizeof number, "%" PRId64, cell->number);
    if (doc_put(json_object_get(doc, "cells"), number,
                json_pack("{s:O,s:O}", "ok", json_object_get(of, "ok"), "now",
                          json_object_get(of, "now")),
                e) != 0 ||
        add_invariants(json_object_get(doc, "invariants"),
                       json_object_get(of, "invariants"), cell->number, e) != 0)
        return (int)e->code;
    return add(json_object_get(doc, "totals"), json_object_get(of, "totals"), e);
}

static int add_moves(json_t *doc,
                     const struct config *c,
                     const struct cells *cells,
                     int64_t lag_s,
                     struct err *e)
{
    json_t *invariant = NULL;
    int64_t under_way = 0;

    if (cells_compare_moves(c, cells, lag_s, &invariant, &under_way, e) != 0 ||
        doc_append(json_object_get(doc, "invariants"), invariant, e) != 0)
        return (int)e->code;
    return doc_put(json_object_get(json_object_get(doc, "totals"), "stock"),
                   "under_way", json_integer(under_way), e);
}

static bool all_hold(const json_t *doc)
{
    const json_t *rows = json_object_get(doc, "invariants");

    for (size_t i = 0; i < json_array_size(rows); i++) {
        if (!json_is_true(json_object_get(json_array_get(rows, i), "holds")))
            return false;
    }
    return true;
}

int audit_merge(const struct config *c,
                const struct cells *cells,
                cells_read_one *gather,
                int64_t lag_s,
                json_t **out,
                struct err *e)
{
    static struct cell_answer answers[CELLS_MAX];
    json_t *doc;

    cells_gather(c, cells, gather, answers);
    for (size_t i = 0; i < cells->n && e->code == 0; i++) {
        if (answers[i].e.code != 0) {
            *e = answers[i].e;
            (void)err_wrap(e, "cell %" PRId64, cells->of[i].number);
        }
    }
    doc = json_pack("{s:b,s:O*,s:I,s:{},s:[],s:{}}", "ok", true, "now",
                    json_object_get(answers[0].doc, "now"), "lag_s", (json_int_t)lag_s,
                    "cells", "invariants", "totals");
    for (size_t i = 0; i < cells->n && e->code == 0; i++)
        (void)!add_cell(doc, &cells->of[i], answers[i].doc, e);
    if (e->code == 0)
        (void)!add_ids(doc, cells, answers, e);
    cells_free(cells, answers);
    if (e->code == 0 && add_moves(doc, c, cells, lag_s, e) == 0)
        (void)!doc_put(doc, "ok", json_boolean(all_hold(doc)), e);
    *out = e->code == 0 ? doc : NULL;
    if (e->code != 0)
        json_decref(doc);
    return (int)e->code;
}
