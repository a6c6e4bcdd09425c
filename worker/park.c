/* park: one statement, one count, one line in the journal. */
#include "worker/park.h"

#include <inttypes.h>
#include <stdio.h>

#include "worker/journal.h"

int park_item(struct worker *w,
              const struct job_type *job,
              int64_t item,
              int64_t token,
              const char *why,
              struct err *e)
{
    const struct pg_param param = pg_int8_array(&item, 1);
    char resource[64];

    if (pg_exec(w->pg, job->park, &param, 1, NULL, e) != 0)
        return err_wrap(e, "park %s %" PRId64, job->item, item);
    worker_count(w, METRIC_parked, 1);
    (void)snprintf(resource, sizeof resource, "%s:%" PRId64, job->item, item);
    journal(w, "parked", "apply", resource, token, 0, why);
    return 0;
}
