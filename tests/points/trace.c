/* trace: lines of JSON. */
#include "tests/points/trace.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>
#include <unistd.h>

#include "tests/points/failpoint.h"
#include "worker/batch/batch.h"

/* Room for the keys and the items of the largest batch: one write for each line. */
enum { LINE = BATCH_MAX * 24 + RLOCK_KEYS_MAX * (RESOURCE_NAME + 3) + 512 };

static FILE *out;
static int64_t seq;
static bool is_noted; /* COMMIT was about to be sent */

static bool is_wanted(const struct session *s)
{
    static char buffer[LINE];
    const char *folder = getenv("LL_TEST_HISTORY");
    char path[512];

    if (out != NULL || folder == NULL)
        return out != NULL;
    (void)snprintf(path, sizeof path, "%s/%s.jsonl", folder, s->name);
    out = fopen(path, "ae");
    if (out == NULL || setvbuf(out, buffer, _IOFBF, sizeof buffer) != 0)
        abort(); /* a trace that is not written proves nothing */
    return true;
}

static void begin(const struct session *s, const char *event)
{
    struct timespec ts;

    (void)clock_gettime(CLOCK_MONOTONIC, &ts);
    fprintf(out,
            "{\"event\":\"%s\",\"worker\":\"%s\",\"pid\":%ld,\"seq\":%" PRId64
            ",\"t\":%lld,\"job\":\"%s\",\"token\":%" PRId64,
            event, s->name, (long)getpid(), seq,
            (long long)ts.tv_sec * 1000000 + ts.tv_nsec / 1000, s->job->name,
            s->attempt.token);
}

static void add_items(const struct job_rows *rows)
{
    fprintf(out, ",\"items\":[");
    for (size_t i = 0; i < rows->n; i++)
        fprintf(out, "%s%" PRId64, i == 0 ? "" : ",", rows->items[i]);
    fprintf(out, "]");
}

static void finish(void)
{
    fprintf(out, "}\n");
    if (fflush(out) != 0)
        abort();
}

static void invoke(const struct session *s)
{
    static struct job_rows rows;
    const struct batch *b = s->batch;
    const char *separator = "";

    seq++;
    is_noted = false;
    (void)items_list(s, ITEM_TRIED, &rows);
    begin(s, "invoke");
    fprintf(out, ",\"keys\":[");
    for (size_t i = 0; i < b->key_ct; i++) {
        if (b->keys[i].state == KEY_WANTED) {
            fprintf(out, "%s\"%s\"", separator, b->keys[i].name);
            separator = ",";
        }
    }
    fprintf(out, "]");
    add_items(&rows);
    finish();
}

static void commit(const struct session *s)
{
    is_noted = true;
    begin(s, "commit");
    fprintf(out, ",\"xid\":%" PRId64, s->attempt.xid);
    finish();
}

static void end(const struct session *s, const char *event)
{
    begin(s, event);
    if (is_noted) {
        fprintf(out, ",\"xid\":%" PRId64, s->attempt.xid);
        for (size_t i = 0; s->job->counters[i].name != NULL; i++)
            fprintf(out, ",\"%s\":%" PRId64, s->job->counters[i].name,
                    s->attempt.done.counts[i]);
        add_items(&s->attempt.rows);
    }
    finish();
}

static void trace(const struct session *s, enum hook_point point)
{
    if (!is_wanted(s))
        return;
    if (point == HOOK_BEFORE_BEGIN)
        invoke(s);
    else if (point == HOOK_BEFORE_COMMIT)
        commit(s);
    else if (point == HOOK_ENDED && s->attempt.in_doubt)
        end(s, "unknown");
    else if (point == HOOK_ENDED || point == HOOK_SETTLED)
        end(s, s->attempt.code == 0 && is_noted ? "ok" : "fail");
}

void testkit_hook(const struct session *s, enum hook_point point)
{
    static const char *const places[] = {
        [HOOK_BEFORE_LOCK] = "before_lock",
        [HOOK_AFTER_LOCK] = "after_lock",
        [HOOK_BEFORE_BEGIN] = "before_begin",
        [HOOK_AFTER_CLAIM] = "after_claim",
        [HOOK_BEFORE_COMMIT] = "before_commit",
        [HOOK_AFTER_COMMIT] = "after_commit",
        [HOOK_BEFORE_RELEASE] = "before_release",
        [HOOK_ENDED] = NULL,
        [HOOK_SETTLED] = NULL,
        [HOOK_BEFORE_SETTLE] = "before_settle",
        [HOOK_AFTER_SETTLE] = "after_settle",
    };

    trace(s, point);
    if (places[point] != NULL)
        failpoint_reach(s->name, places[point]);
    if (point == HOOK_AFTER_CLAIM)
        poison_reach(s->job->name, &s->attempt.rows);
}
