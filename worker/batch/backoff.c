/* backoff: a short list, gone through from end to end. */
#include "worker/batch/backoff.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "common/base/clock.h"

enum {
    BASE_MS = 10,
    CAP_MS = 1000,
    ERROR_FACTOR = 30, /* a try that breaks costs a batch or a timeout */
    SHOWN = 5
};

static struct backoff_entry *find(struct backoff *b, int kind, int64_t id)
{
    for (size_t i = 0; i < b->n; i++) {
        if (b->entries[i].id == id && b->entries[i].kind == kind)
            return &b->entries[i];
    }
    return NULL;
}

static unsigned mark_of(const struct backoff *b, int kind, int64_t id)
{
    uint64_t key = (uint64_t)id * RESOURCE_KIND_COUNT + (unsigned)kind + 1;

    return (unsigned)(key * (b->salt | 1) >> 32) % BACKOFF_MARKS;
}

static void set_mark(struct backoff *b, int kind, int64_t id)
{
    unsigned mark = mark_of(b, kind, id);

    b->marks[mark / 8] |= (unsigned char)(1U << mark % 8);
}

bool backoff_is_met(const struct backoff *b, int kind, int64_t id)
{
    unsigned mark = mark_of(b, kind, id);

    return (b->marks[mark / 8] & 1U << mark % 8) != 0;
}

static struct backoff_entry *make_room(struct backoff *b)
{
    size_t first = 0;

    if (b->n < BACKOFF_MAX)
        return &b->entries[b->n++];
    for (size_t i = 1; i < b->n; i++) {
        if (b->entries[i].until_ms < b->entries[first].until_ms)
            first = i;
    }
    return &b->entries[first];
}

bool backoff_note(
    struct backoff *b, int kind, int64_t id, enum backoff_cause cause, int64_t now_ms)
{
    struct backoff_entry *entry = find(b, kind, id);
    bool is_news = entry == NULL || entry->cause != cause;
    int64_t ms;

    set_mark(b, kind, id);
    if (entry == NULL) {
        entry = make_room(b);
        *entry = (struct backoff_entry){.id = id, .kind = kind};
    }
    ms = entry->times < 7 ? (int64_t)BASE_MS << entry->times : CAP_MS;
    ms *= cause == BACKOFF_ERROR ? ERROR_FACTOR : 1;
    entry->cause = cause;
    entry->times++;
    entry->until_ms = now_ms + ms / 2 + clk_jitter_ms(ms / 2);
    return is_news;
}

void backoff_end_by(struct backoff *b, int kind, int64_t id, int64_t at_ms)
{
    struct backoff_entry *entry = find(b, kind, id);

    if (entry != NULL && entry->until_ms > at_ms)
        entry->until_ms = at_ms;
}

void backoff_forget(struct backoff *b, int kind, int64_t id)
{
    struct backoff_entry *entry = find(b, kind, id);

    if (entry != NULL)
        *entry = b->entries[--b->n];
}

static bool is_left_out(const struct backoff_entry *entry, int64_t now_ms)
{
    return entry->until_ms > now_ms;
}

void backoff_mark(struct backoff *b, int64_t now_ms)
{
    memset(b->marks, 0, sizeof b->marks);
    b->salt += UINT64_C(0x9e3779b97f4a7c15); /* so that two share a mark only once */
    for (size_t i = 0; i < b->n; i++) {
        if (is_left_out(&b->entries[i], now_ms))
            set_mark(b, b->entries[i].kind, b->entries[i].id);
    }
}

size_t backoff_list(const struct backoff *b, int kind, int64_t now_ms, int64_t *ids)
{
    size_t n = 0;

    for (size_t i = 0; i < b->n; i++) {
        if (b->entries[i].kind == kind && is_left_out(&b->entries[i], now_ms))
            ids[n++] = b->entries[i].id;
    }
    return n;
}

int64_t backoff_wait_ms(struct backoff *b, int64_t now_ms)
{
    int64_t wait_ms = 0;

    for (size_t i = b->n; i-- > 0;) {
        int64_t ms = b->entries[i].until_ms - now_ms;

        if (is_left_out(&b->entries[i], now_ms) && (wait_ms == 0 || ms < wait_ms))
            wait_ms = ms;
        if (ms < -10 * CAP_MS)
            b->entries[i] = b->entries[--b->n];
    }
    return wait_ms;
}

const char *
backoff_text(const struct backoff *b, int64_t since_ms, char *buf, size_t size)
{
    static const char *const causes[] = {
        [BACKOFF_LOCKED] = "its lock is held in Redis",
        [BACKOFF_NO_TTL] = "its lock has no time to live: ledgerlock locks release",
        [BACKOFF_ROW_LOCKED] = "its row is locked by another session",
        [BACKOFF_ERROR] = "an error, see the log",
    };
    size_t at = 0, found = 0;

    buf[0] = '\0';
    for (size_t i = 0; i < b->n; i++) {
        const struct backoff_entry *entry = &b->entries[i];

        if (entry->until_ms < since_ms || found++ >= SHOWN || at >= size)
            continue;
        at += (size_t)snprintf(buf + at, size - at, "%s%s:%" PRId64 " (%s)",
                               found > 1 ? ", " : "", resources[entry->kind].name,
                               entry->id, causes[entry->cause]);
    }
    if (found > SHOWN && at < size)
        (void)snprintf(buf + at, size - at, " and %zu more", found - SHOWN);
    return buf;
}
