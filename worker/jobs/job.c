/* job: the registry, and what the settings say of a job. */
#include "worker/jobs/job.h"

const struct job_type *const job_types[JOB_TYPE_CT] = {
#define JOB_ROW(name, ...) &job_##name,
    JOB_TYPES(JOB_ROW)
#undef JOB_ROW
};

bool job_is_shared(const struct job_type *job, const struct config *c)
{
    return job->shards > 0 || (job->in_any_order != NULL && job->in_any_order(c));
}

static int row_of(const struct job_type *job)
{
    int i = 0;

    while (job_types[i] != job)
        i++;
    return i;
}

int64_t job_poll_ms(const struct job_type *job, const struct config *c)
{
    return c->job_poll_ms[row_of(job)];
}

int64_t job_batch_rows(const struct job_type *job, const struct config *c)
{
    return c->batch > 0 ? c->batch : c->job_batch[row_of(job)];
}

int job_to_do(const struct job_type *job,
              struct pg *pg,
              const char *now,
              int64_t *n,
              struct err *e)
{
    const struct pg_param at = pg_text(now);

    return pg_ask(pg, job->to_do != NULL ? job->to_do : job->backlog, &at, 1, n, e);
}
