/* import_store: makes the real rows from the staging tables, one statement a step. */
#include <string.h>

#include "common/base/utf8.h"
#include "ops/cli/cli.h"
#include "ops/import/import_steps.h"

enum { REFUSED_MAX = 1000 };

/* The numbers by which a step is cut in parts, in the order of the columns of
 * import_count_parts, which has the last of each, and behind these the first. */
enum numbered { BY_HEAD, BY_SUBSCRIPTION, NUMBERED, AT_ONCE = NUMBERED };

enum { PARTS_MAX = 50, PART_MIN = 20000 };

/* In this order: all checks against the database come before the first user is made. A
 * statement takes some of the parameters currency, now and deposit, then, if it is cut,
 * the numbers of its part, and returns one row of numbers or none. */
/* clang-format off */
static const struct step {
    const struct sql_text *sql;
    size_t param, param_ct;    /* the first, and how many */
    enum import_count number;  /* where the first number goes */
    enum numbered parts;
    const char *what;
} steps[] = {
    {SQL_IMPORT_LOCK_TABLES,          0, 0, IMPORT_NOTHING,           AT_ONCE, "waiting for closings of months"},
    {SQL_IMPORT_REFUSE_STOCK,         0, 1, IMPORT_NOTHING,           AT_ONCE, "checking SKUs"},
    {SQL_IMPORT_PUT_STOCK,            0, 1, IMPORT_STOCK_NEW,         AT_ONCE, "storing SKUs"},
    {SQL_IMPORT_REFUSE_SUBSCRIPTIONS, 0, 1, IMPORT_NOTHING,           AT_ONCE, "checking subscriptions"},
    {SQL_IMPORT_REFUSE_CURRENCY,      0, 1, IMPORT_NOTHING,           AT_ONCE, "checking currencies"},
    {SQL_IMPORT_REFUSE_LARGE,         0, 0, IMPORT_NOTHING,           AT_ONCE, "checking sizes of orders"},
    {SQL_IMPORT_REFUSE_CLOSED,        0, 0, IMPORT_NOTHING,           AT_ONCE, "checking months"},
    {SQL_IMPORT_MAKE_HEADS,           0, 0, IMPORT_NOTHING,           AT_ONCE, "numbering orders"},
    {SQL_IMPORT_ANALYZE_HEADS,        0, 0, IMPORT_NOTHING,           AT_ONCE, "numbering orders"},
    {SQL_IMPORT_REFUSE_ORDERS,        0, 0, IMPORT_NOTHING,           AT_ONCE, "checking orders"},
    {SQL_IMPORT_SKIP_ORDERS,          0, 0, IMPORT_ORDERS_SAME,       AT_ONCE, "checking orders"},
    {SQL_IMPORT_MAKE_USERS,           0, 3, IMPORT_USERS_NEW,         AT_ONCE, "storing users"},
    {SQL_IMPORT_PUT_SUBSCRIPTIONS,    0, 1, IMPORT_SUBSCRIPTIONS_NEW, BY_SUBSCRIPTION, "storing subscriptions"},
    {SQL_IMPORT_PUT_ORDERS,           0, 2, IMPORT_ORDERS_NEW,        BY_HEAD, "storing orders"},
    {SQL_IMPORT_PUT_LINES,            0, 0, IMPORT_LINES,             BY_HEAD, "storing order lines"},
};

/* clang-format on */

/* The part has the numbers above `after`, up to `to`. */
static int run(struct import *im,
               const struct step *step,
               int64_t after,
               int64_t to,
               struct err *e)
{
    const struct pg_param all[] = {pg_text(im->currency), pg_text(im->now),
                                   pg_int8(im->deposit_minor)};
    struct pg_param params[5];
    size_t n = step->param_ct;
    struct pg_result *res;

    memcpy(params, &all[step->param], n * sizeof params[0]);
    if (step->parts != AT_ONCE) {
        params[n++] = pg_int8(after);
        params[n++] = pg_int8(to);
    }
    if (pg_exec(im->pg, step->sql, params, n, &res, e) != 0)
        return (int)e->code;
    for (size_t i = 0;
         pg_rows(res) > 0 && i < pg_columns(res) && i < IMPORT_COUNTS - step->number;
         i++)
        im->counts[step->number + i] += pg_get_int8(res, 0, i);
    pg_result_free(res);
    return 0;
}

/* In few parts, since each may read the staging tables from end to end. */
static int run_parts(struct import *im, const struct step *step, struct err *e)
{
    struct pg_result *res;
    int64_t first, last, part;
    int code = 0;

    if (step->parts == AT_ONCE)
        return run(im, step, 0, 0, e);
    if (pg_exec(im->pg, SQL_IMPORT_COUNT_PARTS, NULL, 0, &res, e) != 0)
        return (int)e->code;
    last = pg_get_int8(res, 0, step->parts);
    first = pg_get_int8(res, 0, NUMBERED + step->parts);
    pg_result_free(res);
    part = last / PARTS_MAX > PART_MIN ? last / PARTS_MAX : PART_MIN;
    for (int64_t done = first - 1; code == 0 && done < last; done += part) {
        cli_progress_of(done, last);
        code = run(im, step, done, done + part, e);
    }
    return code;
}

