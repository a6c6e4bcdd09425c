/* metrics: names, units and types by the conventions of Prometheus. Labels are bounded:
 * cells, jobs, outcomes and states, never a user, a SKU or a process. */
#include <inttypes.h>
#include <math.h>
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
    metrics_head(f, "ledgerlock_rows_total", "counter",
                 "Rows that were decided, by outcome.");
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
            metrics_head(f, s->name, "counter", s->help);
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

    metrics_head(f, acquire, "histogram",
                 "Time of the call that takes the lock keys of a batch.");
    for (int j = 0; j < JOB_TYPE_CT; j++)
        put_histogram(f, acquire, job_types[j], &sums[j].measures.lock);
    metrics_head(f, transaction, "histogram",
                 "Time from BEGIN to the end of the transaction of a batch.");
    for (int j = 0; j < JOB_TYPE_CT; j++)
        put_histogram(f, transaction, job_types[j], &sums[j].measures.transaction);
}

static void
put_workers(FILE *f, const struct http *h, const struct sums sums[JOB_TYPE_CT])
{
    int64_t redis_down = 0;

    metrics_head(f, "ledgerlock_workers", "gauge", "Worker processes, by state.");
    for (int j = 0; j < JOB_TYPE_CT; j++) {
        const int64_t *states = sums[j].states;

        for (unsigned s = 0; s < HEALTH_STATES; s++)
            (void)fprintf(f,
                          "ledgerlock_workers{job=\"%s\",state=\"%s\"} %" PRId64 "\n",
                          job_types[j]->name, health_name(s), states[s]);
        redis_down += states[SLOT_REDIS_DOWN];
    }
    metrics_head(
        f, "ledgerlock_redis_up", "gauge",
        "0 while a worker, or the process that serves this, finds that Redis is down.");
    (void)fprintf(f, "ledgerlock_redis_up %d\n",
                  redis_down == 0 && health_has_redis(h));
}

bool metrics_write(const struct http *h, FILE *f)
{
    struct sums sums[JOB_TYPE_CT];

    for (int j = 0; j < JOB_TYPE_CT; j++)
        sums[j] = sums_of(h, job_types[j]);
    metrics_head(f, "ledgerlock_build_info", "gauge",
                 "1, with the version of the program.");
    (void)fprintf(f, "ledgerlock_build_info{version=\"%s\"} 1\n", LEDGERLOCK_VERSION);
    put_samples(f, sums);
    put_histograms(f, sums);
    put_workers(f, h, sums);
    metrics_databases(h, f);
    return true;
}
