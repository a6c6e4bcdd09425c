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
    int code = put(to, move, true, &left[1], e);

    if (code == 0)
        code = put(from, move, false, &left[0], e);
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
    json_t *came, *left; /* quantities */
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

static int note(struct ledger *l, const char *what, const char *detail, struct err *e)
{
    char text[700];

    l->violations++;
    if (json_array_size(l->examples) >= EXAMPLES)
        return 0;
    (void)snprintf(text, sizeof text, "%.*s: %s", (int)strcspn(what, "\1"), what,
                   detail);
    return doc_append(l->examples, doc_string(text), e);
}

/* A move that left and did not come is under way for a while, as between two commits.
 */
static int
leave(struct ledger *l, const char *what, int64_t qty, int64_t age_s, struct err *e)
{
    const json_t *other = json_object_get(l->came, what);
    char detail[160];

    if (json_object_get(l->left, what) == NULL &&
        doc_put(l->left, what, json_integer(qty), e) != 0)
        return (int)e->code;
    if (other != NULL && json_integer_value(other) == qty)
        return 0;
    if (other != NULL) {
        (void)snprintf(detail, sizeof detail, "%" PRId64 " units left, %lld came", qty,
                       json_integer_value(other));
        return note(l, what, detail, e);
    }
    l->units += qty;
    if (age_s < l->lag_s)
        return 0;
    (void)snprintf(detail, sizeof detail,
                   "%" PRId64 " units left %" PRId64 " s ago and did not come; run "
                   "move-stock again with this key",
                   qty, age_s);
    return note(l, what, detail, e);
}

static int
read_side(struct ledger *l, struct pg *pg, int64_t cell, bool came, struct err *e)
{
    const struct pg_param param = pg_int8(came);
    struct pg_result *res;
    int code = pg_exec(pg, SQL_CELLS_LIST_MOVES, &param, 1, &res, e);

    for (size_t i = 0; code == 0 && i < pg_rows(res); i++) {
        int64_t other = pg_get_int8(res, i, 0), qty = pg_get_int8(res, i, 3);
        char what[600];

        if (!is_listed(l->cells, other))
            continue;
        (void)snprintf(what, sizeof what,
                       "from %" PRId64 " to %" PRId64 ", key %s, SKU %s\1%zu",
                       came ? other : cell, came ? cell : other, pg_get_text(res, i, 2),
                       pg_get_text(res, i, 1), strlen(pg_get_text(res, i, 2)));
        code = came ? doc_put(l->came, what, json_integer(qty), e)
                    : leave(l, what, qty, pg_get_int8(res, i, 4), e);
    }
    pg_result_free(res);
    return code;
}

/* The entry that comes is committed after the one that left: read in this order, both
 * sides of a whole move are seen, however many are made meanwhile. */
static int read_all(struct ledger *l, const struct config *c, bool came, struct err *e)
{
    static struct config of_cell;
    int code = 0;

    for (size_t i = 0; code == 0 && i < l->cells->n; i++) {
        struct pg *pg = NULL;

        cells_enter(c, &l->cells->of[i], &of_cell);
        code = cli_connect(&of_cell, "audit", &pg, e);
        if (code == 0)
            code = read_side(l, pg, of_cell.cell, came, e);
        if (code != 0)
            (void)err_wrap(e, "cell %" PRId64, of_cell.cell);
        pg_close(pg);
    }
    return code;
}

static int find_made_up(struct ledger *l, struct err *e)
{
    const char *what;
    json_t *qty;

    json_object_foreach(l->came, what, qty)
    {
        if (json_object_get(l->left, what) == NULL &&
            note(l, what, "they came and never left", e) != 0)
            return (int)e->code;
    }
    return 0;
}

int cells_compare_moves(const struct config *c,
                        const struct cells *cells,
                        int64_t lag_s,
                        json_t **invariant,
                        int64_t *under_way,
                        struct err *e)
{
    struct ledger l = {.cells = cells,
                       .came = json_object(),
                       .left = json_object(),
                       .lag_s = lag_s,
                       .examples = json_array()};

    *invariant = NULL;
    if (read_all(&l, c, true, e) == 0 && read_all(&l, c, false, e) == 0 &&
        find_made_up(&l, e) == 0)
        *invariant = json_pack(
            "{s:s,s:s,s:b,s:I,s:O}", "name", "units_moved_arrive", "sentence",
            "Units that left a cell came to the other under the same key, within the lag, "
            "and none came that did not leave.",
            "holds", l.violations == 0, "violations", (json_int_t)l.violations,
            "examples", l.examples);
    if (e->code == 0 && *invariant == NULL)
        (void)err_set(e, ERR_NOMEM, "LL-9001 out of memory");
    *under_way = l.units;
    json_decref(l.came);
    json_decref(l.left);
    json_decref(l.examples);
    return (int)e->code;
}
