/* explain: the life of one subscription or order in the order of time, and what it
 * waits for now. */
#include <errno.h>
#include <jansson.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "common/base/money.h"
#include "worker/batch/session.h"
#include "worker/cli/cli.h"
#include "worker/cli/held.h"
#include "worker/cli/json.h"

static struct values {
    bool json;
} values;

static const struct cli_flag flags[] = {
    {"json", CLI_BOOL, offsetof(struct values, json), 0, 0,
     "print one JSON document instead of the text"},
    {0},
};

/* A kind of row that can be explained. */
static const struct kind {
    const char *name;
    const struct sql_text *tell, *await;
} kinds[] = {
    {"subscription", SQL_EXPLAIN_TELL_SUBSCRIPTION, SQL_EXPLAIN_AWAIT_SUBSCRIPTION},
    {"order", SQL_EXPLAIN_TELL_ORDER, SQL_EXPLAIN_AWAIT_ORDER},
};

/* ---- its life ---- */

enum { AT, WHAT, DETAIL, AMOUNT, CURRENCY, TOKEN, WORKER }; /* columns of tell */

static int put_number(json_t *row,
                      const char *key,
                      const struct pg_result *res,
                      size_t i,
                      size_t column,
                      struct err *e)
{
    if (pg_is_null(res, i, column))
        return 0;
    return doc_put(row, key, json_integer(pg_get_int8(res, i, column)), e);
}

static int put_text(json_t *row,
                    const char *key,
                    const struct pg_result *res,
                    size_t i,
                    size_t column,
                    struct err *e)
{
    if (pg_is_null(res, i, column))
        return 0;
    return doc_put(row, key, json_string(pg_get_text(res, i, column)), e);
}

/* An event has only the members that mean something for it. */
static int add_event(json_t *life, const struct pg_result *res, size_t i, struct err *e)
{
    json_t *row = json_object();

    if (doc_append(life, row, e) != 0 || put_text(row, "at", res, i, AT, e) != 0 ||
        put_text(row, "what", res, i, WHAT, e) != 0 ||
        put_text(row, "detail", res, i, DETAIL, e) != 0 ||
        put_number(row, "amount_minor", res, i, AMOUNT, e) != 0 ||
        put_text(row, "currency", res, i, CURRENCY, e) != 0 ||
        put_number(row, "token", res, i, TOKEN, e) != 0 ||
        put_text(row, "worker", res, i, WORKER, e) != 0)
        return (int)e->code;
    return 0;
}

static int
add_life(struct pg *pg, const struct kind *kind, int64_t id, json_t *doc, struct err *e)
{
    const struct pg_param param = pg_int8(id);
    struct pg_result *res = NULL;
    json_t *life = json_array();
    int code = doc_put(doc, "life", life, e);

    if (code == 0)
        code = pg_exec(pg, kind->tell, &param, 1, &res, e);
    for (size_t i = 0; code == 0 && i < pg_rows(res); i++)
        code = add_event(life, res, i, e);
    pg_result_free(res);
    return code;
}

/* ---- what it waits for ---- */

static int add_wait(json_t *waits, const char *what, json_t *detail, struct err *e)
{
    return doc_append(waits, json_pack("{s:s,s:o}", "for", what, "detail", detail), e);
}

/* Those of the keys that are held, and by which holder. */
static int add_held(struct ll_client *locks,
                    const struct pg_result *names,
                    json_t *waits,
                    struct err *e)
{
    json_t *rows = json_array(), *row;
    int code = held_read(locks, rows, e);
    size_t i;

    json_array_foreach(rows, i, row)
    {
        for (size_t k = 0; code == 0 && k < pg_rows(names); k++) {
            if (strcmp(doc_text(row, "key"), pg_get_text(names, k, 0)) == 0)
                code = add_wait(
                    waits, "a lock key",
                    json_sprintf("%s is held by %s with token %lld, "
                                 "%lld ms left",
                                 doc_text(row, "key"), doc_text(row, "holder"),
                                 doc_int(row, "token"), doc_int(row, "left_ms")),
                    e);
        }
    }
    json_decref(rows);
    return code;
}

/* Redis that cannot be asked is a thing that a row waits for, and no error of explain.
 */
static int ask_redis(const struct config *c,
                     const struct pg_result *names,
                     json_t *waits,
                     struct err *e)
{
    struct session s = {.config = c};
    struct err why = {0};
    int code = session_open_locks(&s, e);

    if (code == 0 && s.locks != NULL)
        code = add_held(s.locks, names, waits, &why);
    if (why.code == ERR_REDIS)
        code = add_wait(waits, "Redis",
                        json_sprintf("its locks are unknown: %s", why.msg), e);
    else if (why.code != 0)
        *e = why;
    session_close(&s);
    return code;
}

/* A subscription or an order, as $1 and $2 of the statements that ask for it. */
struct needs {
    struct pg_param params[2];
};

static struct needs needs_of(const struct kind *kind, int64_t id)
{
    bool is_order = kind->tell == SQL_EXPLAIN_TELL_ORDER;

    return (struct needs){
        {is_order ? pg_null() : pg_int8(id), is_order ? pg_int8(id) : pg_null()}};
}

static int add_keys(const struct config *c,
                    struct pg *pg,
                    const struct needs *needs,
                    json_t *waits,
                    struct err *e)
{
    struct pg_result *names;
    int code = pg_exec(pg, SQL_EXPLAIN_NAME_KEYS, needs->params, 2, &names, e);

    if (code == 0 && pg_rows(names) > 0)
        code = ask_redis(c, names, waits, e);
    pg_result_free(names);
    return code;
}