static int run_all(struct import *im, struct err *e)
{
    const size_t step_ct = sizeof steps / sizeof steps[0];
    int code = 0;

    for (size_t i = 0; code == 0 && i < step_ct; i++) {
        if (im->refused_ct == 0)
            cli_progress("%s, step %zu of %zu", steps[i].what, i + 1, step_ct);
        code = run_parts(im, &steps[i], e);
    }
    return code;
}

/* ---- lines that the database refuses, found by halves ---- */

/* All steps over what is shown; after an error of data nothing of it is there. */
static int try_all(struct import *im, struct err *e)
{
    int64_t before[IMPORT_COUNTS];
    struct err ignored = {0};

    memcpy(before, im->counts, sizeof before);
    if (pg_savepoint(im->pg, e) != 0)
        return (int)e->code;
    if (run_all(im, e) == 0)
        return pg_release(im->pg, e);
    memcpy(im->counts, before, sizeof before);
    if (e->code == ERR_CONSTRAINT && pg_rollback_to(im->pg, &ignored) != 0)
        *e = ignored;
    return (int)e->code;
}

static int refuse_shown(struct import *im, struct err *e)
{
    char reason[sizeof e->msg] = "";
    const struct pg_param param = pg_text(reason);

    (void)snprintf(reason, sizeof reason, "the database refuses it: %.900s",
                   err_words(e));
    utf8_cut(reason);
    if (++im->refused_ct > REFUSED_MAX) {
        e->code = ERR_INVALID;
        return err_wrap(e, "more than %d lines are refused, so nothing was imported",
                        REFUSED_MAX);
    }
    *e = (struct err){0};
    cli_progress("storing: the database refuses %zu so far", im->refused_ct);
    return pg_exec(im->pg, SQL_IMPORT_REFUSE_SHOWN, &param, 1, NULL, e);
}

/* Stores the items of a range but those that are refused by themselves. */
static int store_range(struct import *im, int64_t first, int64_t last, struct err *e)
{
    const struct pg_param range[] = {pg_int8(first), pg_int8(last)};
    int64_t middle = first + (last - first) / 2;

    if (pg_exec(im->pg, SQL_IMPORT_SHOW_ITEMS, range, 2, NULL, e) != 0 ||
        try_all(im, e) == 0 || e->code != ERR_CONSTRAINT)
        return (int)e->code;
    if (first == last)
        return refuse_shown(im, e);
    *e = (struct err){0};
    return store_range(im, first, middle, e) != 0
               ? (int)e->code
               : store_range(im, middle + 1, last, e);
}

/* Only one of many may be at fault. */
static int store_divided(struct import *im, struct err *e)
{
    int64_t items;

    *e = (struct err){0};
    if (pg_exec(im->pg, SQL_IMPORT_DIVIDE, NULL, 0, NULL, e) != 0 ||
        pg_ask(im->pg, SQL_IMPORT_COUNT_ITEMS, NULL, 0, &items, e) != 0)
        return (int)e->code;
    return items > 0 ? store_range(im, 1, items, e) : 0;
}

/* ---- all of it ---- */

/* Reads page by page: any number of lines may be bad. */
static int report_refused(struct import *im, enum import_kind_id id, struct err *e)
{
    struct pg_param params[] = {pg_text(import_kinds[id].name), pg_int8(0)};
    struct pg_result *res;
    size_t n;

    do {
        if (pg_exec(im->pg, SQL_IMPORT_LIST_BAD, params, 2, &res, e) != 0)
            return (int)e->code;
        n = pg_rows(res);
        for (size_t i = 0; i < n; i++) {
            const char *raw = pg_get_text(res, i, 2);

            params[1] = pg_int8(pg_get_int8(res, i, 0));
            import_report(im, id, (size_t)params[1].int8, pg_get_text(res, i, 1), raw,
                          strlen(raw));
        }
        pg_result_free(res);
    } while (n > 0);
    return 0;
}

int import_store(struct import *im, struct err *e)
{
    int code;

    cli_progress("sorting lines of orders");
    code = pg_exec(im->pg, SQL_IMPORT_INDEX_ORDERS, NULL, 0, NULL, e);
    if (code == 0)
        code = try_all(im, e);
    if (code == ERR_CONSTRAINT)
        code = store_divided(im, e);
    for (int id = 0; code == 0 && id < IMPORT_KINDS; id++) {
        if (im->files[id] != NULL)
            code = report_refused(im, (enum import_kind_id)id, e);
    }
    return code;
}
