/* metrics: names, units and types by the conventions of Prometheus. Labels are bounded:
 * jobs, outcomes and states, never a user, a SKU or a process. */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>

#include "common/base/clock.h"
#include "ops/cli/json.h"
#include "ops/http/http.h"

struct sums {
    struct counters counters;
    struct measures measures;
    int64_t states[HEALTH_STATES];
};

static void add_histogram(struct histogram *to, const struct histogram *from)
{
    for (int i = 0; i <= HISTOGRAM_BOUNDS; i++)
        to->counts[i] += from->counts[i];
    to->sum_us += from->sum_us;
}

static struct sums sums_of(const struct http *h, const struct job_type *job)
{
    struct sums s = {.states = {0}};

    for (size_t i = 0; i < h->order->slot_ct; i++) {
        const struct slot *slot = &h->order->shared->slots[i];

        if (slot->job != job)
            continue;
        counters_add(&s.counters, &slot->counters);
        add_histogram(&s.measures.lock, &slot->measures.lock);
        add_histogram(&s.measures.transaction, &slot->measures.transaction);
        s.measures.settled[0] += slot->measures.settled[0];
        s.measures.settled[1] += slot->measures.settled[1];
        s.measures.stale += slot->measures.stale;
        s.states[health_of(h, i)]++;
    }
    return s;
}

static void head(FILE *f, const char *name, const char *type, const char *help)
{
    (void)fprintf(f, "# HELP %s %s\n# TYPE %s %s\n", name, help, name, type);
}

/* ---- counters ---- */

/* Each is a sample of a number of each job: its name, a second label, its place. */
#define COUNTED(counter) offsetof(struct sums, counters.value[COUNT_##counter])
#define MEASURED(measure) offsetof(struct sums, measures.measure)

static const struct sample {
    const char *name, *label, *help;
    size_t offset;
} samples[] = {
    {"ledgerlock_duplicates_prevented_total", ",guard=\"reread\"",
     "Rows that would have been worked twice, by the guard that met them: read again "
     "inside the lock, or refused by the fence.",
     MEASURED(stale)},
    {"ledgerlock_duplicates_prevented_total", ",guard=\"fence\"", NULL,
     COUNTED(fenced)},
    {"ledgerlock_commits_in_doubt_total", ",resolution=\"committed\"",
     "COMMITs whose answer was lost, by what a worker found had become of them.",
     MEASURED(settled[1])},
    {"ledgerlock_commits_in_doubt_total", ",resolution=\"rolled_back\"", NULL,
     MEASURED(settled[0])},
    {"ledgerlock_batches_total", "", "Transactions that were committed.",
     COUNTED(batches)},
    {"ledgerlock_lock_keys_total", ",result=\"granted\"",
     "Lock keys that were asked for, by the answer.", COUNTED(granted)},
    {"ledgerlock_lock_keys_total", ",result=\"busy\"", NULL, COUNTED(busy)},
    {"ledgerlock_rows_locked_total", "",
     "Keys that were granted while another session had locked their row.",
     COUNTED(row_locked)},
    {"ledgerlock_leases_lost_total", "",
     "Batches whose lease ended before their release.", COUNTED(lost)},
    {"ledgerlock_lock_answers_lost_total", "",
     "Lock calls of which it is not known what they did.", COUNTED(uncertain)},
    {"ledgerlock_commit_answers_lost_total", "", "COMMITs whose answer was lost.",
     COUNTED(commit_unknown)},
    {"ledgerlock_conflicts_total", "",
     "Batches that were rolled back for a collision or a timeout.", COUNTED(conflicts)},
    {"ledgerlock_rows_parked_total", "", "Rows that were set aside for a person.",
     COUNTED(parked)},
    {"ledgerlock_worker_restarts_total", "", "Workers that died and were forked again.",
     COUNTED(restarts)},
};

