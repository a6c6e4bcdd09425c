/* seed: fills an empty database with generated rows, through COPY, in one transaction.
 */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>

#include "common/base/clock.h"
#include "common/base/timestamp.h"
#include "common/pg/pg_copy.h"
#include "worker/cli/cli.h"
#include "worker/seed/generator.h"

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
    bool was_filled; /* with --if-empty this is no error */
};

enum { PART_ROWS = 20000 };

/* ---- rows ---- */

static void put_user(struct pg_copy *c, struct seed *s, int64_t id)
{
    char ref[32];

    (void)snprintf(ref, sizeof ref, "user-%07" PRId64, id);
    PG_COPY_ROW(c, pg_int8(id), pg_text(ref), pg_int8(generator_deposit(&s->g, id)),
                pg_text(s->currency));
}

static void put_deposit(struct pg_copy *c, struct seed *s, int64_t id)
{
    int64_t amount = generator_deposit(&s->g, id);
    char at[TIMESTAMP_TEXT];

    (void)timestamp_format(s->g.now, at, sizeof at);
    if (amount != 0)
        PG_COPY_ROW(c, pg_int8(id), pg_text("deposit"), pg_text(""), pg_int8(amount),
                    pg_text(at));
}

static void put_sku(struct pg_copy *c, struct seed *s, int64_t id)
{
    struct gen_sku sku = generator_sku(&s->g, id);
    char name[32];

    (void)snprintf(name, sizeof name, "SKU-%05" PRId64, id);
    PG_COPY_ROW(c, pg_int8(id), pg_text(name), pg_int8(sku.qty), pg_int8(sku.qty),
                pg_int8(sku.price_minor), pg_text(s->currency));
    s->unit_ct += sku.qty;
}

static void put_subscription(struct pg_copy *c, struct seed *s, int64_t id)
{
    struct gen_subscription sub = generator_subscription(&s->g, id);
    char anchor[TIMESTAMP_TEXT], cancel[TIMESTAMP_TEXT];

    (void)timestamp_format(sub.anchor_at, anchor, sizeof anchor);
    (void)timestamp_format(sub.cancel_at, cancel, sizeof cancel);
    PG_COPY_ROW(c, pg_int8(id), pg_int8(sub.user_id), pg_text(sub.plan),
                pg_int8(sub.amount_minor), pg_text(s->currency), pg_text(anchor),
                pg_text(sub.unit), pg_text(anchor),
                sub.is_cancelled ? pg_text(cancel) : pg_null());
}

static void put_order(struct pg_copy *c, struct seed *s, int64_t id)
{
    struct gen_order o = generator_order(&s->g, id);
    char key[32], lines[GEN_LINES_MAX * 64], at[TIMESTAMP_TEXT];
    size_t len = 0;

    (void)snprintf(key, sizeof key, "order-%07" PRId64, id);
    for (size_t i = 0; i < o.line_ct; i++)
        len += (size_t)snprintf(lines + len, sizeof lines - len,
                                "%c{\"sku\":\"SKU-%05" PRId64 "\",\"qty\":%" PRId64 "}",
                                i == 0 ? '[' : ',', o.lines[i].sku_id, o.lines[i].qty);
    (void)snprintf(lines + len, sizeof lines - len, "]");
    PG_COPY_ROW(c, pg_int8(id), pg_int8(o.user_id), pg_text(key), pg_text(lines),
                pg_int8(o.total_minor),
                pg_text(timestamp_format(o.placed_at, at, sizeof at)),
                pg_text(o.is_sent_twice ? "t" : "f"));
}

static void put_order_lines(struct pg_copy *c, struct seed *s, int64_t id)
{
    struct gen_order o = generator_order(&s->g, id);

    for (size_t i = 0; i < o.line_ct; i++)
        PG_COPY_ROW(c, pg_int8(id), pg_int8(o.lines[i].sku_id),
                    pg_int8(s->g.price_minor[o.lines[i].sku_id - 1]),
                    pg_int8(o.lines[i].qty));
}

/* ---- steps ---- */

typedef void put_fn(struct pg_copy *c, struct seed *s, int64_t id);

