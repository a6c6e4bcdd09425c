/* orphans: each is written down before the gateway is asked, or the job payments. */
#include "ops/verbs/orphans.h"

#include <stdio.h>
#include <string.h>

#include "common/base/money.h"
#include "ops/cli/cli.h"

static size_t find(const struct pg_result *res, const char *reference)
{
    size_t i = 0;

    while (i < pg_rows(res) && (!pg_is_null(res, i, COUNT) ||
                                strcmp(pg_get_text(res, i, REFERENCE), reference) != 0))
        i++;
    return i;
}

static const char *class_of(const struct pg_result *res, size_t row)
{
    return row == pg_rows(res) ? "not in the list" : pg_get_text(res, row, CLASS);
}

/* Written down, and then asked for: under the same key each time. */
static int refund(struct pg *pg,
                  struct calls *calls,
                  const struct pg_result *res,
                  size_t row,
                  const char *reference,
                  struct err *e)
{
    struct gateway_request r = {.amount_minor = pg_get_int8(res, row, LOOSE_MINOR)};
    const char *paid = pg_get_text(res, row, PAID);
    const char *currency = pg_get_text(res, row, CURRENCY);
    const struct pg_param params[] = {pg_text(reference), pg_text(paid),
                                      pg_int8(r.amount_minor), pg_text(currency)};
    struct gateway_answer answer = {.reference = ""};
    struct pg_result *key;
    char money[DIGITS];

    if (pg_exec(pg, SQL_RECONCILE_REFUND_ORPHAN, params, 4, &key, e) != 0) {
        if (strncmp(e->sqlstate, "LL", 2) == 0)
            e->code = ERR_INVALID;
        return (int)e->code;
    }
    (void)snprintf(r.key, sizeof r.key, "%s", pg_get_text(key, 0, 0));
    (void)snprintf(r.of, sizeof r.of, "%s", reference);
    (void)snprintf(r.paid, sizeof r.paid, "%s", paid);
    pg_result_free(key);
    if (r.amount_minor > 0) {
        if (asks_once(calls, &r, NULL, &answer, e) != 0)
            return (int)e->code;
        if (answer.outcome != GATEWAY_CAPTURED)
            return err_set(e, ERR_GATEWAY,
                           "LL-6203 it is not known if %.100s was given back: %s; run "
                           "it again, it is given back once",
                           reference, answer.reason);
    }
    cli_progress_end();
    (void)printf("given back %s %s of %s %s\n",
                 money_format(r.amount_minor, currency, money, sizeof money), currency,
                 reference, answer.reference);
    return 0;
}

int orphan_refund(struct pg *pg,
                  struct calls *calls,
                  const struct pg_result *res,
                  const char *reference,
                  struct err *e)
{
    size_t row = find(res, reference);

    if (row < pg_rows(res) && !pg_is_null(res, row, LOOSE_MINOR))
        return refund(pg, calls, res, row, reference, e);
    if (row == pg_rows(res) || strcmp(pg_get_text(res, row, CLASS), "returned") != 0)
        return err_set(
            e, ERR_INVALID,
            "LL-6202 %.100s is %s: only what is taken twice or for nothing is given back",
            reference, class_of(res, row));
    cli_progress_end();
    (void)printf("%s was given back before\n", reference);
    return 0;
}

int orphan_adopt(struct pg *pg,
                 const struct pg_result *res,
                 const char *reference,
                 struct err *e)
{
    size_t row = find(res, reference);
    struct pg_param params[3] = {pg_text(reference)};
    int64_t is_new;

    if (strcmp(class_of(res, row), "orphan") != 0 || pg_is_null(res, row, ATTEMPT))
        return err_set(e, ERR_INVALID,
                       "LL-6204 %.100s is %s: only an orphan of an attempt of this "
                       "database can pay a period",
                       reference, class_of(res, row));
    params[1] = pg_text(pg_get_text(res, row, PAID));
    params[2] = pg_int8(pg_get_int8(res, row, ATTEMPT));
    if (pg_ask(pg, SQL_RECONCILE_ADOPT_ORPHAN, params, 3, &is_new, e) != 0) {
        if (strncmp(e->sqlstate, "LL", 2) == 0)
            e->code = ERR_INVALID;
        return (int)e->code;
    }
    cli_progress_end();
    (void)printf("%s pays %s: the job payments looks it up, and settles it\n",
                 reference, pg_get_text(res, row, PAID));
    return 0;
}
