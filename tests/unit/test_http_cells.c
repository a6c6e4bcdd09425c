/* /readyz, the metrics and the document of a pool of two cells, one of which is away.
 */
#include "common/base/cells.h"
#include "common/base/clock.h"
#include "ops/cli/json.h"
#include "ops/http/http.h"
#include "tests/lib/test.h"

enum { WORKERS = 3, LONG_MS = 100000 };

static struct config config = {.lease_ms = 2000};
static struct shared *shared;
static struct companion_order order = {.config = &config, .slot_ct = WORKERS};
static struct reading of_cells[2];
static struct http h = {.order = &order, .readings = of_cells, .reading_ct = 2};
static char *said;
static size_t length;

/* Cell 7 is read and worked; cell 9 is away, with the workers that are there. */
static void open_cells(void)
{
    int64_t now_ms = clk_ms();

    shared = calloc(1, sizeof *shared + WORKERS * sizeof shared->slots[0]);
    assert_non_null(shared);
    order.shared = shared;
    shared->tick_ms = h.redis_ms = now_ms;
    h.begun_ms = now_ms - LONG_MS;
    for (int i = 0; i < WORKERS; i++) {
        shared->slots[i].job = job_types[i];
        shared->slots[i].pid = 4711 + i;
        shared->slots[i].state = SLOT_WORKS;
        shared->slots[i].back_ms = now_ms + 1000;
    }
    for (int i = 0; i < 2; i++) {
        of_cells[i] = (struct reading){.http = &h,
                                       .config.cell = i == 0 ? 7 : 9,
                                       .tables_ms = now_ms - 1000,
                                       .stale_ms = 12000};
        of_cells[i].tables =
            json_pack("{s:{s:{s:i,s:i}},s:[{s:i,s:i,s:i}]}", "jobs", "billing", "due",
                      1, "oldest_due_ms", 7000, "newest", "charged_twice", 0,
                      "oversold", 0, "wrong_totals", 0);
        of_cells[i].audit = json_pack("{s:i,s:[],s:i,s:i}", "invariants", 48, "broken",
                                      "took_ms", 5, "age_ms", 1000);
    }
    of_cells[1].is_cut = true;
    (void)snprintf(of_cells[1].trouble, sizeof of_cells[1].trouble, "gone");
    shared->cells.of[0].is_checked = true;
    shared->cells.of[1].jobs[0].away_ms = clk_ms();
    shared->slots[1].cell = shared->slots[2].cell = 1;
    shared->slots[1].state = SLOT_POSTGRES_DOWN;
    shared->slots[2].pid = 0;
}

static void close_cells(void)
{
    for (int i = 0; i < 2; i++) {
        json_decref(of_cells[i].tables);
        json_decref(of_cells[i].audit);
    }
    free(shared);
    free(said);
    said = NULL;
}

GROUP(.open = open_cells, .close = close_cells);

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

/* A sample; -1: there is none. */
static double sample(const char *name)
{
    char line[128];
    const char *at;

    (void)snprintf(line, sizeof line, "\n%s ", name);
    assert_true(ask(metrics_write));
    at = strstr(said, line);
    return at != NULL ? strtod(at + strlen(line), NULL) : -1;
}

static json_t *document(void)
{
    char *text = document_compose(&h, &length);
    json_t *doc = json_loads(text, 0, NULL);

    free(text);
    assert_non_null(doc);
    return doc;
}

/* Guarantee: A pool of cells is ready while it can read and work any of them; then
 * /readyz names each that it cannot. */
CASE(readiness_of_cells)
{
    assert_true(ask(health_is_ready));
    shared->cells.of[0].jobs[1].away_ms = clk_ms();
    assert_false(ask(health_is_ready));
    assert_string_equal(said, "worker 1 of orders: postgres_down\n"
                              "worker 2 of payments: gone\n");
    shared->cells.of[0].jobs[1].away_ms = 0;
    shared->slots[1].state = SLOT_REDIS_DOWN; /* which is one for all cells */
    assert_false(ask(health_is_ready));
    shared->slots[1].state = SLOT_WORKS;
    of_cells[0].tables_ms = clk_ms() - LONG_MS;
    assert_false(ask(health_is_ready));
    assert_string_equal(said, "cell 7: the tables were last read 1 min 40 s ago\n"
                              "cell 9: PostgreSQL does not answer: gone\n");
}

/* Guarantee: The figures of tables in the metrics and the document have their cell, and
 * the verdict is the worst of all cells. */
CASE(figures_of_cells_are_apart)
{
    json_t *doc;

    assert_true(sample("ledgerlock_pg_up{cell=\"7\"}") == 1);
    assert_true(sample("ledgerlock_pg_up{cell=\"9\"}") == 0);
    of_cells[1].is_cut = false;
    assert_true(sample("ledgerlock_pg_up{cell=\"9\"}") == 0); /* a worker says so */
    assert_true(sample("ledgerlock_backlog_rows{cell=\"9\",job=\"billing\"}") == 1);
    assert_true(sample("ledgerlock_audit_broken_invariants{cell=\"7\"}") == 0);
    doc = document();
    assert_string_equal(doc_text(doc, "verdict"), "unknown");
    assert_int_equal(
        doc_int(json_array_get(json_object_get(doc, "workers"), 2), "cell"), 9);
    json_decref(doc);
    (void)json_array_append_new(json_object_get(of_cells[0].audit, "broken"),
                                json_string("x"));
    doc = document();
    assert_string_equal(doc_text(doc, "verdict"), "bad");
    json_decref(doc);
}
