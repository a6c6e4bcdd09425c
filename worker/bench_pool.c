/* bench_pool: load, read, run, read again: what lies between the readings is what was
 * measured. */
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "worker/audit.h"
#include "worker/bench.h"
#include "worker/jdoc.h"

/* A lag that lets everything stay due: two centuries. */
static const int64_t ANY_LAG_S = INT64_C(200) * 366 * 86400;

struct measured {
    const struct config *config;
    const struct bench_flags *flags;
    const struct bench_mode *mode;
    struct bench_gauge before, after;
    struct bench_run run;
    int64_t rows;
    int64_t done; /* committed between the readings */
};

static double each(const struct measured *m, int64_t amount)
{
    return m->done > 0 ? (double)amount / (double)m->done : 0;
}

/* ---- the document ---- */

/* Under the unit and a suffix: "charges_per_s". */
static int put_named(json_t *to,
                     const struct measured *m,
                     const char *suffix,
                     json_t *value,
                     struct err *e)
{
    char name[64];

    (void)snprintf(name, sizeof name, "%s%s", m->mode->unit, suffix);
    return jdoc_put(to, name, value, e);
}

static int put_each(
    json_t *to, const struct measured *m, const char *what, double value, struct err *e)
{
    char name[64];
    size_t singular = strlen(m->mode->unit) - 1;

    (void)snprintf(name, sizeof name, "%s_per_%.*s", what, (int)singular,
                   m->mode->unit);
    return jdoc_put(to, name, json_real(value), e);
}

static int add_load(const struct measured *m, json_t *doc, struct err *e)
{
    return jdoc_put(doc, "load",
                    json_pack("{s:s,s:s,s:I,s:b,s:b}", "mode", m->mode->name, "unit",
                              m->mode->unit, "rows", (json_int_t)m->rows, "steady",
                              m->flags->steady, "kept", m->flags->keep),
                    e);
}

static int add_rate(const struct measured *m, json_t *out, struct err *e)
{
    const int64_t *n = m->run.counters.value;
    const struct histogram *batch = &m->run.pace.batch_us;
    double seconds = (double)(m->run.pace.last_us - m->run.pace.first_us) / 1e6;
    int64_t asked = n[METRIC_granted] + n[METRIC_busy];

    if (put_named(out, m, "", json_integer(m->done), e) != 0 ||
        jdoc_put(out, "seconds", json_real(seconds), e) != 0 ||
        put_named(out, m, "_per_s", json_real((double)m->done / seconds), e) != 0 ||
        jdoc_put(out, "commits", json_integer(n[METRIC_batches]), e) != 0 ||
        put_named(out, m, "_per_commit",
                  json_real((double)m->done / (double)n[METRIC_batches]), e) != 0)
        return (int)e->code;
    if (jdoc_put(out, "batch_p50_ms",
                 json_real((double)histogram_quantile(batch, 0.5) / 1e3), e) != 0 ||
        jdoc_put(out, "batch_p99_ms",
                 json_real((double)histogram_quantile(batch, 0.99) / 1e3), e) != 0)
        return (int)e->code;
    return jdoc_put(out, "keys_busy_share",
                    n[METRIC_granted] > 0
                        ? json_real((double)n[METRIC_busy] / (double)asked)
                        : json_string("no locks"),
                    e);
}

static int add_wal(const struct measured *m, json_t *out, struct err *e)
{
    const struct bench_gauge *a = &m->before, *b = &m->after;

    if (put_each(out, m, "wal_bytes", each(m, b->wal_bytes - a->wal_bytes), e) != 0 ||
        put_each(out, m, "wal_records", each(m, b->wal_records - a->wal_records), e) !=
            0 ||
        put_each(out, m, "wal_page_images", each(m, b->wal_images - a->wal_images),
                 e) != 0)
        return (int)e->code;
    return put_each(out, m, "flushes", each(m, b->wal_flushes - a->wal_flushes), e);
}

/* Seconds in all and microseconds each; us < 0 is a server that cannot be seen. */
static int add_cpu(
    const struct measured *m, json_t *out, const char *who, int64_t us, struct err *e)
{
    char name[64];

    (void)snprintf(name, sizeof name, "%s_cpu_s", who);
    if (us < 0)
        return jdoc_put(out, name, json_string("not on this machine, or not asked"), e);
    if (jdoc_put(out, name, json_real((double)us / 1e6), e) != 0)
        return (int)e->code;
    (void)snprintf(name, sizeof name, "%s_cpu_us", who);
    return put_each(out, m, name, each(m, us), e);
}

static int64_t between(int64_t before, int64_t after)
{
    return before < 0 || after < 0 ? -1 : after - before;
}

static int add_cost(const struct measured *m, json_t *out, struct err *e)
{
    const struct bench_gauge *a = &m->before, *b = &m->after;

    if (add_cpu(m, out, "workers", m->run.cpu_us, e) != 0 ||
        add_cpu(m, out, "redis", between(a->redis_us, b->redis_us), e) != 0 ||
        add_cpu(m, out, "postgres", between(a->postgres_us, b->postgres_us), e) != 0)
        return (int)e->code;
    return jdoc_put(out, "peak_mib_per_worker",
                    json_real((double)m->run.peak_kib / 1024), e);
}

static int add_counters(const struct measured *m, json_t *doc, struct err *e)
{
    json_t *counters = json_object();

    if (jdoc_put(doc, "counters", counters, e) != 0)
        return (int)e->code;
    for (int i = 0; i < METRIC_COUNT; i++) {
        int64_t n = m->run.counters.value[i];

        if (n != 0 &&
            jdoc_put(counters, metric_name((enum metric)i), json_integer(n), e) != 0)
            return (int)e->code;
    }
    return 0;
}

/* ---- the proof ---- */

