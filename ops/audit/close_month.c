/* close-month: proves the open months, and seals one of them if its rows are still
 * those that were proved. */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "ops/audit/audit.h"
#include "ops/cli/cli.h"
#include "ops/cli/json.h"

enum {
    ROUNDS_MAX = 10
}; /* of a proof, each of rows that were written since the last */

struct month {
    char text[24];   /* 2026-10 */
    char first[28];  /* 2026-10-01 */
    char digest[40]; /* of the rows that were proved */
};

/* ---- the word ---- */

static int read_month(int argc, char **argv, struct month *m, struct err *e)
{
    const char *word = argc == 1 ? argv[0] : "";
    int year, month;
    char rest;

    if (strlen(word) != 7 || sscanf(word, "%4d-%2d%c", &year, &month, &rest) != 2 ||
        year < 1 || month < 1 || month > 12)
        return err_set(e, ERR_INVALID,
                       "LL-7001 name the month to close, as in: 2026-10");
    (void)snprintf(m->text, sizeof m->text, "%04d-%02d", year, month);
    (void)snprintf(m->first, sizeof m->first, "%04d-%02d-01", year, month);
    return 0;
}

/* ---- one try ---- */

/* Waits until nobody is in the middle of writing a table of what is placed or made at a
 * time: whoever begins later is too late for a month that has been over for a day
 * (check_time), or sees that it is closed. Each in a transaction of its own, which ends
 * at once. A writer that comes while we wait waits behind us, half a second at most. */
static int drain(struct pg *pg, struct err *e)
{
    static const struct sql_text *const locks[] = {
        SQL_CLOSE_DRAIN_WALLET_ENTRIES, SQL_CLOSE_DRAIN_STOCK_ENTRIES,
        SQL_CLOSE_DRAIN_ORDERS, SQL_CLOSE_DRAIN_SUBSCRIPTIONS};

    for (size_t i = 0; i < sizeof locks / sizeof locks[0]; i++) {
        if (pg_begin(pg, e) != 0 ||
            pg_exec(pg, SQL_CLOSE_LIMIT_DRAIN, NULL, 0, NULL, e) != 0 ||
            pg_exec(pg, locks[i], NULL, 0, NULL, e) != 0 || pg_commit(pg, e) != 0) {
            pg_rollback(pg);
            return (int)e->code;
        }
    }
    return 0;
}

/* Comes before the snapshot of the transaction, so that nothing is written in between.
 */
static int lock_month(struct pg *pg, const struct month *m, struct err *e)
{
    static const char place[] = "YYYY_MM";
    char text[1024];

    (void)snprintf(text, sizeof text, "%s", (const char *)SQL_CLOSE_LOCK_MONTH->text);
    for (char *gap = text; (gap = strstr(gap, place)) != NULL;) {
        memcpy(gap, m->text, 4);
        memcpy(gap + 5, m->text + 5, 2);
    }
    return pg_exec(pg, SQL_CLOSE_LIMIT_WAITS, NULL, 0, NULL, e) != 0
               ? (int)e->code
               : pg_exec_text(pg, text, NULL, e);
}

static int prove(struct pg *pg, const struct month *m, struct err *e)
{
    const struct audit_order order = {.in_transaction = true};
    json_t *doc, *row;
    size_t i;

    if (audit_gather(pg, &order, &doc, e) != 0)
        return (int)e->code;
    json_array_foreach(json_object_get(doc, "invariants"), i, row)
    {
        const char *name = doc_text(row, "name");

        /* Work that is left is of open months; close_month asks for that of this one.
         */
        if (json_is_true(json_object_get(row, "holds")) || audit_is_work_left(name))
            continue;
        (void)err_set(
            e, ERR_REFUSED,
            "LL-7003 %s is not closed: invariant %s is broken: %s; see `ledgerlock audit`",
            m->text, name,
            json_string_value(json_array_get(json_object_get(row, "examples"), 0)));
        break;
    }
    json_decref(doc);
    return (int)e->code;
}

/* A refusal of the function in its own words: without the name of the statement before
 * and the SQLSTATE behind them. */
