/* audit: the verb: waits for the backlog if told to, then prints the proof. */
#include "worker/audit.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "common/clock.h"
#include "common/log.h"
#include "worker/cli.h"
#include "worker/migrate.h"
#include "worker/report.h"

enum { POLL_MS = 500, LAG_DEFAULT_S = 3600, CONNECTIONS_DEFAULT = 2 };

/* clang-format off */
static struct values {
    bool json;
    const char *wait;
    const char *now;
    const char *lag;
    int64_t connections;
} values = {.connections = CONNECTIONS_DEFAULT};

static const struct cli_flag flags[] = {
    {"json", CLI_BOOL, offsetof(struct values, json), 0, 0, "print one JSON document instead of the report"},
    {"wait", CLI_TEXT, offsetof(struct values, wait), 0, 0, "first wait until nothing is due, for at most this long: 300s, 5m"},
    {"now",  CLI_TEXT, offsetof(struct values, now),  0, 0, "instant that counts as now (default: the database's clock)"},
    {"lag",  CLI_TEXT, offsetof(struct values, lag),  0, 0, "how long something due may wait: 0s, 1h (default: 1h, after --wait 0s)"},
    {"connections", CLI_INT, offsetof(struct values, connections), 1, AUDIT_MOST_CONNECTIONS, "share the work among so many connections; about one a core is worth while"},
    {NULL,   CLI_BOOL, 0, 0, 0, NULL},
};

/* clang-format on */

/* "90s", "5m", "1h", "2d" to seconds. */
static int
parse_duration(const char *flag, const char *text, int64_t *seconds, struct err *e)
{
    static const struct {
        char letter;
        int64_t seconds;
    } units[] = {{'s', 1}, {'m', 60}, {'h', 3600}, {'d', 86400}};

    char *end;
    long n = strtol(text, &end, 10);

    for (size_t i = 0; i < sizeof units / sizeof units[0]; i++) {
        if (text[0] < '0' || text[0] > '9' || n > 1000000)
            break;
        if (end[0] == units[i].letter && end[1] == '\0') {
            *seconds = n * units[i].seconds;
            return 0;
        }
    }
    return err_set(e, ERR_INVALID,
                   "--%s: \"%s\" is no duration; write a number and s, m, h or d: 300s",
                   flag, text);
}

/* What is left to do at the audit's now. */
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

/* Polls until nothing is left or the time is over; b->now is then the last instant
 * looked at: the audit counts that as its now, or what became due since would break it.
 */
static int wait_for_backlog(
    struct pg *pg, const char *now, int64_t seconds, struct backlog *b, struct err *e)
{
    int64_t deadline = clk_ms() + seconds * 1000;

    for (;;) {
        if (read_backlog(pg, now, b, e) != 0)
            return (int)e->code;
        if ((b->subscriptions == 0 && b->orders == 0) || clk_ms() >= deadline)
            return 0;
        clk_pause_ms(POLL_MS);
    }
}

/* After a wait nothing may be left; without one a running pool may have its backlog. */
static int prepare(struct audit_request *request, int64_t *wait_s, struct err *e)
{
    request->now = values.now;
    request->lag_s = values.wait != NULL ? 0 : LAG_DEFAULT_S;
    *wait_s = 0;
    if (values.lag != NULL &&
        parse_duration("lag", values.lag, &request->lag_s, e) != 0)
        return (int)e->code;
    if (values.wait != NULL)
        return parse_duration("wait", values.wait, wait_s, e);
    return 0;
}

static int wait_first(struct pg *pg,
                      int64_t wait_s,
                      struct audit_request *request,
                      struct backlog *b,
                      struct err *e)
{
    if (wait_for_backlog(pg, values.now, wait_s, b, e) != 0)
        return (int)e->code;
    if (b->subscriptions > 0 || b->orders > 0)
        (void)fprintf(stderr,
                      "ledgerlock: after %s still due: %" PRId64
                      " subscriptions, %" PRId64 " orders; auditing what is there\n",
                      values.wait, b->subscriptions, b->orders);
    request->now = b->now;
    return 0;
}

/* The connections beyond the first only make it faster: it goes on without them. */
static size_t open_more(const struct config *c, struct pg **more)
{
    size_t n = 0;

    while (n + 1 < (size_t)values.connections) {
        struct err why = {0};
        char quoted[600];

        if (cli_connect(c, "audit", &more[n], &why) != 0) {
            log_warn("audit.left_out", "err=%s",
                     log_quote(quoted, sizeof quoted, why.msg));
            break;
        }
        n++;
    }
    return n;
}

static int gather(const struct config *c,
                  struct pg *pg,
                  struct audit_request *request,
                  json_t **doc,
                  struct err *e)
{
    struct pg *more[AUDIT_MOST_CONNECTIONS];
    int code;

    request->more = more;
    request->more_ct = open_more(c, more);
    code = audit_gather(pg, request, doc, e);
    for (size_t i = 0; i < request->more_ct; i++)
        pg_close(more[i]);
    return code;
}

static enum exit_code print(json_t *doc)
{
    if (values.json) {
        (void)json_dumpf(doc, stdout, JSON_INDENT(2) | JSON_PRESERVE_ORDER);
        (void)fputc('\n', stdout);
    } else {
        report_print(doc, report_has_colour(stdout), stdout);
    }
    return json_is_true(json_object_get(doc, "ok")) ? EXIT_OK : EXIT_AUDIT;
}

static enum exit_code run(const struct config *c, int argc, char **argv)
{
    struct err e = {0};
    struct pg *pg = NULL;
    struct backlog backlog;
    struct audit_request request = {0};
    json_t *doc = NULL;
    int64_t wait_s;
    enum exit_code code;

    (void)argv;
    if (argc > 0)
        return cli_usage("audit", "audit takes no words");
    if (prepare(&request, &wait_s, &e) != 0 || cli_connect(c, "audit", &pg, &e) != 0 ||
        migrate_check(pg, &e) != 0 ||
        (values.wait != NULL && wait_first(pg, wait_s, &request, &backlog, &e) != 0) ||
        gather(c, pg, &request, &doc, &e) != 0)
        code = cli_fail(&e);
    else
        code = print(doc);
    json_decref(doc);
    pg_close(pg);
    return code;
}

const struct cli_verb verb_audit = {
    .name = "audit",
    .sentence = "proves every invariant in one snapshot and prints the totals",
    .example = "ledgerlock audit --wait 300s --json",
    .flags = flags,
    .values = &values,
    .run = run,
};