/* The rows above `after`, up to `to`. */
static int copy_part(struct seed *s,
                     const struct sql_text *sql,
                     put_fn *put,
                     int64_t after,
                     int64_t to,
                     struct err *e)
{
    struct pg_copy *c = malloc(sizeof *c);
    int code;

    if (c == NULL)
        return err_set(e, ERR_NOMEM, "LL-9001 out of memory");
    code = pg_copy_begin(c, s->pg, sql, e);
    for (int64_t i = after + 1; code == 0 && i <= to && e->code == ERR_OK; i++)
        put(c, s, i);
    if (code == 0)
        code = pg_copy_finish(c);
    free(c);
    return code;
}

static int64_t part_end(int64_t after, int64_t ct)
{
    return ct - after > PART_ROWS ? after + PART_ROWS : ct;
}

/* In parts: what PostgreSQL does behind the rows of a COPY (journals, foreign keys)
 * takes longer than to send them. */
static int copy(struct seed *s,
                const struct sql_text *sql,
                put_fn *put,
                int64_t ct,
                const char *what,
                struct err *e)
{
    int code = 0;

    cli_progress("%s", what);
    for (int64_t done = 0; code == 0 && done < ct; done = part_end(done, ct)) {
        cli_progress_of(done, ct);
        code = copy_part(s, sql, put, done, part_end(done, ct), e);
    }
    return code;
}

static int run(struct seed *s, const struct sql_text *sql, struct err *e)
{
    return pg_exec(s->pg, sql, NULL, 0, NULL, e);
}

static int send_again(struct seed *s, struct err *e)
{
    struct pg_result *res;
    int64_t sent, same;

    if (pg_exec(s->pg, SQL_SEED_SEND_AGAIN, NULL, 0, &res, e) != 0)
        return (int)e->code;
    sent = pg_get_int8(res, 0, 0);
    same = pg_get_int8(res, 0, 1);
    pg_result_free(res);
    s->sent_twice_ct += sent;
    return same == sent
               ? 0
               : err_set(e, ERR_BUG, "LL-9004 an order sent twice became two orders");
}

/* Each part goes through a staging table, which is emptied before the next. */
static int put_orders(struct seed *s, struct err *e)
{
    const struct pg_param currency = pg_text(s->currency);
    int64_t ct = s->g.order_ct;
    int code = run(s, SQL_SEED_CREATE_ORDERS, e);

    cli_progress("orders");
    for (int64_t done = 0; code == 0 && done < ct; done = part_end(done, ct)) {
        cli_progress_of(done, ct);
        if (run(s, SQL_SEED_EMPTY_ORDERS, e) != 0 ||
            copy_part(s, SQL_SEED_COPY_ORDERS, put_order, done, part_end(done, ct),
                      e) != 0 ||
            pg_exec(s->pg, SQL_SEED_PUT_ORDERS, &currency, 1, NULL, e) != 0)
            return (int)e->code;
        code = send_again(s, e);
    }
    return code;
}

static int store(struct seed *s, struct err *e)
{
    const struct generator *g = &s->g;

    if (copy(s, SQL_SEED_COPY_USERS, put_user, g->user_ct, "users", e) != 0 ||
        copy(s, SQL_SEED_COPY_DEPOSITS, put_deposit, g->user_ct, "deposits", e) != 0 ||
        copy(s, SQL_SEED_COPY_STOCK, put_sku, g->sku_ct, "SKUs", e) != 0 ||
        copy(s, SQL_SEED_COPY_SUBSCRIPTIONS, put_subscription, g->subscription_ct,
             "subscriptions", e) != 0 ||
        put_orders(s, e) != 0 ||
        copy(s, SQL_SEED_COPY_ORDER_LINES, put_order_lines, g->order_ct,
             "lines of orders", e) != 0 ||
        run(s, SQL_SEED_SET_SEQUENCES, e) != 0)
        return (int)e->code;
    cli_progress("counting rows for the planner");
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
            "LL-8101 the database already holds %s; seed fills an empty database only",
            pg_get_text(res, 0, 0));
    pg_result_free(res);
    return (int)e->code;
}

