/* loop: connect, sweep the buckets, pause, report; come back when a server does. */
#include "worker/loop.h"

#include <inttypes.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "common/clock.h"
#include "common/log.h"
#include "common/secret.h"
#include "worker/batch.h"
#include "worker/epoch.h"
#include "worker/journal.h"
#include "worker/rescue.h"
#include "worker/settle.h"
#include "worker/turn.h"

enum {
    BUCKETS = 64,
    REPORT_MS = 1000,
    COMPLAIN_MS = 10000,
    BUSY_CAP_MS = 400,
    PAUSE_SLICE_MS = 100,
    RETRY_BASE_MS = 50,
    RETRY_CAP_MS = 2000
};

static volatile sig_atomic_t stopping;

static void on_stop(int sig)
{
    (void)sig;
    stopping = 1;
}

/* Pauses, but not past a signal to stop. */
static void pause_ms(int64_t ms)
{
    int64_t until = clk_ms() + ms;

    while (!stopping && clk_ms() < until) {
        int64_t left = until - clk_ms();

        clk_pause_ms(left < PAUSE_SLICE_MS ? left : PAUSE_SLICE_MS);
    }
}

/* ---- connections ---- */

static bool belongs_to_worker(const struct worker *w, const char *stem)
{
    if (strncmp(stem, "pool_", 5) == 0)
        return true;
    for (size_t i = 0; i < job_type_ct; i++) {
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

int loop_open_postgres(struct worker *w, struct err *e)
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
    };

    (void)snprintf(name, sizeof name, "ledgerlock worker %s", w->name);
    if (pg_open(&w->pg, &options, e) != 0)
        return (int)e->code;
    if (prepare_statements(w, e) != 0) {
        pg_close(w->pg);
        w->pg = NULL;
    }
    return (int)e->code;
}

int loop_open_locks(struct worker *w, struct err *e)
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

void loop_close(struct worker *w)
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

/* ---- what the supervisor sees ---- */

static void tell(struct worker *w,
                 volatile sig_atomic_t *server,
                 enum slot_server state,
                 const struct err *e)
{
    if (state == SLOT_DOWN && *server != SLOT_DOWN)
        (void)snprintf(w->slot->trouble, sizeof w->slot->trouble, "%.190s", e->msg);
    *server = state;
}

static void write_counters(struct worker *w)
{
    struct metrics now = w->slot->counters;
    char counters[1024];
    struct err e = {0};
    const struct pg_param params[] = {
        pg_text(w->pool),
        pg_int8(w->index),
        pg_text(w->host),
        pg_int8(getpid()),
        pg_text(metrics_json(&now, counters, sizeof counters)),
    };

    if (!pg_is_usable(w->pg) ||
        pg_exec(w->pg, SQL_POOL_REPORT_WORKER, params, 5, NULL, &e) != 0)
        log_debug("worker.report_failed", "err=\"%s\"", e.msg);
    else
        w->reported = now;
}

/* Counters into the workers table, at most once a second; every five when idle. */
static void report(struct worker *w)
{
    int64_t now = clk_ms();
    bool changed = memcmp(&w->reported, &w->slot->counters, sizeof w->reported) != 0;

    if (now - w->reported_ms < (changed ? REPORT_MS : 5 * REPORT_MS))
        return;
    w->reported_ms = now;
    write_counters(w);
}

/* The last counters of the process, over a new connection if the old one broke. */
static void report_last(struct worker *w)
{
    struct err e = {0};

    if (!pg_is_usable(w->pg)) {
        pg_close(w->pg);
        w->pg = NULL;
        if (loop_open_postgres(w, &e) != 0)
            return;
    }
    (void)!journal_catch_up(w, &e);
    write_counters(w);
}

/* ---- work ---- */

static int due_buckets(struct worker *w,
                       const struct job_type *job,
                       int64_t *buckets,
                       size_t *n,
                       struct err *e)
{
    const struct pg_param param = pg_text(w->now);
    struct pg_result *res;

