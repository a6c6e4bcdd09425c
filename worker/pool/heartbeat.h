/* heartbeat: one row of the table workers. */
#ifndef LEDGERLOCK_HEARTBEAT_H
#define LEDGERLOCK_HEARTBEAT_H

#include "worker/batch/session.h"

/* A worker's row in the table workers. */
struct heartbeat {
    const char *host;
    const struct counters *elsewhere; /* counted in other cells */
    int64_t written_ms;
    struct counters written;
};

/* Writes the counters, at most once a second, each HEARTBEAT_MS when they did not
 * change; after an error they are written as a whole the next time. Without a usable
 * connection nothing is written, and 0 returned. */
MUST_CHECK int heartbeat(struct heartbeat *h, struct session *s, struct err *e);

/* When the next one is due (clk_ms). */
int64_t heartbeat_due_ms(const struct heartbeat *h);

/* The same at once, over a usable connection. heartbeat_first: of a worker that has
 * just connected; the next is due with its first batch. */
MUST_CHECK int heartbeat_now(struct heartbeat *h, struct session *s, struct err *e);
MUST_CHECK int heartbeat_first(struct heartbeat *h, struct session *s, struct err *e);

#endif
