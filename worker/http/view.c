/* view: the tables, for the page and for `top`. */
#include "worker/http/view.h"

#include <stdio.h>

#include "worker/cli/cli.h"
#include "worker/cli/json.h"
#include "worker/jobs/job.h"

enum {
    READ_MS = 1000,
    REST_MOST_MS = 30000,
    PARKED_SHOWN = 20,
    LOCK_MS = 1000,
    STATEMENT_MS = 30000,
    ANSWER_MS = 35000
};

/* ---- connection ---- */

int view_connect(const struct config *c, const char *of, struct pg **pg, struct err *e)
{
    const struct cli_limits limits = {
        .answer_ms = ANSWER_MS, .statement_ms = STATEMENT_MS, .lock_ms = LOCK_MS};

    if (pg_is_usable(*pg))
        return 0;
    pg_close(*pg);
    *pg = NULL;
    return cli_connect_within(c, of, &limits, pg, e);
}

int64_t view_pause_ms(int rest, bool is_first, int64_t took_ms)
{
    int64_t rest_ms = is_first ? 0 : rest * took_ms;

    if (rest_ms > REST_MOST_MS)
        return REST_MOST_MS;
    return rest_ms > READ_MS ? rest_ms : READ_MS;
}

/* ---- tables ---- */

static int add_jobs(struct pg *pg, const char *at, json_t *doc, struct err *e)
{
    const struct pg_param now = pg_text(at);
    json_t *jobs = json_object();
    int code = doc_put(doc, "jobs", jobs, e);

    for (int i = 0; code == 0 && i < JOB_TYPE_CT; i++) {
        struct pg_result *res;

        if (pg_exec(pg, job_types[i]->backlog, &now, 1, &res, e) != 0)
            return (int)e->code;
        code = doc_put(jobs, job_types[i]->name, doc_object(res, 0, 0, 0), e);
        pg_result_free(res);
    }
    return code;
}

/* The rows of a statement as an array of objects, whose first columns are text. */
static int add_rows(struct pg *pg,
                    json_t *doc,
                    const char *key,
                    const struct sql_text *sql,
                    const struct pg_param *params,
                    size_t param_ct,
                    size_t text_ct,
                    struct err *e)
{
    json_t *rows = json_array();
    struct pg_result *res;
    int code = doc_put(doc, key, rows, e);

    if (code != 0 || pg_exec(pg, sql, params, param_ct, &res, e) != 0)
        return (int)e->code;
    for (size_t i = 0; code == 0 && i < pg_rows(res); i++)
        code = doc_append(rows, doc_object(res, i, 0, text_ct), e);
    pg_result_free(res);
    return code;
}

static int add_parked(struct pg *pg, json_t *doc, struct err *e)
{
    json_t *rows = json_array();
    int code = doc_put(doc, "parked", rows, e);

    for (int i = 0; code == 0 && i < JOB_TYPE_CT; i++) {
        struct pg_result *res;

        if (pg_exec(pg, job_types[i]->list_parked, NULL, 0, &res, e) != 0)
            return (int)e->code;
        for (size_t k = 0; code == 0 && k < pg_rows(res) && k < PARKED_SHOWN; k++)
            code = doc_append(rows,
                              json_pack("{s:s,s:I,s:s,s:s}", "row", job_types[i]->item,
                                        "id", (json_int_t)pg_get_int8(res, k, 0),
                                        "since", pg_get_text(res, k, 1), "reason",
                                        pg_get_text(res, k, 2)),
                              e);
        pg_result_free(res);
    }
    return code;
}

static int add_audit(struct pg *pg, json_t *doc, struct err *e)
{
    struct pg_result *res;
    json_t *audit = json_null();
    int code;

    if (pg_exec(pg, SQL_HTTP_LAST_AUDIT, NULL, 0, &res, e) != 0)
        return (int)e->code;
    if (pg_rows(res) > 0)
        audit = json_loads(pg_get_text(res, 0, 0), 0, NULL);
    code = doc_put(doc, "audit", audit, e);
    pg_result_free(res);
    return code;
}

static int add_database(struct pg *pg, json_t *doc, struct err *e)
{
    struct pg_result *res;
    int code;

    if (pg_exec(pg, SQL_HTTP_DATABASE, NULL, 0, &res, e) != 0)
        return (int)e->code;
    code = doc_put(doc, "database", json_string(pg_get_text(res, 0, 0)), e);
    pg_result_free(res);
    return code;
}

int view_read_tables(struct pg *pg, const char *now, json_t **out, struct err *e)
{
    const struct pg_param at = pg_text(now);
    json_t *doc = *out = json_object();

    if (add_database(pg, doc, e) != 0 || add_jobs(pg, now, doc, e) != 0 ||
        add_rows(pg, doc, "newest", SQL_HTTP_CHECK_NEWEST, &at, 1, 0, e) != 0 ||
        add_audit(pg, doc, e) != 0 ||
        add_rows(pg, doc, "stock", SQL_HTTP_NEWEST_SALES, &at, 1, 1, e) != 0 ||
        add_rows(pg, doc, "waits", SQL_HTTP_WAITS, NULL, 0, 3, e) != 0 ||
        add_rows(pg, doc, "incidents", SQL_HTTP_INCIDENTS, NULL, 0, 5, e) != 0)
        return (int)e->code;
    return add_parked(pg, doc, e);
}

const char *view_oversold(const json_t *newest, char *text, size_t size)
{
    long long n = doc_int(newest, "oversold");

    (void)snprintf(text, size, "%lld", n);
    return n < 0 ? "-" : text;
}

const char *view_verdict(const json_t *tables, const json_t *audit, bool is_late)
{
    const json_t *newest = json_array_get(json_object_get(tables, "newest"), 0);

    if (doc_int(newest, "charged_twice") > 0 || doc_int(newest, "oversold") > 0 ||
        doc_int(newest, "wrong_totals") > 0 ||
        json_array_size(json_object_get(audit, "broken")) > 0)
        return "bad";
    return newest == NULL || is_late ? "unknown" : "good";
}
