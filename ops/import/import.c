/* import: the verb: reads CSV files in one transaction. Flags, order of steps, summary.
 */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>

#include "common/base/money.h"
#include "common/base/timestamp.h"
#include "ops/cli/cli.h"
#include "ops/import/import_steps.h"

static struct {
    const char *orders, *subscriptions, *stock, *rejects, *deposit, *now;
} flags;

static int64_t now_us; /* --now as a number */

/* Bounds the opening deposit: the sum over millions of users must fit into 64 bits. */
#define DEPOSIT_MAX INT64_C(1000000000000)

#define FLAG(f) offsetof(__typeof__(flags), f)

static int fill(struct import *im, const struct config *c, char *now, struct err *e)
{
    im->currency = c->currency;
    im->files[IMPORT_ORDERS] = flags.orders;
    im->files[IMPORT_SUBSCRIPTIONS] = flags.subscriptions;
    im->files[IMPORT_STOCK] = flags.stock;
    if (!flags.orders && !flags.subscriptions && !flags.stock)
        return err_set(
            e, ERR_INVALID,
            "LL-8002 nothing to import; name at least one file with --orders, "
            "--subscriptions or --stock");
    if (flags.deposit != NULL &&
        money_parse(flags.deposit, c->currency, &im->deposit_minor, e) != 0)
        return err_wrap(e, "--deposit");
    if (im->deposit_minor < 0 || im->deposit_minor > DEPOSIT_MAX)
        return err_set(e, ERR_INVALID, "LL-8003 --deposit is %s",
                       im->deposit_minor < 0 ? "negative" : "too large");
    if (flags.now != NULL && !timestamp_parse(flags.now, &now_us))
        return err_set(e, ERR_INVALID,
                       "LL-1002 --now is not a time like 2010-12-01T08:26:00Z");
    im->now = flags.now != NULL ? timestamp_format(now_us, now, TIMESTAMP_TEXT) : NULL;
    return 0;
}

/* Refuses a rejects file that is one of the inputs, under any name: it would be
 * replaced. */
static int check_rejects(const struct import *im, struct err *e)
{
    struct stat rejects, input;

    if (flags.rejects == NULL || stat(flags.rejects, &rejects) != 0 ||
        !S_ISREG(rejects.st_mode))
        return 0;
    for (size_t i = 0; i < IMPORT_KINDS; i++) {
        if (im->files[i] != NULL && stat(im->files[i], &input) == 0 &&
            input.st_dev == rejects.st_dev && input.st_ino == rejects.st_ino)
            return err_set(
                e, ERR_INVALID,
                "LL-8004 --rejects %.200s is the file that --%s reads; name another "
                "file for the bad lines",
                flags.rejects, import_kinds[i].name);
    }
    return 0;
}

static int prepare(struct import *im, struct err *e)
{
    static const struct sql_text *const steps[] = {
        SQL_IMPORT_LOCK,
        SQL_IMPORT_CREATE_STOCK,
        SQL_IMPORT_CREATE_SUBSCRIPTIONS,
        SQL_IMPORT_CREATE_ORDERS,
        SQL_IMPORT_CREATE_HEADS,
        SQL_IMPORT_CREATE_BAD,
    };

    cli_progress("waiting for another seed or import");
    for (size_t i = 0; i < sizeof steps / sizeof steps[0]; i++) {
        if (pg_exec(im->pg, steps[i], NULL, 0, NULL, e) != 0)
            return (int)e->code;
    }
    return 0;
}

static int judge(const struct import *im, struct err *e)
{
    if (im->bad_ct > IMPORT_TOLD_MAX)
        cli_say("... and %zu more bad lines\n", im->bad_ct - IMPORT_TOLD_MAX);
    if (im->bad_ct == 0 || im->rejects.file != NULL)
        return 0;
    return err_set(
        e, ERR_INVALID,
        "LL-8005 %zu bad line%s, so nothing was imported; correct them, or put them "
        "aside with --rejects FILE",
        im->bad_ct, im->bad_ct == 1 ? "" : "s");
}

