/* import_store: from staging tables to the real ones, one set-based statement a step.
 */
#include "worker/import/import_steps.h"

#include <string.h>

#include "worker/cli/cli.h"

enum { NUMBERS = 3 }; /* most numbers that a statement returns */

/* Runs a statement and reads the numbers of its row, if there is one. */
static int run(struct import *im,
               const struct sql_text *sql,
               const struct pg_param *params,
               size_t n,
               int64_t numbers[NUMBERS],
               struct err *e)
{
    struct pg_result *res;

    if (pg_exec(im->pg, sql, params, n, &res, e) != 0)
        return (int)e->code;
    for (size_t i = 0; pg_rows(res) > 0 && i < pg_columns(res) && i < NUMBERS; i++)
        numbers[i] = pg_get_int8(res, 0, i);
    pg_result_free(res);
    return 0;
}

static int run_in_currency(struct import *im,
                           const struct sql_text *sql,
                           int64_t numbers[NUMBERS],
                           struct err *e)
{
    const struct pg_param currency = pg_text(im->currency);

    return run(im, sql, &currency, 1, numbers, e);
}

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
            int64_t line = pg_get_int8(res, i, 0);
            const char *raw = pg_get_text(res, i, 2);

            import_report_bad(&im->report, im->files[id], im->headers[id], (size_t)line,
                              pg_get_text(res, i, 1), raw, strlen(raw));
            params[1] = pg_int8(line);
        }
        pg_result_free(res);
    } while (n > 0);
    return 0;
}

static int store_stock(struct import *im, struct err *e)
{
    struct import_counts *n = &im->counts;
    int64_t got[NUMBERS] = {0};

    if (run_in_currency(im, SQL_IMPORT_REFUSE_STOCK, got, e) != 0 ||
        run_in_currency(im, SQL_IMPORT_PUT_STOCK, got, e) != 0)
        return (int)e->code;
    n->stock_new = got[0];
    n->stock_same = got[1] - got[0];
    n->stock_units = got[2];
    return 0;
}

/* All checks against the database come before the first user is created. */
static int refuse_lines(struct import *im, struct err *e)
{
    int64_t got[NUMBERS] = {0};

    if (run_in_currency(im, SQL_IMPORT_REFUSE_SUBSCRIPTIONS, got, e) != 0 ||
        run_in_currency(im, SQL_IMPORT_REFUSE_CURRENCY, got, e) != 0 ||
        run(im, SQL_IMPORT_REFUSE_LARGE, NULL, 0, got, e) != 0 ||
        run(im, SQL_IMPORT_MAKE_HEADS, NULL, 0, got, e) != 0 ||
        run(im, SQL_IMPORT_ANALYZE_HEADS, NULL, 0, got, e) != 0 ||
        run(im, SQL_IMPORT_REFUSE_ORDERS, NULL, 0, got, e) != 0 ||
        run(im, SQL_IMPORT_SKIP_ORDERS, NULL, 0, got, e) != 0)
        return (int)e->code;
    im->counts.orders_same = got[0];
    return 0;
}

static int store_users(struct import *im, struct err *e)
{
    const struct pg_param params[] = {pg_text(im->currency), pg_int8(im->deposit_minor),
                                      pg_text(im->now)};
    int64_t got[NUMBERS] = {0};

    if (run(im, SQL_LOAD_MAKE_MONTH, &params[2], 1, got, e) == 0 &&
        run(im, SQL_IMPORT_MAKE_USERS, params, 3, got, e) == 0)
        im->counts.users_new = got[0];
    return (int)e->code;
}

static int store_subscriptions(struct import *im, struct err *e)
{
    int64_t got[NUMBERS] = {0};

    if (run_in_currency(im, SQL_IMPORT_PUT_SUBSCRIPTIONS, got, e) != 0)
        return (int)e->code;
    im->counts.subscriptions_new = got[0];
    im->counts.subscriptions_same = got[1] - got[0];
    return 0;
}

static int store_orders(struct import *im, struct err *e)
{
    const struct pg_param params[] = {pg_text(im->currency), pg_text(im->now)};
    struct import_counts *n = &im->counts;
    int64_t orders[NUMBERS] = {0}, lines[NUMBERS] = {0};

    if (run(im, SQL_IMPORT_PUT_ORDERS, params, 2, orders, e) != 0 ||
        run(im, SQL_IMPORT_PUT_LINES, NULL, 0, lines, e) != 0)
        return (int)e->code;
    n->orders_new = orders[0];
    n->orders_rejected = orders[1];
    n->lines = lines[0];
    n->units = lines[1];
    n->amount_minor = lines[2];
    return 0;
}

int import_store(struct import *im, struct err *e)
{
    cli_progress("storing");
    (void)!(store_stock(im, e) != 0 || refuse_lines(im, e) != 0 ||
            store_users(im, e) != 0 || store_subscriptions(im, e) != 0 ||
            store_orders(im, e) != 0);
    cli_progress_end();
    for (int id = 0; id < IMPORT_KINDS && e->code == ERR_OK; id++) {
        if (im->files[id] != NULL)
            (void)!report_refused(im, (enum import_kind_id)id, e);
    }
    return (int)e->code;
}
