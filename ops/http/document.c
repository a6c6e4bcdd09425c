/* document: of a pool, in figures and short texts, for its page: what the memory that
 * the workers share says, and the tables. Times are milliseconds since 1970, or ages in
 * milliseconds. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "common/base/clock.h"
#include "ops/cli/json.h"
#include "ops/cli/view.h"
#include "ops/http/http.h"

enum { KEYS_SHOWN = 3, KEPT_MS = 1500, WAIT_MS = 200, WAITS_SHOWN = 16 };

/* ---- workers ---- */

/* A batch takes milliseconds, and a document comes once a second: the keys of the last
 * batch stay for one document. */
static bool is_shown(const struct http *h, const struct slot *slot)
{
    int64_t begun_ms = slot->measures.lease_end_ms - h->order->config->lease_ms;

    return inflight_is_set(&slot->inflight) || clk_ms() - begun_ms < KEPT_MS;
}

/* The worker may write while it is read: a count is bounded, and a name that is half
 * written is shown so for a second at most. */
static size_t key_count(const struct inflight *f)
{
    size_t n = f->key_ct;

    return n <= RLOCK_KEYS_MAX ? n : 0;
}

/* Without those that it asked for in vain. */
static void put_keys(json_t *worker, const struct slot *slot, size_t n)
{
    json_t *keys = json_array();
    json_int_t ct = 0;

    for (size_t i = 0; i < n; i++) {
        char name[RESOURCE_NAME];

        if (slot->inflight.is_busy[i])
            continue;
        memcpy(name, slot->inflight.names[i], sizeof name);
        name[sizeof name - 1] = '\0';
        if (ct++ < KEYS_SHOWN)
            (void)json_array_append_new(keys, json_string(name));
    }
    (void)json_object_set_new(worker, "key_ct", json_integer(ct));
    (void)json_object_set_new(worker, "keys", keys);
}

/* The last trouble: an outage that the worker met, or an incident of the timeline that
 * happened to it; "" and -1: there was none. */
static void put_last_trouble(json_t *worker, const struct http *h, size_t i)
{
    const struct slot *slot = &h->order->shared->slots[i];
    const struct timeline *t = &h->order->shared->timeline;
    int64_t at_ms = slot->trouble_ms;
    char text[sizeof slot->trouble];

    (void)snprintf(text, sizeof text, "%s", slot->trouble);
    for (size_t k = 0; k < TIMELINE_KEPT; k++) {
        if (t->events[k].slot != i || t->events[k].begun_ms <= at_ms)
            continue;
        at_ms = t->events[k].begun_ms;
        (void)snprintf(text, sizeof text, "%s", t->events[k].what);
    }
    (void)json_object_set_new(worker, "last_trouble", doc_string(text));
    (void)json_object_set_new(worker, "last_trouble_ago_ms",
                              json_integer(at_ms == 0 ? -1 : clk_ms() - at_ms));
}

static json_t *cell_number(const struct reading *r)
{
    return r->config.cell != CELL_NONE ? json_integer(r->config.cell) : json_null();
}

static json_t *worker_document(const struct http *h, size_t i)
{
    const struct slot *slot = &h->order->shared->slots[i];
    const struct inflight *f = &slot->inflight;
    bool is_set = inflight_is_set(f), shown = is_shown(h, slot);
    int64_t left_ms = slot->measures.lease_end_ms - clk_ms();
    json_t *worker = json_pack(
        "{s:I,s:s,s:I,s:s,s:I,s:I,s:b,s:I,s:I}", "slot", (json_int_t)i, "job",
        slot->job->name, "pid", (json_int_t)slot->pid, "state",
        health_name(health_of(h, i)), "restarts",
        (json_int_t)slot->counters.value[COUNT_restarts], "rows",
        (json_int_t)(is_set ? f->n : 0), "holds", (int)(is_set && left_ms > 0),
        "lease_left_ms", (json_int_t)(shown && left_ms > 0 ? left_ms : 0), "lease_ms",
        (json_int_t)h->order->config->lease_ms);

    if (worker == NULL)
        return NULL;
    if (slot->cell < h->reading_ct)
        (void)json_object_set_new(worker, "cell",
                                  cell_number(&h->readings[slot->cell]));
    put_keys(worker, slot, shown ? key_count(f) : 0);
    put_last_trouble(worker, h, i);
    (void)json_object_set_new(worker, "trouble", doc_string(health_trouble(h, i)));
    return worker;
}

static json_t *workers_document(const struct http *h)
{
    json_t *workers = json_array();

    for (size_t i = 0; i < h->order->slot_ct; i++)
        (void)json_array_append_new(workers, worker_document(h, i));
    return workers;
}

/* ---- keys that workers wait for ---- */

/* A worker of this pool whose last batch has the key; slot_ct: none has. */
static size_t find_holder(const struct http *h, const char *key)
{
    size_t i = 0;

    for (; i < h->order->slot_ct; i++) {
        const struct slot *slot = &h->order->shared->slots[i];
        const struct inflight *f = &slot->inflight;
        size_t n = is_shown(h, slot) ? key_count(f) : 0;

        for (size_t k = 0; k < n; k++) {
            if (!f->is_busy[k] && strncmp(f->names[k], key, RESOURCE_NAME) == 0)
                return i;
        }
    }
    return i;
}

