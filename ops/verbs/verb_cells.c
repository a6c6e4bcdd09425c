/* cells: what there is of each cell, for `cells` and for `status` of several. */
#include "ops/verbs/verb_cells.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "common/base/age.h"
#include "common/base/clock.h"
#include "common/base/digits.h"
#include "ops/cells/cells_each.h"
#include "ops/cli/cli.h"
#include "ops/cli/json.h"
#include "ops/cli/migrate.h"
#include "ops/cli/view.h"
#include "ops/verbs/cells_change.h"
#include "worker/batch/session.h"
#include "worker/jobs/job.h"

enum { EACH_MS = 1000, URL_SHOWN = 40 };

static struct values {
    bool json;
    bool online;
} values;

static const struct cli_flag flags[] = {
    {"json", CLI_BOOL, offsetof(struct values, json), 0, 0,
     "print one JSON document instead of the table"},
    {"online", CLI_BOOL, offsetof(struct values, online), 0, 0,
     "move: let others write while the rows are copied, by logical replication"},
    {0},
};

/* ---- reading ---- */

/* The document of `status`, with the size of the schema. */
static int read_cell(const struct config *of_cell, json_t **doc, struct err *e)
{
    struct pg_result *res = NULL;
    struct pg *pg = NULL;

    *doc = NULL;
    if (view_connect(of_cell, "cells", &pg, e) == 0 && migrate_check(pg, e) == 0 &&
        session_check_cell(of_cell, pg, e) == 0 &&
        view_read_tables(pg, NULL, doc, e) == 0 &&
        pg_exec(pg, of_cell->is_distributed ? SQL_CELLS_READ_NODE : SQL_CELLS_READ_SIZE,
                NULL, 0, &res, e) == 0 &&
        doc_put(*doc, "bytes", json_integer(pg_get_int8(res, 0, 0)), e) == 0 &&
        of_cell->is_distributed)
        (void)!doc_put(*doc, "node", doc_string(pg_get_text(res, 0, 1)), e);
    pg_result_free(res);
    pg_close(pg);
    cli_name_role(of_cell, "cells", e);
    return (int)e->code;
}

/* {"cells": {"1": {...}, "2": {"trouble": "..."}}}; *e is the first cell's that could
 * not be read. */
static json_t *
read_all(const struct config *c, const struct cells *cells, struct err *e)
{
    static struct cell_answer answers[CELLS_MAX];
    json_t *of_all = json_object(), *doc = json_pack("{s:O}", "cells", of_all);

    cells_gather(c, cells, read_cell, answers);
    for (size_t i = 0; i < cells->n; i++) {
        char url[2 * CONFIG_TEXT], number[24];
        json_t *of = answers[i].doc != NULL
                         ? json_incref(answers[i].doc)
                         : json_pack("{s:o}", "trouble", doc_string(answers[i].e.msg));

        (void)json_object_set_new(
            of, "url", doc_string(config_mask(cells->of[i].url, url, sizeof url)));
        (void)snprintf(number, sizeof number, "%" PRId64, cells->of[i].number);
        (void)json_object_set_new(of_all, number, of);
        if (answers[i].e.code != 0 && e->code == 0) {
            *e = answers[i].e;
            (void)err_wrap(e, "cell %s", number);
        }
    }
    cells_free(cells, answers);
    json_decref(of_all);
    return doc;
}

/* ---- the table ---- */

/* Of all jobs together. */
struct backlog {
    int64_t due, parked, workers, oldest_ms;
};

static struct backlog backlog_of(const json_t *cell)
{
    const json_t *jobs = json_object_get(cell, "jobs");
    const json_t *working = json_object_get(cell, "working");
    struct backlog b = {.oldest_ms = -1};

    for (int i = 0; i < JOB_TYPE_CT; i++) {
        const json_t *job = json_object_get(jobs, job_types[i]->name);

        b.due += doc_int(job, "due");
        b.parked += doc_int(job, "parked");
        b.workers += doc_int(working, job_types[i]->name);
        if (doc_int(job, "due") > 0 && doc_int(job, "oldest_due_ms") > b.oldest_ms)
            b.oldest_ms = doc_int(job, "oldest_due_ms");
    }
    return b;
}

