/* load: only a database whose owner marked it is wiped and filled. */
#include <string.h>

#include "labs/bench/bench.h"
#include "labs_sql_gen.h"
#include "ops/cli/migrate.h"

enum {
    DEPOSIT = 1000000000, /* more than anything here costs */
    STEADY_DAYS = 36500,  /* more periods than any run can charge */
};

/* clang-format off */
static const struct bench_mode modes[] = {
    {.name = "billing", .job = "billing", .unit = "charges", .rows = 200000, .users_of = 1},
    {.name = "orders",  .job = "orders",  .unit = "orders",  .rows = 100000, .users_of = 2,
     .skus = 10000, .lines = 4, .pieces = 3, .stock_percent = 90},
    {.name = "hot-sku", .job = "orders",  .unit = "orders",  .rows = 100000, .users_of = 1,
     .skus = 1,     .lines = 1, .pieces = 1, .stock_percent = 10},
};

/* clang-format on */

const struct bench_mode *bench_find(const char *name)
{
    for (size_t i = 0; i < sizeof modes / sizeof modes[0]; i++) {
        if (strcmp(modes[i].name, name) == 0)
            return &modes[i];
    }
    return NULL;
}

int bench_check_mark(struct pg *pg, struct err *e)
{
    struct pg_result *res;
    bool is_marked;

    if (pg_exec(pg, SQL_BENCH_IS_MARKED, NULL, 0, &res, e) != 0)
        return (int)e->code;
    is_marked = pg_get_int8(res, 0, 0) != 0;
    pg_result_free(res);
    if (!is_marked)
        return err_set(e, ERR_REFUSED,
                       "bench deletes everything in its database, and this one is not "
                       "marked for that; if nothing in it is needed, say so in "
                       "it: CREATE SCHEMA ledgerlock_bench");
    return migrate_check(pg, e);
}

static int
put_billing(struct pg *pg, const struct bench_flags *f, int64_t rows, struct err *e)
{
    const struct pg_param users[] = {pg_int8(rows), pg_int8(DEPOSIT),
                                     pg_int8(f->shuffled)};
    const struct pg_param subs[] = {pg_int8(rows), pg_int8(f->steady ? STEADY_DAYS : 0),
                                    pg_int8(f->shuffled)};

    if (pg_exec(pg, SQL_BENCH_PUT_USERS, users, 3, NULL, e) != 0)
        return (int)e->code;
    return pg_exec(pg, SQL_BENCH_PUT_SUBSCRIPTIONS, subs, 3, NULL, e);
}

static int put_orders(struct pg *pg,
                      const struct bench_mode *mode,
                      const struct bench_flags *f,
                      int64_t rows,
                      struct err *e)
{
    int64_t user_ct = rows / mode->users_of;
    const struct pg_param order = pg_int8(f->shuffled);
    const struct pg_param users[] = {pg_int8(user_ct), pg_int8(DEPOSIT), order};
    const struct pg_param stock[] = {pg_int8(mode->stock_percent), order};
    const struct pg_param orders[] = {pg_int8(user_ct), order};
    const struct pg_param lines[] = {pg_int8(rows), pg_int8(mode->skus),
                                     pg_int8(mode->lines), pg_int8(mode->pieces)};

    if (pg_exec(pg, SQL_BENCH_PUT_USERS, users, 3, NULL, e) != 0 ||
        pg_exec(pg, SQL_BENCH_CREATE_LINES, NULL, 0, NULL, e) != 0 ||
        pg_exec(pg, SQL_BENCH_MAKE_LINES, lines, 4, NULL, e) != 0 ||
        pg_exec(pg, SQL_BENCH_PUT_STOCK, stock, 2, NULL, e) != 0 ||
        pg_exec(pg, SQL_BENCH_PUT_ORDERS, orders, 2, NULL, e) != 0)
        return (int)e->code;
    return pg_exec(pg, SQL_BENCH_PUT_LINES, &order, 1, NULL, e);
}

static int fill(struct pg *pg,
                const struct bench_mode *mode,
                const struct bench_flags *f,
                int64_t rows,
                struct err *e)
{
    int code;

    if (pg_begin(pg, e) != 0)
        return (int)e->code;
    code = pg_exec(pg, SQL_BENCH_ALLOW_WIPE, NULL, 0, NULL, e);
    if (code == 0)
        code = pg_exec(pg, SQL_BENCH_WIPE, NULL, 0, NULL, e);
    if (code == 0)
        code = mode->skus == 0 ? put_billing(pg, f, rows, e)
                               : put_orders(pg, mode, f, rows, e);
    if (code == 0)
        code = pg_commit(pg, e);
    if (code != 0)
        pg_rollback(pg);
    if (code == ERR_DENIED)
        return err_wrap(e, "filling needs the owner of the tables");
    return code;
}

int bench_load(struct pg *pg,
               const struct bench_mode *mode,
               const struct bench_flags *f,
               int64_t rows,
               struct err *e)
{
    cli_progress("filling: %lld rows", (long long)rows);
    if (fill(pg, mode, f, rows, e) != 0 ||
        pg_exec(pg, SQL_BENCH_VACUUM, NULL, 0, NULL, e) != 0)
        return (int)e->code;
    if (pg_exec(pg, SQL_BENCH_CHECKPOINT, NULL, 0, NULL, e) != 0) {
        if (e->code != ERR_DENIED) /* for superusers and pg_checkpoint */
            return (int)e->code;
        *e = (struct err){0};
    }
    return pg_exec(pg, SQL_BENCH_FLUSH_STATS, NULL, 0, NULL, e);
}