/* The rejects file is written before COMMIT and renamed after it. */
static int import(struct pg *pg, void *arg, struct err *e)
{
    struct import *im = arg;
    struct replace *rejects = &im->rejects;

    im->pg = pg;
    if (flags.now != NULL && cli_ask_now(pg, flags.now, now_us, e) != 0)
        return (int)e->code;
    if (pg_begin(pg, e) != 0 || prepare(im, e) != 0)
        return (int)e->code;
    for (int id = 0; id < IMPORT_KINDS; id++) {
        if (import_stage(im, (enum import_kind_id)id, e) != 0)
            return (int)e->code;
    }
    if (import_store(im, e) != 0 || judge(im, e) != 0 ||
        (rejects->file != NULL && replace_write(rejects, e) != 0) ||
        pg_commit(pg, e) != 0)
        return (int)e->code;
    return replace_publish(rejects, e) != 0 ? err_wrap(e, "the import is stored") : 0;
}

static void print_summary(const struct import *im)
{
    const int64_t *n = im->counts;
    char money[48];

    if (im->files[IMPORT_STOCK] != NULL)
        printf("stock: %" PRId64 " SKUs new with %" PRId64 " units, %" PRId64
               " already there\n",
               n[IMPORT_STOCK_NEW], n[IMPORT_STOCK_UNITS],
               n[IMPORT_STOCK_ALL] - n[IMPORT_STOCK_NEW]);
    if (im->files[IMPORT_SUBSCRIPTIONS] != NULL)
        printf("subscriptions: %" PRId64 " new, %" PRId64 " already there\n",
               n[IMPORT_SUBSCRIPTIONS_NEW],
               n[IMPORT_SUBSCRIPTIONS_ALL] - n[IMPORT_SUBSCRIPTIONS_NEW]);
    if (im->files[IMPORT_ORDERS] != NULL)
        printf("orders: %" PRId64 " new, %" PRId64 " already there; %" PRId64
               " of the new rejected for unknown SKUs, the others with %" PRId64
               " lines, %" PRId64 " units, %s %s\n",
               n[IMPORT_ORDERS_NEW], n[IMPORT_ORDERS_SAME], n[IMPORT_ORDERS_REJECTED],
               n[IMPORT_LINES], n[IMPORT_UNITS],
               money_format(n[IMPORT_AMOUNT], im->currency, money, sizeof money),
               im->currency);
    printf("users: %" PRId64 " new, with deposits of %s %s\n", n[IMPORT_USERS_NEW],
           money_format(n[IMPORT_USERS_NEW] * im->deposit_minor, im->currency, money,
                        sizeof money),
           im->currency);
    if (im->bad_ct > 0)
        printf("bad lines: %zu, put aside in %s\n", im->bad_ct, flags.rejects);
    else
        printf("bad lines: 0\n");
}

static enum exit_code run(const struct config *c, int argc, char **argv)
{
    struct import im = {0};
    struct err e = {0};
    char now[TIMESTAMP_TEXT];
    enum exit_code code;

    (void)argc;
    (void)argv;
    if (fill(&im, c, now, &e) != 0 || check_rejects(&im, &e) != 0 ||
        (flags.rejects != NULL &&
         replace_open(&im.rejects, "the rejects file", flags.rejects, &e) != 0))
        code = cli_fail(&e);
    else
        code = cli_on_tables(c, "import", import, &im);
    if (code == EXIT_OK)
        print_summary(&im);
    replace_close(&im.rejects);
    for (size_t i = 0; i < IMPORT_KINDS; i++)
        free(im.headers[i]);
    return code;
}

/* clang-format off */
static const struct cli_flag flag_table[] = {
    {"orders",        CLI_FILE, FLAG(orders),        0, 0, "file of order lines"},
    {"subscriptions", CLI_FILE, FLAG(subscriptions), 0, 0, "file of subscriptions"},
    {"stock",         CLI_FILE, FLAG(stock),         0, 0, "file of SKUs"},
    {"rejects",       CLI_FILE, FLAG(rejects),       0, 0, "put bad lines into this file and import the others"},
    {"deposit",       CLI_TEXT, FLAG(deposit),       0, 0, "opening deposit of each new user (default 0)"},
    {"now",           CLI_TIME, FLAG(now),           0, 0, "time that counts as now (default: the database's clock)"},
    {NULL,            CLI_BOOL, 0,                   0, 0, NULL},
};
/* clang-format on */

const struct cli_verb verb_import = {
    .name = "import",
    .who = "the owner of the schema",
    .sentence =
        "brings in orders, subscriptions and stock from CSV files, all or nothing",
    .example = "ledgerlock import --stock stock.csv --orders orders.csv",
    .flags = flag_table,
    .values = &flags,
    .settings = "import.",
    .run = run,
};
