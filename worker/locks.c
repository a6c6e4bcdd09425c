/* locks: what is held in Redis, and an operator's way to free a key. */
#include <inttypes.h>
#include <jansson.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "worker/cli.h"
#include "worker/connect.h"
#include "worker/jdoc.h"
#include "worker/migrate.h"

/* clang-format off */
static struct values {
    bool json;
    bool yes;
} values;

static const struct cli_flag flags[] = {
    {"json", CLI_BOOL, offsetof(struct values, json), 0, 0, "print one JSON document instead of the table"},
    {"yes",  CLI_BOOL, offsetof(struct values, yes),  0, 0, "release without asking"},
    {NULL,   CLI_BOOL, 0, 0, 0, NULL},
};

/* clang-format on */

static int redis_error(const struct worker *w, int code, struct err *e)
{
    return err_set(e, ERR_REDIS, "%s (%s)", ll_strerror(code), ll_error(w->locks));
}

/* ---- list ---- */

static void print_held(const struct ll_held *held, void *arg)
{
    size_t *n = arg;

    if ((*n)++ == 0)
        (void)printf("%-28s %-16s %18s %10s\n", "KEY", "HOLDER", "TOKEN", "LEFT MS");
    (void)printf("%-28s %-16.16s %18" PRId64 " %10" PRId64 "\n", held->name,
                 held->holder, held->token, held->left_ms);
}

static void collect_held(const struct ll_held *held, void *arg)
{
    struct err ignored = {0};

    (void)!jdoc_append(arg,
                       json_pack("{s:s,s:s,s:I,s:I}", "key", held->name, "holder",
                                 held->holder, "token", (json_int_t)held->token,
                                 "left_ms", (json_int_t)held->left_ms),
                       &ignored);
}

static int list_json(struct worker *w, struct err *e)
{
    json_t *doc = json_pack("{s:[]}", "locks");
    int code = doc == NULL
                   ? LL_E_NOMEM
                   : ll_list(w->locks, collect_held, json_object_get(doc, "locks"));

    if (code == LL_OK) {
        (void)json_dumpf(doc, stdout, JSON_INDENT(2));
        (void)putchar('\n');
    }
    json_decref(doc);
    return code == LL_OK ? 0 : redis_error(w, code, e);
}

static int list(struct worker *w, struct err *e)
{
    size_t n = 0;
    int code;

    if (values.json)
        return list_json(w, e);
    code = ll_list(w->locks, print_held, &n);
    if (code != LL_OK)
        return redis_error(w, code, e);
    (void)printf("%zu held\n", n);
    return 0;
}

/* ---- release ---- */

static int confirm(const char *key, struct err *e)
{
    char answer[16] = "";

    if (values.yes)
        return 0;
    if (isatty(STDIN_FILENO) == 0)
        return err_set(e, ERR_INVALID,
                       "releasing %s takes it from whoever holds it; say --yes", key);
    (void)fprintf(
        stderr,
        "Release %s whoever holds it? Its fence keeps the old holder out of the "
        "database, nothing else does. [y/N] ",
        key);
    if (fgets(answer, sizeof answer, stdin) == NULL ||
        (answer[0] != 'y' && answer[0] != 'Y'))
        return err_set(e, ERR_INVALID, "nothing was released");
    return 0;
}

/* PostgreSQL first: what cannot be journaled is not done. */
static int release(struct worker *w, const char *key, struct err *e)
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
    int code;

    if (confirm(key, e) != 0 || cli_connect(w->config, "locks", &w->pg, e) != 0 ||
        migrate_check(w->pg, e) != 0)
        return (int)e->code;
    code = ll_connect(w->locks);
    if (code != LL_OK)
        return redis_error(w, code, e);
    if (pg_begin(w->pg, e) != 0 ||
        pg_exec(w->pg, SQL_POOL_JOURNAL_INCIDENT, params, 8, NULL, e) != 0)
        return (int)e->code;
    code = ll_force_release(w->locks, key);
    if (code == LL_GONE)
        return err_set(e, ERR_INVALID, "nobody holds %s", key);
    if (code != LL_OK)
        return redis_error(w, code, e);
    if (pg_commit(w->pg, e) != 0)
        return err_wrap(e, "%s was released, but its journal row was not written", key);
    (void)printf("released %s\n", key);
    return 0;
}

static enum exit_code run(const struct config *c, int argc, char **argv)
{
    struct worker w = {.config = c};
    struct err e = {0};
    int code;

    if (argc == 1 || (argc == 2 && strcmp(argv[0], "release") != 0))
        return cli_usage("locks", "either no word, or `release KEY`");
    code = connect_locks(&w, &e);
    if (code == 0 && w.locks == NULL)
        code =
            err_set(&e, ERR_CONFIG, "locks.mode is database-only: there are no locks");
    if (code == 0)
        code = argc == 0 ? list(&w, &e) : release(&w, argv[1], &e);
    connect_close(&w);
    return code == 0 ? EXIT_OK : cli_fail(&e);
}

const struct cli_verb verb_locks = {
    .name = "locks",
    .sentence = "held locks with holder, token and time left; `release KEY` frees one",
    .example = "ledgerlock locks release user:42 --yes",
    .flags = flags,
    .values = &values,
    .run = run,
    .max_words = 2,
};
