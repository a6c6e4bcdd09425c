/* document: of a pool, in figures and short texts, for its page. Times are milliseconds
 * since 1970, or ages in milliseconds. */
#include <string.h>
#include <time.h>

#include "common/base/clock.h"
#include "worker/cli/json.h"
#include "worker/http/http.h"

enum { KEYS_SHOWN = 3 };

/* ---- memory of the pool ---- */

const char *document_state(enum slot_state state)
{
    static const char *const names[SLOT_STATES] = {
        [SLOT_STARTS] = "starts",         [SLOT_POSTGRES_DOWN] = "postgres_down",
        [SLOT_CONNECTED] = "connected",   [SLOT_FAULT] = "fault",
        [SLOT_REDIS_DOWN] = "redis_down", [SLOT_REDIS_WAITS] = "redis_waits",
        [SLOT_WORKS] = "works",
    };

    return state < SLOT_STATES ? names[state] : "unknown";
}

/* The worker may write while it is read: a count is bounded, and a name that is half
 * written is shown so for a second at most. */
static void put_keys(json_t *worker, const struct inflight *f)
{
    json_t *keys = json_array();
    size_t n = inflight_is_set(f) && f->nonce[0] != '\0' ? f->key_ct : 0;

    n = n <= LL_KEYS_MAX ? n : 0;
    for (size_t i = 0; i < n && i < KEYS_SHOWN; i++) {
        char name[RESOURCE_NAME];

        memcpy(name, f->names[i], sizeof name);
        name[sizeof name - 1] = '\0';
        (void)json_array_append_new(keys, json_string(name));
    }
    (void)json_object_set_new(worker, "key_ct", json_integer((json_int_t)n));
    (void)json_object_set_new(worker, "keys", keys);
}

static json_t *worker_document(const struct http *h, size_t i)
{
    const struct slot *slot = &h->order->shared->slots[i];
    const struct inflight *f = &slot->inflight;
    enum slot_state state = slot->state;
    bool is_set = inflight_is_set(f);
    int64_t left_ms = slot->measures.lease_end_ms - clk_ms();
    json_t *worker =
        json_pack("{s:I,s:s,s:I,s:s,s:I,s:I,s:I,s:I}", "slot", (json_int_t)i, "job",
                  slot->job->name, "pid", (json_int_t)slot->pid, "state",
                  slot->pid == 0 ? "gone" : document_state(state), "restarts",
                  (json_int_t)slot->counters.value[COUNT_restarts], "rows",
                  (json_int_t)(is_set ? f->n : 0), "lease_left_ms",
                  (json_int_t)(is_set && left_ms > 0 ? left_ms : 0), "lease_ms",
                  (json_int_t)h->order->config->lease_ms);

    if (worker == NULL)
        return NULL;
    put_keys(worker, f);
    if (state != SLOT_WORKS && state != SLOT_CONNECTED && slot->trouble[0] != '\0')
        (void)json_object_set_new(worker, "trouble", json_string(slot->trouble));
    return worker;
}

/* Sums of the counters of each job. */
static json_t *counters_document(const struct http *h)
{
    json_t *jobs = json_object();

    for (int j = 0; j < JOB_TYPE_CT; j++) {
        const char *names[COUNTERS_MAX];
        size_t n = session_counter_names(job_types[j], names);
        struct counters sum = {{0}};
        json_t *job = json_object();

        for (size_t i = 0; i < h->order->slot_ct; i++) {
            if (h->order->shared->slots[i].job == job_types[j])
                counters_add(&sum, &h->order->shared->slots[i].counters);
        }
        for (size_t i = 0; i < n; i++)
            (void)json_object_set_new(job, names[i], json_integer(sum.value[i]));
        (void)json_object_set_new(jobs, job_types[j]->name, job);
    }
    return jobs;
}

/* ---- the document ---- */

/* Rows that are due or parked are work that is left, and break no promise. */
static bool is_work_left(const char *invariant)
{
    return strcmp(invariant, "nothing_due_left") == 0 ||
           strcmp(invariant, "nothing_parked") == 0;
}

json_t *document_broken(const json_t *audit)
{
    json_t *broken = json_array(), *row;
    size_t i;

    json_array_foreach(json_object_get(audit, "invariants"), i, row)
    {
        if (!json_is_true(json_object_get(row, "holds")) &&
            !is_work_left(doc_text(row, "name")))
            (void)json_array_append(broken, json_object_get(row, "name"));
    }
    return broken;
}

static json_t *audit_document(const struct http *h)
{
    json_t *rows = json_object_get(h->audit, "invariants");

    if (h->audit == NULL)
        return json_null();
    return json_pack(
        "{s:I,s:o,s:I,s:I}", "invariants", (json_int_t)json_array_size(rows), "broken",
        document_broken(h->audit), "age_ms", (json_int_t)(clk_ms() - h->audit_ms),
        "took_ms", (json_int_t)doc_int(h->audit, "took_ms"));
}

static json_int_t unix_ms(void)
{
    struct timespec ts;

    (void)clock_gettime(CLOCK_REALTIME, &ts);
    return (json_int_t)ts.tv_sec * 1000 + ts.tv_nsec / 1000000;
}

char *document_compose(const struct http *h, size_t *length)
{
    const struct shared *shared = h->order->shared;
    json_t *workers = json_array();
    json_t *doc = json_pack(
        "{s:s,s:s,s:s,s:I,s:o,s:o,s:O?,s:I,s:s,s:s,s:o}", "version", LEDGERLOCK_VERSION,
        "pool", shared->name, "host", shared->host, "at_ms", unix_ms(), "workers",
        workers, "counters", counters_document(h), "tables", h->tables, "tables_age_ms",
        (json_int_t)(h->tables_ms != 0 ? clk_ms() - h->tables_ms : -1), "trouble",
        h->trouble, "redis_trouble", h->redis_trouble, "audit", audit_document(h));
    char *text;

    if (doc != NULL && h->chaos != NULL)
        (void)json_object_set_new(doc, "chaos", chaos_document(h->chaos));
    for (size_t i = 0; doc != NULL && i < h->order->slot_ct; i++)
        (void)json_array_append_new(workers, worker_document(h, i));
    text = doc != NULL ? json_dumps(doc, JSON_COMPACT) : NULL;
    *length = text != NULL ? strlen(text) : 0;
    json_decref(doc);
    return text;
}
