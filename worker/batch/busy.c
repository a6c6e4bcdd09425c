/* busy: open addressing; what is old is dropped when the table grows. */
#include "worker/batch/busy.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include "common/base/clock.h"
#include "common/base/err.h"
#include "common/base/log.h"

enum {
    ROOM = 1024,
    KEPT_MS = 20000, /* so that an error that comes again is known */
    ERROR_MS = 300,  /* a try that breaks costs a batch or a timeout */
    ERROR_CAP_MS = 30000,
    SHOWN = 5
};

/* The entry of a key, or the free place for it. */
static struct busy_key *find(const struct busy *b, int kind, int64_t id)
{
    uint64_t hash = ((uint64_t)id * RESOURCE_KIND_COUNT + (unsigned)kind) *
                    UINT64_C(0x9e3779b97f4a7c15);
    size_t at = (size_t)(hash >> 32) % b->room;

    while (b->keys[at].round != 0 && (b->keys[at].id != id || b->keys[at].kind != kind))
        at = (at + 1) % b->room;
    return &b->keys[at];
}

static bool is_kept(const struct busy *b, const struct busy_key *key, int64_t now_ms)
{
    return key->round != 0 &&
           (key->round == b->round || now_ms - key->until_ms < KEPT_MS);
}

/* At most a quarter of it is full then. */
static void make_room(struct busy *b, int64_t now_ms)
{
    struct busy fresh = {.room = ROOM, .round = b->round > 0 ? b->round : 1};

    for (size_t i = 0; i < b->room; i++)
        fresh.n += is_kept(b, &b->keys[i], now_ms);
    while (fresh.room < 4 * fresh.n)
        fresh.room *= 2;
    fresh.keys = calloc(fresh.room, sizeof *fresh.keys);
    if (fresh.keys == NULL) { /* no order may pass an older one for want of memory */
        log_error("worker.failed", "code=LL-9001 err=\"out of memory\"");
        _exit(EXIT_BUG);
    }
    for (size_t i = 0; i < b->room; i++) {
        if (is_kept(b, &b->keys[i], now_ms))
            *find(&fresh, b->keys[i].kind, b->keys[i].id) = b->keys[i];
    }
    free(b->keys);
    *b = fresh;
}

void busy_begin(struct busy *b)
{
    b->round++;
}

/* In this round, or in the one before and perhaps in this one, too. */
static bool was_met_of_late(const struct busy *b, const struct busy_key *key)
{
    return key->round != 0 && key->round >= b->round - 1;
}

bool busy_note(
    struct busy *b, int kind, int64_t id, enum busy_cause cause, int64_t now_ms)
{
    struct busy_key *key;
    bool is_news, was_met;

    if (2 * b->n >= b->room)
        make_room(b, now_ms);
    key = find(b, kind, id);
    is_news = !is_kept(b, key, now_ms) || key->cause != cause;
    was_met = was_met_of_late(b, key);
    if (key->round == 0)
        b->n++;
    *key = (struct busy_key){.id = id,
                             .kind = kind,
                             .round = b->round,
                             .errors = is_kept(b, key, now_ms) ? key->errors : 0,
                             .cause = cause,
                             .since_ms = was_met ? key->since_ms : now_ms,
                             .until_ms = now_ms};
    if (cause == BUSY_ERROR)
        key->until_ms += clk_backoff_ms(key->errors++, ERROR_MS, ERROR_CAP_MS);
    return is_news;
}

bool busy_is_met(const struct busy *b, int kind, int64_t id, int64_t now_ms)
{
    const struct busy_key *key = b->n > 0 ? find(b, kind, id) : NULL;

    return key != NULL && key->round != 0 &&
           (key->round == b->round || key->until_ms > now_ms);
}

const char *busy_text(const struct busy *b, int64_t since_ms, char *buf, size_t size)
{
    static const char *const causes[] = {
        [BUSY_LOCKED] = "its lock is held in Redis",
        [BUSY_NO_TTL] = "its lock has no time to live: ledgerlock locks release",
        [BUSY_ROW_LOCKED] = "its row is locked by another session",
        [BUSY_MONTH] = "its month is made",
        [BUSY_ERROR] = "an error, see the log",
    };
    size_t at = 0, found = 0;

    buf[0] = '\0';
    for (size_t i = 0; i < b->room; i++) {
        const struct busy_key *key = &b->keys[i];

        bool is_left = key->cause == BUSY_ERROR
                           ? key->until_ms >= since_ms
                           : was_met_of_late(b, key) && key->since_ms <= since_ms;

        if (!is_left || found++ >= SHOWN || at >= size)
            continue;
        at += (size_t)snprintf(buf + at, size - at, "%s%s:%" PRId64 " (%s)",
                               found > 1 ? ", " : "", resources[key->kind].name,
                               key->id, causes[key->cause]);
    }
    if (found > SHOWN && at < size)
        (void)snprintf(buf + at, size - at, " and %zu more", found - SHOWN);
    return buf;
}

void busy_close(struct busy *b)
{
    free(b->keys);
    *b = (struct busy){.n = 0};
}
