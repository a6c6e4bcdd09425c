/* locks: lists the locks in Redis, and lets an operator free a key. */
#include <jansson.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <ledgerlock/lock_held.h>

#include "common/base/age.h"
#include "ops/cli/cli.h"
#include "ops/cli/held.h"
#include "ops/cli/json.h"
#include "worker/batch/session.h"

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

static int list(struct rlock_client *locks, struct err *e)
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

/* The holders of a key: servers of a quorum may tell of several. */
struct holders {
    const char *key;

    struct holder {
        char *value; /* NULL: no string */
        size_t len;
        char text[64];
    } of[RLOCK_NODES_MAX];

    size_t n;
    bool is_short; /* out of memory */
};

static bool is_noted(const struct holders *h, const struct rlock_held *held)
{
    for (size_t i = 0; i < h->n; i++) {
        const struct holder *one = &h->of[i];

        if ((one->value == NULL) == (held->value == NULL) &&
            one->len == held->value_len &&
            (one->value == NULL || memcmp(one->value, held->value, one->len) == 0))
            return true;
    }
    return false;
}

static void note_holder(const struct rlock_held *held, void *arg)
{
    struct holders *h = arg;
    struct holder *one = &h->of[h->n];

    if (strcmp(held->name, h->key) != 0 || h->n == RLOCK_NODES_MAX || is_noted(h, held))
        return;
    *one = (struct holder){.len = held->value_len};
    if (held->value != NULL)
        one->value = malloc(held->value_len + 1);
    if (held->value != NULL && one->value == NULL) {
        h->is_short = true;
        return;
    }
    if (held->value != NULL)
        (void)memcpy(one->value, held->value, held->value_len);
    (void)snprintf(one->text, sizeof one->text, "%.63s", held->holder);
    h->n++;
}

static int find_holders(struct rlock_client *locks, struct holders *h, struct err *e)
{
    int code = rlock_list(locks, note_holder, h);

    if (code == RLOCK_OK && h->is_short)
        code = RLOCK_E_NOMEM;
    if (code != RLOCK_OK)
        return held_error(locks, code, e);
    return h->n > 0 ? 0 : err_set(e, ERR_INVALID, "LL-4005 nobody holds %s", h->key);
}

/* Of a quorum whose servers tell of several holders, from each of them. */
static int take_from(struct rlock_client *locks, const struct holders *h, struct err *e)
{
    const struct rlock_key key = {h->key, strlen(h->key)};
    bool is_other = false, is_freed = false;

    for (size_t i = 0; i < h->n; i++) {
        int code = rlock_force_release(locks, &key, h->of[i].value, h->of[i].len);

        if (code < 0)
            return held_error(locks, code, e);
        is_other = is_other || code == RLOCK_NOT_OWNER;
        is_freed = is_freed || code == RLOCK_OK;
    }
    if (is_freed)
        return 0;
    return is_other
               ? err_set(e, ERR_INVALID,
                         "LL-4010 %s went to another holder meanwhile; nothing was "
                         "released",
                         h->key)
               : err_set(e, ERR_INVALID, "LL-4005 nobody holds %s", h->key);
}

/* The journal is written first: a release that cannot be journaled is not done. */
static int release(struct pg *pg,
                   struct rlock_client *locks,
                   const struct holders *h,
                   struct err *e)
{
    const struct pg_param params[] = {
        pg_text(h->key),
        pg_int8(0),
        pg_text("operator"),
        pg_text("forced_unlock"),
        pg_text("hand"),
        pg_null(),
        pg_text("ledgerlock locks release"),
        pg_int8(0),
    };

    if (pg_begin(pg, e) != 0 ||
        pg_exec(pg, SQL_POOL_LOG_INCIDENT, params, 8, NULL, e) != 0)
        return (int)e->code;
    if (take_from(locks, h, e) != 0)
        return (int)e->code;
    if (pg_commit(pg, e) != 0)
        return err_wrap(e, "%s was released, but its journal row was not written",
                        h->key);
    cli_progress_end();
    (void)printf("released %s\n", h->key);
    return 0;
}

static int confirm_and_release(const struct config *c,
                               struct rlock_client *locks,
                               const char *key,
                               struct err *e)
{
    struct holders h = {.key = key};
    struct pg *pg = NULL;
    char warning[RLOCK_KEY_MAX + 224];
    int code = find_holders(locks, &h, e);

    if (code == 0) {
        (void)snprintf(warning, sizeof warning,
                       "releasing %s takes it from its holder, %s, whom only the fence "
                       "then keeps out of the database",
                       key, h.of[0].text);
        code = cli_confirm(values.yes, warning, e);
    }
    if (code == 0)
        code = cli_open(c, "locks", &pg, e);
    if (code == 0)
        code = release(pg, locks, &h, e);
    pg_close(pg);
    for (size_t i = 0; i < h.n; i++)
        free(h.of[i].value);
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