static void put_samples(FILE *f, const struct sums sums[JOB_TYPE_CT])
{
    head(f, "ledgerlock_rows_total", "counter", "Rows that were decided, by outcome.");
    for (int j = 0; j < JOB_TYPE_CT; j++) {
        for (int k = 0; job_types[j]->counters[k].name != NULL; k++)
            (void)fprintf(
                f, "ledgerlock_rows_total{job=\"%s\",outcome=\"%s\"} %" PRId64 "\n",
                job_types[j]->name, job_types[j]->counters[k].name,
                sums[j].counters.value[COUNT_JOB + k]);
    }
    for (size_t i = 0; i < sizeof samples / sizeof samples[0]; i++) {
        const struct sample *s = &samples[i];

        if (s->help != NULL)
            head(f, s->name, "counter", s->help);
        for (int j = 0; j < JOB_TYPE_CT; j++)
            (void)fprintf(f, "%s{job=\"%s\"%s} %" PRId64 "\n", s->name,
                          job_types[j]->name, s->label,
                          *(const int64_t *)((const char *)&sums[j] + s->offset));
    }
}

/* ---- histograms ---- */

static void put_histogram(FILE *f,
                          const char *name,
                          const struct job_type *job,
                          const struct histogram *h)
{
    int64_t n = 0;

    for (int i = 0; i <= HISTOGRAM_BOUNDS; i++) {
        n += h->counts[i];
        if (i < HISTOGRAM_BOUNDS)
            (void)fprintf(f, "%s_bucket{job=\"%s\",le=\"%g\"} %" PRId64 "\n", name,
                          job->name, (double)histogram_bounds_us[i] / 1e6, n);
        else
            (void)fprintf(f, "%s_bucket{job=\"%s\",le=\"+Inf\"} %" PRId64 "\n", name,
                          job->name, n);
    }
    (void)fprintf(f, "%s_sum{job=\"%s\"} %.6f\n%s_count{job=\"%s\"} %" PRId64 "\n",
                  name, job->name, (double)h->sum_us / 1e6, name, job->name, n);
}

static void put_histograms(FILE *f, const struct sums sums[JOB_TYPE_CT])
{
    static const char acquire[] = "ledgerlock_lock_acquire_seconds",
                      transaction[] = "ledgerlock_transaction_seconds";

    head(f, acquire, "histogram",
         "Time of the call that takes the lock keys of a batch.");
    for (int j = 0; j < JOB_TYPE_CT; j++)
        put_histogram(f, acquire, job_types[j], &sums[j].measures.lock);
    head(f, transaction, "histogram",
         "Time from BEGIN to the end of the transaction of a batch.");
    for (int j = 0; j < JOB_TYPE_CT; j++)
        put_histogram(f, transaction, job_types[j], &sums[j].measures.transaction);
}

/* ---- gauges ---- */

/* A gauge without labels; without a sample while its value is not known. */
static void gauge(FILE *f,
                  const char *name,
                  const char *help,
                  bool is_known,
                  int decimals,
                  double value)
{
    head(f, name, "gauge", help);
    if (is_known)
        (void)fprintf(f, "%s %.*f\n", name, decimals, value);
}

static void
put_workers(FILE *f, const struct http *h, const struct sums sums[JOB_TYPE_CT])
{
    int64_t redis_down = 0, postgres_down = 0;

    head(f, "ledgerlock_workers", "gauge", "Worker processes, by state.");
    for (int j = 0; j < JOB_TYPE_CT; j++) {
        const int64_t *states = sums[j].states;

        for (unsigned s = 0; s < HEALTH_STATES; s++)
            (void)fprintf(f,
                          "ledgerlock_workers{job=\"%s\",state=\"%s\"} %" PRId64 "\n",
                          job_types[j]->name, health_name(s), states[s]);
        redis_down += states[SLOT_REDIS_DOWN];
        postgres_down += states[SLOT_POSTGRES_DOWN];
    }
    gauge(
        f, "ledgerlock_redis_up",
        "0 while a worker, or the process that serves this, finds that Redis is down.",
        true, 0, redis_down == 0 && health_has_redis(h));
    gauge(
        f, "ledgerlock_pg_up",
        "0 while a worker, or the process that serves this, finds that PostgreSQL is down.",
        true, 0, postgres_down == 0 && !h->is_cut);
}

