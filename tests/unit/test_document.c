/* document: what the memory of a pool holds is told by its page: who has keys and for
 * how long still, who waits for one, and which trouble is over. */
#include "common/base/clock.h"
#include "ops/cli/json.h"
#include "ops/http/http.h"
#include "tests/lib/test.h"

enum { WORKERS = 2, LEASE_MS = 10000 };

static struct config config = {.lease_ms = LEASE_MS};
static struct shared *shared;
static struct companion_order order = {.config = &config, .slot_ct = WORKERS};
static struct reading reading;
static struct http h;
static json_t *doc;

/* Two workers that have done nothing yet. */
static void open_pool(void)
{
    shared = calloc(1, sizeof *shared + WORKERS * sizeof shared->slots[0]);
    assert_non_null(shared);
    order.shared = shared;
    for (int i = 0; i < WORKERS; i++) {
        shared->slots[i].job = &job_billing;
        shared->slots[i].pid = 4711 + i;
        shared->slots[i].state = SLOT_WORKS;
        shared->slots[i].back_ms = clk_ms();
    }
    reading = (struct reading){.http = &h, .config.cell = CELL_NONE};
    h = (struct http){
        .order = &order, .begun_ms = clk_ms(), .readings = &reading, .reading_ct = 1};
}

static void close_pool(void)
{
    json_decref(doc);
    doc = NULL;
    free(shared);
}

GROUP(.open = open_pool, .close = close_pool);

/* The nth object of a list of the document, which is made on the first call. */
static json_t *entry(const char *list, size_t nth)
{
    size_t length;
    char *text = doc == NULL ? document_compose(&h, &length) : NULL;

    doc = doc == NULL ? json_loads(text, 0, NULL) : doc;
    free(text);
    assert_non_null(doc);
    return json_array_get(json_object_get(doc, list), nth);
}

/* ---- who holds some ---- */

/* The last batch asked for two keys, of which another client had the first. */
static void publish(struct slot *slot, bool is_set)
{
    struct inflight *f = &slot->inflight;

    f->n = 3;
    f->key_ct = 2;
    (void)snprintf(f->names[0], RESOURCE_NAME, "user:7");
    (void)snprintf(f->names[1], RESOURCE_NAME, "user:8");
    f->is_busy[0] = true;
    f->is_set = is_set;
}

static const struct {
    const char *name;
    bool is_set; /* a batch is under way */
    int end_ms;  /* of its lease, or of the last one's, from now */
    bool holds;  /* the worker, by the document; and what follows */
    int left_ms; /* at most */
    int rows, keys;
} leases[] = {
    {"of_a_batch_that_is_worked", true, 6000, true, 6000, 3, 1},
    {"that_is_over_before_its_batch", true, -1, false, 0, 3, 1},
    {"of_a_batch_of_a_second_ago", false, LEASE_MS - 1000, false, LEASE_MS - 1000, 0,
     1},
    {"of_a_batch_of_two_seconds_ago", false, LEASE_MS - 2000, false, 0, 0, 0},
};

/* Guarantee: The page tells of a worker that it holds keys while its batch is under way
 * and its lease lasts, and of a batch that is over for a second at most. */
CASE_ROWS(lease, leases)
{
    json_t *worker;
    long long left_ms;

    publish(&shared->slots[1], row->is_set);
    shared->slots[1].measures.lease_end_ms = clk_ms() + row->end_ms;
    worker = entry("workers", 1);
    assert_int_equal(json_is_true(json_object_get(worker, "holds")), row->holds);
    left_ms = doc_int(worker, "lease_left_ms");
    assert_true(row->left_ms == 0 ? left_ms == 0
                                  : left_ms > 0 && left_ms <= row->left_ms);
    assert_int_equal(doc_int(worker, "rows"), row->rows);
    assert_int_equal(doc_int(worker, "key_ct"), row->keys);
    assert_int_equal(json_array_size(json_object_get(worker, "keys")), row->keys);
}

/* ---- who waits for one ---- */

