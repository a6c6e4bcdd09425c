/* explain: the life of one subscription or order in the order of time, and what it
 * waits for now. */
#include <errno.h>
#include <jansson.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "common/base/age.h"
#include "common/base/money.h"
#include "ops/cli/cli.h"
#include "ops/cli/held.h"
#include "ops/cli/json.h"
#include "worker/batch/session.h"

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
    const struct sql_text *tell, *await; /* their columns are the members */
} kinds[] = {
    {"subscription", SQL_EXPLAIN_TELL_SUBSCRIPTION, SQL_EXPLAIN_AWAIT_SUBSCRIPTION},
    {"order", SQL_EXPLAIN_TELL_ORDER, SQL_EXPLAIN_AWAIT_ORDER},
};

/* ---- what it waits for ---- */

static int add_wait(json_t *waits, const char *what, json_t *detail, struct err *e)
{
    return doc_append(waits, json_pack("{s:s,s:o}", "for", what, "detail", detail), e);
}

/* A wait for each of the keys that is held, with its holder. */
static int add_held(struct rlock_client *locks,
                    const struct pg_result *names,
                    json_t *waits,
                    struct err *e)
{
    json_t *rows = json_array(), *row;
    int code = held_read(locks, rows, e);
    char left[AGE_TEXT];
    size_t i;

    json_array_foreach(rows, i, row)
    {
        for (size_t k = 0; code == 0 && k < pg_rows(names); k++) {
            if (strcmp(doc_text(row, "key"), pg_get_text(names, k, 0)) == 0)
                code =
                    add_wait(waits, "a lock key",
                             json_sprintf("%s is held by %s with token %lld, "
                                          "%s left",
                                          doc_text(row, "key"), doc_text(row, "holder"),
                                          doc_int(row, "token"),
                                          age_text(doc_int(row, "left_ms"), left)),
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

/* A row to explain. */
struct item {
    const struct config *config;
    const struct kind *kind;
    int64_t id;
};

static int add_keys(struct pg *pg,
                    const struct item *item,
                    const struct pg_param *params,
                    json_t *waits,
                    struct err *e)
{
    struct pg_result *names;
    int code = pg_exec(pg, SQL_EXPLAIN_NAME_KEYS, params, 2, &names, e);

    if (code == 0 && pg_rows(names) > 0)
        code = ask_redis(item->config, names, waits, e);
    pg_result_free(names);
    return code;
}

/* Redis is asked behind the transaction, so that none waits for it. */
static int gather(struct pg *pg, const struct item *item, json_t *doc, struct err *e)
{
    const struct pg_param id = pg_int8(item->id);
    bool is_order = item->kind->tell == SQL_EXPLAIN_TELL_ORDER;
    const struct pg_param params[] = {is_order ? pg_null() : id,
                                      is_order ? id : pg_null()};
    json_t *waits;

    if (doc_put(doc, "item",
                json_sprintf("%s:%lld", item->kind->name, (long long)item->id),
                e) != 0 ||
        pg_begin_snapshot(pg, e) != 0 ||
        doc_rows(doc, "life", pg, item->kind->tell, &id, 1, e) != 0 ||
        doc_rows(doc, "waits", pg, item->kind->await, &id, 1, e) != 0)
        return (int)e->code;
    waits = json_object_get(doc, "waits");
    if (json_array_size(waits) == 0)
        return err_set(e, ERR_INVALID, "LL-6005 there is no %s %lld", item->kind->name,
                       (long long)item->id);
    if (doc_rows(doc, "waits", pg, SQL_EXPLAIN_FIND_ROW_LOCKS, params, 2, e) != 0)
        return (int)e->code;
    pg_rollback(pg);
    return add_keys(pg, item, params, waits, e);
}

/* ---- printing ---- */

/* One line: time, event, and those of its members that it has, parted by commas. */
static void print_event(const json_t *row)
{
    const char *currency = doc_text(row, "currency"), *worker = doc_text(row, "worker");
    const char *comma = doc_text(row, "detail")[0] != '\0' ? ", " : "";
    char money[48];

    (void)printf("%s  %-11s %s", doc_text(row, "at"), doc_text(row, "what"),
                 doc_text(row, "detail"));
    if (json_object_get(row, "amount_minor") != NULL) {
        (void)money_format(doc_int(row, "amount_minor"), currency, money, sizeof money);
        (void)printf("%s%s %s", comma, money, currency);
        comma = ", ";
    }
    if (json_object_get(row, "token") != NULL) {
        (void)printf("%stoken %lld", comma, doc_int(row, "token"));
        comma = ", ";
    }
    (void)printf("%s%s%s\n", worker[0] != '\0' ? comma : "",
                 worker[0] != '\0' ? "by " : "", worker);
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

static int show(struct pg *pg, void *item, struct err *e)
{
    json_t *doc = json_object();
    int code = gather(pg, item, doc, e);

    if (code == 0)
        doc_show(doc, values.json, print);
    json_decref(doc);
    return code;
}

static enum exit_code run(const struct config *c, int argc, char **argv)
{
    struct item item = {.config = c, .kind = argc == 2 ? find_kind(argv[0]) : NULL};

    if (item.kind == NULL)
        return cli_usage("explain", "LL-1013 either `subscription ID` or `order ID`");
    if (!parse_id(argv[1], &item.id))
        return cli_usage("explain", "LL-1013 \"%.40s\" is no number of %s %s", argv[1],
                         item.kind->name[0] == 'o' ? "an" : "a", item.kind->name);
    return cli_on_tables(c, "explain", show, &item);
}

const struct cli_verb verb_explain = {
    .name = "explain",
    .who = "members of ledgerlock_reader",
    .use = "order|subscription ID",
    .sentence =
        "tells the life of one subscription or order, and what it waits for now",
    .example = "ledgerlock explain order 42",
    .flags = flags,
    .values = &values,
    .run = run,
    .max_words = 2,
    .words = "subscription order",
};