/* A figure of the backlog of each job; with `before` the time that is so many
 * milliseconds before it. */
static void put_backlog(FILE *f,
                        const struct http *h,
                        const char *name,
                        const char *help,
                        const char *key,
                        double before)
{
    json_t *jobs = json_object_get(h->tables, "jobs");

    head(f, name, "gauge", help);
    for (int j = 0; jobs != NULL && j < JOB_TYPE_CT; j++) {
        double n = (double)doc_int(json_object_get(jobs, job_types[j]->name), key);

        (void)fprintf(f, "%s{job=\"%s\"} %.*f\n", name, job_types[j]->name,
                      before > 0 ? 3 : 0, before > 0 ? before - n / 1000 : n);
    }
}

/* Attempts at the gateway that are not decided. */
static void put_payments(FILE *f, const struct http *h, double read_at)
{
    static const char *const states[] = {"planned", "sent", "unknown", "parked"};
    json_t *payments = json_object_get(json_object_get(h->tables, "jobs"), "payments");

    head(f, "ledgerlock_payments", "gauge",
         "Attempts at the payment gateway that are not decided, by state.");
    for (size_t i = 0; payments != NULL && i < sizeof states / sizeof states[0]; i++)
        (void)fprintf(f, "ledgerlock_payments{state=\"%s\"} %lld\n", states[i],
                      doc_int(payments, states[i]));
    gauge(f, "ledgerlock_payment_unknown_since_timestamp_seconds",
          "First call of the oldest attempt that is unknown; while none is, when the "
          "tables were read.",
          payments != NULL, 3,
          read_at - (double)doc_int(payments, "unknown_ms") / 1000);
}

static void put_tables(FILE *f, const struct http *h)
{
    double now = (double)time(NULL);
    double read_at = now - (double)(clk_ms() - h->tables_ms) / 1000;
    json_t *audit = document_audit(h);
    bool is_there = json_is_object(audit);

    gauge(f, "ledgerlock_tables_read_timestamp_seconds",
          "When the backlog was read from the tables.", h->tables_ms != 0, 3, read_at);
    put_backlog(f, h, "ledgerlock_backlog_rows", "Rows that are due.", "due", 0);
    put_backlog(f, h, "ledgerlock_parked_rows", "Rows that are parked now.", "parked",
                0);
    put_backlog(
        f, h, "ledgerlock_oldest_due_timestamp_seconds",
        "When the oldest row fell due that still is; while none is due, when the tables "
        "were read.",
        "oldest_due_ms", read_at);
    put_payments(f, h, read_at);
    gauge(
        f, "ledgerlock_audit_broken_invariants",
        "Invariants that the last whole audit found broken; work that is left breaks none.",
        is_there, 0, (double)json_array_size(json_object_get(audit, "broken")));
    gauge(f, "ledgerlock_audit_timestamp_seconds", "When the last whole audit ended.",
          is_there, 3, now - (double)doc_int(audit, "age_ms") / 1000);
    gauge(f, "ledgerlock_audit_seconds", "How long the last whole audit took.",
          is_there, 3, (double)doc_int(audit, "took_ms") / 1000);
    json_decref(audit);
}

bool metrics_write(const struct http *h, FILE *f)
{
    struct sums sums[JOB_TYPE_CT];

    for (int j = 0; j < JOB_TYPE_CT; j++)
        sums[j] = sums_of(h, job_types[j]);
    head(f, "ledgerlock_build_info", "gauge", "1, with the version of the program.");
    (void)fprintf(f, "ledgerlock_build_info{version=\"%s\"} 1\n", LEDGERLOCK_VERSION);
    put_samples(f, sums);
    put_histograms(f, sums);
    put_workers(f, h, sums);
    put_tables(f, h);
    return true;
}