    *n = 0;
    if (pg_exec(w->pg, job->due, &param, 1, &res, e) != 0)
        return (int)e->code;
    for (size_t row = 0; row < pg_rows(res) && *n < BUCKETS; row++)
        buckets[(*n)++] = pg_get_int8(res, row, 0);
    pg_result_free(res);
    return 0;
}

/* A timeout or a deadlock that ended one transaction and nothing else. Said once in a
 * while: the work stays due, and somebody should know why. */
static bool is_collision(struct worker *w, const struct err *e)
{
    char quoted[400];

    if ((e->code != ERR_CONFLICT && e->code != ERR_TIMEOUT) || !pg_is_usable(w->pg))
        return false;
    worker_count(w, METRIC_conflicts, 1);
    if (clk_ms() - w->complained_ms > COMPLAIN_MS) {
        w->complained_ms = clk_ms();
        log_warn("worker.collided", "err=%s", log_quote(quoted, sizeof quoted, e->msg));
    }
    return true;
}

/* One batch from every due bucket, beginning at this worker's own place; several pools
 * begin at different ones. */
static int sweep_job(struct worker *w,
                     const struct job_type *job,
                     bool *seen,
                     bool *worked,
                     struct err *e)
{
    int64_t buckets[BUCKETS];
    int64_t place = ((int64_t)w->index * BUCKETS / w->peers + w->pool[0]) % BUCKETS;
    size_t n, first = 0;

    if (due_buckets(w, job, buckets, &n, e) != 0)
        return (int)e->code;
    *seen = *seen || n > 0;
    while (first < n && buckets[first] < place)
        first++;
    for (size_t i = 0; i < n && !stopping; i++) {
        enum turn turn;

        if (turn_run(w, job, buckets[(first + i) % n], &turn, e) != 0) {
            if (!is_collision(w, e))
                return (int)e->code;
            hold_clear(&w->slot->hold);
            turn = TURN_BUSY; /* one bucket's trouble keeps no other waiting */
        }
        *worked = *worked || turn == TURN_WORKED;
        if (turn != TURN_EMPTY)
            tell(w, &w->slot->redis, SLOT_UP, NULL);
        report(w);
    }
    return 0;
}

static int sweep(struct worker *w, bool *seen, bool *worked, struct err *e)
{
    *seen = *worked = false;
    for (size_t i = 0; i < job_type_ct && !stopping; i++) {
        if ((w->jobs & 1u << i) != 0 &&
            sweep_job(w, job_types[i], seen, worked, e) != 0)
            return err_wrap(e, "%s", job_types[i]->name);
    }
    return 0;
}

/* A worker that finds nothing due asks for no lock: it looks whether Redis is back. */
static void look_for_redis(struct worker *w)
{
    if (w->locks != NULL && w->slot->redis == SLOT_DOWN &&
        ll_connect(w->locks) == LL_OK)
        tell(w, &w->slot->redis, SLOT_UP, NULL);
}

/* A usable connection and nothing unsettled, or an error. */
static int ready(struct worker *w, struct err *e)
{
    if (!pg_is_usable(w->pg)) {
        pg_close(w->pg);
        w->pg = NULL;
        if (loop_open_postgres(w, e) != 0)
            return (int)e->code;
    }
    tell(w, &w->slot->postgres, SLOT_UP, NULL);
    if (journal_catch_up(w, e) != 0 || rescue_predecessor(w, e) != 0 ||
        epoch_catch_up(w, e) != 0)
        return (int)e->code;
    if (!w->unknown.pending)
        return 0;
    if (settle_pending(w, e) != 0)
        return (int)e->code;
    turn_release(w);
    hold_clear(&w->slot->hold);
    return 0;
}