static json_t *busy_document(const struct http *h, size_t i, const struct shown_key *b)
{
    const char *job = h->order->shared->slots[i].job->name;
    int64_t now_ms = clk_ms();
    char key[RESOURCE_NAME], holder[48] = "another client";
    size_t by;

    memcpy(key, b->name, sizeof key);
    key[sizeof key - 1] = '\0';
    by = find_holder(h, key);
    if (by < h->order->slot_ct)
        (void)snprintf(holder, sizeof holder, "worker %zu", by);
    return json_pack(
        "{s:I,s:s,s:s,s:s,s:I,s:I}", "slot", (json_int_t)i, "job", job, "key", key,
        "holder", holder, "waits_ms", (json_int_t)(now_ms - b->since_ms), "left_ms",
        (json_int_t)(b->left_ms < 0                   ? -1
                     : b->left_ms > now_ms - b->at_ms ? b->left_ms - now_ms + b->at_ms
                                                      : 0));
}

static bool is_met(const struct shown_key *b)
{
    return clk_ms() - b->at_ms < 2 * KEPT_MS;
}

/* Keys that were met busy again and again: one that another worker gave back after
 * milliseconds is no wait. */
static json_t *waits_document(const struct http *h)
{
    json_t *waits = json_array();

    for (size_t i = 0; i < h->order->slot_ct; i++) {
        const struct shown_key *busy = h->order->shared->slots[i].measures.busy;

        for (size_t k = 0; k < BUSY_SHOWN; k++) {
            if (busy[k].at_ms - busy[k].since_ms >= WAIT_MS && is_met(&busy[k]) &&
                json_array_size(waits) < WAITS_SHOWN)
                (void)json_array_append_new(waits, busy_document(h, i, &busy[k]));
        }
    }
    return waits;
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

/* ---- incidents ---- */

static json_t *timeline_document(const struct http *h, int64_t unix_ms)
{
    const struct timeline *t = &h->order->shared->timeline;
    size_t count = t->count, kept = count < TIMELINE_KEPT ? count : TIMELINE_KEPT;
    json_t *events = json_array();
    int64_t now_ms = clk_ms();

    for (size_t i = 1; i <= kept; i++) {
        struct timeline_event event = t->events[(count - i) % TIMELINE_KEPT];
        char worker[64];

        (void)snprintf(worker, sizeof worker, "worker %zu of %s", event.slot,
                       h->order->shared->slots[event.slot].job->name);
        (void)json_array_append_new(
            events, json_pack("{s:I,s:s,s:s,s:o,s:I}", "at_ms",
                              (json_int_t)(unix_ms - now_ms + event.begun_ms), "what",
                              event.what, "worker", worker, "detail",
                              doc_string(event.detail), "recovered_ms",
                              (json_int_t)(event.ended_ms == 0
                                               ? -1
                                               : event.ended_ms - event.begun_ms)));
    }
    return events;
}

/* ---- databases ---- */

json_t *document_audit(const struct reading *r)
{
    json_t *audit = json_is_object(r->audit) ? json_copy(r->audit) : NULL;

    if (audit == NULL)
        return json_null();
    (void)json_object_set_new(
        audit, "age_ms",
        json_integer(doc_int(audit, "age_ms") + clk_ms() - r->tables_ms));
    return audit;
}

static json_t *database_document(const struct reading *r)
{
    json_t *audit = document_audit(r);
    const char *verdict =
        view_verdict(r->tables, audit, r->trouble[0] != '\0' || !health_is_read(r));

    return json_pack("{s:o,s:s,s:O?,s:I,s:I,s:o,s:o,s:o}", "cell", cell_number(r),
                     "verdict", verdict, "tables", r->tables, "tables_age_ms",
                     (json_int_t)(r->tables_ms != 0 ? clk_ms() - r->tables_ms : -1),
                     "stale_ms", (json_int_t)r->stale_ms, "trouble",
                     doc_string(r->trouble), "audit_trouble",
                     doc_string(r->audit_trouble), "audit", audit);
}

static json_t *databases_document(const struct http *h)
{
    json_t *databases = json_array();

    for (size_t i = 0; i < h->reading_ct; i++)
        (void)json_array_append_new(databases, database_document(&h->readings[i]));
    return databases;
}

/* The worst of them. */
static const char *verdict_of(const json_t *databases)
{
    const char *worst = "good";

    for (size_t i = 0; i < json_array_size(databases); i++) {
        const char *verdict = doc_text(json_array_get(databases, i), "verdict");

        if (strcmp(verdict, "bad") == 0 || strcmp(worst, "bad") != 0)
            worst = strcmp(verdict, "good") == 0 ? worst : verdict;
    }
    return worst;
}

/* ---- all of it ---- */

char *document_compose(const struct http *h, size_t *length)
{
    const struct shared *shared = h->order->shared;
    json_t *databases = databases_document(h);
    int64_t now_ms = view_now_ms();
    json_t *doc = json_pack(
        "{s:s,s:s,s:s,s:I,s:s,s:o,s:o,s:o,s:o,s:o,s:o}", "version", LEDGERLOCK_VERSION,
        "pool", shared->name, "host", shared->host, "at_ms", (json_int_t)now_ms,
        "verdict", verdict_of(databases), "databases", databases, "workers",
        workers_document(h), "counters", counters_document(h), "busy",
        waits_document(h), "timeline", timeline_document(h, now_ms), "redis_trouble",
        doc_string(h->redis_trouble));
    char *text;

    text = doc != NULL ? json_dumps(doc, JSON_COMPACT) : NULL;
    *length = text != NULL ? strlen(text) : 0;
    json_decref(doc);
    return text;
}

void document_publish(struct http *h)
{
    size_t length;
    char *document = document_compose(h, &length);

    if (document == NULL)
        return;
    free(h->document);
    h->document = document;
    h->length = length;
    h->version++;
    events_wake(h);
}
