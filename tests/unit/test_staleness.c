/* /livez, /readyz and the verdict, each told from memory: what has not been noticed for
 * long is not taken for well. */
#include "common/base/cells.h"
#include "common/base/clock.h"
#include "ops/cli/json.h"
#include "ops/cli/view.h"
#include "ops/http/http.h"
#include "tests/lib/test.h"

enum { WORKERS = 4, LEASE_MS = 2000, LONG_MS = 100000 };

static struct config config = {.lease_ms = LEASE_MS};
static struct shared *shared;
static struct companion_order order = {.config = &config, .slot_ct = WORKERS};
static struct reading reading;
static struct http h;
static char *said;
static size_t length;

/* A pool whose workers pause, and whose figures are a second old. */
static void open_well(void)
{
    int64_t now_ms = clk_ms();

    shared = calloc(1, sizeof *shared + WORKERS * sizeof shared->slots[0]);
    assert_non_null(shared);
    order.shared = shared;
    shared->tick_ms = now_ms;
    for (int i = 0; i < WORKERS; i++) {
        shared->slots[i].job = job_types[i % JOB_TYPE_CT];
        shared->slots[i].pid = 4711 + i;
        shared->slots[i].state = i == 0 ? SLOT_CONNECTED : SLOT_WORKS;
        shared->slots[i].back_ms = now_ms + 1000;
    }
    h = (struct http){.order = &order,
                      .begun_ms = now_ms - LONG_MS,
                      .redis_ms = now_ms - 1000,
                      .readings = &reading,
                      .reading_ct = 1};
    reading = (struct reading){.http = &h,
                               .config.cell = CELL_NONE,
                               .tables_ms = now_ms - 1000,
                               .stale_ms = 12000};
    reading.tables = json_pack("{s:{s:{s:i,s:i}},s:[{s:i,s:i,s:i}]}", "jobs", "billing",
                               "due", 1, "oldest_due_ms", 7000, "newest",
                               "charged_twice", 0, "oversold", 0, "wrong_totals", 0);
    reading.audit = json_pack("{s:i,s:[],s:i,s:i}", "invariants", 68, "broken",
                              "took_ms", 5, "age_ms", 1000);
}

static void close_well(void)
{
    json_decref(reading.tables);
    json_decref(reading.audit);
    free(h.document);
    free(shared);
    free(said);
    said = NULL;
}

GROUP(.open = open_well, .close = close_well);

static bool ask(bool (*question)(const struct http *of, FILE *out))
{
    FILE *out;
    bool answer;

    free(said);
    out = open_memstream(&said, &length);
    assert_non_null(out);
    answer = question(&h, out);
    (void)fclose(out);
    return answer;
}

CASE(pool_that_is_well_is_alive_and_ready)
{
    assert_true(ask(health_is_alive));
    assert_string_equal(said, "ok\n");
    assert_true(ask(health_is_ready));
    assert_string_equal(said, "ok\n");
}

/* ---- what makes it unready ---- */

static void stop_supervisor(void)
{
    shared->tick_ms -= 11000;
}

static void kill_worker(void)
{
    shared->slots[1].pid = 0;
}

static void freeze_last_worker(void)
{
    shared->slots[WORKERS - 1].back_ms = clk_ms() - 10000 - LEASE_MS - 1000;
}

static void lose_redis_of_worker(void)
{
    shared->slots[1].state = SLOT_REDIS_DOWN;
    (void)snprintf(shared->slots[1].trouble, 8, "LL-4008");
}

static void lose_redis(void)
{
    (void)snprintf(h.redis_trouble, sizeof h.redis_trouble, "refused");
}

static void hang_asking_redis(void)
{
    h.redis_ms -= 11000;
}

static void hang_at_first_asking_redis(void)
{
    h.redis_ms = 0;
}

static void lose_postgres(void)
{
    reading.is_cut = true;
    (void)snprintf(reading.trouble, sizeof reading.trouble, "LL-3015 it is gone");
}