static int read_now(struct seed *s, struct err *e)
{
    if (flags.now == NULL)
        return pg_ask(s->pg, SQL_SEED_READ_TODAY, NULL, 0, &s->g.now, e);
    if (!timestamp_parse(flags.now, &s->g.now))
        return err_set(e, ERR_INVALID,
                       "LL-1002 --now is not a time like 2010-12-01T08:26:00Z");
    return cli_ask_now(s->pg, flags.now, s->g.now, e);
}

/* Checks for rows before the table locks too, so that a refusal does not disturb a
 * running pool. */
static int seed(struct pg *pg, void *arg, struct err *e)
{
    struct seed *s = arg;

    s->pg = pg;
    cli_progress("waiting for another seed or import");
    if (read_now(s, e) != 0 || pg_begin(pg, e) != 0 || run(s, SQL_SEED_LOCK, e) != 0 ||
        refuse_filled(s, e) != 0 || s->was_filled)
        return (int)e->code;
    cli_progress("waiting for sessions that write");
    if (run(s, SQL_SEED_LOCK_TABLES, e) != 0 || refuse_filled(s, e) != 0 ||
        s->was_filled)
        return (int)e->code;
    cli_progress("making rows up");
    if (generator_open(&s->g, e) != 0 || store(s, e) != 0)
        return (int)e->code;
    cli_progress("committing");
    return pg_commit(pg, e);
}

static void print_summary(const struct seed *s, int64_t started_ms)
{
    const struct generator *g = &s->g;
    char now[TIMESTAMP_TEXT];

    if (s->was_filled) {
        puts("the database already holds data; nothing was seeded");
        return;
    }
    printf("seeded %" PRId64 " users, %" PRId64 " subscriptions with %" PRId64
           " periods due at %.19s UTC, %" PRId64 " SKUs with %" PRId64
           " units, %" PRId64 " orders (%" PRId64 " sent twice) in %.1f s\n",
           g->user_ct, g->subscription_ct, g->period_ct,
           timestamp_format(g->now, now, sizeof now), g->sku_ct, s->unit_ct,
           g->order_ct, s->sent_twice_ct, (double)(clk_ms() - started_ms) / 1000);
}

static enum exit_code run_verb(const struct config *c, int argc, char **argv)
{
    struct seed s = {.currency = c->currency,
                     .g = {.seed = (uint64_t)flags.seed,
                           .user_ct = flags.users,
                           .subscription_ct = flags.subscriptions,
                           .sku_ct = flags.skus,
                           .order_ct = flags.orders}};
    int64_t started_ms = clk_ms();
    enum exit_code code;

    (void)argc;
    (void)argv;
    if (flags.orders > 0 && flags.skus == 0)
        return cli_fail(&(struct err){
            .code = ERR_INVALID,
            .msg = "LL-8102 orders need SKUs; give --skus, or --orders 0"});
    code = cli_on_tables(c, "seed", seed, &s);
    if (code == EXIT_OK)
        print_summary(&s, started_ms);
    generator_close(&s.g);
    return code;
}

/* clang-format off */
static const struct cli_flag flag_table[] = {
    {"users",         CLI_INT,  FLAG(users),         1, 50000000,  "how many users"},
    {"subscriptions", CLI_INT,  FLAG(subscriptions), 0, 500000000, "how many subscriptions"},
    {"skus",          CLI_INT,  FLAG(skus),          0, 5000000,   "how many SKUs"},
    {"orders",        CLI_INT,  FLAG(orders),        0, 100000000, "how many orders"},
    {"seed",          CLI_INT,  FLAG(seed),          0, INT64_MAX, "the number that everything is made from"},
    {"now",           CLI_TIME, FLAG(now),           0, 0,         "time that counts as now (default: today, by the database's clock)"},
    {"if-empty",      CLI_BOOL, FLAG(if_empty),      0, 0,         "do nothing, without complaint, if there is data"},
    {NULL,            CLI_BOOL, 0,                   0, 0,         NULL},
};
/* clang-format on */

const struct cli_verb verb_seed = {
    .name = "seed",
    .who = "the owner of the schema",
    .sentence =
        "fills an empty database with made-up users, subscriptions, SKUs and orders",
    .example = "ledgerlock seed --users 5000 --subscriptions 20000 --seed 7",
    .flags = flag_table,
    .values = &flags,
    .settings = "import.",
    .run = run_verb,
};
