/* audit: the verb: waits for the backlog with --wait, then prints the audit. */
#include "ops/audit/audit.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "common/base/clock.h"
#include "common/base/timestamp.h"
#include "ops/audit/audit_merge.h"
#include "ops/cli/cli.h"
#include "ops/cli/json.h"
#include "ops/cli/migrate.h"
#include "ops/cli/report.h"

enum { POLL_MS = 500, LAG_DEFAULT_S = 3600 };

/* clang-format off */
static struct values {
    bool json;
    const char *wait;
    const char *now;
    const char *lag;
    bool sealed;
} values;

static const struct cli_flag flags[] = {
    {"json", CLI_BOOL, offsetof(struct values, json), 0, 0, "print one JSON document instead of the report"},
    {"wait", CLI_SPAN, offsetof(struct values, wait), 0, 0, "first wait until nothing is due, for at most this long: 300s, 5m"},
    {"now",  CLI_TIME, offsetof(struct values, now),  0, 0, "time that counts as now (default: the database's clock)"},
    {"lag",  CLI_SPAN, offsetof(struct values, lag),  0, 0, "how long something due may wait: 0s, 1h (default: 1h, after --wait 0s)"},
    {"sealed", CLI_BOOL, offsetof(struct values, sealed), 0, 0, "also add up the rows of closed months, and hold them against their seals"},
    {0},
};

/* clang-format on */

static int read_duration(const char *flag, const char *text, int64_t *s, struct err *e)
{
    const char *end = text == NULL ? NULL : duration_parse(text, s);

    if (text == NULL || (end != text && *end == '\0'))
        return 0;
    return err_set(
        e, ERR_INVALID,
        "LL-1001 --%s: \"%s\" is no duration; write a number and s, m, h or d: 300s",
        flag, text);
}

/* The rows that are due at the audit's now. */
struct backlog {
    char now[64];
    int64_t subscriptions, orders;
};

static int
read_backlog(struct pg *pg, const char *now, struct backlog *b, struct err *e)
{
    struct pg_param params[] = {pg_text(now)};
    struct pg_result *res;

    if (pg_exec(pg, SQL_AUDIT_WAIT_LEFT, params, 1, &res, e) != 0) {
        if (strncmp(e->sqlstate, "22", 2) == 0)
            e->code = ERR_INVALID;
        return (int)e->code;
    }
    (void)snprintf(b->now, sizeof b->now, "%s", pg_get_text(res, 0, 0));
    b->subscriptions = pg_get_int8(res, 0, 1);
    b->orders = pg_get_int8(res, 0, 2);
    pg_result_free(res);
    return 0;
}

/* Polls until no work is left or the time is over. b->now is the time of the last poll;
 * the audit uses it as its now, since a row that became due later would break it. */
static int
wait_for_backlog(struct pg *pg, int64_t wait_s, struct backlog *b, struct err *e)
{
    int64_t deadline = clk_ms() + wait_s * 1000;

    cli_progress("waiting until nothing is due, rows");
    while (read_backlog(pg, values.now, b, e) == 0 &&
           b->subscriptions + b->orders > 0) {
        if (clk_ms() >= deadline) {
            cli_say("ledgerlock: after %s still due: %" PRId64
                    " subscriptions, %" PRId64 " orders; auditing what is there\n",
                    values.wait, b->subscriptions, b->orders);
            break;
        }
        cli_progress_of(b->subscriptions + b->orders, 0);
        clk_pause_ms(POLL_MS);
    }
    return (int)e->code;
}

/* A transaction pooler may have no other session for us: then, as after any error, the
 * first does all. */
static struct pg *open_second(const struct config *c)
{
    struct err ignored = {0};
    struct pg *second = NULL;

    if (!c->transaction_pooling &&
        cli_connect(c, "audit beside", &second, &ignored) != 0)
        second = NULL;
    return second;
}

struct work {
    const struct config *config;
    struct audit_order order;
    int64_t wait_s;
    bool is_broken;
};

