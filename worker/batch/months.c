/* months: the partitions that a batch writes into, a few at a time, each few committed:
 * nobody waits long for their maker, and what an end of it leaves is made later. */
#include <inttypes.h>
#include <string.h>

#include "common/base/clock.h"
#include "common/base/log.h"
#include "worker/batch/batch.h"

enum {
    HOUR_MS = 3600 * 1000,
    START_MS = 2000, /* of a call at the start of a pool, */
    LEASE_PART = 8   /* and of a worker's, whose statements end after half a lease */
};

static int
keep(struct pg *pg, const char *now, int64_t ms, int64_t *made, struct err *e)
{
    const struct pg_param params[] = {pg_text(now), pg_int8(ms)};

    if (pg_ask(pg, SQL_POOL_KEEP_MONTHS, params, 2, made, e) != 0)
        return (int)e->code;
    if (*made > 0)
        log_info("pool.months_made", "months=%" PRId64, *made);
    return 0;
}

int months_begin(struct pg *pg, const char *now, bool is_distributed, struct err *e)
{
    int64_t made = 0;

    return keep(pg, now, is_distributed ? HOUR_MS : START_MS, &made, e);
}

/* A few; that they cannot be made is said once, until some are or none is missing. */
static int make_some(struct session *s, int64_t *made, struct err *e)
{
    int code = keep(s->pg, s->now, s->config->lease_ms / LEASE_PART, made, e);

    if (code != 0 && !s->months_fail)
        log_warn("pool.months_not_made", "code=LL-5004 err=%s", LOG_TEXT(e->msg));
    s->months_fail = code != 0;
    return code;
}

bool months_tend(struct session *s)
{
    struct err ignored = {0};
    int64_t made = 0;

    if (s->months_ms != 0 && clk_ms() - s->months_ms < HOUR_MS)
        return false;
    (void)!make_some(s, &made, &ignored);
    if (made == 0)
        s->months_ms = clk_ms();
    return made > 0;
}

int months_make(struct session *s, struct err *e)
{
    int64_t made = 0;
    int code = make_some(s, &made, e);

    s->batch->out.wants_months = true;
    s->batch->out.makes_months = made > 0;
    return code;
}

/* A CHECK that is violated has a name; a trigger's own 23514 looks the same. */
bool months_is_missing(const struct err *e)
{
    return strcmp(e->sqlstate, "23514") == 0 && e->constraint[0] == '\0';
}
