/* measure: load, read, run, read again: what lies between the two readings is what was
 * measured. Rows are those of the tables; the workers must have counted as many. */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "labs/bench/bench.h"
#include "labs_sql_gen.h"
#include "ops/audit/audit.h"
#include "ops/cli/json.h"

/* A lag that lets everything stay due: two centuries. */
static const int64_t ANY_LAG_S = INT64_C(200) * 366 * 86400;

/* From the begin of the first transaction that did something to the end of the last. */
struct pace {
    int64_t us;
    bool is_tracked; /* the server keeps the times of commits */
    int64_t p50_us, p99_us;
};

struct measured {
    const struct config *config;
    const struct bench_flags *flags;
    const struct bench_mode *mode;
    struct bench_gauge before, after;
    struct bench_run run;
    struct pace pace;
    json_t *counters;
    int64_t workers;
    int64_t rows;
    int64_t done; /* committed between the readings */
};

static bool is_billing(const struct measured *m)
{
    return m->mode->skus == 0;
}

/* ---- what was read ---- */

static int query(struct pg *pg,
                 const struct sql_text *sql,
                 const struct measured *m,
                 struct pg_result **res,
                 struct err *e)
{
    const struct pg_param since = pg_int8(m->before.now_us);

    return pg_exec(pg, sql, &since, 1, res, e);
}

static int read_run(struct pg *pg, struct measured *m, struct err *e)
{
    struct pg_result *res;

    if (query(pg, SQL_BENCH_READ_PACE, m, &res, e) != 0)
        return (int)e->code;
    m->pace = (struct pace){pg_get_int8(res, 0, 1), pg_get_int8(res, 0, 2) != 0,
                            pg_get_int8(res, 0, 3), pg_get_int8(res, 0, 4)};
    pg_result_free(res);
    if (query(pg, SQL_BENCH_COUNT_WORKERS, m, &res, e) != 0)
        return (int)e->code;
    m->workers = pg_get_int8(res, 0, 0);
    pg_result_free(res);
    if (query(pg, SQL_BENCH_READ_COUNTERS, m, &res, e) != 0)
        return (int)e->code;
    m->counters = doc_pairs(res);
    pg_result_free(res);
    return m->counters != NULL ? 0 : err_set(e, ERR_NOMEM, "out of memory");
}

/* The workers must have counted what the tables hold: else one of the two is wrong. */
static int cross_check(struct measured *m, struct err *e)
{
    const struct bench_gauge *a = &m->before, *b = &m->after;
    int64_t counted = is_billing(m) ? doc_int(m->counters, "charged")
                                    : doc_int(m->counters, "fulfilled") +
                                          doc_int(m->counters, "rejected");

    m->done = is_billing(m) ? b->captured - a->captured
                            : b->fulfilled + b->rejected - a->fulfilled - a->rejected;
    if (counted != m->done)
        return err_set(e, ERR_BUG,
                       "the workers counted %" PRId64
                       " %s but the tables hold %" PRId64,
                       counted, m->mode->unit, m->done);
    return m->done > 0 ? 0 : err_set(e, ERR_BUG, "the pool committed nothing");
}

/* ---- the document ---- */

void bench_put(json_t *to, const char *key, json_t *value)
{
    struct err e = {0};

    if (doc_put(to, key, value, &e) != 0)
        exit((int)cli_fail(&e));
}

static void put(json_t *to, const char *key, double value)
{
    bench_put(to, key, json_real(value));
}

/* Under the unit and a suffix: "charges_per_s". */
static void
put_named(json_t *to, const struct measured *m, const char *suffix, json_t *value)
{
    char name[64];

    (void)snprintf(name, sizeof name, "%s%s", m->mode->unit, suffix);
    bench_put(to, name, value);
}

/* By one row: "wal_bytes_per_charge". amount < 0: it cannot be seen. */
static void
put_each(json_t *to, const struct measured *m, const char *what, int64_t amount)
{
    char name[64];

    (void)snprintf(name, sizeof name, "%s_per_%.*s", what,
                   (int)strlen(m->mode->unit) - 1, m->mode->unit);
    bench_put(to, name,
              amount < 0 ? json_string("not on this machine, or not asked")
                         : json_real((double)amount / (double)m->done));
}