/* What to do about an error: true to go on after a pause, false to end the process. */
static bool survive(struct worker *w, const struct err *e, unsigned failures)
{
    char quoted[400];

    if (e->code == ERR_REDIS) {
        tell(w, &w->slot->redis, SLOT_DOWN, e);
    } else if (!pg_is_usable(w->pg)) {
        tell(w, &w->slot->postgres, SLOT_DOWN, e);
    } else if (e->code == ERR_CONFLICT || e->code == ERR_TIMEOUT) {
        worker_count(w, METRIC_conflicts, 1);
    } else {
        log_error("worker.failed", "err=%s", log_quote(quoted, sizeof quoted, e->msg));
        return false;
    }
    log_debug("worker.retry", "failures=%u err=%s", failures,
              log_quote(quoted, sizeof quoted, e->msg));
    pause_ms(RETRY_BASE_MS / 2 + clk_backoff_ms(failures, RETRY_BASE_MS, RETRY_CAP_MS));
    return true;
}

/* An error ended the batch and not us. One whose COMMIT is unknown is still ours, and
 * so is what a dead one left until it is cleared up. */
static void leave_batch(struct worker *w)
{
    if (!w->unknown.pending && w->slot->hold.incarnation == w->slot->incarnation)
        hold_clear(&w->slot->hold);
}

static enum exit_code exit_code_of(const struct err *e)
{
    return e->code == ERR_SCHEMA || e->code == ERR_DENIED ? EXIT_REFUSED : EXIT_BUG;
}

/* Keys that were busy may have come free by a lease that ended: seen soon, however
 * seldom the pool polls. */
static int64_t busy_cap_ms(const struct worker *w)
{
    return w->config->poll_ms < BUSY_CAP_MS ? w->config->poll_ms : BUSY_CAP_MS;
}

static enum exit_code live(struct worker *w)
{
    unsigned failures = 0;
    unsigned idle = 0;

    while (!stopping) {
        struct err e = {0};
        bool seen = false, worked = false;

        if (ready(w, &e) != 0 || sweep(w, &seen, &worked, &e) != 0) {
            if (!survive(w, &e, failures++))
                return exit_code_of(&e);
            leave_batch(w);
            continue;
        }
        failures = 0;
        w->slot->has_worked = 1;
        report(w);
        if (w->once && !seen)
            break;
        idle = worked ? 0 : idle + 1;
        if (!seen) {
            look_for_redis(w);
            pause_ms(w->config->poll_ms);
        } else if (!worked) /* all that is due is with others: step back, do not spin */
            pause_ms(1 + clk_backoff_ms(idle, 5, busy_cap_ms(w)));
    }
    if (w->unknown.pending) {
        struct err e = {0};

        if (ready(w, &e) != 0)
            log_warn("commit.unsettled", "job=%s token=%" PRId64 " xid=%" PRId64,
                     w->unknown.job->name, w->unknown.token, w->unknown.xid);
    }
    return EXIT_OK;
}

enum exit_code loop_run(struct worker *w)
{
    struct sigaction action = {.sa_handler = on_stop};
    struct err e = {0};
    enum exit_code code = EXIT_BUG;
    char quoted[400];

    (void)sigaction(SIGTERM, &action, NULL);
    (void)sigaction(SIGINT, &action, NULL);
    (void)signal(SIGHUP, SIG_IGN); /* the supervisor's business */
    w->batch = malloc(sizeof *w->batch);
    if (w->batch != NULL && loop_open_locks(w, &e) == 0) {
        if (w->lock != NULL)
            ll_set_nonce_copy(w->lock, w->slot->hold.nonce);
        code = live(w);
        report_last(w);
        journal_give_up(w);
    } else {
        log_error("worker.failed", "err=%s",
                  log_quote(quoted, sizeof quoted,
                            w->batch == NULL ? "out of memory" : e.msg));
        code = e.code == ERR_CONFIG ? EXIT_CONFIG : EXIT_BUG;
    }
    loop_close(w);
    return code;
}
