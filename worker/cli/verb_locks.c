/* locks: lists the locks in Redis, and lets an operator free a key. */
#include <jansson.h>
#include <stdio.h>
#include <string.h>

#include "common/base/age.h"
#include "worker/batch/session.h"
#include "worker/cli/cli.h"
#include "worker/cli/held.h"
#include "worker/cli/json.h"

static struct values {
    bool json, yes;
} values;

static const struct cli_flag flags[] = {
    {"json", CLI_BOOL, offsetof(struct values, json), 0, 0,
     "print one JSON document instead of the table"},
    {"yes", CLI_BOOL, offsetof(struct values, yes), 0, 0, "release without asking"},
    {0},
};

/* ---- list ---- */

static bool is_quorum;

static void print_table(const json_t *doc)
{
    const json_t *rows = json_object_get(doc, "locks");
    char left[AGE_TEXT];
    size_t i;
    json_t *row;

    if (json_array_size(rows) > 0)
        (void)printf("%-28s %-16s %18s %11s%s\n", "KEY", "HOLDER", "TOKEN", "LEFT",
                     is_quorum ? " SERVERS" : "");
    json_array_foreach(rows, i, row)
    {
        (void)printf("%-28s %-16.16s %18lld %11s", doc_text(row, "key"),
                     doc_text(row, "holder"), doc_int(row, "token"),
                     age_text(doc_int(row, "left_ms"), left));
        if (is_quorum)
            (void)printf(" %7lld", doc_int(row, "servers"));
        (void)putchar('\n');
    }
    (void)printf("%zu held\n", json_array_size(rows));
}

static int list(struct ll_client *locks, struct err *e)
{
    json_t *doc = json_object(), *rows = json_array();
    int code = doc_put(doc, "locks", rows, e);

    if (code == 0)
        code = held_read(locks, rows, e);
    if (code == 0)
        doc_show(doc, values.json, print_table);
    json_decref(doc);
    return code;
}

/* ---- release ---- */

/* The journal is written first: a release that cannot be journaled is not done. */
static int
release(struct pg *pg, struct ll_client *locks, const char *key, struct err *e)
{
    const struct pg_param params[] = {
        pg_text(key),
        pg_int8(0),
        pg_text("operator"),
        pg_text("forced_unlock"),
        pg_text("hand"),
        pg_null(),
        pg_text("ledgerlock locks release"),
        pg_int8(0),
    };
    int code = ll_connect(locks);

    if (code != LL_OK)
        return held_error(locks, code, e);
    if (pg_begin(pg, e) != 0 ||
        pg_exec(pg, SQL_POOL_LOG_INCIDENT, params, 8, NULL, e) != 0)
        return (int)e->code;
    code = ll_force_release(locks, &(struct ll_key){key, strlen(key)});
    if (code == LL_GONE)
        return err_set(e, ERR_INVALID, "LL-4005 nobody holds %s", key);
    if (code != LL_OK)
        return held_error(locks, code, e);
    if (pg_commit(pg, e) != 0)
        return err_wrap(e, "%s was released, but its journal row was not written", key);
    cli_progress_end();
    (void)printf("released %s\n", key);
    return 0;
}

static int confirm_and_release(const struct config *c,
                               struct ll_client *locks,
                               const char *key,
                               struct err *e)
{
    struct pg *pg = NULL;
    char warning[LL_KEY_MAX + 160];
    int code;

    (void)snprintf(warning, sizeof warning,
                   "releasing %s takes it from its holder, whom only the fence then "
                   "keeps out of the database",
                   key);
    code = cli_confirm(values.yes, warning, e);
    if (code == 0)
        code = cli_open(c, "locks", &pg, e);
    if (code == 0)
        code = release(pg, locks, key, e);
    pg_close(pg);
    return code;
}

static enum exit_code run(const struct config *c, int argc, char **argv)
{
    struct session s = {.config = c};
    struct err e = {0};
    int code;

    is_quorum = c->is_quorum;
    if (argc == 1 || (argc == 2 && strcmp(argv[0], "release") != 0))
        return cli_usage("locks", "LL-1015 either no word, or `release KEY`");
    cli_progress("asking Redis");
    code = session_open_locks(&s, &e);
    if (code == 0 && s.locks == NULL)
        code = err_set(&e, ERR_CONFIG,
                       "LL-4006 locks.mode is database-only: there are no locks");
    if (code == 0)
        code = argc == 0 ? list(s.locks, &e)
                         : confirm_and_release(c, s.locks, argv[1], &e);
    session_close(&s);
    return code == 0 ? EXIT_OK : cli_fail(&e);
}

const struct cli_verb verb_locks = {
    .name = "locks",
    .use = "[release KEY]",
    .sentence =
        "lists held locks with holder, token and time left; `release KEY` frees one",
    .example = "ledgerlock locks release user:42 --yes",
    .flags = flags,
    .values = &values,
    .run = run,
    .max_words = 2,
    .words = "release",
};