static void add_load(const struct measured *m, json_t *doc)
{
    const char *order = m->flags->keep       ? "as loaded"
                        : m->flags->shuffled ? "shuffled"
                                             : "sign-up";

    bench_put(doc, "load",
              json_pack("{s:s,s:s,s:I,s:s,s:b,s:b}", "mode", m->mode->name, "unit",
                        m->mode->unit, "rows", (json_int_t)m->rows, "order", order,
                        "steady", m->flags->steady, "kept", m->flags->keep));
}

static int64_t between(int64_t before, int64_t after)
{
    return before < 0 || after < 0 ? -1 : after - before;
}

/* Rate, CPU, batches and WAL. */
static void add_figures(const struct measured *m, json_t *out)
{
    const struct bench_gauge *a = &m->before, *b = &m->after;
    int64_t postgres = between(a->postgres_us, b->postgres_us),
            redis = between(a->redis_us, b->redis_us);
    int64_t all =
        postgres < 0 ? -1 : m->run.cpu_us + postgres + (redis < 0 ? 0 : redis);
    double seconds = (double)m->pace.us / 1e6,
           commits = (double)doc_int(m->counters, "batches");
    double granted = (double)doc_int(m->counters, "granted"),
           busy = (double)doc_int(m->counters, "busy");

    put_named(out, m, "", json_integer(m->done));
    put(out, "seconds", seconds);
    put_named(out, m, "_per_s", json_real((double)m->done / seconds));
    put_each(out, m, "cpu_us", all);
    put_each(out, m, "postgres_cpu_us", postgres);
    put_each(out, m, "redis_cpu_us", redis);
    put_each(out, m, "workers_cpu_us", m->run.cpu_us);
    put(out, "peak_mib_per_worker", (double)m->run.peak_kib / 1024);
    bench_put(out, "commits", json_integer((json_int_t)commits));
    put_named(out, m, "_per_commit", json_real((double)m->done / commits));
    if (m->pace.is_tracked) {
        put(out, "transaction_p50_ms", (double)m->pace.p50_us / 1e3);
        put(out, "transaction_p99_ms", (double)m->pace.p99_us / 1e3);
    }
    bench_put(out, "keys_busy_share",
              granted > 0 ? json_real(busy / (granted + busy))
                          : json_string("no locks"));
    put_each(out, m, "wal_bytes", b->wal_bytes - a->wal_bytes);
    put_each(out, m, "wal_page_images", b->wal_images - a->wal_images);
    put_each(out, m, "flushes", b->wal_flushes - a->wal_flushes);
}

/* How many orders have another outcome than in the order in which they were placed. */
static int add_order(struct pg *pg, json_t *out, struct err *e)
{
    struct pg_result *res;

    if (pg_exec(pg, SQL_BENCH_COUNT_OUT_OF_ORDER, NULL, 0, &res, e) != 0)
        return (int)e->code;
    bench_put(out, "out_of_order", json_integer(pg_get_int8(res, 0, 0)));
    pg_result_free(res);
    return 0;
}

/* ---- the proof ---- */

/* Names of the broken invariants, joined by blanks; "" when all hold. */
static void name_broken(const json_t *audit, char *buf, size_t size)
{
    const json_t *row;
    size_t i, n = 0;

    buf[0] = '\0';
    json_array_foreach(json_object_get(audit, "invariants"), i, row)
    {
        if (n < size && doc_int(row, "violations") != 0)
            n += (size_t)snprintf(buf + n, size - n, " %s", doc_text(row, "name"));
    }
}

