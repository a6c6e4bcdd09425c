/* backoff: keys that could not be had, left out of the pulls of this worker
 * for a while that doubles. So a key that is held for long holds up no other row.
 * Beside them it marks every key that was met so since the last pull from the oldest
 * row.
 */
#ifndef LEDGERLOCK_BACKOFF_H
#define LEDGERLOCK_BACKOFF_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "worker/jobs/resource.h"

enum { BACKOFF_MAX = 1000, BACKOFF_MARKS = 1 << 16 };

/* Why something could not be had. */
enum backoff_cause {
    BACKOFF_LOCKED,
    BACKOFF_NO_TTL,
    BACKOFF_ROW_LOCKED,
    BACKOFF_ERROR
};

struct backoff_entry {
    int64_t id;
    int kind; /* of the resource */
    enum backoff_cause cause;
    unsigned times;
    int64_t until_ms; /* left out until then */
};

struct backoff {
    size_t n;
    struct backoff_entry entries[BACKOFF_MAX];
    unsigned char marks[BACKOFF_MARKS / 8]; /* of keys, by a hash */
    uint64_t salt;                          /* of the hash */
};

/* Notes one that could not be had at now_ms. True if it is new, or for another cause.
 * When there are BACKOFF_MAX, the one that ends first makes room. */
bool backoff_note(
    struct backoff *b, int kind, int64_t id, enum backoff_cause cause, int64_t now_ms);

/* Leaves one that was noted out no longer than until then: its lease ends. */
void backoff_end_by(struct backoff *b, int kind, int64_t id, int64_t at_ms);

/* Forgets one: it was had. */
void backoff_forget(struct backoff *b, int kind, int64_t id);

/* A pull from the oldest row begins: marks those that are left out at now_ms, and
 * nothing else. */
void backoff_mark(struct backoff *b, int64_t now_ms);

/* True if one was met since then, or by chance another was with the same hash, which
 * differs from one such pull to the next. */
bool backoff_is_met(const struct backoff *b, int kind, int64_t id);

/* Ids of a kind that are left out at now_ms, into ids[BACKOFF_MAX]; how many. */
size_t backoff_list(const struct backoff *b, int kind, int64_t now_ms, int64_t *ids);

/* How long until the first that is left out may be pulled again; 0: none is left out.
 * Forgets what ended long ago. */
int64_t backoff_wait_ms(struct backoff *b, int64_t now_ms);

/* "user:42 (its lock is held), ..." of the first few whose pause did not end before
 * since_ms, into buf; returns buf. A key that was had since then has no pause any more.
 */
const char *
backoff_text(const struct backoff *b, int64_t since_ms, char *buf, size_t size);

#endif
