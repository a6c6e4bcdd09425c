/* parked: one statement, one line in the incident log. */
#include <ctype.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "common/base/log.h"
#include "common/base/utf8.h"
#include "worker/batch/batch.h"

/* Keys of a partition are called as those of the table, with the month: _2026_11. */
static bool is_month_or_end(const char *rest)
{
    return rest[0] == '\0' || (rest[0] == '_' && isdigit((unsigned char)rest[1]) != 0);
}

bool parked_is_rows_fault(const struct job_type *job, const struct err *e)
{
    /* An amount out of range, unless it is one of somebody's trigger. */
    if (strcmp(e->sqlstate, "22003") == 0 && !e->is_in_trigger)
        return true;
    for (size_t i = 0; job->constraints[i] != NULL; i++) {
        size_t n = strlen(job->constraints[i]);

        if (strncmp(e->constraint, job->constraints[i], n) == 0 &&
            is_month_or_end(e->constraint + n))
            return true;
    }
    return false;
}

int park_items(
    struct session *s, const int64_t *items, size_t n, const char *why, struct err *e)
{
    char reason[256];
    const struct pg_param params[] = {pg_text(s->job->name), pg_int8_array(items, n),
                                      pg_int8(s->attempt.token), pg_text(s->name),
                                      pg_text(reason)};
    struct pg_result *res;

    (void)snprintf(reason, sizeof reason, "%.250s", why); /* may be e's own words */
    utf8_cut(reason);
    if (pg_exec(s->pg, s->job->park, params, 5, &res, e) != 0)
        return err_wrap(e, "park");
    s->batch->out.worked += n;
    items_park(s, items, n);
    session_count(s, COUNT_parked, (int64_t)pg_rows(res));
    for (size_t row = 0; row < pg_rows(res); row++)
        log_warn("lock.parked",
                 "code=LL-6004 resource=%s:%" PRId64 " token=%" PRId64 " detail=%s",
                 s->job->item, pg_get_int8(res, row, 0), s->attempt.token,
                 LOG_TEXT(reason));
    pg_result_free(res);
    return 0;
}

void parked_count(struct session *s)
{
    char slot[WORKER_NAME] = "";
    const struct pg_param param = pg_text(slot);
    struct err ignored = {0};
    int64_t parked, *counted = &s->counters->value[COUNT_parked];

    (void)snprintf(slot, sizeof slot, "%s.%d.", s->pool, s->slot);
    if (pg_ask(s->pg, SQL_POOL_COUNT_PARKED, &param, 1, &parked, &ignored) == 0 &&
        parked > *counted)
        *counted = parked;
}
