/* seed: fills an empty database with what the generator makes, through COPY, in one
 * transaction. */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>

#include "common/clock.h"
#include "worker/cli.h"
#include "worker/generator.h"
#include "worker/import_rows.h"
#include "worker/instant.h"
#include "worker/migrate.h"

static struct {
    int64_t users, subscriptions, skus, orders, seed;
    const char *now;
    bool if_empty;
} flags = {
    .users = 5000, .subscriptions = 20000, .skus = 200, .orders = 5000, .seed = 1};

#define FLAG(f) offsetof(__typeof__(flags), f)

struct seed {
    struct pg *pg;
    const char *currency;
    struct generator g;
    int64_t unit_ct; /* in stock */
    int64_t sent_twice_ct;
    bool was_filled; /* and --if-empty said that this is fine */
};

enum { PROGRESS_ROWS = 8192 };

/* ---- rows ---- */

static void put_user(struct rows *r, struct seed *s, int64_t id)
{
    char ref[32];

    (void)snprintf(ref, sizeof ref, "user-%07" PRId64, id);
    rows_int8(r, id);
    rows_text(r, ref);
    rows_int8(r, generator_user(&s->g, id).balance_minor);
    rows_text(r, s->currency);
    rows_end(r);
}

static void put_transfer(struct rows *r, struct seed *s, int64_t id)
{
    int64_t amount = generator_user(&s->g, id).balance_minor;

    if (amount == 0)
        return;
    rows_text(r, "deposit");
    rows_int8(r, id);
    rows_int8(r, 0);
    rows_int8(r, id);
    rows_text(r, "cash");
    rows_text(r, "wallet");
    rows_int8(r, amount);
    rows_text(r, s->currency);
    rows_instant(r, s->g.now);
    rows_end(r);
}

static void put_sku(struct rows *r, struct seed *s, int64_t id)
{
    struct gen_sku sku = generator_sku(&s->g, id);
    char name[32];

    (void)snprintf(name, sizeof name, "SKU-%05" PRId64, id);
    rows_int8(r, id);
    rows_text(r, name);
    rows_int8(r, sku.qty);
    rows_int8(r, sku.qty);
    rows_int8(r, sku.price_minor);
    rows_text(r, s->currency);
    rows_end(r);
    s->unit_ct += sku.qty;
}

static void put_subscription(struct rows *r, struct seed *s, int64_t id)
{
    struct gen_subscription sub = generator_subscription(&s->g, id);

    rows_int8(r, id);
    rows_int8(r, sub.user_id);
    rows_text(r, sub.plan);
    rows_int8(r, sub.amount_minor);
    rows_text(r, s->currency);
    rows_instant(r, sub.anchor_at);
    rows_text(r, sub.unit);
    rows_instant(r, sub.anchor_at);
    if (sub.is_cancelled)
        rows_instant(r, sub.cancel_at);
    else
        rows_null(r);
    rows_end(r);
}

static void put_order(struct rows *r, struct seed *s, int64_t id)
{
    struct gen_order o = generator_order(&s->g, id);
    char key[32], lines[GEN_LINES_MAX * 64];
    size_t len = 0;

    (void)snprintf(key, sizeof key, "order-%07" PRId64, id);
    for (size_t i = 0; i < o.line_ct; i++)
        len += (size_t)snprintf(lines + len, sizeof lines - len,
                                "%c{\"sku\":\"SKU-%05" PRId64 "\",\"qty\":%" PRId64 "}",
                                i == 0 ? '[' : ',', o.lines[i].sku_id, o.lines[i].qty);
    (void)snprintf(lines + len, sizeof lines - len, "]");
    rows_int8(r, id);
    rows_int8(r, o.user_id);
    rows_text(r, key);
    rows_text(r, lines);
    rows_int8(r, o.total_minor);
    rows_int8(r, o.lines[0].sku_id % 64);
    rows_instant(r, o.placed_at);
    rows_text(r, o.is_sent_twice ? "t" : "f");
    rows_end(r);
}

static void put_order_lines(struct rows *r, struct seed *s, int64_t id)
{
    struct gen_order o = generator_order(&s->g, id);

    for (size_t i = 0; i < o.line_ct; i++) {
        rows_int8(r, id);
        rows_int8(r, o.lines[i].sku_id);
        rows_int8(r, s->g.price_minor[o.lines[i].sku_id - 1]);
        rows_int8(r, o.lines[i].qty);
        rows_end(r);
    }
}

