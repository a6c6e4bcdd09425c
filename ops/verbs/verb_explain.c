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

/* A row to explain. */
struct item {
    const struct config *config;
    const char *kind; /* order or subscription */
    int64_t id;
};

/* ---- what it waits for ---- */

static int add_wait(json_t *waits, const char *what, json_t *detail, struct err *e)
{
    return doc_append(waits, json_pack("{s:s,s:o}", "for", what, "detail", detail), e);
}

static bool has_key(const json_t *keys, const char *name)
{
    size_t i;
    json_t *key;

    json_array_foreach(keys, i, key)
    {
        if (strcmp(json_string_value(key), name) == 0)
            return true;
    }
    return false;
}

/* A wait for each of the keys that is held, with its holder. */
static int
add_held(struct rlock_client *locks, const json_t *keys, json_t *waits, struct err *e)
{
    json_t *rows = json_array(), *row;
    int code = held_read(locks, rows, e);
    char left[AGE_TEXT];
    size_t i;

    json_array_foreach(rows, i, row)
    {
        if (code != 0 || !has_key(keys, doc_text(row, "key")))
            continue;
        code = add_wait(waits, "a lock key",
                        json_sprintf("%s is held by %s with token %lld, %s left",
                                     doc_text(row, "key"), doc_text(row, "holder"),
                                     doc_int(row, "token"),
                                     age_text(doc_int(row, "left_ms"), left)),
                        e);
    }
    json_decref(rows);
    return code;
}

/* Redis that cannot be asked is a thing that a row waits for, and no error of explain.
 */
static int
ask_redis(const struct config *c, const json_t *keys, json_t *waits, struct err *e)
{
    struct session s = {.config = c};
    struct err why = {0};
    int code = session_open_locks(&s, e);

    if (code == 0 && s.locks != NULL)
        code = add_held(s.locks, keys, waits, &why);
    if (why.code == ERR_REDIS)
        code = add_wait(waits, "Redis",
                        json_sprintf("its locks are unknown: %s", why.msg), e);
    else if (why.code != 0)
        *e = why;
    session_close(&s);
    return code;
}

/* *out is the caller's, also on error. */
static int gather(struct pg *pg, const struct item *item, json_t **out, struct err *e)
{
    const struct pg_param params[] = {pg_text(item->kind), pg_int8(item->id)};
    const json_t *keys;

    if (doc_read(out, pg, SQL_EXPLAIN_ROW, params, 2, e) != 0)
        return (int)e->code;
    if (json_is_null(*out))
        return err_set(e, ERR_INVALID, "LL-6005 there is no %s %lld", item->kind,
                       (long long)item->id);
    keys = json_object_get(*out, "keys");
    return json_array_size(keys) == 0
               ? 0
               : ask_redis(item->config, keys, json_object_get(*out, "waits"), e);
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

static bool parse_id(const char *text, int64_t *id)
{
    char *end;

    errno = 0;
    *id = strtoll(text, &end, 10);
    return errno == 0 && end != text && *end == '\0' && *id > 0;
}

static int show(struct pg *pg, void *item, struct err *e)
{
    json_t *doc = NULL;
    int code = gather(pg, item, &doc, e);

    if (code == 0)
        doc_show(doc, values.json, print);
    json_decref(doc);
    return code;
}

static enum exit_code run(const struct config *c, int argc, char **argv)
{
    struct item item = {.config = c, .kind = argc == 2 ? argv[0] : ""};

    if (strcmp(item.kind, "order") != 0 && strcmp(item.kind, "subscription") != 0)
        return cli_usage("explain", "LL-1013 either `subscription ID` or `order ID`");
    if (!parse_id(argv[1], &item.id))
        return cli_usage("explain", "LL-1013 \"%.40s\" is no number of %s %s", argv[1],
                         item.kind[0] == 'o' ? "an" : "a", item.kind);
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
