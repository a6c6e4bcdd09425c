/* view: the tables, for the page and for `status`. */
#include "ops/cli/view.h"

#include <stdio.h>
#include <time.h>

#include "ops/cli/cli.h"
#include "ops/cli/json.h"
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

void view_drop(struct pg **pg, const struct err *e)
{
    if (e->code == 0 || e->code == ERR_CONFLICT || e->code == ERR_TIMEOUT)
        return;
    pg_close(*pg);
    *pg = NULL;
}

int64_t view_pause_ms(int rest, bool is_first, int64_t took_ms)
{
    int64_t rest_ms = is_first ? 0 : rest * took_ms;

    if (rest_ms > REST_MOST_MS)
        return REST_MOST_MS;
    return rest_ms > READ_MS ? rest_ms : READ_MS;
}

/* ---- tables ---- */

int view_read_tables(struct pg *pg, const char *now, json_t **out, struct err *e)
{
    const struct pg_param at = pg_text(now);
    int code = doc_read(out, pg, SQL_STATUS_READ, &at, 1, e);

    if (code == 0)
        code = doc_jobs(*out, pg, now, e);
    for (int i = 0; code == 0 && i < JOB_TYPE_CT; i++) {
        const struct pg_param of[] = {pg_text(job_types[i]->name),
                                      pg_int8(PARKED_SHOWN)};

        code = doc_rows(*out, "parked", pg, job_types[i]->list_parked, of, 2, e);
    }
    return code;
}

int64_t view_now_ms(void)
{
    struct timespec ts;

    (void)clock_gettime(CLOCK_REALTIME, &ts);
    return (int64_t)ts.tv_sec * 1000 + ts.tv_nsec / 1000000;
}

const char *view_figures(const json_t *of, char text[VIEW_FIGURES])
{
    char oversold[24] = "-";

    if (doc_int(of, "oversold") >= 0)
        (void)snprintf(oversold, sizeof oversold, "%lld", doc_int(of, "oversold"));
    (void)snprintf(text, VIEW_FIGURES,
                   "%lld charged twice, %s oversold, %lld totals wrong",
                   doc_int(of, "charged_twice"), oversold, doc_int(of, "wrong_totals"));
    return text;
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