/* ---- steps ---- */

typedef void put_fn(struct rows *r, struct seed *s, int64_t id);

static int copy(struct seed *s,
                enum sql_id id,
                put_fn *put,
                int64_t ct,
                const char *what,
                struct err *e)
{
    struct rows *rows = malloc(sizeof *rows);
    int code;

    if (rows == NULL)
        return err_set(e, ERR_NOMEM, "out of memory");
    code = rows_begin(rows, s->pg, id, e);
    if (code == 0) {
        for (int64_t i = 1; i <= ct && e->code == ERR_OK; i++) {
            put(rows, s, i);
            if (i % PROGRESS_ROWS == 0)
                cli_progress("%s: %" PRId64 " of %" PRId64, what, i, ct);
        }
        cli_progress("%s: finishing", what);
        code = rows_finish(rows);
    }
    cli_progress_end();
    free(rows);
    return code;
}

static int run(struct seed *s, enum sql_id id, struct err *e)
{
    return pg_exec(s->pg, id, NULL, 0, NULL, e);
}

static int send_again(struct seed *s, struct err *e)
{
    struct pg_result *res;
    int64_t same;

    if (pg_exec(s->pg, SQL_SEED_SEND_AGAIN, NULL, 0, &res, e) != 0)
        return (int)e->code;
    s->sent_twice_ct = pg_get_int8(res, 0, 0);
    same = pg_get_int8(res, 0, 1);
    pg_result_free(res);
    if (same != s->sent_twice_ct)
        return err_set(e, ERR_BUG, "an order sent twice became two orders");
    return 0;
}

static int store_orders(struct seed *s, struct err *e)
{
    const struct pg_param currency = pg_text(s->currency);
    int64_t ct = s->g.order_ct;

    if (run(s, SQL_SEED_CREATE_ORDERS, e) != 0 ||
        copy(s, SQL_SEED_COPY_ORDERS, put_order, ct, "orders", e) != 0 ||
        pg_exec(s->pg, SQL_SEED_PUT_ORDERS, &currency, 1, NULL, e) != 0)
        return (int)e->code;
    return copy(s, SQL_SEED_COPY_ORDER_LINES, put_order_lines, ct, "order lines", e);
}

static int store(struct seed *s, struct err *e)
{
    const struct generator *g = &s->g;

    if (copy(s, SQL_SEED_COPY_USERS, put_user, g->user_ct, "users", e) != 0 ||
        copy(s, SQL_SEED_COPY_TRANSFERS, put_transfer, g->user_ct, "deposits", e) !=
            0 ||
        copy(s, SQL_SEED_COPY_STOCK, put_sku, g->sku_ct, "SKUs", e) != 0 ||
        copy(s, SQL_SEED_COPY_SUBSCRIPTIONS, put_subscription, g->subscription_ct,
             "subscriptions", e) != 0 ||
        store_orders(s, e) != 0 || run(s, SQL_SEED_SET_SEQUENCES, e) != 0 ||
        send_again(s, e) != 0)
        return (int)e->code;
    cli_progress("analyze");
    return run(s, SQL_SEED_ANALYZE, e);
}

/* ---- before ---- */

static int refuse_filled(struct seed *s, struct err *e)
{
    struct pg_result *res;

    if (pg_exec(s->pg, SQL_SEED_FIND_ROWS, NULL, 0, &res, e) != 0)
        return (int)e->code;
    s->was_filled = !pg_is_null(res, 0, 0);
    if (s->was_filled && !flags.if_empty)
        (void)err_set(
            e, ERR_REFUSED,
            "the database already holds %s; seed fills an empty database only",
            pg_get_text(res, 0, 0));
    pg_result_free(res);
    return (int)e->code;
}

static int read_now(struct seed *s, struct err *e)
{
    struct pg_result *res;

    if (flags.now != NULL)
        return instant_parse(flags.now, &s->g.now)
                   ? 0
                   : err_set(e, ERR_INVALID,
                             "--now is not a time like 2010-12-01T08:26:00Z");
    if (pg_exec(s->pg, SQL_SEED_READ_TODAY, NULL, 0, &res, e) != 0)
        return (int)e->code;
    s->g.now = pg_get_int8(res, 0, 0);
    pg_result_free(res);
    return 0;
}

