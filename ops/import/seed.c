/* seed: fills an empty database with rows that PostgreSQL makes up (sql/queries/seed),
 * in one transaction. */
#include <inttypes.h>
#include <stddef.h>
#include <stdio.h>

#include "common/base/clock.h"
#include "common/base/timestamp.h"
#include "ops/cli/cli.h"

static struct {
    int64_t users, cards, subscriptions, skus, orders, seed;
    const char *now;
    bool if_empty;
} flags = {
    .users = 5000, .subscriptions = 20000, .skus = 200, .orders = 5000, .seed = 1};

#define FLAG(f) offsetof(__typeof__(flags), f)

struct seed {
    struct pg *pg;
    const char *currency;
    int64_t now;
    int64_t card_ct, period_ct, unit_ct, sent_twice_ct;
    bool was_filled; /* with --if-empty this is no error */
};

enum { PART_ROWS = 20000 };

/* ---- steps ---- */

static int run(struct seed *s, const struct sql_text *sql, struct err *e)
{
    return pg_exec(s->pg, sql, NULL, 0, NULL, e);
}

/* A statement over rows 1 to ct, in parts: what PostgreSQL does behind them (events,
 * foreign keys) takes longer than to make them up. Adds up the numbers that it
 * returns. */
static int in_parts(struct seed *s,
                    const struct sql_text *sql,
                    int64_t ct,
                    int64_t *sums,
                    const char *what,
                    struct err *e)
{
    cli_progress("%s", what);
    for (int64_t done = 0; done < ct; done += PART_ROWS) {
        int64_t end = ct - done > PART_ROWS ? done + PART_ROWS : ct;
        const struct pg_param range[] = {pg_int8(done), pg_int8(end)};
        struct pg_result *res;

        cli_progress_of(done, ct);
        if (pg_exec(s->pg, sql, range, 2, &res, e) != 0)
            return (int)e->code;
        for (size_t i = 0; sums != NULL && i < pg_columns(res); i++)
            sums[i] += pg_get_int8(res, 0, i);
        pg_result_free(res);
    }
    return 0;
}

static int make_up(struct seed *s, struct err *e)
{
    const struct pg_param of[] = {pg_int8(flags.seed),  pg_int8(s->now),
                                  pg_int8(flags.users), pg_int8(flags.subscriptions),
                                  pg_int8(flags.skus),  pg_int8(flags.orders),
                                  pg_text(s->currency), pg_int8(flags.cards)};

    if (run(s, SQL_SEED_CREATE, e) != 0 ||
        pg_exec(s->pg, SQL_SEED_SET, of, sizeof of / sizeof of[0], NULL, e) != 0 ||
        in_parts(s, SQL_SEED_MAKE_SUBSCRIPTIONS, flags.subscriptions, NULL,
                 "making subscriptions up", e) != 0 ||
        in_parts(s, SQL_SEED_MAKE_LINES, flags.orders, NULL, "making orders up", e) !=
            0 ||
        run(s, SQL_SEED_ANALYZE_MADE, e) != 0)
        return (int)e->code;
    cli_progress("SKUs");
    if (pg_ask(s->pg, SQL_SEED_PUT_STOCK, NULL, 0, &s->unit_ct, e) != 0)
        return (int)e->code;
    cli_progress("making deposits up");
    return pg_ask(s->pg, SQL_SEED_MAKE_DEPOSITS, NULL, 0, &s->period_ct, e);
}

static int store(struct seed *s, struct err *e)
{
    int64_t again[2] = {0}; /* sent, and of these the same */

    if (make_up(s, e) != 0 ||
        in_parts(s, SQL_SEED_PUT_USERS, flags.users, NULL, "users", e) != 0 ||
        (flags.cards > 0 &&
         in_parts(s, SQL_SEED_PUT_CARDS, flags.users, &s->card_ct, "cards", e) != 0) ||
        in_parts(s, SQL_SEED_PUT_SUBSCRIPTIONS, flags.subscriptions, NULL,
                 "subscriptions", e) != 0 ||
        in_parts(s, SQL_SEED_PUT_ORDERS, flags.orders, NULL, "orders", e) != 0 ||
        in_parts(s, SQL_SEED_SEND_AGAIN, flags.orders, again, "orders sent twice", e) !=
            0 ||
        run(s, SQL_SEED_SET_SEQUENCES, e) != 0 || run(s, SQL_SEED_DROP, e) != 0)
        return (int)e->code;
    s->sent_twice_ct = again[0];
    if (again[1] != again[0])
        return err_set(e, ERR_BUG, "LL-9004 an order sent twice became two orders");
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
        return pg_ask(s->pg, SQL_SEED_READ_TODAY, NULL, 0, &s->now, e);
    if (!timestamp_parse(flags.now, &s->now))
        return err_set(e, ERR_INVALID,
                       "LL-1002 --now is not a time like 2010-12-01T08:26:00Z");
    return cli_ask_now(s->pg, flags.now, s->now, e);
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
    if (store(s, e) != 0)
        return (int)e->code;
    cli_progress("committing");
    return pg_commit(pg, e);
}

static void print_summary(const struct seed *s, int64_t started_ms)
{
    char now[TIMESTAMP_TEXT];

    if (s->was_filled) {
        puts("the database already holds data; nothing was seeded");
        return;
    }
    printf("seeded %" PRId64 " users", flags.users);
    if (s->card_ct > 0)
        printf(" (%" PRId64 " pay by card)", s->card_ct);
    printf(", %" PRId64 " subscriptions with %" PRId64
           " periods due at %.19s UTC, %" PRId64 " SKUs with %" PRId64
           " units, %" PRId64 " orders (%" PRId64 " sent twice) in %.1f s\n",
           flags.subscriptions, s->period_ct, timestamp_format(s->now, now, sizeof now),
           flags.skus, s->unit_ct, flags.orders, s->sent_twice_ct,
           (double)(clk_ms() - started_ms) / 1000);
}

static enum exit_code run_verb(const struct config *c, int argc, char **argv)
{
    struct seed s = {.currency = c->currency};
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
    return code;
}

/* clang-format off */
static const struct cli_flag flag_table[] = {
    {"users",         CLI_INT,  FLAG(users),         1, 50000000,  "how many users"},
    {"cards",         CLI_INT,  FLAG(cards),         0, 100,       "how many of a hundred users pay by card, by customers of the stand-in gateway in labs/gateway"},
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