static int
audit(struct pg *pg, const struct measured *m, json_t *out, bool *held, struct err *e)
{
    bool drained = m->after.due == 0 && m->after.pending == 0;
    const struct audit_order order = {.lag_s = drained ? 0 : ANY_LAG_S};
    char verdict[400] = "held", broken[380];
    json_t *doc;

    if (m->flags->no_audit) {
        bench_put(out, "audit", json_string("left out"));
        return 0;
    }
    cli_progress("auditing");
    if (pg_exec(pg, SQL_BENCH_VACUUM, NULL, 0, NULL, e) != 0 ||
        audit_gather(pg, &order, &doc, e) != 0)
        return (int)e->code;
    *held = json_is_true(json_object_get(doc, "ok"));
    name_broken(doc, broken, sizeof broken);
    json_decref(doc);
    if (!*held)
        (void)snprintf(verdict, sizeof verdict, "BROKEN:%s", broken);
    bench_put(out, "audit", json_string(verdict));
    return 0;
}

/* A hot SKU that was sold out was sold out to the last piece, and to nobody more. */
static void check_exact(const struct measured *m, json_t *out, bool *held)
{
    int64_t stock = (m->rows * m->mode->stock_percent + 99) / 100;
    bool exact = m->after.fulfilled == stock && m->after.rejected == m->rows - stock;

    if (m->mode->skus != 1 || m->after.pending != 0)
        return;
    *held = *held && exact;
    bench_put(out, "totals_exact", json_boolean(exact));
}

/* ---- all ---- */

static int add_result(
    struct pg *pg, const struct measured *m, json_t *doc, bool *held, struct err *e)
{
    json_t *out = json_object();

    bench_put(json_object_get(doc, "settings"), "workers", json_integer(m->workers));
    bench_put(doc, "result", out);
    add_figures(m, out);
    bench_put(out, "left_due", json_integer(m->after.due + m->after.pending));
    if (audit(pg, m, out, held, e) != 0 ||
        (!is_billing(m) && add_order(pg, out, e) != 0))
        return (int)e->code;
    check_exact(m, out, held);
    bench_put(doc, "counters", json_incref(m->counters));
    return 0;
}

/* The rows to measure over: made, or those that are there. */
static int provide(struct pg *pg, struct measured *m, struct err *e)
{
    if (!m->flags->keep && bench_load(pg, m->mode, m->flags, m->rows, e) != 0)
        return (int)e->code;
    if (bench_read(pg, m->config, &m->before, e) != 0 || !m->flags->keep)
        return (int)e->code;
    m->rows = m->before.due;
    return m->rows > 0 ? 0
                       : err_set(e, ERR_INVALID,
                                 "--keep: nothing is due here; run it without first");
}

/* No connection is open while the pool runs. */
static int prepare(struct measured *m, json_t *doc, struct err *e)
{
    struct pg *pg = NULL;

    if (cli_connect(m->config, "bench", &pg, e) == 0 && bench_check_mark(pg, e) == 0 &&
        provide(pg, m, e) == 0 && bench_describe(pg, m->config, doc, e) == 0)
        add_load(m, doc);
    pg_close(pg);
    return (int)e->code;
}

static int conclude(struct measured *m, json_t *doc, bool *held, struct err *e)
{
    struct pg *pg = NULL;

    if (cli_connect(m->config, "bench", &pg, e) == 0 &&
        bench_read(pg, m->config, &m->after, e) == 0 && read_run(pg, m, e) == 0 &&
        cross_check(m, e) == 0)
        (void)!add_result(pg, m, doc, held, e);
    json_decref(m->counters);
    pg_close(pg);
    cli_progress_end();
    return (int)e->code;
}

int bench_pool(const struct config *c,
               const struct bench_flags *f,
               const struct bench_mode *mode,
               json_t *doc,
               enum exit_code *code,
               struct err *e)
{
    struct measured m = {.config = c, .flags = f, .mode = mode};
    bool held = true;

    m.rows = f->rows != 0 ? f->rows : mode->rows;
    if (prepare(&m, doc, e) != 0 || f->load_only)
        return (int)e->code;
    if (bench_run_pool(c, f, mode->job, &m.run, e) != 0)
        *code = (enum exit_code)m.run.code;
    else if (conclude(&m, doc, &held, e) == 0)
        *code = held ? EXIT_OK : EXIT_AUDIT;
    return (int)e->code;
}