/* Looks before the table locks too: next to a running pool a refusal disturbs nobody.
 */
static int seed(struct seed *s, const struct config *c, struct err *e)
{
    if (cli_connect(c, "seed", &s->pg, e) != 0 || migrate_check(s->pg, e) != 0 ||
        read_now(s, e) != 0 || pg_begin(s->pg, e) != 0 ||
        run(s, SQL_SEED_LOCK, e) != 0 || refuse_filled(s, e) != 0 || s->was_filled)
        return (int)e->code;
    if (run(s, SQL_SEED_LOCK_TABLES, e) != 0 || refuse_filled(s, e) != 0 ||
        s->was_filled)
        return (int)e->code;
    cli_progress("making rows");
    if (generator_open(&s->g, e) != 0 || store(s, e) != 0 ||
        run(s, SQL_BELL_ANNOUNCE, e) != 0)
        return (int)e->code;
    return pg_commit(s->pg, e);
}

static int fill(struct seed *s, const struct config *c, struct err *e)
{
    s->currency = c->currency;
    s->g = (struct generator){.seed = (uint64_t)flags.seed,
                              .user_ct = flags.users,
                              .subscription_ct = flags.subscriptions,
                              .sku_ct = flags.skus,
                              .order_ct = flags.orders};
    if (flags.orders > 0 && flags.skus == 0)
        return err_set(e, ERR_INVALID, "orders need SKUs; give --skus, or --orders 0");
    return 0;
}

static void print_summary(const struct seed *s, int64_t started_ms)
{
    const struct generator *g = &s->g;
    char now[INSTANT_TEXT];

    if (s->was_filled) {
        puts("the database already holds data; nothing was seeded");
        return;
    }
    printf("seeded %" PRId64 " users, %" PRId64 " subscriptions with %" PRId64
           " periods due at %.19s UTC, %" PRId64 " SKUs with %" PRId64
           " units, %" PRId64 " orders (%" PRId64 " sent twice) in %.1f s\n",
           g->user_ct, g->subscription_ct, g->period_ct,
           instant_format(g->now, now, sizeof now), g->sku_ct, s->unit_ct, g->order_ct,
           s->sent_twice_ct, (double)(clk_ms() - started_ms) / 1000);
}

static enum exit_code run_verb(const struct config *c, int argc, char **argv)
{
    struct seed s = {0};
    struct err e = {0};
    int64_t started_ms = clk_ms();
    enum exit_code code = EXIT_OK;

    if (argc > 0)
        (void)err_set(&e, ERR_INVALID, "unexpected word \"%.80s\"", argv[0]);
    else if (fill(&s, c, &e) == 0)
        (void)!seed(&s, c, &e);
    cli_progress_end();
    if (e.code != ERR_OK)
        code = cli_fail(&e);
    else
        print_summary(&s, started_ms);
    generator_close(&s.g);
    pg_close(s.pg);
    return code;
}

/* clang-format off */
static const struct cli_flag flag_table[] = {
    {"users",         CLI_INT,  FLAG(users),         1, 50000000,  "how many users"},
    {"subscriptions", CLI_INT,  FLAG(subscriptions), 0, 500000000, "how many subscriptions"},
    {"skus",          CLI_INT,  FLAG(skus),          0, 5000000,   "how many SKUs"},
    {"orders",        CLI_INT,  FLAG(orders),        0, 100000000, "how many orders"},
    {"seed",          CLI_INT,  FLAG(seed),          0, INT64_MAX, "the number that everything is made from"},
    {"now",           CLI_TEXT, FLAG(now),           0, 0,         "time that counts as now (default: today, by the database's clock)"},
    {"if-empty",      CLI_BOOL, FLAG(if_empty),      0, 0,         "do nothing, without complaint, when there is data"},
    {NULL,            CLI_BOOL, 0,                   0, 0,         NULL},
};
/* clang-format on */

const struct cli_verb verb_seed = {
    .name = "seed",
    .sentence =
        "fill an empty database with made-up users, subscriptions, SKUs and orders",
    .example =
        "ledgerlock seed --users 5000 --subscriptions 20000 --orders 5000 --seed 7",
    .flags = flag_table,
    .values = &flags,
    .run = run_verb,
};
