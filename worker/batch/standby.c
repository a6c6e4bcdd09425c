/* standby: one worker of all pools serves a job whose oldest rows come first. */
#include <stdio.h>

#include "worker/batch/batch.h"

enum { SERVING_LEASE_MS = 2000 };

/* The session that dies, or is ended, gives it to the next that asks; so does one whose
 * worker cannot work (standby_yield), and without Redis nobody can. While somebody who
 * is no worker holds it, each worker serves, and asks again before its next batch. */
static int serve_by_session(struct session *s, struct err *e)
{
    const struct pg_param job = pg_text(s->job->name);
    int64_t answer = 1;
    int code = s->holds || s->locks == NULL ? RLOCK_OK : rlock_connect(s->locks);

    if (code != RLOCK_OK)
        return batch_redis_fault(s, code, e);
    if (!s->holds && pg_ask(s->pg, SQL_POOL_SERVE_JOB, &job, 1, &answer, e) != 0)
        return (int)e->code;
    s->holds = answer == 1;
    s->serves = answer != 0;
    return 0;
}

/* A transaction pooler gives each transaction another session. */
static int serve_by_lease(struct session *s, struct err *e)
{
    char name[RESOURCE_NAME];
    int code = RLOCK_OK;

    if (rlock_granted(s->serving) == 0) {
        (void)snprintf(name, sizeof name, "job:%s", s->job->name);
        code = rlock_try(s->serving, name, SERVING_LEASE_MS);
    } else if (!rlock_valid(s->serving, SERVING_LEASE_MS / 2)) {
        code = rlock_extend(s->serving, SERVING_LEASE_MS);
        if (code == RLOCK_LOST)
            rlock_abandon(s->serving);
    }
    s->serves = code == RLOCK_OK;
    return code >= 0 ? 0 : batch_redis_fault(s, code, e);
}

int standby_check(struct session *s, struct err *e)
{
    bool is_pooled = s->config->transaction_pooling;

    if (job_is_shared(s->job, s->config) || (is_pooled && s->locks == NULL)) {
        s->serves = true;
        return 0;
    }
    return is_pooled ? serve_by_lease(s, e) : serve_by_session(s, e);
}

bool standby_yield(struct session *s, int64_t idle_ms)
{
    const struct pg_param job = pg_text(s->job->name);
    struct err e = {0};
    int64_t had = 0;

    if (idle_ms <= s->config->lease_ms)
        return false;
    if (s->serving != NULL && rlock_granted(s->serving) > 0) {
        if (rlock_release(s->serving) < 0)
            rlock_abandon(s->serving);
        had = 1;
    }
    if (s->holds && pg_is_usable(s->pg) &&
        pg_ask(s->pg, SQL_POOL_LEAVE_JOB, &job, 1, &had, &e) == 0)
        s->holds = false;
    s->serves = s->holds;
    return had != 0;
}
