/* session: its connections, and the names of what it counts. */
#include "worker/batch/session.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "common/base/log.h"
#include "common/base/secret.h"

/* A frozen worker must not keep the others standing by, of a job that one worker
 * serves. */
enum { SILENT_MS = 2 * HEARTBEAT_MS };

void (*session_hook)(const struct session *s, enum hook_point point);

#define COUNTER_NAME(name) #name,
static const char *const pool_counters[] = {POOL_COUNTERS(COUNTER_NAME)};
#undef COUNTER_NAME

size_t session_counter_names(const struct job_type *job,
                             const char *names[COUNTERS_MAX])
{
    size_t n = COUNT_JOB;

    memcpy(names, pool_counters, sizeof pool_counters);
    for (size_t i = 0; job->counters[i].name != NULL; i++)
        names[n++] = job->counters[i].name;
    return n;
}

static int prepare_statements(struct session *s, struct err *e)
{
    const struct job_type *job = s->job;
    const struct job_calls *calls = job->calls;
    const struct sql_text *const of_job[] = {
        job->pull,
        job->probe,
        job->pull_items,
        job->effects,
        job->park,
        job->apply,
        calls != NULL ? calls->requests : NULL,
        calls != NULL ? calls->settle : NULL,
        calls != NULL ? calls->take_over : NULL,
        job->feeding,
    };

    for (size_t i = 0; i < SQL_COUNT; i++) {
        if (strncmp(sql_texts[i].stem, "pool_", 5) == 0 &&
            pg_prepare(s->pg, &sql_texts[i], e) != 0)
            return (int)e->code;
    }
    for (size_t i = 0; i < sizeof of_job / sizeof of_job[0]; i++) {
        if (of_job[i] != NULL && pg_prepare(s->pg, of_job[i], e) != 0)
            return (int)e->code;
    }
    return 0;
}

int session_check_cell(const struct config *c, struct pg *pg, struct err *e)
{
    int64_t cell = 0;

    if (c->cell == CELL_NONE ||
        pg_ask(pg, SQL_POOL_READ_CELL, NULL, 0, &cell, e) != 0 || cell == c->cell)
        return (int)e->code;
    return err_set(e, ERR_SCHEMA,
                   "LL-3116 the list names this database for cell %" PRId64
                   ", but it is that of cell %" PRId64 ", by the numbers of its rows",
                   c->cell, cell);
}

int session_connect(struct session *s, struct err *e)
{
    char name[WORKER_NAME + 24];
    int64_t lease_ms = s->config->lease_ms;
    const struct pg_options options = {
        .url = s->config->postgres_url,
        .password_file = s->config->postgres_password_file,
        .name = name,
        .answer_ms = lease_ms * 3 / 4,
        .statement_ms = lease_ms / 2,
        .lock_ms = lease_ms / 4,
        .idle_ms = lease_ms / 2,
        .session_idle_ms = job_is_shared(s->job, s->config) ? 0
                           : lease_ms > SILENT_MS           ? lease_ms
                                                            : SILENT_MS,
        .schema = s->config->postgres_schema,
        .role_prefix = s->config->postgres_role_prefix,
        .plans_once = true,
        .at_home = s->config->is_distributed,
        .transaction_pooling = s->config->transaction_pooling,
    };

    s->serves = s->holds = s->has_place = false;
    s->clocks_ms = 0; /* it may be another server */
    /* A pooler would rename a session whenever it goes from one worker to another. */
    (void)snprintf(name, sizeof name, "ledgerlock worker%s%s",
                   options.transaction_pooling ? "" : " ",
                   options.transaction_pooling ? "" : s->name);
    if (pg_open(&s->pg, &options, e) != 0)
        return (int)e->code;
    if ((options.transaction_pooling && pg_begin(s->pg, e) != 0) ||
        prepare_statements(s, e) != 0 || session_check_cell(s->config, s->pg, e) != 0) {
        pg_close(s->pg);
        s->pg = NULL;
    }
    pg_rollback(s->pg);
    return (int)e->code;
}

static void close_locks(struct session *s)
{
    if (s->attempt.in_doubt && s->lock != NULL)
        rlock_abandon(s->lock); /* until it is known what became of the batch */
    rlock_free(s->serving);
    rlock_free(s->lock);
    rlock_close(s->locks);
    s->locks = NULL;
    s->lock = s->serving = NULL;
}

void session_raise_floor(struct session *s)
{
    if (s->locks != NULL && rlock_raise_floor(s->locks, s->floor) != RLOCK_OK)
        log_warn("worker.floor_refused", "code=LL-4009 err=%s",
                 LOG_TEXT(rlock_error(s->locks)));
}

int session_open_locks(struct session *s, struct err *e)
{
    const struct config *c = s->config;
    char password[SECRET_SIZE], why[160];
    struct rlock_options options = {
        .size = sizeof options,
        .url = c->redis_url,
        .prefix = c->lock_prefix,
        .reply_ms = c->is_quorum ? 0 : (uint32_t)(c->lease_ms / 4),
        .max_lease_ms = (uint32_t)c->redis_max_lease_ms,
        .replicas = (uint32_t)c->redis_replicas,
        .tls_ca = c->redis_tls_ca[0] != '\0' ? c->redis_tls_ca : NULL,
    };
    int code;

    if (s->locks != NULL || strcmp(c->lock_mode, "database-only") == 0)
        return 0;
    s->secret = secret_stamp(c->redis_password_file); /* before it is read */
    if (c->redis_password_file[0] != '\0') {
        if (secret_read(c->redis_password_file, password, e) != 0)
            return (int)e->code;
        options.password = password;
    }
    code = rlock_open(&s->locks, &options, why, sizeof why);
    secret_wipe(password, sizeof password);
    if (code == RLOCK_E_INVAL || code == RLOCK_E_TLS) {
        (void)err_set(e, ERR_CONFIG, "LL-2016 redis.url or locks.prefix: %s", why);
        return config_refuse(c, "redis.url", e);
    }
    if (code == RLOCK_OK) {
        s->lock = rlock_new(s->locks);
        s->serving = rlock_new(s->locks);
    }
    if (s->lock == NULL || s->serving == NULL) {
        close_locks(s);
        return err_set(e, ERR_NOMEM, "LL-9001 out of memory");
    }
    session_raise_floor(s);
    if (s->inflight != NULL)
        rlock_set_nonce_copy(s->lock, s->inflight->nonce);
    return 0;
}

bool session_secret_is_new(const struct session *s)
{
    return s->locks != NULL &&
           secret_stamp(s->config->redis_password_file) != s->secret;
}

void session_forget_secret(struct session *s)
{
    if (session_secret_is_new(s))
        close_locks(s);
}

void session_close(struct session *s)
{
    close_locks(s);
    pg_close(s->pg);
    busy_close(&s->busy);
}