static void hang_reading(void)
{
    reading.tables_ms = clk_ms() - reading.stale_ms - 1000;
}

static void fail_reading(void)
{
    hang_reading();
    (void)snprintf(reading.trouble, sizeof reading.trouble, "lock timeout");
}

static void hang_at_first_reading(void)
{
    reading.tables_ms = 0;
}

/* clang-format off */
static const struct {
    const char *name;
    void (*make)(void);
    const char *says;
} faults[] = {
    {"supervisor_that_stands_still", stop_supervisor,      "the supervisor has not gone round for 11 s\n"},
    {"worker_that_does_not_run",     kill_worker,          "worker 1 of orders: gone\n"},
    {"worker_that_stands_still",     freeze_last_worker,   "worker 3 of billing: silent\n"},
    {"worker_without_redis",         lose_redis_of_worker, "worker 1 of orders: redis_down: LL-4008\n"},
    {"redis_that_is_gone",           lose_redis,           "Redis grants no lock: refused\n"},
    {"redis_that_hangs",             hang_asking_redis,    "Redis has not answered for 12 s\n"},
    {"redis_that_hung_from_the_start", hang_at_first_asking_redis, "Redis has not answered for 1 min 40 s\n"},
    {"postgresql_that_is_gone",      lose_postgres,        "PostgreSQL does not answer: LL-3015 it is gone\n"},
    {"reader_that_hangs",            hang_reading,         "the tables were last read 13 s ago\n"},
    {"reader_that_fails",            fail_reading,         "the tables were last read 13 s ago: lock timeout\n"},
    {"reader_that_hung_from_the_start", hang_at_first_reading, "the tables have not been read yet\n"},
};

/* clang-format on */

/* Guarantee: /readyz refuses, with the reason, while the supervisor, a worker, the
 * reading of the tables or the question to Redis has not come round for long. */
CASE_ROWS(readiness_refuses_with, faults)
{
    row->make();
    assert_false(ask(health_is_ready));
    assert_string_equal(said, row->says);
    assert_int_equal(ask(health_is_alive), row->make != stop_supervisor);
}

/* ---- what does not ---- */

static void lock_a_table(void)
{
    (void)snprintf(reading.trouble, sizeof reading.trouble, "lock timeout");
}

static void begin_just_now(void)
{
    h.begun_ms = clk_ms();
    h.redis_ms = reading.tables_ms = 0;
    reading.stale_ms = 0;
}

static void work_a_long_batch(void)
{
    shared->slots[1].back_ms = clk_ms() - 10000 - LEASE_MS + 1000;
}

static void remember_old_trouble(void)
{
    (void)snprintf(shared->slots[1].trouble, 8, "LL-4008");
}

static const struct {
    const char *name;
    void (*make)(void);
} pardons[] = {
    {"table_that_is_locked_for_seconds", lock_a_table},
    {"page_that_has_just_begun", begin_just_now},
    {"worker_within_a_long_batch", work_a_long_batch},
    {"trouble_that_is_over", remember_old_trouble},
};

CASE_ROWS(readiness_bears, pardons)
{
    row->make();
    assert_true(ask(health_is_ready));
    assert_string_equal(said, "ok\n");
}

/* A sample without labels, or with these; -1: there is none. */
static double sample(const char *name)
{
    char line[128];
    const char *at;

    (void)snprintf(line, sizeof line, "\n%s ", name);
    assert_true(ask(metrics_write));
    at = strstr(said, line);
    return at != NULL ? strtod(at + strlen(line), NULL) : -1;
}

/* ---- the document ---- */

static json_t *document(void)
{
    char *text = document_compose(&h, &length);
    json_t *doc = json_loads(text, 0, NULL);

    free(text);
    assert_non_null(doc);
    return doc;
}

