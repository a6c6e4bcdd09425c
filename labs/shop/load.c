/* load: orders, subscriptions, deliveries, and seasons, which keep the disk small. */
#include <inttypes.h>
#include <stdio.h>
#include <time.h>

#include "common/base/log.h"
#include "labs/shop/shop.h"
#include "ops/cli/migrate.h"

enum { ORDER_WEIGHT = 1000 };

static int do_sql(struct shop *s,
                  const struct sql_text *sql,
                  const struct pg_param *params,
                  size_t n,
                  struct err *e)
{
    return pg_exec(s->pg, sql, params, n, NULL, e);
}

/* ---- the start ---- */

static int read_bools(struct shop *s, bool *is_marked, bool *is_made, struct err *e)
{
    struct pg_result *res;

    if (pg_exec(s->pg, SQL_SHOP_IS_MARKED, NULL, 0, &res, e) != 0)
        return (int)e->code;
    *is_marked = pg_get_int8(res, 0, 0) != 0;
    *is_made = pg_get_int8(res, 0, 1) != 0;
    pg_result_free(res);
    return 0;
}

static int open_shelves(struct shop *s, struct err *e)
{
    bool has_gateway = s->config->gateway_url[0] != '\0';
    const struct pg_param users[] = {pg_int8(s->flags->users),
                                     pg_int8(has_gateway ? s->flags->cards : 0)};
    const struct pg_param stock[] = {pg_int8(s->flags->skus),
                                     pg_int8(s->flags->orders)};

    if (do_sql(s, SQL_SHOP_OPEN_USERS, users, 2, e) != 0)
        return (int)e->code;
    return do_sql(s, SQL_SHOP_OPEN_STOCK, stock, 2, e);
}

int load_open(struct shop *s, struct err *e)
{
    bool is_marked = false, is_made = false;

    if (migrate_check(s->pg, e) != 0 || read_bools(s, &is_marked, &is_made, e) != 0)
        return (int)e->code;
    if (!is_marked)
        return err_set(e, ERR_REFUSED,
                       "the shop empties its database again and again; if this one may "
                       "be emptied, let its owner say so: CREATE SCHEMA "
                       "ledgerlock_shop");
    if (!is_made && do_sql(s, SQL_SHOP_CREATE_PLAIN, NULL, 0, e) != 0)
        return (int)e->code;
    if (do_sql(s, SQL_SHOP_CREATE_FIGURES, NULL, 0, e) != 0)
        return (int)e->code;
    return open_shelves(s, e);
}

/* ---- orders ---- */

/* The whole orders of the thousandths that have come together. */
static int64_t take_whole(int64_t *thousandths, int64_t rate, int64_t ms)
{
    int64_t whole;

    *thousandths += rate * ms;
    whole = *thousandths / ORDER_WEIGHT;
    *thousandths %= ORDER_WEIGHT;
    return whole;
}

static int place(struct shop *s, int64_t orders, struct err *e)
{
    char key[48];
    const struct pg_param params[] = {pg_int8(orders), pg_int8(s->flags->users),
                                      pg_int8(s->flags->skus), pg_text(key)};

    (void)snprintf(key, sizeof key, "%s-%" PRId64, s->mark, ++s->calls);
    return orders == 0 ? 0 : do_sql(s, SQL_SHOP_PLACE_ORDERS, params, 4, e);
}

static int sign_up(struct shop *s, int64_t subscriptions, struct err *e)
{
    char key[48];
    const struct pg_param params[] = {pg_int8(subscriptions), pg_int8(s->flags->users),
                                      pg_text(key)};

    (void)snprintf(key, sizeof key, "%s-%" PRId64, s->mark, ++s->calls);
    return subscriptions == 0 ? 0 : do_sql(s, SQL_SHOP_SIGN_UP, params, 3, e);
}

int load_place(struct shop *s, int64_t ms, struct err *e)
{
    int64_t orders = take_whole(&s->orders_left, s->flags->orders, ms);
    int64_t periods = take_whole(&s->periods_left, s->flags->periods, ms);

    s->periods_left += periods % SHOP_PERIODS * ORDER_WEIGHT; /* the rest, next time */
    if (place(s, orders, e) != 0)
        return (int)e->code;
    return sign_up(s, periods / SHOP_PERIODS, e);
}

int load_restock(struct shop *s, struct err *e)
{
    struct timespec ts;
    struct pg_param number;

    (void)clock_gettime(CLOCK_REALTIME, &ts);
    number = pg_int8((int64_t)ts.tv_sec * 1000000 + ts.tv_nsec / 1000);
    if (do_sql(s, SQL_SHOP_NOTE_EMPTY, NULL, 0, e) != 0 ||
        do_sql(s, SQL_SHOP_RESTOCK, &number, 1, e) != 0)
        return (int)e->code;
    return do_sql(s, SQL_SHOP_COUNT, NULL, 0, e);
}

/* ---- seasons ---- */

static int measure(struct shop *s, int64_t *bytes, struct err *e)
{
    const struct pg_param schema = pg_text(s->config->postgres_schema);
    struct pg_result *res;

    if (pg_exec(s->pg, SQL_SHOP_MEASURE, &schema, 1, &res, e) != 0)
        return (int)e->code;
    *bytes = pg_get_int8(res, 0, 0);
    pg_result_free(res);
    return 0;
}

/* One transaction: whoever reads sees the season before or the new one. */
static int change_season(struct shop *s, struct err *e)
{
    if (pg_begin(s->pg, e) != 0 || do_sql(s, SQL_SHOP_ALLOW_END, NULL, 0, e) != 0 ||
        do_sql(s, SQL_SHOP_END_SEASON, NULL, 0, e) != 0 ||
        do_sql(s, SQL_SHOP_BEGIN_SEASON, NULL, 0, e) != 0 || open_shelves(s, e) != 0 ||
        pg_commit(s->pg, e) != 0) {
        pg_rollback(s->pg);
        return (int)e->code;
    }
    return 0;
}

int load_tend_season(struct shop *s, struct err *e)
{
    int64_t bytes = 0;

    if (measure(s, &bytes, e) != 0)
        return (int)e->code;
    if (bytes <= s->flags->keep_mb << 20)
        return 0;
    if (change_season(s, e) != 0)
        return (int)e->code;
    log_info("shop.season", "rows_mib=%" PRId64 " kept_mib=%" PRId64, bytes >> 20,
             s->flags->keep_mb);
    return 0;
}
