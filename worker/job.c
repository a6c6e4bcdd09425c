/* job: the registry. */
#include "worker/job.h"

#include <string.h>

const struct job_type *const job_types[] = {
#define JOB_ROW(name) &job_##name,
    JOB_TYPES(JOB_ROW)
#undef JOB_ROW
};

const size_t job_type_ct = sizeof job_types / sizeof job_types[0];

int job_parse_list(const char *list, unsigned *bits, struct err *e)
{
    const char *p = list;

    *bits = 0;
    while (*p != '\0') {
        size_t n = strcspn(p, ",");
        size_t i = 0;

        while (i < job_type_ct && (strlen(job_types[i]->name) != n ||
                                   strncmp(job_types[i]->name, p, n) != 0))
            i++;
        if (i == job_type_ct)
            return err_set(e, ERR_CONFIG, "pool.jobs: there is no job named \"%.*s\"",
                           (int)n, p);
        *bits |= 1u << i;
        p += n;
        p += *p == ',' ? 1 : 0;
    }
    if (*bits == 0)
        return err_set(e, ERR_CONFIG, "pool.jobs names no job");
    return 0;
}