static const struct {
    const char *name;
    void (*make)(void);
    const char *verdict;
} verdicts[] = {
    {"that_hangs", hang_reading, "unknown"},
    {"that_failed", lock_a_table, "unknown"},
};

/* Guarantee: A good verdict is not known any more as soon as a reading of the tables
 * failed, or has not ended in time. */
CASE_ROWS(verdict_after_a_reading, verdicts)
{
    json_t *doc;

    row->make();
    doc = document();
    assert_string_equal(doc_text(doc, "verdict"), row->verdict);
    json_decref(doc);
}

/* Guarantee: A bad verdict stays bad, however old it is. */
CASE(bad_verdict_that_is_old_stays_bad)
{
    json_t *doc;

    (void)json_object_set_new(
        json_array_get(json_object_get(reading.tables, "newest"), 0), "oversold",
        json_integer(1));
    fail_reading();
    doc = document();
    assert_string_equal(doc_text(doc, "verdict"), "bad");
    json_decref(doc);
}

/* Guarantee: The page and the metrics say of a worker that stands still that it is
 * silent, and not what it did before. */
CASE(worker_that_stands_still_is_shown_as_silent)
{
    json_t *doc;

    freeze_last_worker();
    doc = document();
    assert_string_equal(
        doc_text(json_array_get(json_object_get(doc, "workers"), WORKERS - 1), "state"),
        "silent");
    json_decref(doc);
    assert_true(sample("ledgerlock_workers{job=\"billing\",state=\"silent\"}") == 1);
    assert_true(sample("ledgerlock_workers{job=\"billing\",state=\"works\"}") == 0);
}

/* ---- figures that grow old ---- */

static void assert_ago(double timestamp, int seconds)
{
    double ago = (double)view_now_ms() / 1000 - timestamp;

    assert_true(ago > seconds - 2 && ago < seconds + 60);
}

/* Guarantee: Times in the metrics are those of the reading of the tables, and are left
 * out while there was none. */
CASE(metrics_tell_when_the_tables_were_read)
{
    reading.tables_ms = clk_ms() - 50000;
    assert_ago(sample("ledgerlock_tables_read_timestamp_seconds"), 50);
    assert_ago(sample("ledgerlock_oldest_due_timestamp_seconds{job=\"billing\"}"), 57);
    assert_ago(sample("ledgerlock_audit_timestamp_seconds"), 51);
    reading.tables_ms = 0;
    json_decref(reading.tables);
    json_decref(reading.audit);
    reading.tables = reading.audit = NULL;
    assert_true(sample("ledgerlock_tables_read_timestamp_seconds") < 0);
    assert_true(sample("ledgerlock_backlog_rows{job=\"billing\"}") < 0);
    assert_true(sample("ledgerlock_audit_timestamp_seconds") < 0);
    assert_true(sample("ledgerlock_audit_broken_invariants") < 0);
}

/* Guarantee: The age of the last whole audit grows while the tables are not read. */
CASE(audit_grows_old_while_the_tables_are_not_read)
{
    json_t *doc, *database;

    reading.tables_ms = clk_ms() - 5000;
    doc = document();
    database = json_array_get(json_object_get(doc, "databases"), 0);
    assert_in_range(doc_int(json_object_get(database, "audit"), "age_ms"), 6000, 60000);
    assert_in_range(doc_int(database, "tables_age_ms"), 5000, 60000);
    json_decref(doc);
}

/* Guarantee: ledgerlock_pg_up and ledgerlock_redis_up are 0 also while only the process
 * that serves them finds the server down. */
CASE(metrics_say_what_the_page_finds_down)
{
    assert_true(sample("ledgerlock_pg_up") == 1);
    assert_true(sample("ledgerlock_redis_up") == 1);
    lose_postgres();
    hang_asking_redis();
    assert_true(sample("ledgerlock_pg_up") == 0);
    assert_true(sample("ledgerlock_redis_up") == 0);
}
