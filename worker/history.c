/* history: lines of JSON, one write each. */
#include "worker/history.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "worker/batch.h"

/* Room for the keys and the items of the largest batch. */
enum { LINE = BATCH_MAX * 24 + LL_KEYS_MAX * (KEY_NAME + 3) + 512 };

/* The transaction under way, or the one whose end is unknown. */
static struct {
    int64_t seq, token, xid;
    const char *job;
    bool is_noted; /* history_commit was called */
    bool is_unknown;
    size_t n;
    int64_t items[BATCH_MAX];
    struct metrics counted;
} now;

static int fd = -1;
static char line[LINE];
static size_t length;

static void add(const char *fmt, ...) __attribute__((format(printf, 1, 2)));

static void add(const char *fmt, ...)
{
    va_list ap;
    int n;

    va_start(ap, fmt);
    n = vsnprintf(line + length, sizeof line - length, fmt, ap);
    va_end(ap);
    if (n < 0 || (size_t)n >= sizeof line - length)
        abort();
    length += (size_t)n;
}

static bool is_wanted(struct worker *w)
{
    const char *folder = getenv("LEDGERLOCK_TEST_HISTORY");
    char path[512];

    if (fd >= 0 || folder == NULL)
        return fd >= 0;
    (void)snprintf(path, sizeof path, "%s/%s.jsonl", folder, w->name);
    fd = open(path, O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0644);
    if (fd < 0)
        abort(); /* a history that is not written proves nothing */
    return true;
}

static void begin(struct worker *w, const char *event)
{
    struct timespec ts;

    (void)clock_gettime(CLOCK_MONOTONIC, &ts);
    length = 0;
    add("{\"event\":\"%s\",\"worker\":\"%s\",\"pid\":%ld,\"seq\":%" PRId64
        ",\"t\":%lld,\"job\":\"%s\",\"token\":%" PRId64,
        event, w->name, (long)getpid(), now.seq,
        (long long)ts.tv_sec * 1000000 + ts.tv_nsec / 1000, now.job, now.token);
}

static void add_items(const int64_t *items, size_t n)
{
    add(",\"items\":[");
    for (size_t i = 0; i < n; i++)
        add("%s%" PRId64, i == 0 ? "" : ",", items[i]);
    add("]");
}

static void finish(void)
{
    add("}\n");
    if (write(fd, line, length) != (ssize_t)length)
        abort();
}

void history_invoke(struct worker *w,
                    const struct job_type *job,
                    int64_t token,
                    int64_t only)
{
    struct batch *b = w->batch;
    size_t n = batch_workable(b, false, only);
    const char *separator = "";

    if (!is_wanted(w))
        return;
    now.seq++;
    now.token = token;
    now.job = job->name;
    now.is_noted = now.is_unknown = false;
    begin(w, "invoke");
    add(",\"keys\":[");
    for (size_t i = 0; i < b->key_ct; i++) {
        if (b->keys[i].wanted) {
            add("%s\"%s\"", separator, b->keys[i].name);
            separator = ",";
        }
    }
    add("]");
    add_items(b->work.items, n);
    finish();
}

void history_commit(struct worker *w,
                    const struct job_batch *b,
                    int64_t xid,
                    const struct metrics *counted)
{
    if (!is_wanted(w))
        return;
    now.is_noted = true;
    now.xid = xid;
    now.n = b->rows->n;
    now.counted = *counted;
    memcpy(now.items, b->rows->items, now.n * sizeof now.items[0]);
    begin(w, "commit");
    add(",\"xid\":%" PRId64, xid);
    finish();
}

static void end(struct worker *w, const char *event)
{
    const int64_t *v = now.counted.value;

    begin(w, event);
    if (now.is_noted) {
        add(",\"xid\":%" PRId64 ",\"charged\":%" PRId64 ",\"declined\":%" PRId64
            ",\"fulfilled\":%" PRId64 ",\"rejected\":%" PRId64,
            now.xid, v[METRIC_charged], v[METRIC_declined], v[METRIC_fulfilled],
            v[METRIC_rejected]);
        add_items(now.items, now.n);
    }
    finish();
}

void history_end(struct worker *w, int code)
{
    if (!is_wanted(w))
        return;
    now.is_unknown = code == ERR_UNKNOWN;
    if (now.is_unknown)
        end(w, "unknown");
    else
        end(w, code == 0 && now.is_noted ? "ok" : "fail");
}

void history_settled(struct worker *w, bool committed)
{
    if (!is_wanted(w) || !now.is_unknown)
        return;
    now.is_unknown = false;
    end(w, committed ? "ok" : "fail");
}
