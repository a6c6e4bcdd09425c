/* cells_moves: two entries under one key. */
#include "ops/cells/cells_moves.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "ops/cli/cli.h"
#include "ops/cli/json.h"

enum { EXAMPLES = 5 };

/* ---- one move ---- */

static int
put(struct pg *pg, const struct cell_move *m, bool is_to, int64_t *left, struct err *e)
{
    const struct pg_param params[] = {
        pg_text(m->sku), pg_int8(is_to ? m->qty : -m->qty), pg_text(m->key),
        pg_int8(is_to ? m->from : m->to)};

    if (pg_begin(pg, e) != 0 ||
        pg_ask(pg, SQL_CELLS_MOVE_UNITS, params, 4, left, e) != 0) {
        if (strncmp(e->sqlstate, "LL0", 3) == 0)
            e->code = strcmp(e->sqlstate, "LL003") == 0 ? ERR_REFUSED : ERR_INVALID;
        return err_wrap(e, "cell %" PRId64, is_to ? m->to : m->from);
    }
    return 0;
}

int cells_move(struct pg *from,
               struct pg *to,
               const struct cell_move *move,
               int64_t left[2],
               struct err *e)
{
    bool is_up = move->from < move->to; /* two moves never wait for each other */
    int code = put(is_up ? from : to, move, !is_up, &left[!is_up], e);

    if (code == 0)
        code = put(is_up ? to : from, move, is_up, &left[is_up], e);
    if (code == 0 && pg_commit(from, e) != 0)
        code = err_wrap(e, "cell %" PRId64, move->from);
    if (code == 0 && pg_commit(to, e) != 0)
        code = err_wrap(e,
                        "the units left cell %" PRId64
                        ", and did not come to cell %" PRId64
                        " yet: run it again with the same key",
                        move->from, move->to);
    pg_rollback(from);
    pg_rollback(to);
    return code;
}

/* ---- all of them ---- */

/* Sides of a move by their words. Behind these, and not shown, is the length of the
 * key, so that no two moves have the same. */
struct ledger {
    const struct cells *cells;
    json_t *before, *left, *came; /* quantities; of those that left with their age */
    int64_t lag_s, units, violations;
    json_t *examples;
};

static bool is_listed(const struct cells *cells, int64_t number)
{
    for (size_t i = 0; i < cells->n; i++) {
        if (cells->of[i].number == number)
            return true;
    }
    return false;
}

static int note(struct ledger *l, const char *what, json_t *detail, struct err *e)
{
    json_t *text = json_sprintf("%.*s: %s", (int)strcspn(what, "\1"), what,
                                json_string_value(detail));

    json_decref(detail);
    l->violations++;
    if (json_array_size(l->examples) < EXAMPLES)
        return doc_append(l->examples, text, e);
    json_decref(text);
    return 0;
}

/* The entries of one side in a cell. */
static int read_side(
    json_t *into, const struct ledger *l, struct pg *pg, int64_t cell, struct err *e)
{
    const struct pg_param param = pg_int8(into != l->left);
    struct pg_result *res;
    int code = pg_exec(pg, SQL_CELLS_LIST_MOVES, &param, 1, &res, e);

    for (size_t i = 0; code == 0 && i < pg_rows(res); i++) {
        int64_t other = pg_get_int8(res, i, 0), qty = pg_get_int8(res, i, 3);
        const char *key = pg_get_text(res, i, 2);
        json_t *what;

        if (!is_listed(l->cells, other))
            continue;
        what =
            json_sprintf("from %" PRId64 " to %" PRId64 ", key %s, SKU %s\1%zu",
                         into != l->left ? other : cell, into != l->left ? cell : other,
                         key, pg_get_text(res, i, 1), strlen(key));
        code = what == NULL
                   ? err_set(e, ERR_NOMEM, "LL-9001 out of memory")
                   : doc_put(into, json_string_value(what),
                             into == l->left
                                 ? json_pack("[I,I]", (json_int_t)qty,
                                             (json_int_t)pg_get_int8(res, i, 4))
                                 : json_integer(qty),
                             e);
        json_decref(what);
    }
    pg_result_free(res);
    return code;
}

static int
read_all(json_t *into, const struct ledger *l, const struct config *c, struct err *e)
{
    static struct config of_cell;
    int code = 0;

    for (size_t i = 0; code == 0 && i < l->cells->n; i++) {
        struct pg *pg = NULL;

        cells_enter(c, &l->cells->of[i], &of_cell);
        code = cli_connect(&of_cell, "audit", &pg, e);
        if (code == 0)
            code = read_side(into, l, pg, of_cell.cell, e);
        if (code != 0)
            (void)err_wrap(e, "cell %" PRId64, of_cell.cell);
        pg_close(pg);
    }
    return code;
}

/* A move that left and did not come is under way for a while, as between two commits.
 */
static int
check_left(struct ledger *l, const char *what, const json_t *left, struct err *e)
{
    int64_t qty = json_integer_value(json_array_get(left, 0));
    int64_t age_s = json_integer_value(json_array_get(left, 1));
    const json_t *came = json_object_get(l->came, what);

    if (came != NULL && json_integer_value(came) != qty)
        return note(l, what,
                    json_sprintf("%" PRId64 " units left, %lld came", qty,
                                 json_integer_value(came)),
                    e);
    if (came != NULL)
        return 0;
    l->units += qty;
    if (age_s < l->lag_s)
        return 0;
    return note(
        l, what,
        json_sprintf("%" PRId64 " units left %" PRId64
                     " s ago and did not come; run move-stock again with this key",
                     qty, age_s),
        e);
}

static int check_all(struct ledger *l, struct err *e)
{
    const char *what;
    json_t *of;

    json_object_foreach(l->left, what, of)
    {
        if (check_left(l, what, of, e) != 0)
            return (int)e->code;
    }
    json_object_foreach(l->before, what, of)
    {
        if (json_object_get(l->left, what) == NULL &&
            note(l, what, json_string("they came and never left"), e) != 0)
            return (int)e->code;
    }
    return 0;
}

/* The entry that comes is committed after the one that left. So all that came before is
 * to have left, and all that left is to have come by then, however many are made
 * meanwhile. */
int cells_compare_moves(const struct config *c,
                        const struct cells *cells,
                        int64_t lag_s,
                        json_t **invariant,
                        int64_t *under_way,
                        struct err *e)
{
    struct ledger l = {.cells = cells,
                       .before = json_object(),
                       .left = json_object(),
                       .came = json_object(),
                       .lag_s = lag_s,
                       .examples = json_array()};

    *invariant = NULL;
    if (read_all(l.before, &l, c, e) == 0 && read_all(l.left, &l, c, e) == 0 &&
        read_all(l.came, &l, c, e) == 0 && check_all(&l, e) == 0)
        *invariant = json_pack(
            "{s:s,s:s,s:b,s:I,s:O}", "name", "units_moved_arrive", "sentence",
            "Units that left a cell came to the other under the same key, within the lag, "
            "and none came that did not leave.",
            "holds", l.violations == 0, "violations", (json_int_t)l.violations,
            "examples", l.examples);
    if (e->code == 0 && *invariant == NULL)
        (void)err_set(e, ERR_NOMEM, "LL-9001 out of memory");
    *under_way = l.units;
    json_decref(l.before);
    json_decref(l.left);
    json_decref(l.came);
    json_decref(l.examples);
    return (int)e->code;
}