static const struct {
    const char *name;
    int since_ms, at_ms;   /* met first and last, ago */
    int left_ms;           /* of its lease, when it was met last; -1: it has no end */
    int least_ms, most_ms; /* what the document says is left; */
    bool is_told;
} waits[] = {
    {"that_goes_on", 5000, 1000, 60000, 1, 59000, true},
    {"whose_lease_is_over_since", 5000, 1000, 900, 0, 0, true},
    {"without_an_end", 5000, 1000, -1, -1, -1, true},
    {"of_a_moment", 1150, 1000, 60000, 0, 0, false},
    {"that_is_over", 9000, 4000, 60000, 0, 0, false},
};

/* Guarantee: The page tells of a wait while its key is met busy again and again, with
 * what is left of its lease by now. */
CASE_ROWS(waiting, waits)
{
    int64_t now_ms = clk_ms();
    json_t *told;

    publish(&shared->slots[0], true);
    shared->slots[0].measures.busy[2] = (struct shown_key){
        .name = "user:7",
        .since_ms = now_ms - row->since_ms,
        .at_ms = now_ms - row->at_ms,
        .left_ms = row->left_ms,
    };
    told = entry("busy", 0);
    assert_int_equal(told != NULL, row->is_told);
    if (!row->is_told)
        return;
    assert_string_equal(doc_text(told, "key"), "user:7");
    assert_string_equal(doc_text(told, "holder"), "another client");
    assert_in_range(doc_int(told, "waits_ms"), row->since_ms, row->since_ms + 60000);
    assert_true(doc_int(told, "left_ms") >= row->least_ms &&
                doc_int(told, "left_ms") <= row->most_ms);
}

/* Guarantee: The page names the worker of its own pool that holds the key for which
 * another waits. */
CASE(wait_for_another_worker_names_it)
{
    int64_t now_ms = clk_ms();

    publish(&shared->slots[0], true);
    publish(&shared->slots[1], true);
    shared->slots[1].inflight.is_busy[0] = false;
    shared->slots[0].measures.busy[0] = (struct shown_key){
        .name = "user:7", .since_ms = now_ms - 5000, .at_ms = now_ms, .left_ms = 1000};
    assert_string_equal(doc_text(entry("busy", 0), "holder"), "worker 1");
}

/* ---- troubles ---- */

/* Guarantee: The page tells of a worker what keeps it from work, and of one that works
 * again, what that was. */
CASE(trouble_that_is_over_is_the_last_one)
{
    for (int i = 0; i < WORKERS; i++) {
        (void)snprintf(shared->slots[i].trouble, 8, "refused");
        shared->slots[i].trouble_ms = clk_ms() - 1000;
    }
    shared->slots[1].state = SLOT_REDIS_DOWN;
    assert_string_equal(doc_text(entry("workers", 0), "trouble"), "");
    assert_string_equal(doc_text(entry("workers", 0), "last_trouble"), "refused");
    assert_string_equal(doc_text(entry("workers", 1), "trouble"), "refused");
    assert_in_range(doc_int(entry("workers", 1), "last_trouble_ago_ms"), 1000, 60000);
}

/* ---- servers, for Prometheus ---- */

static const struct {
    const char *name;
    int state; /* of one worker; the page itself reaches every server */
    const char *redis, *pg;
} downs[] = {
    {"that_is_well", SLOT_WORKS, "\nledgerlock_redis_up 1\n", "\nledgerlock_pg_up 1\n"},
    {"without_redis", SLOT_REDIS_DOWN, "\nledgerlock_redis_up 0\n",
     "\nledgerlock_pg_up 1\n"},
    {"without_postgres", SLOT_POSTGRES_DOWN, "\nledgerlock_redis_up 1\n",
     "\nledgerlock_pg_up 0\n"},
};

/* Guarantee: /metrics tells of a server as down that a worker alone cannot reach. */
CASE_ROWS(worker, downs)
{
    char *text = NULL;
    size_t length;
    FILE *out = open_memstream(&text, &length);

    assert_non_null(out);
    shared->slots[1].state = row->state;
    assert_true(metrics_write(&h, out));
    assert_int_equal(fclose(out), 0);
    assert_non_null(strstr(text, row->redis));
    assert_non_null(strstr(text, row->pg));
    free(text);
}