static void print_size(int64_t bytes, char text[DIGITS + 8])
{
    char digits[DIGITS];

    (void)snprintf(text, DIGITS + 8, "%s MiB", digits_of(bytes >> 20, digits));
}

static void print_row(const char *number, const json_t *cell)
{
    struct backlog b = backlog_of(cell);
    char due[DIGITS], parked[DIGITS], lag[AGE_TEXT], size[DIGITS + 8];
    const char *trouble = doc_text(cell, "trouble");

    if (trouble[0] != '\0') {
        (void)printf("%-5s away     %s\n", number, trouble);
        return;
    }
    print_size(doc_int(cell, "bytes"), size);
    (void)printf(
        "%-5s %-8s %12s %8s %8s %8lld %12s  %.*s\n", number,
        view_verdict(cell, json_object_get(cell, "audit"), false),
        digits_of(b.due, due), age_text(b.oldest_ms, lag), digits_of(b.parked, parked),
        (long long)b.workers, size, URL_SHOWN,
        doc_text(cell, json_object_get(cell, "node") != NULL ? "node" : "url"));
}

static void print(const json_t *doc)
{
    const char *number;
    json_t *cell;

    (void)printf("%-5s %-8s %12s %8s %8s %8s %12s  %s\n", "CELL", "VERDICT", "DUE",
                 "LAG", "PARKED", "WORKERS", "SIZE", "DATABASE");
    json_object_foreach(json_object_get(doc, "cells"), number, cell)
    {
        print_row(number, cell);
    }
}

enum exit_code cells_show(const struct config *c, bool as_json, bool again)
{
    static struct cells cells;
    struct err e = {0};
    json_t *doc;

    if (cells_read(c, &cells, &e) != 0)
        return cli_fail(&e);
    if (cells.n == 0) {
        (void)err_set(
            &e, ERR_CONFIG,
            "LL-2027 there are no cells: name their databases in cells.urls, or "
            "make them by `ledgerlock cells add 1` in a cluster (cells.citus)");
        return cli_fail(&e);
    }
    do {
        e = (struct err){0};
        cli_progress("asking %zu cells", cells.n);
        doc = read_all(c, &cells, &e);
        doc_show(doc, as_json, print);
        json_decref(doc);
        (void)fputs(again ? "\n" : "", stdout);
        (void)fflush(stdout);
        clk_pause_ms(again ? EACH_MS : 0);
    } while (again && ferror(stdout) == 0);
    return e.code == 0 ? EXIT_OK : cli_fail(&e);
}

static enum exit_code run(const struct config *c, int argc, char **argv)
{
    struct err e = {0};

    if (argc == 0)
        return cells_show(c, values.json, false);
    if (argc == 2 && strcmp(argv[0], "add") == 0)
        (void)!cells_add(c, argv[1], &e);
    else if (argc == 3 && strcmp(argv[0], "move") == 0)
        (void)!cells_move_to(c, argv[1], argv[2], values.online, &e);
    else
        (void)err_set(&e, ERR_INVALID,
                      "LL-1027 write cells, cells add NUMBER, or cells move NUMBER "
                      "HOST:PORT");
    return e.code == 0 ? EXIT_OK : cli_fail(&e);
}

const struct cli_verb verb_cells = {
    .name = "cells",
    .use = "[add NUMBER | move NUMBER HOST:PORT]",
    .who = "members of ledgerlock_reader; add and move: the owner of the schema",
    .sentence = "lists the cells: verdict, rows due, lag, size and database of each",
    .example = "ledgerlock cells --json",
    .flags = flags,
    .values = &values,
    .settings = "cells.",
    .run = run,
    .max_words = 3,
    .words = "add move",
    .all_cells = true,
    .makes_cells = true,
};
