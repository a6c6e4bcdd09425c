/* parked: rows that no worker works, with reasons, and an operator's way to give them
 * back. The jobs know their tables. */
#include <jansson.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "ops/cli/cli.h"
#include "ops/cli/json.h"
#include "worker/jobs/job.h"

static struct values {
    bool json, all, yes;
    const char *reason;
} values;

static const struct cli_flag flags[] = {
    {"json", CLI_BOOL, offsetof(struct values, json), 0, 0,
     "list: print one JSON document instead of the table"},
    {"all", CLI_BOOL, offsetof(struct values, all), 0, 0, "release: every parked row"},
    {"reason", CLI_TEXT, offsetof(struct values, reason), 0, 0,
     "release --all: only those whose reason contains this text"},
    {"yes", CLI_BOOL, offsetof(struct values, yes), 0, 0, "release: do not ask"},
    {0},
};

/* ---- list ---- */

enum { ID = 1, SINCE, REASON }; /* columns of list_parked */

/* Adds the parked rows of one job. */
static int
add_parked(struct pg *pg, const struct job_type *job, json_t *rows, struct err *e)
{
    const struct pg_param all[] = {pg_text(job->name), pg_null()};
    struct pg_result *res;
    int code = pg_exec(pg, job->list_parked, all, 2, &res, e);

    for (size_t i = 0; code == 0 && i < pg_rows(res); i++) {
        json_int_t id = pg_get_int8(res, i, ID);
        json_t *item = json_sprintf("%s:%" JSON_INTEGER_FORMAT, job->item, id);

        code = doc_append(rows,
                          json_pack("{s:o,s:s,s:s,s:s,s:I}", "item", item, "since",
                                    pg_get_text(res, i, SINCE), "reason",
                                    pg_get_text(res, i, REASON), "job", job->name, "id",
                                    id),
                          e);
    }
    pg_result_free(res);
    return code;
}

/* {"parked": [...]}, in the order of the jobs. */
static int read_parked(struct pg *pg, json_t *doc, struct err *e)
{
    json_t *rows = json_array();
    int code = doc_put(doc, "parked", rows, e);

    for (size_t i = 0; code == 0 && i < JOB_TYPE_CT; i++)
        code = add_parked(pg, job_types[i], rows, e);
    return code;
}

static void print_table(const json_t *doc)
{
    const json_t *rows = json_object_get(doc, "parked");
    size_t i;
    json_t *row;

    if (json_array_size(rows) > 0)
        (void)printf("%-24s %-20s  %s\n", "ITEM", "SINCE", "REASON");
    json_array_foreach(rows, i, row)
    {
        (void)printf("%-24s %-20s  %s\n", doc_text(row, "item"), doc_text(row, "since"),
                     doc_text(row, "reason"));
    }
    (void)printf("%zu parked\n", json_array_size(rows));
}

/* ---- release ---- */

static bool is_wanted(const json_t *row, const char *item)
{
    if (item != NULL)
        return strcmp(doc_text(row, "item"), item) == 0;
    return values.reason == NULL ||
           strstr(doc_text(row, "reason"), values.reason) != NULL;
}

/* Drops the rows that were not asked for, and asks for confirmation of the others. */
static int choose(json_t *rows, const char *item, struct err *e)
{
    char warning[160];

    for (size_t i = json_array_size(rows); i-- > 0;) {
        if (!is_wanted(json_array_get(rows, i), item))
            (void)json_array_remove(rows, i);
    }
    if (json_array_size(rows) == 0)
        return item == NULL ? 0
                            : err_set(e, ERR_INVALID,
                                      "LL-6006 %.80s is not parked; see "
                                      "ledgerlock parked",
                                      item);
    (void)snprintf(warning, sizeof warning,
                   "what parked %s, %zu in all, may still be there",
                   doc_text(json_array_get(rows, 0), "item"), json_array_size(rows));
    return cli_confirm(values.yes, warning, e);
}

/* Releases the chosen rows of one job and adds their number. */
static int release_of(struct pg *pg,
                      const struct job_type *job,
                      const json_t *rows,
                      size_t *released,
                      struct err *e)
{
    int64_t *ids = calloc(json_array_size(rows) + 1, sizeof *ids);
    struct pg_result *res = NULL;
    size_t n = 0, i;
    json_t *row;
    int code = ids == NULL ? err_set(e, ERR_NOMEM, "LL-9001 out of memory") : 0;

    json_array_foreach(rows, i, row)
    {
        if (ids != NULL && strcmp(doc_text(row, "job"), job->name) == 0)
            ids[n++] = doc_int(row, "id");
    }
    if (code == 0) {
        const struct pg_param items[] = {pg_text(job->name), pg_int8_array(ids, n)};

        code = pg_exec(pg, job->release_parked, items, 2, &res, e);
    }
    if (code == 0)
        *released += pg_rows(res);
    pg_result_free(res);
    free(ids);
    return code;
}

/* Releases all or none. */
static int release_all(struct pg *pg, const json_t *rows, size_t *n, struct err *e)
{
    int code = pg_begin(pg, e);

    for (size_t i = 0; code == 0 && i < JOB_TYPE_CT; i++)
        code = release_of(pg, job_types[i], rows, n, e);
    return code == 0 ? pg_commit(pg, e) : code;
}

static int release(struct pg *pg, json_t *doc, const char *item, struct err *e)
{
    json_t *rows = json_object_get(doc, "parked");
    size_t n = 0;

    if (choose(rows, item, e) != 0 || release_all(pg, rows, &n, e) != 0)
        return (int)e->code;
    if (item != NULL && n == 0)
        return err_set(e, ERR_INVALID, "LL-6006 %.80s is not parked any more", item);
    cli_progress_end();
    (void)printf("released %zu\n", n);
    return 0;
}

/* ---- the verb ---- */

/* Returns NULL if the words and flags agree, else the fault. */
static const char *wrong_use(int argc, char **argv)
{
    bool is_release = argc > 0 && strcmp(argv[0], "release") == 0;

    if (argc > 0 && !is_release && (argc > 1 || strcmp(argv[0], "list") != 0))
        return "either `list`, or `release`";
    if (is_release && values.all == (argc == 2))
        return "release takes an item, such as order:12, or --all";
    if (values.reason != NULL && !values.all)
        return "--reason goes with `release --all`";
    return values.all && !is_release ? "--all goes with `release`" : NULL;
}

static int work(struct pg *pg, void *words, struct err *e)
{
    char *const *argv = words;
    json_t *doc = json_object();
    int code = read_parked(pg, doc, e);

    if (code == 0 && argv[0] != NULL && argv[0][0] == 'r')
        code = release(pg, doc, argv[1], e);
    else if (code == 0)
        doc_show(doc, values.json, print_table);
    json_decref(doc);
    return code;
}

static enum exit_code run(const struct config *c, int argc, char **argv)
{
    const char *wrong = wrong_use(argc, argv);

    if (wrong != NULL)
        return cli_usage("parked", "LL-1016 %s", wrong);
    return cli_on_tables(c, "parked", work, argv);
}

const struct cli_verb verb_parked = {
    .name = "parked",
    .who = "members of ledgerlock_support",
    .use = "[list | release ITEM | release --all]",
    .sentence =
        "lists rows that no worker works, with reasons; `release ITEM` gives one back",
    .example = "ledgerlock parked release --all --reason balance_never_negative",
    .flags = flags,
    .values = &values,
    .run = run,
    .max_words = 2,
    .words = "list release",
};
