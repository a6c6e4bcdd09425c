/* months: the partitions that a batch writes into. */
#include <inttypes.h>
#include <string.h>

#include "common/base/log.h"
#include "worker/batch/batch.h"

int months_keep(struct pg *pg, const char *now, int64_t *made, struct err *e)
{
    const struct pg_param param = pg_text(now);

    if (pg_ask(pg, SQL_POOL_KEEP_MONTHS, &param, 1, made, e) != 0)
        return (int)e->code;
    if (*made > 0)
        log_info("pool.months_made", "months=%" PRId64, *made);
    return 0;
}

/* A CHECK that is violated has a name; a trigger's own 23514 looks the same. */
bool months_is_missing(const struct err *e)
{
    return strcmp(e->sqlstate, "23514") == 0 && e->constraint[0] == '\0';
}
