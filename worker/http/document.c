/* document: of a pool, in figures and short texts, for its page. Times are milliseconds
 * since 1970, or ages in milliseconds. */
#include <string.h>
#include <time.h>

#include "common/base/clock.h"
#include "worker/cli/json.h"
#include "worker/http/http.h"
#include "worker/http/view.h"

json_t *document_audit(const struct http *h)
{
    json_t *audit = json_is_object(h->audit) ? json_copy(h->audit) : NULL;

    if (audit == NULL)
        return json_null();
    (void)json_object_set_new(
        audit, "age_ms",
        json_integer(doc_int(audit, "age_ms") + clk_ms() - h->tables_ms));
    return audit;
}

int64_t document_now_ms(void)
{
    struct timespec ts;

    (void)clock_gettime(CLOCK_REALTIME, &ts);
    return (int64_t)ts.tv_sec * 1000 + ts.tv_nsec / 1000000;
}

char *document_compose(const struct http *h, size_t *length)
{
    const struct shared *shared = h->order->shared;
    json_t *audit = document_audit(h);
    int64_t now_ms = document_now_ms();
    const char *verdict = view_verdict(h->tables, audit, h->trouble[0] != '\0');
    json_t *doc = json_pack(
        "{s:s,s:s,s:s,s:I,s:s,s:o,s:o,s:o,s:o,s:O?,s:I,s:I,s:o,s:o,s:o,s:o}", "version",
        LEDGERLOCK_VERSION, "pool", shared->name, "host", shared->host, "at_ms",
        (json_int_t)now_ms, "verdict", verdict, "workers", memory_workers(h),
        "counters", memory_counters(h), "busy", memory_waits(h), "timeline",
        memory_timeline(h, now_ms), "tables", h->tables, "tables_age_ms",
        (json_int_t)(h->tables_ms != 0 ? clk_ms() - h->tables_ms : -1), "stale_ms",
        (json_int_t)h->stale_ms, "trouble", doc_string(h->trouble), "redis_trouble",
        doc_string(h->redis_trouble), "audit_trouble", doc_string(h->audit_trouble),
        "audit", audit);
    char *text;

    if (doc != NULL && h->chaos != NULL)
        (void)json_object_set_new(doc, "chaos", chaos_document(h->chaos));
    text = doc != NULL ? json_dumps(doc, JSON_COMPACT) : NULL;
    *length = text != NULL ? strlen(text) : 0;
    json_decref(doc);
    return text;
}