static int refuse(const struct month *m, struct err *e)
{
    char why[sizeof e->msg], *end;
    const char *words = strstr(err_words(e), ": ");

    if (strcmp(e->sqlstate, "LL002") == 0)
        return err_set(e, ERR_INVALID, "LL-7002 there is no month %s", m->text);
    if (strcmp(e->sqlstate, "LL003") != 0 || words == NULL)
        return (int)e->code;
    (void)snprintf(why, sizeof why, "%.900s", words + 2);
    end = strstr(why, " (SQLSTATE");
    if (end != NULL)
        *end = '\0';
    return err_set(e, ERR_REFUSED, "LL-7004 %s cannot be closed: %s", m->text, why);
}

static int check(struct pg *pg, const struct month *m, struct err *e)
{
    const struct pg_param param = pg_text(m->first);

    cli_progress("looking for what is open");
    return pg_exec(pg, SQL_CLOSE_CHECK_MONTH, &param, 1, NULL, e) == 0 ? 0
                                                                       : refuse(m, e);
}

static int prove_rows(struct pg *pg, struct month *m, struct err *e)
{
    const struct pg_param param = pg_text(m->first);
    struct pg_result *res;

    cli_progress("proving the open months");
    if (pg_begin_repeatable(pg, e) == 0 && prove(pg, m, e) == 0 &&
        pg_exec(pg, SQL_CLOSE_DIGEST_MONTH, &param, 1, &res, e) == 0) {
        (void)snprintf(m->digest, sizeof m->digest, "%s", pg_get_text(res, 0, 0));
        pg_result_free(res);
    }
    pg_rollback(pg);
    return (int)e->code;
}

static int seal(struct pg *pg, const struct month *m, int64_t *row_ct, struct err *e)
{
    const struct pg_param params[] = {pg_text(m->first), pg_text(m->digest)};

    cli_progress("sealing %s", m->text);
    if (drain(pg, e) == 0 && pg_begin_repeatable(pg, e) == 0 &&
        lock_month(pg, m, e) == 0 &&
        pg_ask(pg, SQL_CLOSE_SEAL_MONTH, params, 2, row_ct, e) == 0)
        (void)!pg_commit(pg, e);
    pg_rollback(pg);
    return e->code == 0 ? 0 : refuse(m, e);
}

/* Nothing is held while it is proved: what is written to the month meanwhile makes
 * another digest, and it is proved again. */
static int close_month(struct pg *pg, struct month *m, int64_t *row_ct, struct err *e)
{
    int tries = 0, rounds = 0, code;

    do {
        *e = (struct err){0};
        code = check(pg, m, e);
        if (code == 0)
            code = prove_rows(pg, m, e);
        while (code == 0) {
            code = seal(pg, m, row_ct, e);
            if (!cli_tries_again("close-month", m->text, &tries, e))
                break;
            code = 0;
        }
    } while (code == ERR_CONFLICT && ++rounds < ROUNDS_MAX);
    return code;
}

/* ---- the verb ---- */

static int print_seals(struct pg *pg, const struct month *m, struct err *e)
{
    const struct pg_param param = pg_text(m->first);
    struct pg_result *res;

    if (pg_exec(pg, SQL_CLOSE_LIST_SEALS, &param, 1, &res, e) != 0)
        return (int)e->code;
    for (size_t i = 0; i < pg_rows(res); i++)
        (void)printf("  %-16s %-36s %-4s%12" PRId64 " rows, sum %s\n",
                     pg_get_text(res, i, 0), pg_get_text(res, i, 1),
                     pg_get_text(res, i, 2), pg_get_int8(res, i, 3),
                     pg_get_text(res, i, 4));
    pg_result_free(res);
    return 0;
}

static int work(struct pg *pg, void *month, struct err *e)
{
    struct month *m = month;
    int64_t row_ct = 0;

    if (close_month(pg, m, &row_ct, e) != 0)
        return (int)e->code;
    cli_progress_end();
    (void)printf("closed %s: %" PRId64 " rows are proved and sealed\n", m->text,
                 row_ct);
    return print_seals(pg, m, e);
}

static enum exit_code run(const struct config *c, int argc, char **argv)
{
    struct err e = {0};
    struct month m;

    return read_month(argc, argv, &m, &e) != 0
               ? cli_fail(&e)
               : cli_on_tables(c, "close-month", work, &m);
}

const struct cli_verb verb_close_month = {
    .name = "close-month",
    .who = "the owner of the schema",
    .use = "YYYY-MM",
    .sentence = "proves a month that is over and seals it: its rows never change again",
    .example = "ledgerlock close-month 2026-10",
    .run = run,
    .max_words = 1,
};