static int
add_row_locks(struct pg *pg, const struct needs *needs, json_t *waits, struct err *e)
{
    struct pg_result *res;
    int code = pg_exec(pg, SQL_EXPLAIN_FIND_ROW_LOCKS, needs->params, 2, &res, e);

    for (size_t i = 0; code == 0 && i < pg_rows(res); i++)
        code = add_wait(waits, "a row lock", json_string(pg_get_text(res, i, 0)), e);
    pg_result_free(res);
    return code;
}

static int add_waits(
    struct pg *pg, const struct kind *kind, int64_t id, json_t *doc, struct err *e)
{
    const struct pg_param param = pg_int8(id);
    json_t *waits = json_array();
    struct pg_result *res = NULL;
    int code = doc_put(doc, "waits", waits, e);

    if (code == 0)
        code = pg_exec(pg, kind->await, &param, 1, &res, e);
    if (code == 0 && pg_rows(res) == 0)
        code = err_set(e, ERR_INVALID, "LL-6005 there is no %s %lld", kind->name,
                       (long long)id);
    for (size_t i = 0; code == 0 && i < pg_rows(res); i++)
        code = add_wait(waits, pg_get_text(res, i, 0),
                        json_string(pg_get_text(res, i, 1)), e);
    pg_result_free(res);
    return code;
}

/* Redis is asked behind the transaction, so that none waits for it. */
static int gather(const struct config *c,
                  struct pg *pg,
                  const struct kind *kind,
                  int64_t id,
                  json_t *doc,
                  struct err *e)
{
    const struct needs needs = needs_of(kind, id);

    if (doc_put(doc, "item", json_sprintf("%s:%lld", kind->name, (long long)id), e) !=
            0 ||
        pg_begin_snapshot(pg, e) != 0 || add_life(pg, kind, id, doc, e) != 0 ||
        add_waits(pg, kind, id, doc, e) != 0 ||
        add_row_locks(pg, &needs, json_object_get(doc, "waits"), e) != 0)
        return (int)e->code;
    pg_rollback(pg);
    return add_keys(c, pg, &needs, json_object_get(doc, "waits"), e);
}

/* ---- printing ---- */

/* One line: time, event, and those of its members that it has, parted by commas. */
static void print_event(const json_t *row)
{
    const char *currency = doc_text(row, "currency"), *worker = doc_text(row, "worker");
    const char *detail = doc_text(row, "detail"),
               *comma = detail[0] != '\0' ? ", " : "";
    char money[48];

    (void)printf("%s  %-11s %s", doc_text(row, "at"), doc_text(row, "what"), detail);
    if (json_object_get(row, "amount_minor") != NULL) {
        (void)printf(
            "%s%s %s", comma,
            money_format(doc_int(row, "amount_minor"), currency, money, sizeof money),
            currency);
        comma = ", ";
    }
    if (json_object_get(row, "token") != NULL) {
        (void)printf("%stoken %lld", comma, doc_int(row, "token"));
        comma = ", ";
    }
    if (worker[0] != '\0')
        (void)printf("%sby %s", comma, worker);
    (void)putchar('\n');
}

static void print(const json_t *doc)
{
    size_t i;
    json_t *row;

    (void)printf("%s\n", doc_text(doc, "item"));
    json_array_foreach(json_object_get(doc, "life"), i, row)
    {
        print_event(row);
    }
    json_array_foreach(json_object_get(doc, "waits"), i, row)
    {
        (void)printf("%s %s: %s\n", i == 0 ? "waits for" : "      and",
                     doc_text(row, "for"), doc_text(row, "detail"));
    }
}

/* ---- the verb ---- */

static const struct kind *find_kind(const char *name)
{
    for (size_t i = 0; i < sizeof kinds / sizeof kinds[0]; i++) {
        if (strcmp(kinds[i].name, name) == 0)
            return &kinds[i];
    }
    return NULL;
}

static bool parse_id(const char *text, int64_t *id)
{
    char *end;

    errno = 0;
    *id = strtoll(text, &end, 10);
    return errno == 0 && end != text && *end == '\0' && *id > 0;
}

static int show(const struct config *c,
                struct pg *pg,
                const struct kind *kind,
                int64_t id,
                struct err *e)
{
    json_t *doc = json_object();
    int code = gather(c, pg, kind, id, doc, e);

    if (code == 0 && values.json)
        doc_print(doc);
    else if (code == 0)
        print(doc);
    json_decref(doc);
    return code;
}

static enum exit_code run(const struct config *c, int argc, char **argv)
{
    const struct kind *kind = argc == 2 ? find_kind(argv[0]) : NULL;
    struct err e = {0};
    struct pg *pg = NULL;
    int64_t id;
    int code;

    if (kind == NULL)
        return cli_usage("explain", "LL-1013 either `subscription ID` or `order ID`");
    if (!parse_id(argv[1], &id))
        return cli_usage("explain", "LL-1013 \"%.40s\" is no number of %s %s", argv[1],
                         kind->name[0] == 'o' ? "an" : "a", kind->name);
    code = cli_open(c, "explain", &pg, &e);
    if (code == 0)
        code = show(c, pg, kind, id, &e);
    pg_close(pg);
    return code == 0 ? EXIT_OK : cli_fail(&e);
}

const struct cli_verb verb_explain = {
    .name = "explain",
    .sentence = "the life of one subscription or order, and what it waits for now",
    .example = "ledgerlock explain order 42",
    .flags = flags,
    .values = &values,
    .run = run,
    .max_words = 2,
    .words = "subscription order",
};
