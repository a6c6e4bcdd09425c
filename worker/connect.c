/* connect: the connections of one worker. */
#include "worker/connect.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "common/secret.h"

static bool belongs_to_worker(const struct worker *w, const char *stem)
{
    if (strncmp(stem, "pool_", 5) == 0)
        return true;
    for (size_t i = 0; i < JOB_TYPE_CT; i++) {
        size_t n = strlen(job_types[i]->name);

        if ((w->jobs & 1u << i) != 0 && strncmp(stem, job_types[i]->name, n) == 0)
            return true;
    }
    return false;
}

static int prepare_statements(struct worker *w, struct err *e)
{
    for (int id = 0; id < SQL_COUNT; id++) {
        if (belongs_to_worker(w, sql_texts[id].stem) &&
            pg_prepare(w->pg, (enum sql_id)id, e) != 0)
            return (int)e->code;
    }
    return 0;
}

int connect_postgres(struct worker *w, struct err *e)
{
    char name[WORKER_NAME + 24];
    int64_t lease_ms = w->config->lease_ms;
    const struct pg_options options = {
        .url = w->config->postgres_url,
        .password_file = w->config->postgres_password_file,
        .name = name,
        .answer_ms = lease_ms * 3 / 4,
        .statement_ms = lease_ms / 2,
        .lock_ms = lease_ms / 4,
        .idle_ms = lease_ms / 2,
        .plans_once = true,
        .transaction_pooling = w->config->transaction_pooling,
    };

    /* A pooler would rename a session whenever it goes from one worker to another. */
    (void)snprintf(name, sizeof name, "ledgerlock worker%s%s",
                   options.transaction_pooling ? "" : " ",
                   options.transaction_pooling ? "" : w->name);
    if (pg_open(&w->pg, &options, e) != 0)
        return (int)e->code;
    if (prepare_statements(w, e) != 0) {
        pg_close(w->pg);
        w->pg = NULL;
    }
    return (int)e->code;
}

bool connect_is_refused(int code)
{
    return code == LL_E_EVICTING || code == LL_E_CLUSTER || code == LL_E_VERSION;
}

int connect_locks(struct worker *w, struct err *e)
{
    const struct config *c = w->config;
    char password[CONFIG_TEXT], why[160];
    struct ll_options options = {
        .size = sizeof options,
        .url = c->redis_url,
        .prefix = c->lock_prefix,
        .reply_ms = (uint32_t)(c->lease_ms / 4),
        .replicas = (uint32_t)c->redis_replicas,
        .no_scripts = strcmp(c->redis_scripts, "none") == 0,
        .tls_ca = c->redis_tls_ca[0] != '\0' ? c->redis_tls_ca : NULL,
    };
    int code;

    if (strcmp(c->lock_mode, "database-only") == 0)
        return 0;
    if (c->redis_password_file[0] != '\0') {
        if (secret_read(c->redis_password_file, password, sizeof password, e) != 0)
            return (int)e->code;
        options.password = password;
    }
    code = ll_open(&w->locks, &options, why, sizeof why);
    secret_wipe(password, sizeof password);
    if (code == LL_E_INVAL || code == LL_E_TLS)
        return err_set(e, ERR_CONFIG, "redis.url or locks.prefix: %s", why);
    if (code == LL_OK)
        w->lock = ll_new(w->locks);
    return w->lock == NULL ? err_set(e, ERR_NOMEM, "out of memory") : 0;
}

void connect_close(struct worker *w)
{
    ll_free(w->lock);
    ll_close(w->locks);
    pg_close(w->pg);
    free(w->batch);
    w->lock = NULL;
    w->locks = NULL;
    w->pg = NULL;
    w->batch = NULL;
}
