/* job: the registry. */
#include "worker/job.h"

#include <stdio.h>
#include <string.h>

const struct job_type *const job_types[JOB_TYPE_CT] = {
#define JOB_ROW(name) &job_##name,
    JOB_TYPES(JOB_ROW)
#undef JOB_ROW
};

static int unknown_job(const char *name, int n, struct err *e)
{
    char known[128] = "";

    for (size_t i = 0; i < JOB_TYPE_CT; i++) {
        size_t at = strlen(known);

        (void)snprintf(known + at, sizeof known - at, "%s%s", i > 0 ? ", " : "",
                       job_types[i]->name);
    }
    return err_set(e, ERR_CONFIG, "pool.jobs: no job is called \"%.*s\"; there are: %s",
                   n, name, known);
}

int job_parse_list(const char *list, unsigned *bits, struct err *e)
{
    const char *p = list;

    *bits = 0;
    while (*p != '\0') {
        size_t n = strcspn(p, ",");
        size_t i = 0;

        while (i < JOB_TYPE_CT && (strlen(job_types[i]->name) != n ||
                                   strncmp(job_types[i]->name, p, n) != 0))
            i++;
        if (i == JOB_TYPE_CT)
            return unknown_job(p, (int)n, e);
        *bits |= 1u << i;
        p += n;
        p += *p == ',' ? 1 : 0;
    }
    if (*bits == 0)
        return err_set(e, ERR_CONFIG, "pool.jobs names no job");
    return 0;
}
