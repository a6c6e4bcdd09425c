/* metrics_databases: the gauges of each database, as its tables were read. */
#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <time.h>

#include "common/base/cells.h"
#include "common/base/clock.h"
#include "ops/cli/json.h"
#include "ops/http/http.h"

void metrics_head(FILE *f, const char *name, const char *type, const char *help)
{
    (void)fprintf(f, "# HELP %s %s\n# TYPE %s %s\n", name, help, name, type);
}

/* Of a database, as they were read. */
struct figures {
    const struct reading *reading;
    json_t *audit;
    double now, read_at; /* seconds since 1970 */
    bool is_up;
    char cell[24]; /* label of its samples: of its cell; "" without cells */
};

/* Without a sample while the value is not known: NAN. */
static void put(FILE *f,
                const char *name,
                const struct figures *of,
                const char *labels,
                int decimals,
                double value)
{
    bool has_cell = of->cell[0] != '\0', has_labels = labels[0] != '\0';

    if (isnan(value))
        return;
    (void)fprintf(f, "%s%s%s%s%s%s %.*f\n", name, has_cell || has_labels ? "{" : "",
                  of->cell, has_cell && has_labels ? "," : "", labels,
                  has_cell || has_labels ? "}" : "", decimals, value);
}

static double up(const struct figures *of)
{
    return of->is_up;
}

static double tables_read(const struct figures *of)
{
    return of->reading->tables_ms != 0 ? of->read_at : (double)NAN;
}

static const json_t *payments(const struct figures *of)
{
    return json_object_get(json_object_get(of->reading->tables, "jobs"), "payments");
}

static double unknown_since(const struct figures *of)
{
    return payments(of) != NULL
               ? of->read_at - (double)doc_int(payments(of), "unknown_ms") / 1000
               : (double)NAN;
}

static double if_audited(const struct figures *of, double value)
{
    return json_is_object(of->audit) ? value : (double)NAN;
}

static double broken(const struct figures *of)
{
    return if_audited(of,
                      (double)json_array_size(json_object_get(of->audit, "broken")));
}

static double audit_ended(const struct figures *of)
{
    return if_audited(of, of->now - (double)doc_int(of->audit, "age_ms") / 1000);
}

static double audit_took(const struct figures *of)
{
    return if_audited(of, (double)doc_int(of->audit, "took_ms") / 1000);
}

/* One a database. */
static const struct gauge {
    const char *name, *help;
    int decimals;
    double (*value)(const struct figures *of);
} gauges[] = {
    {"ledgerlock_pg_up",
     "0 while a worker, or the process that serves this, finds that PostgreSQL is down.",
     0, up},
    {"ledgerlock_tables_read_timestamp_seconds",
     "When the backlog was read from the tables.", 3, tables_read},
    {"ledgerlock_payment_unknown_since_timestamp_seconds",
     "First call of the oldest attempt that is unknown; while none is, when the tables "
     "were read.",
     3, unknown_since},
    {"ledgerlock_audit_broken_invariants",
     "Invariants that the last whole audit found broken; work that is left breaks none.",
     0, broken},
    {"ledgerlock_audit_timestamp_seconds", "When the last whole audit ended.", 3,
     audit_ended},
    {"ledgerlock_audit_seconds", "How long the last whole audit took.", 3, audit_took},
};

/* A figure of the backlog of each job in each database; a time is so long before the
 * reading. */
static const struct backlog {
    const char *name, *help, *key;
    bool is_time;
} backlogs[] = {
    {"ledgerlock_backlog_rows", "Rows that are due.", "due", false},
    {"ledgerlock_parked_rows", "Rows that are parked now.", "parked", false},
    {"ledgerlock_oldest_due_timestamp_seconds",
     "When the oldest row fell due that still is; while none is due, when the tables "
     "were read.",
     "oldest_due_ms", true},
};

static void put_backlog(FILE *f, const struct backlog *b, const struct figures *of)
{
    json_t *jobs = json_object_get(of->reading->tables, "jobs");

    for (int j = 0; jobs != NULL && j < JOB_TYPE_CT; j++) {
        double n = (double)doc_int(json_object_get(jobs, job_types[j]->name), b->key);
        char labels[64];

        (void)snprintf(labels, sizeof labels, "job=\"%s\"", job_types[j]->name);
        put(f, b->name, of, labels, b->is_time ? 3 : 0,
            b->is_time ? of->read_at - n / 1000 : n);
    }
}

/* Attempts at the gateway that are not decided. */
static void put_payments(FILE *f, const struct figures *of)
{
    static const char *const states[] = {"planned", "sent", "unknown", "parked"};

    for (size_t i = 0; i < sizeof states / sizeof states[0]; i++) {
        char labels[64];

        (void)snprintf(labels, sizeof labels, "state=\"%s\"", states[i]);
        put(f, "ledgerlock_payments", of, labels, 0,
            payments(of) != NULL ? (double)doc_int(payments(of), states[i])
                                 : (double)NAN);
    }
}

static bool is_up(const struct http *h, size_t database)
{
    bool is_up = !h->readings[database].is_cut;

    for (size_t i = 0; i < h->order->slot_ct; i++)
        is_up = is_up && (h->order->shared->slots[i].cell != database ||
                          health_of(h, i) != SLOT_POSTGRES_DOWN);
    return is_up;
}

static struct figures figures_of(const struct http *h, size_t database)
{
    const struct reading *r = &h->readings[database];
    double now = (double)time(NULL);
    struct figures of = {.reading = r,
                         .audit = document_audit(r),
                         .now = now,
                         .read_at = now - (double)(clk_ms() - r->tables_ms) / 1000,
                         .is_up = is_up(h, database)};

    if (r->config.cell != CELL_NONE)
        (void)snprintf(of.cell, sizeof of.cell, "cell=\"%" PRId64 "\"", r->config.cell);
    return of;
}

void metrics_databases(const struct http *h, FILE *f)
{
    struct figures of[CELLS_MAX];

    for (size_t i = 0; i < h->reading_ct; i++)
        of[i] = figures_of(h, i);
    for (size_t g = 0; g < sizeof gauges / sizeof gauges[0]; g++) {
        metrics_head(f, gauges[g].name, "gauge", gauges[g].help);
        for (size_t i = 0; i < h->reading_ct; i++)
            put(f, gauges[g].name, &of[i], "", gauges[g].decimals,
                gauges[g].value(&of[i]));
    }
    for (size_t b = 0; b < sizeof backlogs / sizeof backlogs[0]; b++) {
        metrics_head(f, backlogs[b].name, "gauge", backlogs[b].help);
        for (size_t i = 0; i < h->reading_ct; i++)
            put_backlog(f, &backlogs[b], &of[i]);
    }
    metrics_head(f, "ledgerlock_payments", "gauge",
                 "Attempts at the payment gateway that are not decided, by state.");
    for (size_t i = 0; i < h->reading_ct; i++) {
        put_payments(f, &of[i]);
        json_decref(of[i].audit);
    }
}