/* The invariant schema_as_built compares less then. */
static int tell_newer(struct pg *pg, struct err *e)
{
    char newer[MIGRATE_NAME];

    if (migrate_read_newer(pg, newer, e) != 0)
        return (int)e->code;
    if (newer[0] != '\0')
        cli_say(
            "ledgerlock: LL-3115 the schema is newer than this program (%s); bodies "
            "of functions and views were not compared\n",
            newer);
    return 0;
}

/* After a wait no work may be left; without a wait a running pool may have a backlog.
 */
static int gather(struct pg *pg, struct work *w, json_t **doc, struct err *e)
{
    struct backlog backlog;

    if (values.wait != NULL) {
        if (wait_for_backlog(pg, w->wait_s, &backlog, e) != 0)
            return (int)e->code;
        w->order.now = backlog.now;
    }
    if (tell_newer(pg, e) != 0)
        return (int)e->code;
    w->order.second = open_second(w->config);
    (void)!audit_gather(pg, &w->order, doc, e);
    pg_close(w->order.second);
    return (int)e->code;
}

static void show(struct work *w, json_t *doc)
{
    doc_show(doc, values.json, report_print);
    w->is_broken = !json_is_true(json_object_get(doc, "ok"));
    json_decref(doc);
}

static int audit_one(struct pg *pg, void *arg, struct err *e)
{
    json_t *doc;
    int code = gather(pg, arg, &doc, e);

    if (code == 0)
        show(arg, doc);
    return code;
}

/* ---- cells ---- */

static struct work work_of_cells; /* for gather_cell, in a process of each */

static int gather_cell(const struct config *of_cell, json_t **doc, struct err *e)
{
    struct pg *pg = NULL;

    work_of_cells.config = of_cell;
    if (cli_open(of_cell, "audit", &pg, e) == 0 &&
        gather(pg, &work_of_cells, doc, e) == 0)
        (void)!audit_count_foreign(of_cell, pg, *doc, e);
    pg_close(pg);
    cli_name_role(of_cell, "audit", e);
    return (int)e->code;
}

static enum exit_code audit_cells(const struct config *c, const struct cells *cells)
{
    struct err e = {0};
    json_t *doc;

    cli_progress("auditing %zu cells", cells->n);
    if (audit_merge(c, cells, gather_cell, work_of_cells.order.lag_s, &doc, &e) != 0)
        return cli_fail(&e);
    show(&work_of_cells, doc);
    return work_of_cells.is_broken ? EXIT_AUDIT : EXIT_OK;
}

static enum exit_code run(const struct config *c, int argc, char **argv)
{
    struct work w = {.config = c,
                     .order = {.now = values.now,
                               .lag_s = values.wait != NULL ? 0 : LAG_DEFAULT_S,
                               .sealed = values.sealed}};
    static struct cells cells;
    struct config own = *c;
    struct err e = {0};
    enum exit_code code;

    (void)argc;
    (void)argv;
    if (read_duration("lag", values.lag, &w.order.lag_s, &e) != 0 ||
        read_duration("wait", values.wait, &w.wait_s, &e) != 0 ||
        cells_read(c, &cells, &e) != 0)
        return cli_fail(&e);
    work_of_cells = w;
    if (cells.n > 1)
        return audit_cells(c, &cells);
    if (cells.n == 1)
        cells_enter(c, &cells.of[0], &own);
    w.config = &own;
    code = cli_on_tables(&own, "audit", audit_one, &w);
    return code == EXIT_OK && w.is_broken ? EXIT_AUDIT : code;
}

const struct cli_verb verb_audit = {
    .name = "audit",
    .who = "members of ledgerlock_reader",
    .sentence = "proves every invariant in one snapshot and prints the totals",
    .example = "ledgerlock audit --wait 300s --json",
    .flags = flags,
    .values = &values,
    .run = run,
    .all_cells = true,
};