static bool is_billing(const struct measured *m)
{
    return m->mode->skus == 0;
}

/* The workers must have counted what the tables hold: else one of the two is wrong. */
static int cross_check(struct measured *m, struct err *e)
{
    const struct bench_gauge *a = &m->before, *b = &m->after;
    const int64_t *n = m->run.counters.value;
    int64_t counted =
        is_billing(m) ? n[METRIC_charged] : n[METRIC_fulfilled] + n[METRIC_rejected];

    m->done = is_billing(m) ? b->captured - a->captured
                            : b->fulfilled + b->rejected - a->fulfilled - a->rejected;
    if (counted == m->done)
        return 0;
    return err_set(e, ERR_BUG,
                   "the workers counted %" PRId64 " %s but the tables hold %" PRId64,
                   counted, m->mode->unit, m->done);
}

/* Names of the broken invariants, joined by blanks; "" when all hold. */
static void name_broken(const json_t *audit, char *buf, size_t size)
{
    const json_t *row;
    size_t i, n = 0;

    buf[0] = '\0';
    json_array_foreach(json_object_get(audit, "invariants"), i, row)
    {
        if (n < size && jdoc_int(row, "violations") != 0)
            n += (size_t)snprintf(buf + n, size - n, " %s", jdoc_text(row, "name"));
    }
}

static int
audit(struct pg *pg, const struct measured *m, json_t *out, bool *held, struct err *e)
{
    bool drained = m->after.due == 0 && m->after.pending == 0;
    const struct audit_request request = {.lag_s = drained ? 0 : ANY_LAG_S};
    char verdict[400] = "held", broken[380];
    json_t *doc;

    if (m->flags->no_audit)
        return jdoc_put(out, "audit", json_string("left out"), e);
    cli_progress("auditing");
    if (pg_exec(pg, SQL_BENCH_VACUUM, NULL, 0, NULL, e) != 0 ||
        audit_gather(pg, &request, &doc, e) != 0)
        return (int)e->code;
    *held = json_is_true(json_object_get(doc, "ok"));
    name_broken(doc, broken, sizeof broken);
    json_decref(doc);
    if (!*held)
        (void)snprintf(verdict, sizeof verdict, "BROKEN:%s", broken);
    return jdoc_put(out, "audit", json_string(verdict), e);
}

/* A hot SKU that was sold out was sold out to the last piece, and to nobody more. */
static int check_exact(const struct measured *m, json_t *out, bool *held, struct err *e)
{
    int64_t stock = (m->rows * m->mode->stock_percent + 99) / 100;
    bool exact = m->after.fulfilled == stock && m->after.rejected == m->rows - stock;

    if (m->mode->skus != 1 || m->after.pending != 0)
        return 0;
    *held = *held && exact;
    return jdoc_put(out, "totals_exact", json_boolean(exact), e);
}

static int add_result(
    struct pg *pg, const struct measured *m, json_t *doc, bool *held, struct err *e)
{
    json_t *out = json_object();

    if (jdoc_put(doc, "result", out, e) != 0 || add_rate(m, out, e) != 0 ||
        add_wal(m, out, e) != 0 || add_cost(m, out, e) != 0 ||
        jdoc_put(out, "left_due", json_integer(m->after.due + m->after.pending), e) !=
            0 ||
        audit(pg, m, out, held, e) != 0 || check_exact(m, out, held, e) != 0 ||
        bench_add_waste(m->config, &m->run, m->done, doc, e) != 0)
        return (int)e->code;
    if (!is_billing(m) && bench_add_waits(pg, doc, e) != 0)
        return (int)e->code;
    return add_counters(m, doc, e);
}

/* ---- all ---- */

/* The rows to measure over: made, or those that are there. */
static int provide(struct pg *pg, struct measured *m, struct err *e)
{
    if (!m->flags->keep && bench_load(pg, m->mode, m->rows, m->flags->steady, e) != 0)
        return (int)e->code;
    if (bench_read(pg, m->config, &m->before, e) != 0 || !m->flags->keep)
        return (int)e->code;
    m->rows = m->before.due;
    return m->rows > 0 ? 0
                       : err_set(e, ERR_INVALID,
                                 "--keep: nothing is due here; run it without first");
}

/* No connection is open while the pool is forked. */
static int prepare(struct measured *m, json_t *doc, struct err *e)
{
    struct pg *pg = NULL;

    if (cli_connect(m->config, "bench", &pg, e) == 0 && bench_check_mark(pg, e) == 0 &&
        provide(pg, m, e) == 0 && bench_describe(pg, m->config, doc, e) == 0)
        (void)!add_load(m, doc, e);
    pg_close(pg);
    return (int)e->code;
}

static int conclude(struct measured *m, json_t *doc, bool *held, struct err *e)
{
    struct pg *pg = NULL;

    if (cli_connect(m->config, "bench", &pg, e) == 0 &&
        bench_read(pg, m->config, &m->after, e) == 0 && cross_check(m, e) == 0)
        (void)!add_result(pg, m, doc, held, e);
    pg_close(pg);
    cli_progress_end();
    return (int)e->code;
}

int bench_pool(const struct config *c,
               const struct bench_flags *f,
               const struct bench_mode *mode,
               json_t *doc,
               bool *held,
               struct err *e)
{
    struct config own = *c;
    struct measured m = {.config = &own, .flags = f, .mode = mode};

    m.rows = f->rows != 0 ? f->rows : mode->rows;
    (void)snprintf(own.jobs, sizeof own.jobs, "%s", mode->job);
    if (prepare(&m, doc, e) != 0 || f->load_only)
        return (int)e->code;
    if (bench_run_pool(&own, f, &m.run, e) != 0)
        return (int)e->code;
    return conclude(&m, doc, held, e);
}
